import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';

import { freeAnswer } from '@sparrow-search/engine';

import type { Application } from '../application.js';
import { Matcher } from '../routes/matcher.js';
import { readIncoming } from './body.js';
import { Callers } from './callers.js';
import type { Exchange, Finished } from './exchange.js';
import { onClose } from './gone.js';
import type { Hold } from './in-flight.js';
import { boundReading } from './slow-readers.js';

/** Methods that are answered here; `HEAD` and `OPTIONS` have rules of their own, which Hono knows. */
const METHODS: ReadonlySet<string> = new Set(['GET', 'POST', 'PUT', 'DELETE']);

/** A segment that stands for another one, escaped or not. */
const DOTS = /(?:^|[/\\])(?:\.|%2e){1,2}(?:[/\\]|$)/i;

/** Bytes from which on the memory of an answer is given back as soon as it is sent. */
const LONG = 1024 * 1024;

const NOTHING = new Uint8Array(0);

/**
 * Answers requests without Fetch's objects: they cost more than everything else that the server does for a search. What is
 * unusual in any way (an escaped path, a body in chunks, zipped or too long, an unknown route) goes to `others`; both paths
 * lead to the same application.
 */
export function direct(application: Application, maxBodyBytes: number, others: RequestListener): RequestListener {
  const matcher = new Matcher();
  const callers = new Callers();
  const finish = (answering: Promise<Finished>, outgoing: ServerResponse): void => {
    answering
      .then((finished) => {
        send(outgoing, finished);
        boundReading(outgoing, application.inFlight);
      })
      .catch(() => {
        // The application answers everything; what is left is a connection that broke.
        outgoing.destroy();
      });
  };
  return (incoming, outgoing) => {
    const { url = '', headers } = incoming;
    const concurrent = callers.concurrent(incoming.socket, performance.now());
    if (url.startsWith('*')) {
      // The server as a whole, which no route is about. It has no address that Fetch could make a request of.
      finish(application.answer(new NodeExchange(incoming, outgoing, url, 0, concurrent), undefined, {}), outgoing);
      return;
    }
    const mark = url.indexOf('?');
    const path = mark < 0 ? url : url.slice(0, mark);
    if (DOTS.test(path)) {
      // Fetch resolves them: a request for the document [..] would be one for its index. No route has such a segment.
      finish(application.answer(new NodeExchange(incoming, outgoing, path, 0, concurrent), undefined, {}), outgoing);
      return;
    }
    const match = METHODS.has(incoming.method ?? '') ? matcher.match(path) : undefined;
    const length = Number(headers['content-length'] ?? 0);
    const unusual =
      match === undefined ||
      headers['transfer-encoding'] !== undefined ||
      headers['content-encoding'] !== undefined ||
      headers.expect !== undefined ||
      !(length <= maxBodyBytes);
    if (unusual) {
      others(incoming, outgoing);
      return;
    }
    const exchange = new NodeExchange(incoming, outgoing, path, length, concurrent);
    finish(application.answer(exchange, match.route, match.path), outgoing);
  };
}

class NodeExchange implements Exchange {
  readonly method: string;
  readonly uri: string;

  constructor(
    readonly incoming: IncomingMessage,
    readonly outgoing: ServerResponse,
    readonly path: string,
    readonly length: number,
    readonly concurrent: boolean,
  ) {
    this.method = incoming.method ?? '';
    this.uri = incoming.url ?? '';
  }

  get headerLines(): readonly string[] {
    return this.incoming.rawHeaders;
  }

  get from(): string {
    return this.incoming.socket.remoteAddress ?? '';
  }

  header(name: string): string | undefined {
    const value = this.incoming.headers[name];
    return typeof value === 'string' ? value : value?.join(', ');
  }

  readBody(limit: number, hold: Hold): Promise<Uint8Array> {
    return this.length === 0 ? NO_BODY : readIncoming(this.incoming, limit, hold);
  }

  onGone(callback: () => void): () => void {
    return onClose(this.outgoing, callback);
  }
}

const NO_BODY = Promise.resolve(NOTHING);

function send(outgoing: ServerResponse, { status, headers, body }: Finished): void {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  const flat: string[] = [];
  for (const [name, value] of headers) flat.push(name, value);
  // With its length known, an answer needs no chunks.
  flat.push('Content-Length', String(bytes?.length ?? 0));
  outgoing.writeHead(status, flat);
  outgoing.end(bytes ?? undefined);
  if (bytes !== null && bytes.length >= LONG) {
    onClose(outgoing, () => {
      freeAnswer(bytes);
    });
  }
}
