import type { RequestListener, Server, ServerResponse } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';

import { closeQueued } from './gone.js';

/**
 * How long a connection that was in use a moment ago may still bring a request when the server stops: its client has perhaps
 * sent one already, which a close at that moment would cut off. Clients that work through a list send the next within
 * milliseconds.
 */
const GRACE_MS = 500;

/** Seconds after which a client that was refused may ask again, somewhere or of the next process. */
const RETRY_SECONDS = 1;

/** What is answered to the very end: whether the process lives, and whether it takes requests. */
const TO_THE_END = /^\/(?:_live|_ready|_health|metrics)(?:\?|$)/;

interface Connection {
  /** Answers that are not finished, to requests in the order in which they came. */
  readonly answers: Set<ServerResponse>;
  /** When the last answer was finished, or the connection made; milliseconds as `performance.now()` counts. */
  last: number;
  /** Bytes that had come by then: more means that a request is on its way. */
  bytes: number;
  /** Whether it was made after the server was told to stop. */
  readonly late: boolean;
}

/**
 * The connections of a server, and how they end: nothing that was asked stays unanswered, no client is waited for that has
 * nothing to ask, and who comes while answers are waited for is told politely.
 */
export class Drain {
  readonly #connections = new Map<Socket, Connection>();
  #draining = false;
  /** Called when the last connection is gone that was there before. */
  #emptied: (() => void) | undefined;

  /** Whether the server was told to stop. */
  get isDraining(): boolean {
    return this.#draining;
  }

  /** Watches the connections of a server, one of TLS once they have agreed on a key. */
  watch(server: Server): void {
    const event = 'setSecureContext' in server ? 'secureConnection' : 'connection';
    server.on(event, (socket: Socket) => {
      const answers = new Set<ServerResponse>();
      this.#connections.set(socket, { answers, last: performance.now(), bytes: 0, late: this.#draining });
      socket.once('close', () => {
        this.#connections.delete(socket);
        closeQueued(socket, answers);
        this.#check();
      });
    });
  }

  /** A listener that is told of requests, in front of the one that answers them. */
  before(answer: RequestListener): RequestListener {
    return (incoming, outgoing) => {
      const { socket } = incoming;
      // What was still read of a connection that is gone: nobody would learn that nobody waits for it.
      if (socket.destroyed) return;
      const connection = this.#connections.get(socket);
      if (connection !== undefined) {
        connection.answers.add(outgoing);
        // It comes once: a listener for good costs a request less than one that is taken away again.
        outgoing.on('close', () => {
          connection.answers.delete(outgoing);
          connection.last = performance.now();
          connection.bytes = socket.bytesRead;
        });
      }
      if (this.#draining) {
        // The answer says `Connection: close`, and the connection ends with it.
        outgoing.shouldKeepAlive = false;
        if (connection?.late === true && !TO_THE_END.test(incoming.url ?? '')) {
          refuse(outgoing);
          return;
        }
      }
      answer(incoming, outgoing);
    };
  }

  /**
   * Answers what was asked, and ends every connection: at once if it has been idle, after its next answer or a moment of grace
   * otherwise. New connections are told that the server is stopping, as long as answers are waited for. What is left after
   * `patience` milliseconds is cut.
   */
  async close(server: Server, patience: number): Promise<void> {
    this.#draining = true;
    const cut = setTimeout(() => {
      for (const socket of this.#connections.keys()) socket.destroy();
      server.closeAllConnections();
    }, patience);
    const grace = setTimeout(() => {
      // Node counts a connection that never brought a request as busy.
      this.#endIdle(0);
    }, GRACE_MS);
    // A turn later, so that connections which wait to be accepted are: closing would reset them.
    await new Promise((resolve) => setImmediate(resolve));
    for (const { answers } of this.#connections.values()) {
      for (const outgoing of answers) this.#endWith(outgoing);
    }
    this.#endIdle(GRACE_MS);
    await new Promise<void>((resolve) => {
      this.#emptied = resolve;
      this.#check();
    });
    await this.#closeDoor(server);
    clearTimeout(grace);
    clearTimeout(cut);
  }

  /** Accepts no more connections, and waits a moment for those that came late. */
  #closeDoor(server: Server): Promise<void> {
    return new Promise((resolve) => {
      const late = setTimeout(() => {
        this.#endIdle(0);
        server.closeIdleConnections();
      }, GRACE_MS);
      // Not the method of an HTTP server, which ends all connections without a request, also those to which one is on its
      // way.
      NetServer.prototype.close.call(server, () => {
        clearTimeout(late);
        resolve();
      });
    });
  }

  #check(): void {
    if (this.#emptied === undefined) return;
    for (const { late } of this.#connections.values()) if (!late) return;
    this.#emptied();
    this.#emptied = undefined;
  }

  /** Ends the connections on which nothing is under way, and nothing has been for so many milliseconds. */
  #endIdle(since: number): void {
    const now = performance.now();
    for (const [socket, { answers, last, bytes }] of this.#connections) {
      if (answers.size === 0 && socket.bytesRead === bytes && now - last >= since) socket.destroy();
    }
  }

  #endWith(outgoing: ServerResponse): void {
    if (!outgoing.headersSent) {
      outgoing.shouldKeepAlive = false;
      return;
    }
    // Its headers have promised that the connection stays: it ends, without a word, once the answer is out.
    const { socket } = outgoing;
    outgoing.once('finish', () => socket?.destroySoon());
  }
}

/** Says that the server is stopping. The body of the request is not read. */
function refuse(outgoing: ServerResponse): void {
  const cause = { type: 'node_closed_exception', reason: 'the server is stopping' };
  const body = JSON.stringify({ error: { root_cause: [cause], ...cause }, status: 503 });
  outgoing.writeHead(503, {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
    'Retry-After': String(RETRY_SECONDS),
    Connection: 'close',
  });
  outgoing.end(body);
}
