import type { SearchEngine, Sparrow } from '@sparrow-search/engine';
import type { Hono } from 'hono';

import { createApp, createPart } from '../app.js';
import { makeApplication } from '../application.js';
import type { Config } from '../config.js';
import type { ServerEnv } from '../env.js';
import { throughHono } from '../exchange/through-hono.js';
import { readIdentity } from '../identity.js';
import { createLogger } from '../log.js';
import { ScriptStore } from '../search-templates/script-store.js';
import { KeyStore } from '../security/key-store.js';
import type { AppOptions, Services } from '../services.js';
import { TaskHistory } from '../tasks/task-history.js';
import { LocalExchange, type RestRequest, type RestResponse, responseOf } from './local-exchange.js';

export type { RestRequest, RestResponse } from './local-exchange.js';

/** Longest body: what one buffer of the engine may hold. */
const MOST_BYTES = 2 ** 31 - 1;

/** The interfaces that there are: two over one engine would each have API keys of their own. */
const OVER = new WeakMap<SearchEngine, Promise<Rest>>();

/** How the interface is a part of another application. */
export interface PartOptions {
  /** Longest body of a request, as it came and decoded; 100 MB if nothing is said. */
  readonly maxBodyBytes?: number;
}

/** Longest body of a request over HTTP, unless another one is said: that of the server. */
const MOST_OVER_HTTP = 100 * 1024 * 1024;

/** The whole REST interface over an engine in this process: the same routes, checks, shapes and errors as over HTTP. */
export class Rest {
  readonly #services: Services;
  readonly #app: Hono<ServerEnv>;

  private constructor(services: Services) {
    this.#services = services;
    this.#app = createApp(optionsOver(services, { maxBodyBytes: MOST_BYTES, isTrusting: true }));
  }

  /**
   * Puts the interface over an engine. Its API keys are those of the data directory. A request without `Authorization` is the owner's:
   * who has the engine may do everything with it anyway.
   *
   * @throws when the engine is not in this process, or its keys cannot be read
   */
  static over({ engine, data }: Pick<Sparrow, 'engine' | 'data'>): Promise<Rest> {
    if (data === undefined) return Promise.reject(new TypeError('the engine has no data directory in this process'));
    let rest = OVER.get(engine);
    if (rest === undefined) {
      rest = Rest.#make(engine, data);
      OVER.set(engine, rest);
      // A failure is no interface: the disk may have room again when somebody asks the next time.
      rest.catch(() => OVER.delete(engine));
    }
    return rest;
  }

  static async #make(engine: SearchEngine, data: string): Promise<Rest> {
    const keys = await KeyStore.open(data);
    await keys.ensureOwner(data, Date.now());
    const [identity, scripts] = [await readIdentity(data), await ScriptStore.open(data)];
    const tasks = await TaskHistory.open(data, createLogger('silent'));
    return new Rest({ engine, keys, data, identity, scripts, tasks, address: '127.0.0.1:0' });
  }

  /**
   * The interface as a part of a Hono application: `app.route('/search', rest.app())`. Unlike {@link Rest.request}, it asks everybody
   * for an API key. The program that listens sees to connections, timeouts and compression. The console and the pages of the documentation are
   * found only where the part is at `/`.
   */
  app({ maxBodyBytes = MOST_OVER_HTTP }: PartOptions = {}): Hono<ServerEnv> {
    return createPart(makeApplication(optionsOver(this.#services, { maxBodyBytes, isTrusting: false })));
  }

  /** Carries out a request. */
  async request(request: RestRequest): Promise<RestResponse> {
    const { signal } = request;
    signal?.throwIfAborted();
    const exchange = new LocalExchange(request);
    const finished = await exchange.answer((asked) => throughHono(this.#app, asked));
    signal?.throwIfAborted();
    return responseOf(finished, exchange.method);
  }
}

function optionsOver(
  services: Services,
  { maxBodyBytes, isTrusting }: Pick<Config, 'maxBodyBytes'> & { readonly isTrusting: boolean },
): AppOptions {
  return {
    services: () => services,
    config: { maxBodyBytes, productHeader: true, compression: false },
    log: createLogger('silent'),
    trusting: isTrusting,
  };
}
