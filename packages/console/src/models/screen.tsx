// Models: what is there, what is at work, how much it does and how long a text takes.
import type { JSX } from 'preact';
import { useRef, useState } from 'preact/hooks';

import { call, optional } from '../lib/api';
import { bytes, count, duration, plural } from '../lib/format';
import { useLoad } from '../lib/load';
import { Head, Problem, Sure } from '../shell/parts';

interface Config {
  readonly model_id: string;
  readonly description?: string;
  readonly model_size_bytes?: number;
  readonly inference_config?: Readonly<Record<string, unknown>>;
  /** Other names that the model answers to. */
  readonly metadata?: { readonly aliases?: readonly string[] };
}

interface NodeStats {
  readonly routing_state?: { readonly routing_state: string };
  readonly inference_count?: number;
  readonly average_inference_time_ms?: number;
  readonly average_inference_time_ms_last_minute?: number;
  readonly inference_cache_hit_count?: number;
  readonly number_of_pending_requests?: number;
  readonly throughput_last_minute?: number;
  readonly error_count?: number;
  readonly rejected_execution_count?: number;
}

interface Deployment {
  readonly deployment_id: string;
  readonly model_id: string;
  readonly state?: string;
  readonly number_of_allocations?: number;
  readonly threads_per_allocation?: number;
  readonly queue_capacity?: number;
  readonly rejected_execution_count?: number;
  readonly nodes?: readonly NodeStats[];
}

interface Stats {
  readonly model_id: string;
  readonly pipeline_count?: number;
  readonly deployment_stats?: Deployment;
}

interface Endpoint {
  readonly inference_id: string;
  readonly task_type: string;
  readonly service_settings?: {
    readonly model_id?: string;
    readonly sparse_inference_id?: string;
    readonly dense_inference_id?: string;
  };
}

const WATCH_MS = 2000;
/** How many measurements the line of a deployment is drawn of. */
const POINTS = 60;

export function ModelsScreen(): JSX.Element {
  const counts = useRef(new Map<string, { at: number; total: number; rates: number[] }>());
  const [failure, setFailure] = useState('');
  const { value, error, reload } = useLoad(
    async () => {
      const [configs, stats, endpoints] = await Promise.all([
        call<{ trained_model_configs: Config[] }>('GET', '/_ml/trained_models?size=1000'),
        call<{ trained_model_stats: Stats[] }>('GET', '/_ml/trained_models/_stats?size=1000'),
        optional<{ endpoints: Endpoint[] }>({ endpoints: [] }, 'GET', '/_inference/_all'),
      ]);
      for (const { deployment_stats: deployment } of stats.trained_model_stats) {
        if (deployment !== undefined) measure(counts.current, deployment);
      }
      return {
        configs: configs.trained_model_configs,
        stats: stats.trained_model_stats,
        endpoints: endpoints.endpoints,
      };
    },
    [],
    WATCH_MS,
  );
  const act = (work: Promise<unknown>): void => {
    work.then(
      () => {
        setFailure('');
        reload();
      },
      (reason: unknown) => {
        setFailure((reason as Error).message);
      },
    );
  };
  return (
    <>
      <Head title="Models" />
      <Problem text={error} />
      <Problem text={failure} />
      <ul class="models">
        {value?.configs.map((config) => (
          <li key={config.model_id} class="model">
            <ModelCard
              config={config}
              deployments={value.stats.flatMap(({ model_id: id, deployment_stats: one }) =>
                one !== undefined && id === config.model_id ? [one] : [],
              )}
              rates={(id) => counts.current.get(id)?.rates ?? []}
              onAct={act}
            />
          </li>
        ))}
      </ul>
      {value !== undefined && value.endpoints.length > 0 && (
        <section>
          <h2>Inference endpoints</h2>
          <div class="scroll" tabIndex={0} role="region" aria-label="Inference endpoints">
            <table>
              <thead>
                <tr>
                  <th>Endpoint</th>
                  <th>Task</th>
                  <th>Model, or endpoints</th>
                </tr>
              </thead>
              <tbody>
                {value.endpoints.map(({ inference_id: id, task_type: task, service_settings: settings }) => (
                  <tr key={id}>
                    <td>
                      <code>{id}</code>
                    </td>
                    <td>{task.replaceAll('_', ' ')}</td>
                    <td>{modelOf(settings, value.configs)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </section>
      )}
    </>
  );
}

/** The model of an endpoint, and which one that is if it goes by another name, or the endpoints that it asks. */
function modelOf(
  { model_id: model, sparse_inference_id: sparse, dense_inference_id: dense }: Endpoint['service_settings'] = {},
  configs: readonly Config[],
): string {
  if (model === undefined) return [sparse, dense].filter((id) => id !== undefined).join(' and ');
  const known = configs.find(({ metadata }) => metadata?.aliases?.includes(model));
  return known === undefined ? model : `${model}, an alias of ${known.model_id}`;
}

function totalOf({ nodes = [] }: Deployment): number {
  return nodes.reduce(
    (all, { inference_count: done = 0, inference_cache_hit_count: hits = 0 }) => all + done + hits,
    0,
  );
}

/** Adds what was done since the last look. */
function measure(counts: Map<string, { at: number; total: number; rates: number[] }>, deployment: Deployment): void {
  const [at, total] = [performance.now(), totalOf(deployment)];
  const before = counts.get(deployment.deployment_id);
  const rates =
    before === undefined ? [] : [...before.rates, Math.max(0, ((total - before.total) / (at - before.at)) * 1000)];
  counts.set(deployment.deployment_id, { at, total, rates: rates.slice(-POINTS) });
}

const KINDS: Readonly<Record<string, string>> = {
  text_expansion: 'sparse: texts to weighted tokens',
  text_embedding: 'dense: texts to vectors',
  text_similarity: 'reranking: how well texts answer a question',
};

interface CardProps {
  readonly config: Config;
  readonly deployments: readonly Deployment[];
  readonly rates: (id: string) => readonly number[];
  readonly onAct: (work: Promise<unknown>) => void;
}

function ModelCard({ config, deployments, rates, onAct }: CardProps): JSX.Element {
  const [starting, setStarting] = useState(false);
  const aliases = config.metadata?.aliases ?? [];
  const kind = Object.keys(config.inference_config ?? {}).find((name) => Object.hasOwn(KINDS, name));
  const path = `/_ml/trained_models/${encodeURIComponent(config.model_id)}/deployment`;
  return (
    <>
      <div class="one-head">
        <h2>{config.model_id}</h2>
        {deployments.length === 0 && (
          <button
            type="button"
            class="quiet"
            disabled={starting}
            onClick={() => {
              setStarting(true);
              onAct(
                call('POST', `${path}/_start?wait_for=started`).finally(() => {
                  setStarting(false);
                }),
              );
            }}
          >
            {starting ? 'Starting …' : 'Start'}
          </button>
        )}
      </div>
      <p class="small">
        {kind === undefined ? '' : KINDS[kind]}
        {config.model_size_bytes === undefined ? '' : ` · ${bytes(config.model_size_bytes)}`}
        {config.description === undefined ? '' : ` · ${config.description}`}
      </p>
      {aliases.length > 0 && <p class="small">Also known as {aliases.join(', ')}.</p>}
      {deployments.length === 0 && (
        <p class="small" role="status">
          {starting ? 'It is starting. A large model takes some seconds the first time.' : 'Not started.'}
        </p>
      )}
      {deployments.map((deployment) => (
        <DeploymentRow
          key={deployment.deployment_id}
          deployment={deployment}
          rates={rates(deployment.deployment_id)}
          onAct={onAct}
        />
      ))}
    </>
  );
}

function DeploymentRow({
  deployment,
  rates,
  onAct,
}: {
  readonly deployment: Deployment;
  readonly rates: readonly number[];
  readonly onAct: CardProps['onAct'];
}): JSX.Element {
  const { nodes = [], number_of_allocations: allocations = 0 } = deployment;
  const [node] = nodes;
  const pending = nodes.reduce((all, { number_of_pending_requests: one = 0 }) => all + one, 0);
  const hits = nodes.reduce((all, { inference_cache_hit_count: one = 0 }) => all + one, 0);
  // Of a minute without texts the server says 0.
  const latest = node?.average_inference_time_ms_last_minute ?? 0;
  const latency = latest > 0 ? latest : node?.average_inference_time_ms;
  const path = `/_ml/trained_models/${encodeURIComponent(deployment.deployment_id)}/deployment`;
  const total = totalOf(deployment);
  const rows: [string, string][] = [
    ['texts', count(total)],
    ['in the last minute', count(node?.throughput_last_minute ?? 0)],
    ['a text takes', latency === undefined ? '–' : duration(latency)],
    ['from the cache', total === 0 ? '–' : `${Math.round((hits / total) * 100)} %`],
    ['waiting', `${count(pending)} of ${count(deployment.queue_capacity ?? 0)}`],
    ['refused', count(deployment.rejected_execution_count ?? 0)],
  ];
  return (
    <div class="deployment">
      <div class="one-head">
        <h3>
          {deployment.deployment_id}{' '}
          <span class={`state ${deployment.state ?? ''}`}>{deployment.state ?? 'unknown'}</span>
        </h3>
        <span class="stepper">
          <button
            type="button"
            class="icon-only"
            aria-label={`Remove a worker from ${deployment.deployment_id}`}
            disabled={allocations <= 1}
            onClick={() => {
              onAct(call('POST', `${path}/_update`, { number_of_allocations: allocations - 1 }));
            }}
          >
            −
          </button>
          {plural(allocations, 'worker')}
          <button
            type="button"
            class="icon-only"
            aria-label={`Add a worker to ${deployment.deployment_id}`}
            onClick={() => {
              onAct(call('POST', `${path}/_update`, { number_of_allocations: allocations + 1 }));
            }}
          >
            +
          </button>
        </span>
        <Sure
          label="Stop"
          question="Searches by meaning fail without it. Stop it?"
          onYes={() => {
            onAct(call('POST', `${path}/_stop`));
          }}
        />
      </div>
      <dl class="figures">
        {rows.map(([label, text]) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      <Sparkline values={rates} label={`Texts a second of ${deployment.deployment_id}`} />
    </div>
  );
}

const [WIDTH, HEIGHT] = [600, 56];

/** Texts a second since the page was opened, as a line. */
function Sparkline({ values, label }: { readonly values: readonly number[]; readonly label: string }): JSX.Element {
  const most = Math.max(0, ...values);
  const step = WIDTH / (POINTS - 1);
  const begin = WIDTH - (values.length - 1) * step;
  const points = values.map(
    (value, at) =>
      `${(begin + at * step).toFixed(1)},${(HEIGHT - 4 - (value / Math.max(1, most)) * (HEIGHT - 12)).toFixed(1)}`,
  );
  const now = values.at(-1) ?? 0;
  return (
    <figure class="sparkline">
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${label}: ${count(now)} now, at most ${count(most)}`}
      >
        <path class="ground" d={`M0 ${HEIGHT - 4}H${WIDTH}`} />
        {points.length > 1 && <polyline points={points.join(' ')} />}
      </svg>
      <figcaption class="small">
        {count(now)} texts a second now; the most since you opened this page: {count(most)}
      </figcaption>
    </figure>
  );
}
