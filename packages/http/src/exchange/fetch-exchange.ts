import type { Context } from 'hono';

import type { ServerEnv } from '../env.js';
import { readFetchBody, readIncoming } from './body.js';
import type { Exchange, Finished } from './exchange.js';
import { onClose } from './gone.js';
import type { Hold } from './in-flight.js';

/** A request of Fetch, as the Hono application of somebody else hands it over; with Node's behind it where `@hono/node-server` serves that. */
export class FetchExchange implements Exchange {
  readonly method: string;
  readonly uri: string;
  readonly path: string;
  readonly routed: string;
  readonly concurrent = true;
  readonly #context: Context<ServerEnv>;
  readonly #prefix: string;
  readonly #node: Partial<ServerEnv['Bindings']>;

  /** @param prefix the path below which the application is, without a slash at its end */
  constructor(context: Context<ServerEnv>, prefix: string) {
    // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition -- undefined under `app.request()`
    this.#node = context.env ?? {};
    this.#context = context;
    this.#prefix = prefix;
    this.method = context.req.method;
    this.routed = context.req.path;
    this.path = below(prefix, context.req.path);
    this.uri = below(prefix, this.#node.incoming?.url ?? pathAndQuery(context.req.url));
  }

  get from(): string {
    return this.#node.incoming?.socket.remoteAddress ?? '';
  }

  get headerLines(): readonly string[] {
    return this.#node.incoming?.rawHeaders ?? [];
  }

  header(name: string): string | undefined {
    return this.#context.req.header(name);
  }

  /** From Node's request: one of Fetch has no body with GET, and the documented search is a GET with a body. */
  readBody(limit: number, hold: Hold): Promise<Uint8Array> {
    const { incoming } = this.#node;
    return incoming === undefined
      ? readFetchBody(this.#context.req.raw, limit, hold)
      : readIncoming(incoming, limit, hold);
  }

  onGone(callback: () => void): () => void {
    const { outgoing } = this.#node;
    return outgoing === undefined ? () => undefined : onClose(outgoing, callback);
  }

  send({ status, headers, body }: Finished): Response {
    return new Response(body as string | Uint8Array<ArrayBuffer> | null, {
      status,
      // Where a document is, as the client that wrote it gets there.
      headers: headers.map(([name, value]): [string, string] => [
        name,
        name === 'Location' ? this.#prefix + value : value,
      ]),
    });
  }
}

/** A path without what comes before it; as it is where it is written in another way. */
function below(prefix: string, path: string): string {
  if (prefix === '' || !path.startsWith(prefix)) return path;
  const rest = path.slice(prefix.length);
  return rest.startsWith('/') ? rest : `/${rest}`;
}

function pathAndQuery(url: string): string {
  const { pathname, search } = new URL(url);
  return pathname + search;
}
