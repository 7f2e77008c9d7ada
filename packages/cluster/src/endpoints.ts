import {
  type Cancel,
  EngineError,
  type EngineReply,
  type EngineRequest,
  type SearchEngine,
} from '@sparrow-search/engine';

import type { ClusterLog } from './cluster-engine.js';
import { refusal } from './errors.js';
import { type Json, isObject, isSet, textOf } from './json.js';
import { Lookout } from './lookout.js';
import { type Definitions, type NativeCopy, SharedDefinitions } from './shared-definitions.js';
import type { SharedState } from './shared-state.js';

/**
 * Inference endpoints: those that were made are kept in the cluster for all of Sparrow's servers, and run by the native engine of each. Every
 * server has the built-in ones by itself. A server whose models do not include that of an endpoint serves all others, and says in its log
 * what it lacks.
 */
export class Endpoints {
  readonly #native: SearchEngine;
  readonly #copy: EndpointCopy;
  readonly #shared: SharedDefinitions;
  readonly #usedIn: (id: string) => Promise<readonly string[]>;
  readonly #lookout: Lookout;

  /** @param usedIn the indices that use an endpoint, which are the cluster's */
  constructor(
    native: SearchEngine,
    state: SharedState,
    log: ClusterLog,
    usedIn: (id: string) => Promise<readonly string[]>,
  ) {
    this.#native = native;
    this.#usedIn = usedIn;
    this.#copy = new EndpointCopy(native, log);
    this.#shared = new SharedDefinitions(state, 'endpoints', this.#copy);
    this.#lookout = new Lookout(
      () => this.sync(),
      (error) => {
        log.warn('inference endpoints of the other servers cannot be read', { error: String(error) });
      },
    );
  }

  /** Makes those that the cluster has, and looks from then on whether other servers change them. */
  async start(): Promise<void> {
    await this.#shared.adopt();
    await this.sync();
    this.#lookout.start();
  }

  close(): void {
    this.#lookout.close();
  }

  /** Makes those of this server what the cluster has. */
  async sync(): Promise<void> {
    await this.#shared.sync();
  }

  /** The native engine, which looks at those of the cluster before it says that one is not there: another server may just have made it. */
  latest(): SearchEngine {
    const native = this.#native;
    return {
      execute: async (request, body, cancel) => {
        try {
          return await native.execute(request, body, cancel);
        } catch (error) {
          const isMissing = error instanceof EngineError && error.members['type'] === 'resource_not_found_exception';
          if (!isMissing || !(await this.#shared.sync())) throw error;
          return native.execute(request, body, cancel);
        }
      },
      close: () => native.close(),
    };
  }

  /** Answers `GET _inference`. */
  async read(request: EngineRequest, body?: Uint8Array, cancel?: Cancel): Promise<EngineReply> {
    await this.sync();
    const reply = await this.use(request, body, cancel);
    const { inference_id: id, task_type: task } = request.path;
    const lacking = id === undefined ? this.#copy.lacking(task) : [];
    if (lacking.length === 0) return reply;
    // The native engine shows those as well that it cannot run.
    const { endpoints } = JSON.parse(Buffer.from(reply.body).toString()) as { endpoints: Json[] };
    return { ...reply, body: Buffer.from(JSON.stringify({ endpoints: [...endpoints, ...lacking] })) };
  }

  /**
   * Answers what uses an endpoint.
   *
   * @throws {EngineError} 404 for one that the cluster has and this server cannot run
   */
  async use(request: EngineRequest, body?: Uint8Array, cancel?: Cancel): Promise<EngineReply> {
    const id = request.path['inference_id'] ?? '';
    this.#copy.check(id);
    try {
      return await this.latest().execute(request, body, cancel);
    } catch (error) {
      // It may be known only now.
      this.#copy.check(id);
      throw error;
    }
  }

  /** Answers what makes, changes or deletes an endpoint. */
  change(request: EngineRequest, body?: Uint8Array): Promise<EngineReply> {
    return this.#shared.change(async () => {
      const id = request.path['inference_id'] ?? '';
      return request.op === 'delete_inference' ? this.#delete(request, id) : this.#native.execute(request, body);
    });
  }

  /** The native engine knows of pipelines that use an endpoint, and of no index. */
  async #delete(request: EngineRequest, id: string): Promise<EngineReply> {
    const { force, dry_run: dry } = request.query;
    const isDry = isSet(dry);
    const indexes = isSet(force) && !isDry ? [] : await this.#usedIn(id);
    if (indexes.length === 0) return this.#deleted(request, id);
    const asked = { ...request, query: { ...request.query, dry_run: 'true' } };
    const found = JSON.parse(Buffer.from((await this.#deleted(asked, id)).body).toString()) as Json;
    const used =
      ` Inference endpoint ${id} is being used in the mapping for indexes: [${indexes.join(', ')}]. Ensure that no index ` +
      'mappings are using this inference endpoint, or use force to ignore this warning and delete the inference endpoint.';
    const problem = `${textOf(found['error_message']) ?? ''}${used}`;
    if (!isDry) throw refusal(409, 'status_exception', problem);
    return { status: 200, body: Buffer.from(JSON.stringify({ ...found, indexes, error_message: problem })) };
  }

  /** The native engine does not have an endpoint that it cannot run, and nothing of its own uses it. */
  async #deleted(request: EngineRequest, id: string): Promise<EngineReply> {
    if (!this.#copy.lacks(id)) return this.#native.execute(request);
    const isDry = isSet(request.query['dry_run']);
    if (!isDry) this.#copy.forget(id);
    const answer = { acknowledged: !isDry, pipelines: [], indexes: [], error_message: '' };
    return { status: 200, body: Buffer.from(JSON.stringify(answer)) };
  }
}

/** How many copies of its model an endpoint runs, which is changed while it runs. */
const SIZES: readonly string[] = ['num_allocations', 'adaptive_allocations'];

/** The endpoints that a native engine has, without the built-in ones, and those of the cluster that it cannot run. */
class EndpointCopy implements NativeCopy {
  readonly #native: SearchEngine;
  readonly #log: ClusterLog;
  /** What the native engine had when it was read last. */
  #own: Definitions = {};
  /** Each with why it cannot be run. They are in the copy too, so that changes of this server do not delete them for all. */
  readonly #lacking = new Map<string, { readonly definition: unknown; readonly reason: string }>();

  constructor(native: SearchEngine, log: ClusterLog) {
    this.#native = native;
    this.#log = log;
  }

  async read(): Promise<Definitions> {
    const { body } = await this.#ask('get_inference', {});
    const { endpoints } = JSON.parse(Buffer.from(body).toString()) as { endpoints: Json[] };
    this.#own = Object.fromEntries(
      endpoints.flatMap((endpoint): [string, Json][] => {
        const { inference_id: id, ...definition } = endpoint;
        return typeof id === 'string' && !id.startsWith('.') ? [[id, definition]] : [];
      }),
    );
    for (const id of Object.keys(this.#own)) this.#lacking.delete(id);
    const lacking = [...this.#lacking].map(([id, { definition }]) => [id, definition] as const);
    return { ...this.#own, ...Object.fromEntries(lacking) };
  }

  async put(id: string, definition: unknown): Promise<void> {
    const { task_type: task, ...body } = isObject(definition) ? definition : {};
    const path = { task_type: textOf(task) ?? '', inference_id: id };
    const own = Object.hasOwn(this.#own, id) ? this.#own[id] : undefined;
    const sizes = ofOtherSize(own, definition);
    try {
      if (sizes !== undefined) await this.#ask('update_inference', path, { service_settings: sizes });
      else {
        if (own !== undefined) await this.remove(id);
        await this.#ask('put_inference', path, body);
      }
      this.#lacking.delete(id);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      if (this.#lacking.get(id)?.reason !== reason)
        this.#log.warn('an inference endpoint cannot be used on this server', { endpoint: id, error: reason });
      this.#lacking.set(id, { definition, reason });
    }
  }

  async remove(id: string): Promise<void> {
    if (this.#lacking.delete(id)) return;
    this.#log.info('an inference endpoint is deleted that the cluster does not have', { endpoint: id });
    await this.#native.execute({ op: 'delete_inference', path: { inference_id: id }, query: { force: 'true' } });
  }

  /** A model may have come in the meantime. */
  async retry(): Promise<void> {
    for (const [id, { definition }] of [...this.#lacking]) await this.put(id, definition);
  }

  /** Those that this server cannot run, of one type of task if one is given. */
  lacking(task: string | undefined): readonly Json[] {
    return [...this.#lacking].flatMap(([id, { definition }]) => {
      const given = isObject(definition) ? definition : {};
      return task === undefined || task === '_all' || given['task_type'] === task
        ? [{ inference_id: id, ...given }]
        : [];
    });
  }

  /** Whether it is one that this server cannot run. */
  lacks(id: string): boolean {
    return this.#lacking.has(id);
  }

  /** Takes one out of those that this server cannot run. */
  forget(id: string): void {
    this.#lacking.delete(id);
  }

  /** @throws {EngineError} 404 for one that this server cannot run */
  check(id: string): void {
    const { reason } = this.#lacking.get(id) ?? {};
    if (reason === undefined) return;
    throw refusal(
      404,
      'resource_not_found_exception',
      `Inference endpoint [${id}] cannot be used on this server, and may be on the others: ${reason}`,
    );
  }

  #ask(op: EngineRequest['op'], path: Readonly<Record<string, string>>, body?: object): Promise<EngineReply> {
    return this.#native.execute(
      { op, path, query: {} },
      body === undefined ? undefined : Buffer.from(JSON.stringify(body)),
    );
  }
}

/** The sizes that an endpoint is to have, if nothing else of it differs. */
function ofOtherSize(own: unknown, wanted: unknown): Json | undefined {
  const rest = (definition: unknown): string => {
    const { service_settings: settings, ...others } = definition as Json;
    const fixed = Object.entries(isObject(settings) ? settings : {}).filter(([name]) => !SIZES.includes(name));
    return JSON.stringify([others, fixed]);
  };
  if (!isObject(own) || !isObject(wanted) || rest(own) !== rest(wanted)) return undefined;
  const settings = isObject(wanted['service_settings']) ? wanted['service_settings'] : {};
  return Object.fromEntries(Object.entries(settings).filter(([name]) => SIZES.includes(name)));
}
