import type { IncomingMessage, ServerResponse } from 'node:http';

import { freeAnswer } from '@sparrow-search/engine';

import { readIncoming } from './body.js';
import { type Exchange, type Finished, SENT } from './exchange.js';
import { onClose } from './gone.js';
import type { Hold, InFlight } from './in-flight.js';
import { boundReading } from './slow-readers.js';
import { isStranger, recognize } from './strangers.js';
import type { Target } from './uri.js';

/** Bytes from which on the memory of an answer is given back as soon as it is sent. */
const LONG = 1024 * 1024;

const NO_BODY = Promise.resolve(new Uint8Array(0));

/** A request of Node's server, without Fetch's objects: they cost more than everything else that the server does for a search. */
export class NodeExchange implements Exchange {
  readonly method: string;
  readonly uri: string;
  readonly path: string;
  readonly routed: string;
  #key: string | undefined;

  constructor(
    readonly incoming: IncomingMessage,
    readonly outgoing: ServerResponse,
    { path, routed }: Target,
    readonly concurrent: boolean,
    private readonly inFlight: InFlight,
  ) {
    this.method = incoming.method ?? '';
    this.uri = incoming.url ?? '';
    this.path = path;
    this.routed = routed;
  }

  get headerLines(): readonly string[] {
    return this.incoming.rawHeaders;
  }

  get from(): string {
    return this.incoming.socket.remoteAddress ?? '';
  }

  get endsWhenRefused(): boolean {
    return isStranger(this.incoming.socket) && (this.#hasNoBody || this.incoming.complete);
  }

  recognize(key: string): void {
    this.#key = key;
    recognize(this.incoming.socket);
  }

  header(name: string): string | undefined {
    const value = this.incoming.headers[name];
    return typeof value === 'string' ? value : value?.join(', ');
  }

  readBody(limit: number, hold: Hold): Promise<Uint8Array> {
    return this.#hasNoBody ? NO_BODY : readIncoming(this.incoming, limit, hold);
  }

  onGone(callback: () => void): () => void {
    return onClose(this.outgoing, callback);
  }

  send({ status, headers, body, isShared }: Finished): Response {
    const { outgoing } = this;
    const bytes = typeof body === 'string' ? Buffer.from(body) : body;
    const flat: string[] = [];
    for (const [name, value] of headers) flat.push(name, value);
    // With its length known, an answer needs no chunks.
    if (this.method !== 'HEAD') flat.push('Content-Length', String(bytes?.length ?? 0));
    try {
      outgoing.writeHead(status, flat);
      outgoing.end(bytes ?? undefined);
    } catch {
      // A connection that broke; or a header that cannot be sent, which never happens, as `respond.ts` makes them all.
      outgoing.destroy();
      return SENT;
    }
    boundReading(outgoing, this.inFlight, { key: this.#key, from: this.from }, isShared);
    if (bytes !== null && bytes.length >= LONG) {
      onClose(outgoing, () => {
        freeAnswer(bytes);
      });
    }
    return SENT;
  }

  get #hasNoBody(): boolean {
    const { headers } = this.incoming;
    return headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0;
  }
}
