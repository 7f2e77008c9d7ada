import { setTimeout as sleep } from 'node:timers/promises';

import type { Cancel, EngineReply, EngineRequest, Operation, SearchEngine } from '@sparrow-search/engine';

import { bulk } from './bulk.js';
import { Deployments } from './deployments.js';
import { changeDocument, writeDocument } from './documents.js';
import { DynamicFields } from './dynamic-fields.js';
import { Endpoints } from './endpoints.js';
import { illegal, notOverCluster, unparsable } from './errors.js';
import { askedCapabilities, shownCapabilities } from './field-capabilities.js';
import { FieldModels } from './field-models.js';
import { FinalPipelines } from './final-pipelines.js';
import { forward, isForwarded } from './forward.js';
import {
  changeAliases,
  createIndex,
  getMappings,
  getTemplates,
  makeFromAnother,
  putMapping,
  putSettings,
  putTemplate,
} from './indices.js';
import { asBuffer, parseAnswer } from './json.js';
import { KnownIndices } from './known-indices.js';
import { byId, saysVectors } from './left-out-vectors.js';
import { type Asker, Names } from './names.js';
import { Pipelines } from './pipelines.js';
import { type Product, UnsupportedClusterError, recognise } from './product.js';
import { rankEval } from './rank-eval.js';
import { storedPassages, writePassages } from './moved-passages.js';
import { Reads } from './reads.js';
import { stoppable } from './replies.js';
import { msearch, search } from './search.js';
import { Seals } from './seals.js';
import { SemanticFields } from './semantic-fields.js';
import { SharedState } from './shared-state.js';
import { isOfSnapshots, snapshots } from './snapshots.js';
import { Tasks } from './tasks.js';
import { type ClusterOptions, ClusterSettingsError, Transport } from './transport.js';
import { Turns } from './turns.js';
import { VectorFields } from './vector-fields.js';

/** What is told of an engine over a cluster. */
export interface ClusterLog {
  info(message: string, fields: Record<string, unknown>): void;
  warn(message: string, fields: Record<string, unknown>): void;
}

/** How long a start waits before it asks a cluster again that did not answer; twice as long each time, up to the second. */
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 10_000;

/** Operations of the native engine: its models are used, its documents never. */
const NATIVE: ReadonlySet<Operation> = new Set<Operation>([
  ...(['get_trained_models', 'ml_info', 'put_trained_model', 'delete_trained_model'] as const),
  ...(['put_trained_model_definition_part', 'put_trained_model_vocabulary', 'put_trained_model_alias'] as const),
  'delete_trained_model_alias',
  ...(['trained_model_stats', 'infer_trained_model'] as const),
  ...(['infer_stream', 'embed_sparse', 'cat_trained_models', 'cat_help', 'instruments'] as const),
  // What is told of this server's own process; it holds no index.
  ...(['node_indices'] as const),
]);

/** What the cluster carries out as it is, and after which names stand for other indices, or for none. */
const REPLACES: ReadonlySet<Operation> = new Set([
  ...(['delete_index', 'create_data_stream', 'delete_data_stream'] as const),
  ...(['delete_index_template', 'delete_component_template', 'restore_snapshot'] as const),
]);

/** The engine that is over a cluster: the cluster holds documents and vectors, and the engine of this process the models. */
export class ClusterSearchEngine implements SearchEngine {
  readonly product: Product;
  /** Texts that the nodes of one cluster have in common. */
  readonly state: SharedState;
  readonly #native: SearchEngine;
  /** The native engine for requests that name endpoints or models: it looks for those that other servers have just made. */
  readonly #latest: SearchEngine;
  readonly #transport: Transport;
  readonly #names: Names;
  readonly #pipelines: Pipelines;
  readonly #endpoints: Endpoints;
  readonly #deployments: Deployments;
  readonly #tasks: Tasks;
  readonly #reads: Reads;
  readonly #models: FieldModels;
  readonly #vectors: VectorFields;
  readonly #semantic: SemanticFields;
  readonly #seals: Seals;
  readonly #finals: FinalPipelines;
  readonly #dynamic: DynamicFields;
  readonly #indices: KnownIndices;
  readonly #log: ClusterLog;

  private constructor(
    native: SearchEngine,
    transport: Transport,
    product: Product,
    { state, tasks }: Pick<Opened, 'state' | 'tasks'>,
    log: ClusterLog,
  ) {
    this.product = product;
    this.state = state;
    this.#log = log;
    this.#native = native;
    this.#transport = transport;
    this.#names = new Names(native, transport);
    this.#pipelines = new Pipelines(native, state);
    this.#deployments = new Deployments(native, state, log);
    this.#tasks = tasks;
    const turns = new Turns(state);
    const indices = new KnownIndices(transport);
    this.#indices = indices;
    this.#endpoints = new Endpoints(native, state, log, (id) => this.#semantic.using(id));
    const latest = this.#endpoints.latest();
    this.#latest = latest;
    this.#models = new FieldModels(latest, transport, indices, turns);
    this.#vectors = new VectorFields(indices, product);
    this.#semantic = new SemanticFields(latest, transport, indices, product, turns);
    const [names, models, vectors, semantic] = [this.#names, this.#models, this.#vectors, this.#semantic];
    this.#finals = new FinalPipelines(transport, indices, turns);
    this.#dynamic = new DynamicFields({ transport, product, indices, semantic });
    this.#seals = new Seals(state, names);
    this.#reads = new Reads({
      native: latest,
      transport,
      product,
      names,
      models,
      vectors,
      semantic,
      seals: this.#seals,
    });
  }

  /**
   * Waits for a cluster that answers, and opens the engine over it.
   *
   * @param native the engine that has the models; it is closed with this one
   * @param signal ends the waiting
   * @throws {ClusterSettingsError} for settings that cannot be used, {@link UnsupportedClusterError} for a cluster that is not one of
   * those that Sparrow knows
   */
  static async open(
    native: SearchEngine,
    options: ClusterOptions,
    log: ClusterLog,
    signal?: AbortSignal,
  ): Promise<ClusterSearchEngine> {
    const transport = new Transport(options);
    try {
      const { product, state, tasks } = await opened(transport, options, log, signal);
      log.info('over a cluster', { cluster: options.nodes, product: product.name, version: product.version });
      const engine = new ClusterSearchEngine(native, transport, product, { state, tasks }, log);
      await engine.#endpoints.start();
      const { names, pipelines, models, vectors, semantic, seals, finals, dynamic } = {
        names: engine.#names,
        pipelines: engine.#pipelines,
        models: engine.#models,
        vectors: engine.#vectors,
        semantic: engine.#semantic,
        seals: engine.#seals,
        finals: engine.#finals,
        dynamic: engine.#dynamic,
      };
      if (options.takesTasks !== false) {
        const work = { names, pipelines, models, vectors, semantic, seals, finals, dynamic };
        tasks.start({ ...work, transport, product, native: engine.#latest, log });
        engine.#deployments.start();
      }
      return engine;
    } catch (error) {
      await transport.close();
      throw error;
    }
  }

  async execute(request: EngineRequest, body?: Uint8Array, cancel?: Cancel): Promise<EngineReply> {
    const parts = { refused: false };
    const asked: EngineRequest & Asker = { ...request, refused: () => (parts.refused = true) };
    try {
      return told(await this.#answer(asked, body, cancel), parts.refused && HAS_PARTS.has(request.op));
    } catch (error) {
      // Looking through a body takes a place on the stack for each of its levels.
      if (error instanceof RangeError) throw unparsable('the body is nested too deeply');
      // A name in a body may hold half of a character, of which no address can be made.
      if (error instanceof URIError) throw illegal('a name or a value holds a surrogate without the other one');
      throw error;
    } finally {
      // What has the name next may be another index.
      if (REPLACES.has(request.op)) this.#indices.forget();
    }
  }

  async #answer(asked: EngineRequest, sent?: Uint8Array, cancel?: Cancel): Promise<EngineReply> {
    const { op } = asked;
    const [request, body] = saysVectors(asked, sent) ? await byId(this.#vectors, asked, sent) : [asked, sent];
    if (NATIVE.has(op)) return this.#native.execute(request, body, cancel);
    if (isForwarded(op)) {
      const context = { transport: this.#transport, names: this.#names };
      const { request: passed, filters } =
        op === 'field_caps' ? askedCapabilities(this.product, request) : { request, filters: [] };
      const reply = await stoppable(cancel, (signal) => forward(context, passed, body, signal));
      if (op !== 'field_caps' && op !== 'get_settings') return reply;
      const expression = (await this.#names.expression(request, request.path['index'])) ?? '';
      if (op === 'get_settings') return this.#withFinals(request, expression, reply);
      return shownCapabilities(this.#semantic, expression, reply, filters);
    }
    if (isOfSnapshots(op)) {
      const [native, transport, names] = [this.#native, this.#transport, this.#names];
      return snapshots({ native, transport, product: this.product, names, state: this.state }, request, body);
    }
    const [transport, names, models, vectors] = [this.#transport, this.#names, this.#models, this.#vectors];
    const [semantic, seals, finals] = [this.#semantic, this.#seals, this.#finals];
    const searching = {
      native: this.#latest,
      transport,
      product: this.product,
      names,
      models,
      vectors,
      semantic,
      seals,
      finals,
      indices: this.#indices,
    };
    const writing = {
      transport,
      names,
      pipelines: this.#pipelines,
      models,
      vectors,
      semantic,
      finals,
      dynamic: this.#dynamic,
      log: this.#log,
    };
    switch (op) {
      case 'search':
      case 'count':
      case 'validate_query':
        return search(searching, request, body, cancel);
      case 'msearch':
        return msearch(searching, request, body, cancel);
      case 'rank_eval':
        return rankEval(searching, request, body, cancel);
      case 'explain':
      case 'mget':
      case 'scroll':
      case 'clear_scroll':
      case 'open_point_in_time':
      case 'close_point_in_time':
        return this.#reads.answer(request, body, cancel);
      case 'index_doc':
      case 'create_doc':
        return writeDocument(writing, request, body);
      case 'delete_doc':
      case 'update_doc':
        return changeDocument(writing, request, body);
      case 'bulk':
        return bulk(writing, request, body, cancel);
      case 'stored_passages':
        return storedPassages(writing, request, body);
      case 'write_passages':
        return writePassages(writing, request, body);
      case 'create_index':
        return createIndex(searching, request, body);
      case 'rollover':
      case 'clone_index':
      case 'shrink_index':
      case 'split_index':
        return makeFromAnother(searching, request, body);
      case 'put_mapping':
        return putMapping(searching, request, body);
      case 'get_mapping':
      case 'get_index':
        return getMappings(searching, request);
      case 'put_settings':
        return putSettings(searching, request, body);
      case 'update_aliases':
      case 'put_alias':
      case 'delete_alias':
        return changeAliases(searching, request, body);
      case 'put_index_template':
      case 'put_component_template':
        return putTemplate(searching, request, body);
      case 'get_index_template':
      case 'get_component_template':
        return getTemplates(searching, request);
      case 'put_pipeline':
      case 'delete_pipeline':
        return this.#pipelines.change(request, body);
      case 'stop_deployment':
        // What uses a deployment, which only `force` stops then, is asked of copies.
        await Promise.all([this.#pipelines.sync(), this.#endpoints.sync()]);
        return this.#deployments.change(request, body);
      case 'start_deployment':
      case 'update_deployment':
        return this.#deployments.change(request, body);
      case 'delete_inference':
        await this.#pipelines.sync();
        return this.#endpoints.change(request, body);
      case 'put_inference':
      case 'update_inference':
        return this.#endpoints.change(request, body);
      case 'get_inference':
        return this.#endpoints.read(request, body, cancel);
      case 'infer':
        return this.#endpoints.use(request, body, cancel);
      case 'get_pipeline':
      case 'simulate_pipeline':
        return this.#pipelines.read(request, body, cancel);
      case 'reindex':
      case 'get_task':
      case 'list_tasks':
      case 'cancel_task':
      case 'delete_by_query':
      case 'update_by_query':
      case 'upgrade_index':
      case 'get_field_models':
      case 'change_model':
      case 'switch_model':
      case 'roll_back_model':
      case 'drop_model':
        return this.#tasks.answer(request, body, cancel);
      default:
        throw notOverCluster(`the operation [${op}]`);
    }
  }

  /** Settings of indices with their final pipelines, which the cluster does not have. */
  async #withFinals({ query, path }: EngineRequest, expression: string, reply: EngineReply): Promise<EngineReply> {
    if (reply.status !== 200 || expression === '') return reply;
    const found = parseAnswer(asBuffer(reply.body)) as Readonly<Record<string, unknown>>;
    const shown = await this.#finals.shown(expression, query, found, path['name']);
    return { ...reply, body: Buffer.from(JSON.stringify(shown)) };
  }

  async close(): Promise<void> {
    this.#endpoints.close();
    this.#deployments.close();
    await this.#tasks.close();
    await this.#transport.close();
    await this.#native.close();
  }
}

interface Opened {
  readonly product: Product;
  readonly state: SharedState;
  readonly tasks: Tasks;
}

async function opened(
  transport: Transport,
  { nodes, vectorEngine }: ClusterOptions,
  log: ClusterLog,
  signal: AbortSignal | undefined,
): Promise<Opened> {
  for (let wait = FIRST_WAIT_MS; ; wait = Math.min(wait * 2, LONGEST_WAIT_MS)) {
    try {
      const product = await recognise(transport, vectorEngine);
      return { product, state: await SharedState.open(transport), tasks: await Tasks.open(transport) };
    } catch (error) {
      if (error instanceof UnsupportedClusterError || error instanceof ClusterSettingsError) throw error;
      const reason = reasonOf(error);
      log.warn('the cluster cannot be used yet', { cluster: nodes, error: reason, retry_in_ms: wait });
      await sleep(wait, undefined, { signal }).catch(() => undefined);
      if (signal?.aborted === true) throw error;
    }
  }
}

function reasonOf(error: unknown): string {
  if (typeof error === 'object' && error !== null && 'reason' in error) return String(error.reason);
  return error instanceof Error ? error.message : String(error);
}

/** Bytes of the longest beginning of an answer that holds both names: an index of 255 bytes and an id of 512, each escaped as up to six. */
const LONGEST_BEGINNING = 8 * 1024;

/** The names with which the answer to a write begins. An old cluster says a type as well. */
const NAMES = /^\{"_index":("(?:[^"\\]|\\.)*"),(?:"_type":"\w*",)?"_id":("(?:[^"\\]|\\.)*")[,}]/;

/** The operations of which some parts may be refused while others are answered. */
const HAS_PARTS: ReadonlySet<Operation> = new Set<Operation>(['bulk', 'mget', 'msearch', 'multi_term_vectors']);

/** Adds to a reply what the native engine reports beside its body. */
function told(reply: EngineReply, refusedParts: boolean): EngineReply {
  const { body, status } = reply;
  const bytes = asBuffer(body);
  if (status === 201) {
    // Behind the names, an update shows the whole document, if it is asked for.
    const names = NAMES.exec(bytes.subarray(0, LONGEST_BEGINNING).toString());
    if (names !== null) return { ...reply, created: names.slice(1).map((name) => JSON.parse(name) as string) };
  }
  return refusedParts ? { ...reply, refusedParts } : reply;
}
