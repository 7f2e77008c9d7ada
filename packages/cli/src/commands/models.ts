import { SparrowError } from '@sparrow-search/engine';
import type { Command } from 'commander';

import { Context, type ServerOptions, integerOption, jsonOption, withServer } from '../context.js';
import { CommandError } from '../errors.js';
import { whileWaiting } from '../progress.js';
import { bytes, inLine, number, table } from '../terminal.js';
import { addModelCalibrate } from './model-calibrate.js';
import { addModelTest } from './model-test.js';

interface Config {
  readonly model_id: string;
  readonly description?: string;
  readonly model_size_bytes?: number;
  readonly inference_config?: Readonly<Record<string, unknown>>;
}

interface Deployment {
  readonly deployment_id: string;
  readonly state: string;
  readonly number_of_allocations?: number;
  readonly threads_per_allocation: number;
  readonly inference_count?: number;
}

interface Models {
  readonly trained_model_configs: readonly Config[];
}

interface Stats {
  readonly trained_model_stats: readonly { readonly model_id: string; readonly deployment_stats?: Deployment }[];
}

const MODELS = '/_ml/trained_models';
/** Models that are named to who asked for one that is not there. */
const MOST_NAMED = 20;
/** Kinds of models by their task. */
const KINDS: Readonly<Record<string, string>> = { text_embedding: 'dense', text_similarity: 'reranker' };

/** The error of a command whose model is not there, with those that are; any other error as it is. */
async function namingModels({ remote }: Context, error: unknown, model: string): Promise<unknown> {
  if (!(error instanceof SparrowError) || error.status !== 404) return error;
  const { trained_model_configs: configs } = await remote
    .request<Models>('GET', MODELS, { query: { size: 1000 } })
    .catch((): Models => ({ trained_model_configs: [] }));
  if (configs.length === 0) return error;
  const ids = configs.slice(0, MOST_NAMED).map(({ model_id: id }) => inLine(id));
  const more = configs.length > MOST_NAMED ? ` and ${number(configs.length - MOST_NAMED)} more` : '';
  return new CommandError(`there is no model [${inLine(model)}]: there are ${ids.join(', ')}${more}`, { cause: error });
}

/** `sparrow models`: which models there are, and which are at work. */
export function addModels(program: Command): void {
  const models = program.command('models').description('list, start, stop, try and calibrate models');

  withServer(
    models.command('list', { isDefault: true }).description('list all models and their deployments'),
    jsonOption('a list of {id, kind, description, bytes, deployments}'),
  ).action(async (options: ServerOptions) => {
    const context = new Context(options);
    const { remote } = context;
    const [{ trained_model_configs: configs }, { trained_model_stats: stats }] = await Promise.all([
      remote.request<Models>('GET', MODELS, { query: { size: 1000 } }),
      remote.request<Stats>('GET', `${MODELS}/_all/_stats`, { query: { size: 1000 } }),
    ]);
    const found = configs.map((config) => ({
      id: config.model_id,
      kind: KINDS[Object.keys(config.inference_config ?? {})[0] ?? ''] ?? 'sparse',
      description: config.description ?? '',
      bytes: config.model_size_bytes ?? 0,
      deployments: stats.flatMap((one) =>
        one.model_id === config.model_id && one.deployment_stats !== undefined ? [one.deployment_stats] : [],
      ),
    }));
    context.show(found, (out) =>
      table(
        out,
        ['model', 'kind', 'size', 'state', 'workers', 'texts', 'what'],
        found.flatMap(({ id, kind, bytes: size, deployments, description }) => {
          if (deployments.length === 0) return [[id, kind, bytes(size), out.dim('not started'), '', '', description]];
          return deployments.map((one) => [
            one.deployment_id === id ? id : `${id} as ${one.deployment_id}`,
            kind,
            bytes(size),
            one.state === 'started' ? out.good(one.state) : one.state,
            number(one.number_of_allocations ?? 0),
            number(one.inference_count ?? 0),
            description,
          ]);
        }),
        'size workers texts',
      ),
    );
  });

  withServer(
    models
      .command('start')
      .description('deploy a model')
      .argument('<model>', 'id of the model')
      .addOption(integerOption('--workers <n>', 'texts to encode at the same time', 1)),
    jsonOption('the answer of POST /_ml/trained_models/MODEL/deployment/_start'),
  ).action(async (model: string, options: ServerOptions & { workers?: number }) => {
    const context = new Context(options);
    const query = { wait_for: 'started', number_of_allocations: options.workers };
    const path = `${MODELS}/${encodeURIComponent(model)}/deployment/_start`;
    const answer = await whileWaiting(
      context.terminal.err,
      `${inLine(model)} is starting; a large model takes some seconds the first time`,
      context.remote.request('POST', path, { query }),
    ).catch(async (error: unknown) => {
      throw await namingModels(context, error, model);
    });
    context.show(answer, () => `${model} is started\n`);
  });

  withServer(
    models
      .command('stop')
      .description('stop a deployment')
      .argument('<deployment>', 'id of the deployment, or of its model')
      .option('--force', 'even if pipelines or endpoints use it'),
    jsonOption('the answer of POST /_ml/trained_models/ID/deployment/_stop'),
  ).action(async (deployment: string, options: ServerOptions & { force?: boolean }) => {
    const context = new Context(options);
    const { trained_model_stats: stats } = await context.remote.request<Stats>('GET', `${MODELS}/_all/_stats`, {
      query: { size: 1000 },
    });
    const isStarted = stats.some(
      ({ model_id: model, deployment_stats: one }) =>
        one !== undefined && (model === deployment || one.deployment_id === deployment),
    );
    const path = `${MODELS}/${encodeURIComponent(deployment)}/deployment/_stop`;
    const answer = await context.remote.request('POST', path, { query: { force: options.force } });
    context.show(answer, () => `${deployment} ${isStarted ? 'is stopped' : 'was not started'}\n`);
  });

  addModelTest(models);
  addModelCalibrate(models);
}
