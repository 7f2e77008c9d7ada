import type { SearchEngine, Sparrow } from '@sparrow-search/engine';
import type { Hono } from 'hono';

import { type ServerEnv, createPart } from '../app.js';
import { Application, type Services } from '../application.js';
import type { Config } from '../config.js';
import { tooLarge } from '../http/body.js';
import type { Exchange, Finished } from '../http/exchange.js';
import type { Hold } from '../http/in-flight.js';
import { readIdentity } from '../identity.js';
import { createLogger } from '../log.js';
import { Matcher } from '../routes/matcher.js';
import type { Route } from '../routes/table.js';
import { KeyStore } from '../security/key-store.js';

/** A request to the REST interface that takes no socket. */
export interface RestRequest {
  /** The HTTP method, such as `GET`. */
  readonly method: string;
  /** The path, with what is special in a name escaped; it may end with a query string. */
  readonly path: string;
  /** Parameters of the query string; those that are undefined are left out. */
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  /** An object is sent as JSON, a list as one JSON text a line; a string and bytes are sent as they are. */
  readonly body?: object | string | undefined;
  /** Headers, such as `Authorization`; without `Content-Type` the body is of the type that the route reads. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Ends the request where the interface stops the work of a client that went away; it rejects with the reason. */
  readonly signal?: AbortSignal | undefined;
}

/** What the REST interface answers, errors included: the call itself rejects only for its signal. */
export interface RestResponse {
  /** The HTTP status. */
  readonly status: number;
  /** Names are in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The body as it would be sent; empty where there is none. */
  readonly bytes: Uint8Array;
  /** The body as text. */
  readonly text: string;
  /** The body as a value, where it is JSON; else its text. */
  readonly body: unknown;
}

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
  readonly #application: Application;
  readonly #matcher = new Matcher();

  private constructor(services: Services) {
    this.#services = services;
    this.#application = applicationOver(services, { maxBodyBytes: MOST_BYTES, isTrusting: true });
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
    return new Rest({ engine, keys, data, identity: await readIdentity(data), address: '127.0.0.1:0' });
  }

  /**
   * The interface as a part of a Hono application: `app.route('/search', rest.app())`. Unlike {@link Rest.request}, it asks everybody
   * for an API key. Whoever listens sees to connections, timeouts and compression. The console and the pages of the documentation are
   * found only where the part is at `/`.
   */
  app({ maxBodyBytes = MOST_OVER_HTTP }: PartOptions = {}): Hono<ServerEnv> {
    return createPart(applicationOver(this.#services, { maxBodyBytes, isTrusting: false }));
  }

  /** Carries out a request. */
  async request(request: RestRequest): Promise<RestResponse> {
    const { signal } = request;
    signal?.throwIfAborted();
    const exchange = new LocalExchange(request);
    const match = this.#matcher.match(exchange.path) ?? this.#matcher.matchEscaped(exchange.path);
    exchange.settle(match?.route);
    const finished = await this.#application.answer(exchange, match?.route, match?.path ?? {});
    signal?.throwIfAborted();
    return responseOf(finished, exchange.method);
  }
}

function applicationOver(
  services: Services,
  { maxBodyBytes, isTrusting }: Pick<Config, 'maxBodyBytes'> & { readonly isTrusting: boolean },
): Application {
  return new Application({
    services: () => services,
    config: { maxBodyBytes, productHeader: true, compression: false },
    log: createLogger('silent'),
    trusting: isTrusting,
  });
}

function responseOf({ status, headers, body }: Finished, method: string): RestResponse {
  const bytes = body === null || method === 'HEAD' ? new Uint8Array(0) : Buffer.from(body as string);
  const text = new TextDecoder().decode(bytes);
  const byName: Record<string, string> = {};
  for (const [name, value] of headers) {
    const key = name.toLowerCase();
    byName[key] = key in byName ? `${byName[key] ?? ''}, ${value}` : value;
  }
  const isJson = /\bjson\b/.test(byName['content-type'] ?? '') && text !== '';
  return { status, headers: byName, bytes, text, body: isJson ? (JSON.parse(text) as unknown) : text };
}

class LocalExchange implements Exchange {
  readonly method: string;
  readonly uri: string;
  readonly path: string;
  readonly from = '';
  readonly concurrent = false;
  readonly #headers = new Map<string, string>();
  readonly #body: Uint8Array;
  readonly #signal: AbortSignal | undefined;
  readonly #isList: boolean;

  constructor({ method, path, query = {}, body, headers = {}, signal }: RestRequest) {
    this.method = method.toUpperCase();
    const given = Object.entries(query).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, String(value)] as [string, string]],
    );
    const parameters =
      given.length === 0 ? '' : `${path.includes('?') ? '&' : '?'}${String(new URLSearchParams(given))}`;
    this.uri = path + parameters;
    this.path = path.split('?', 1)[0] ?? '';
    for (const [name, value] of Object.entries(headers)) this.#headers.set(name.toLowerCase(), value);
    this.#isList = Array.isArray(body);
    this.#body = bytesOf(body);
    this.#signal = signal;
  }

  /** Says what kind of body it is, where the request does not: what its route reads. */
  settle(route: Route | undefined): void {
    if (this.#body.length === 0 || this.#headers.has('content-type')) return;
    const endpoint = [...(route?.methods.values() ?? [])].find(({ method }) => method === this.method);
    const isLines = this.#isList || endpoint?.ndjson === true;
    this.#headers.set('content-type', isLines ? 'application/x-ndjson' : 'application/json');
  }

  get headerLines(): readonly string[] {
    return [];
  }

  header(name: string): string | undefined {
    return this.#headers.get(name);
  }

  readBody(limit: number, hold: Hold): Promise<Uint8Array> {
    if (this.#body.length > limit) return Promise.reject(tooLarge(this.#body.length, limit));
    hold.take(this.#body.length);
    return Promise.resolve(this.#body);
  }

  onGone(callback: () => void): () => void {
    // A signal that was set while the request was looked at tells nobody any more.
    if (this.#signal?.aborted === true) callback();
    this.#signal?.addEventListener('abort', callback, { once: true });
    return () => this.#signal?.removeEventListener('abort', callback);
  }
}

function bytesOf(body: RestRequest['body']): Uint8Array {
  if (body === undefined) return new Uint8Array(0);
  if (body instanceof Uint8Array) return body;
  if (typeof body === 'string') return Buffer.from(body);
  return Buffer.from(
    Array.isArray(body) ? body.map((line) => `${JSON.stringify(line)}\n`).join('') : JSON.stringify(body),
  );
}
