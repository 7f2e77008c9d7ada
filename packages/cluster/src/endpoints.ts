import type { Cancel, EngineReply, EngineRequest, SearchEngine } from '@sparrow-search/engine';

import { type Json, isObject, textOf } from './json.js';
import { type Definitions, type NativeCopy, SharedDefinitions } from './shared-definitions.js';
import type { SharedState } from './shared-state.js';

/** How often a server looks whether another one has changed endpoints, in milliseconds. */
const LOOK_MS = 1_000;

/** Where it is written down what becomes of endpoints that another server made. */
interface Log {
  info(message: string, members: Record<string, unknown>): void;
  warn(message: string, members: Record<string, unknown>): void;
}

/**
 * Inference endpoints: those that were made are kept in the cluster for all of Sparrow's servers, and run by the native engine of each. Every
 * server has the built-in ones by itself. A server whose models do not include that of an endpoint serves all others, and says in its log
 * what it lacks.
 */
export class Endpoints {
  readonly #native: SearchEngine;
  readonly #shared: SharedDefinitions;
  #timer: NodeJS.Timeout | undefined;

  constructor(native: SearchEngine, state: SharedState, log: Log) {
    this.#native = native;
    this.#shared = new SharedDefinitions(state, 'endpoints', copyIn(native, log));
  }

  /** Makes those that the cluster has, and looks from then on whether other servers change them. */
  async start(log: Log): Promise<void> {
    await this.#shared.adopt();
    await this.#shared.sync();
    const look = (): void => {
      this.#shared
        .sync()
        .catch((error: unknown) => {
          log.warn('inference endpoints of the other servers cannot be read', { error: String(error) });
        })
        .finally(() => this.#timer?.refresh());
    };
    this.#timer = setTimeout(look, LOOK_MS);
    this.#timer.unref();
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** Answers `GET _inference`. */
  async read(request: EngineRequest, body?: Uint8Array, cancel?: Cancel): Promise<EngineReply> {
    await this.#shared.sync();
    return this.#native.execute(request, body, cancel);
  }

  /** Answers what makes, changes or deletes an endpoint. */
  change(request: EngineRequest, body?: Uint8Array): Promise<EngineReply> {
    return this.#shared.change(() => this.#native.execute(request, body));
  }
}

/** The endpoints that a native engine has, without the built-in ones. */
function copyIn(native: SearchEngine, log: Log): NativeCopy {
  const ids = new Set<string>();
  const ask = async (op: EngineRequest['op'], path: Record<string, string>, body?: object): Promise<EngineReply> =>
    native.execute({ op, path, query: {} }, body === undefined ? undefined : Buffer.from(JSON.stringify(body)));
  /** Those that this server cannot run: in the copy too, so that its own changes do not delete them for all. */
  const lacking = new Map<string, unknown>();
  return {
    read: async () => {
      const { body } = await ask('get_inference', {});
      const { endpoints } = JSON.parse(Buffer.from(body).toString()) as { endpoints: Json[] };
      const own = endpoints.flatMap((endpoint): [string, Json][] => {
        const { inference_id: id, ...definition } = endpoint;
        return typeof id === 'string' && !id.startsWith('.') ? [[id, definition]] : [];
      });
      ids.clear();
      for (const [id] of own) ids.add(id);
      return { ...Object.fromEntries(lacking), ...Object.fromEntries(own) } satisfies Definitions;
    },
    put: async (id, definition) => {
      lacking.delete(id);
      const { task_type: task, ...body } = isObject(definition) ? definition : {};
      try {
        if (ids.has(id)) await remove(id);
        await ask('put_inference', { task_type: textOf(task) ?? '', inference_id: id }, body);
      } catch (error) {
        lacking.set(id, definition);
        const reason = error instanceof Error ? error.message : String(error);
        log.warn('an inference endpoint of the other servers cannot be used here', { endpoint: id, error: reason });
      }
    },
    remove: async (id) => {
      log.info('an inference endpoint is deleted that the cluster does not have', { endpoint: id });
      await remove(id);
    },
  };

  async function remove(id: string): Promise<void> {
    if (lacking.delete(id)) return;
    await native.execute({ op: 'delete_inference', path: { inference_id: id }, query: { force: 'true' } });
  }
}
