import { type Answer, json } from '../exchange/respond.js';
import type { Ask } from './ask.js';
import { modelNotFound, refused } from './errors.js';

/** What a model is for; the first two are the tasks of these interfaces. */
export type Task = 'text_embedding' | 'rerank' | 'sparse_embedding' | 'hybrid_embedding';

/** A model as `GET _ml/trained_models` shows it. */
export interface Config {
  readonly model_id: string;
  readonly created_by?: string;
  readonly create_time?: number;
  readonly fully_defined?: boolean;
  readonly inference_config?: Readonly<Record<string, { readonly embedding_size?: number } | undefined>>;
  readonly input?: { readonly field_names?: readonly string[] };
  readonly metadata?: Readonly<Record<string, unknown>>;
}

interface Endpoint {
  readonly inference_id: string;
  readonly task_type: Task;
  readonly service_settings?: { readonly model_id?: string };
}

/** Everything that may stand in `model`. */
interface All {
  readonly endpoints: readonly Endpoint[];
  readonly models: readonly Config[];
}

/** What a request named. */
export interface Chosen {
  /** The name as it was given. */
  readonly name: string;
  /** The endpoint that encodes; none for a model without one. */
  readonly endpoint: string | undefined;
  /** The model, if it is known. */
  readonly config: Config | undefined;
}

/** What models of a task do, in the words of a refusal. */
const MAKES: Readonly<Record<Task, string>> = {
  text_embedding: 'makes dense vectors',
  rerank: 'scores texts for a question',
  sparse_embedding: 'makes sparse vectors',
  hybrid_embedding: 'makes a sparse and a dense vector of each text',
};

/** Models of which the list shows all: more than any server has. */
const MOST_MODELS = '10000';

/** The tasks of models, by how their configuration calls what they compute. */
const TASKS: readonly (readonly [config: string, task: Task])[] = [
  ['text_embedding', 'text_embedding'],
  ['text_similarity', 'rerank'],
  ['text_expansion', 'sparse_embedding'],
];

/**
 * The endpoint or model of a name.
 *
 * @throws {HttpError} 404 if there is no such model, 400 for one of another task
 */
export async function choose(ask: Ask, name: string, task: Task): Promise<Chosen> {
  const all = await everything(ask);
  const endpoint = all.endpoints.find(({ inference_id: id }) => id === name);
  const config = modelOf(all, endpoint === undefined ? name : endpoint.service_settings?.model_id);
  const found = endpoint?.task_type ?? (config === undefined ? undefined : taskOf(config));
  const fitting = namesFor(all, task);
  const there = fitting.length === 0 ? 'there is none for this' : `there are [${fitting.join(', ')}]`;
  if (found === undefined) throw modelNotFound(`the model [${name}] does not exist: ${there}`);
  if (found !== task) throw refused('model', `[${name}] ${MAKES[found]}${elsewhere(found, name, endpoint)}; ${there}`);
  // An endpoint starts its model by itself, which a client that names the model expects here.
  const own = config === undefined ? undefined : endpointOf(all, config, task);
  return { name, endpoint: endpoint?.inference_id ?? own, config };
}

/** Where to get what is not to be had here. */
function elsewhere(task: Task, name: string, endpoint: Endpoint | undefined): string {
  if (task !== 'sparse_embedding' && task !== 'hybrid_embedding') return '';
  const path = endpoint === undefined ? `/_ml/trained_models/${name}/_infer` : `/_inference/${task}/${name}`;
  return `, which this interface has no place for: use POST ${path}`;
}

/** Answers `GET /v1/models`. */
export async function listModels(ask: Ask): Promise<Answer> {
  return json(200, { object: 'list', data: described(await everything(ask)) });
}

/**
 * Answers `GET /v1/models/{model}`.
 *
 * @throws {HttpError} 404 if there is no such model
 */
export async function showModel(ask: Ask, name: string): Promise<Answer> {
  const all = await everything(ask);
  const alias = all.endpoints.some(({ inference_id: id }) => id === name) ? undefined : modelOf(all, name);
  const found = described(all).find(({ id }) => id === (alias?.model_id ?? name));
  if (found === undefined) throw modelNotFound(`the model [${name}] does not exist`);
  return json(200, { ...found, id: name });
}

interface Described {
  readonly id: string;
  readonly object: 'model';
  /** When it was made, in seconds. */
  readonly created: number;
  readonly owned_by: string;
}

/** What the lists show: endpoints, then models, of the tasks that these interfaces have. */
function described(all: All): readonly Described[] {
  const shown = (id: string, config: Config | undefined): Described => ({
    id,
    object: 'model',
    created: Math.floor((config?.create_time ?? 0) / 1000),
    owned_by: config === undefined || config.created_by === '_xpack' ? 'sparrow' : 'user',
  });
  return [
    ...all.endpoints
      .filter(({ task_type: task }) => isServed(task))
      .map(({ inference_id: id, service_settings: settings }) => shown(id, modelOf(all, settings?.model_id))),
    ...all.models.filter((config) => isServed(taskOf(config))).map((config) => shown(config.model_id, config)),
  ];
}

function isServed(task: Task | undefined): boolean {
  return task === 'text_embedding' || task === 'rerank';
}

/** Names of endpoints and models of a task. */
function namesFor({ endpoints, models }: All, task: Task): readonly string[] {
  return [
    ...endpoints.filter(({ task_type: of }) => of === task).map(({ inference_id: id }) => id),
    ...models.filter((config) => taskOf(config) === task).map(({ model_id: id }) => id),
  ];
}

async function everything(ask: Ask): Promise<All> {
  const [{ endpoints }, { trained_model_configs: models }] = await Promise.all([
    ask('get_inference'),
    ask('get_trained_models', { query: { size: MOST_MODELS } }),
  ]);
  return { endpoints: endpoints as readonly Endpoint[], models: models as readonly Config[] };
}

/** What a model that can be used computes. */
function taskOf({ inference_config: config, fully_defined: isWhole }: Config): Task | undefined {
  return isWhole === false ? undefined : TASKS.find(([kind]) => config?.[kind] !== undefined)?.[1];
}

/** The model of an id or an alias. */
function modelOf({ models }: All, name: string | undefined): Config | undefined {
  return models.find((config) => config.model_id === name) ?? models.find((config) => aliases(config).includes(name));
}

function aliases({ metadata = {} }: Config): readonly unknown[] {
  const lists = [metadata['aliases'], metadata['model_aliases']];
  return lists.flatMap((list): readonly unknown[] => (Array.isArray(list) ? list : []));
}

/** The id of an endpoint that encodes with a model. */
function endpointOf(all: All, config: Config, task: Task): string | undefined {
  return all.endpoints.find(
    ({ task_type: of, service_settings: settings }) => of === task && modelOf(all, settings?.model_id) === config,
  )?.inference_id;
}
