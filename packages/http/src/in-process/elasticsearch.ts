import { Readable } from 'node:stream';

import {
  BaseConnection,
  type ConnectionRequestOptions,
  type ConnectionRequestOptionsAsStream,
  type ConnectionRequestParams,
  type ConnectionRequestResponse,
  type ConnectionRequestResponseAsStream,
  errors,
} from '@elastic/elasticsearch';
import type { Sparrow } from '@sparrow-search/engine';

import { Rest, type RestResponse } from './rest.js';

/** The longest time that a timer takes: it ends at once with a longer one. */
const LONGEST_MS = 2 ** 31 - 1;

/** Bodies that the client takes as bytes. */
const BINARY = /arrow|mapbox/;

/**
 * A connection class for `@elastic/elasticsearch` that calls an engine in this process: no server, no socket, no key.
 *
 * ```ts
 * const client = new Client({ node: 'http://sparrow', Connection: connectionTo(sparrow) });
 * ```
 *
 * The address is a name and nothing else. Closing the client leaves the engine open.
 */
export function connectionTo(sparrow: Pick<Sparrow, 'engine' | 'data'>): typeof BaseConnection {
  return class InProcessConnection extends BaseConnection {
    override request(
      params: ConnectionRequestParams,
      options: ConnectionRequestOptions,
    ): Promise<ConnectionRequestResponse>;
    override request(
      params: ConnectionRequestParams,
      options: ConnectionRequestOptionsAsStream,
    ): Promise<ConnectionRequestResponseAsStream>;
    override async request(
      params: ConnectionRequestParams,
      options: ConnectionRequestOptions & { readonly asStream?: boolean },
    ): Promise<ConnectionRequestResponse | ConnectionRequestResponseAsStream> {
      const answer = await this.#answer(await Rest.over(sparrow), params, options);
      const { status: statusCode, text, bytes } = answer;
      const headers: Record<string, string> = { ...answer.headers, 'content-length': String(bytes.length) };
      if (options.asStream === true) return { statusCode, headers, body: Readable.from([bytes]) };
      return { statusCode, headers, body: BINARY.test(headers['content-type'] ?? '') ? Buffer.from(bytes) : text };
    }

    /** Nothing is open that belongs to the client: the engine is its maker's. */
    override close(): Promise<void> {
      return Promise.resolve();
    }

    async #answer(
      interface_: Rest,
      { method, path, querystring = '', headers = {}, body }: ConnectionRequestParams,
      options: ConnectionRequestOptions,
    ): Promise<RestResponse> {
      const timeout = new AbortController();
      const ms = Math.min(options.timeout ?? this.timeout, LONGEST_MS);
      const timer = setTimeout(() => {
        timeout.abort();
      }, ms);
      this._openRequests += 1;
      try {
        return await interface_.request({
          method,
          path: querystring === '' ? path : `${path}?${querystring}`,
          body: body === null || body === undefined ? undefined : await wholeBody(body),
          headers: asText({ ...this.headers, ...headers }),
          signal: options.signal === undefined ? timeout.signal : AbortSignal.any([options.signal, timeout.signal]),
        });
      } catch (error) {
        if (options.signal?.aborted === true) throw new errors.RequestAbortedError('Request aborted');
        if (timeout.signal.aborted) throw new errors.TimeoutError('Request timed out');
        throw error;
      } finally {
        this._openRequests -= 1;
        clearTimeout(timer);
      }
    }
  };
}

async function wholeBody(body: string | Uint8Array | Readable): Promise<string | Uint8Array> {
  if (!(body instanceof Readable)) return body;
  const chunks: Buffer[] = [];
  for await (const chunk of body) chunks.push(Buffer.from(chunk as string));
  return Buffer.concat(chunks);
}

/** Headers as the interface reads them; what says how a body is sent has no meaning without a socket. */
function asText(headers: NonNullable<ConnectionRequestParams['headers']>): Record<string, string> {
  const left = new Set(['accept-encoding', 'connection', 'content-length', 'transfer-encoding']);
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined || left.has(name.toLowerCase())
        ? []
        : [[name, typeof value === 'string' ? value : value.join(', ')]],
    ),
  );
}
