import type { Route } from '@sparrow-search/endpoints';

import { tooLarge } from '../exchange/body.js';
import { type Dispatch, type Exchange, type Finished, SENT } from '../exchange/exchange.js';
import type { Hold } from '../exchange/in-flight.js';
import { routedPath } from '../exchange/uri.js';

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
  /** The body as it would be sent; empty without a body. */
  readonly bytes: Uint8Array;
  /** The body as text. */
  readonly text: string;
  /** The body as a value, where it is JSON; else its text. */
  readonly body: unknown;
}

/** An answer of the application, as who asked without a socket gets it. */
export function responseOf({ status, headers, body }: Finished, method: string): RestResponse {
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

/** A request that takes no socket, as the application sees it. */
export class LocalExchange implements Exchange {
  readonly method: string;
  readonly uri: string;
  readonly path: string;
  readonly routed: string;
  readonly #headers = new Map<string, string>();
  readonly #body: Uint8Array;
  readonly #signal: AbortSignal | undefined;
  readonly #isList: boolean;
  #finished: Finished | undefined;

  /**
   * @param from the address that it is made for, if any
   * @param concurrent whether others wait for what holds up the event loop
   */
  constructor(
    { method, path, query = {}, body, headers = {}, signal }: RestRequest,
    readonly from = '',
    readonly concurrent = false,
  ) {
    this.method = method.toUpperCase();
    const given = Object.entries(query).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, String(value)] as [string, string]],
    );
    const parameters =
      given.length === 0 ? '' : `${path.includes('?') ? '&' : '?'}${String(new URLSearchParams(given))}`;
    this.uri = path + parameters;
    this.path = path.split('?', 1)[0] ?? '';
    this.routed = routedPath(this.path);
    for (const [name, value] of Object.entries(headers)) this.#headers.set(name.toLowerCase(), value);
    this.#isList = Array.isArray(body);
    this.#body = bytesOf(body);
    this.#signal = signal;
  }

  /** Asks an application; it answers errors as well. */
  async answer(dispatch: Dispatch): Promise<Finished> {
    await dispatch(this);
    if (this.#finished === undefined) throw new Error('the request was not answered');
    return this.#finished;
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

  send(finished: Finished): Response {
    this.#finished = finished;
    return SENT;
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
