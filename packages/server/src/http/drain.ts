import type { RequestListener, Server, ServerResponse } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';

/**
 * How long a connection that was in use a moment ago may still bring a request when the server stops: its client has perhaps
 * sent one already, which a close at that moment would cut off. Clients that work through a list send the next within
 * milliseconds.
 */
const GRACE_MS = 500;

interface Connection {
  /** Requests that are being answered. */
  active: number;
  /** When the last answer was finished, or the connection made; milliseconds as `performance.now()` counts. */
  last: number;
  /** Bytes that had come by then: more means that a request is on its way. */
  bytes: number;
}

/**
 * The connections of a server, and how they end: nothing that was asked stays unanswered, and no client is waited for that
 * has nothing to ask.
 */
export class Drain {
  readonly #connections = new Map<Socket, Connection>();
  readonly #answering = new Set<ServerResponse>();
  #draining = false;

  /** Watches the connections of a server. */
  watch(server: Server): void {
    server.on('connection', (socket: Socket) => {
      this.#connections.set(socket, { active: 0, last: performance.now(), bytes: 0 });
      socket.once('close', () => this.#connections.delete(socket));
    });
  }

  /** A listener that is told of requests, in front of the one that answers them. */
  before(answer: RequestListener): RequestListener {
    return (incoming, outgoing) => {
      const { socket } = incoming;
      const connection = this.#connections.get(socket);
      if (connection !== undefined) connection.active += 1;
      this.#answering.add(outgoing);
      outgoing.once('close', () => {
        this.#answering.delete(outgoing);
        if (connection === undefined) return;
        connection.active -= 1;
        connection.last = performance.now();
        connection.bytes = socket.bytesRead;
      });
      // The answer says `Connection: close`, and the connection ends with it.
      if (this.#draining) outgoing.shouldKeepAlive = false;
      answer(incoming, outgoing);
    };
  }

  /**
   * Takes no new connection, answers what was asked, and ends every connection: at once if it has been idle, after its next
   * answer or a moment of grace otherwise. What is left after `patience` milliseconds is cut.
   */
  close(server: Server, patience: number): Promise<void> {
    this.#draining = true;
    return new Promise((resolve) => {
      const grace = setTimeout(() => {
        // Node counts a connection that never brought a request as busy.
        this.#endIdle(0);
        server.closeIdleConnections();
      }, GRACE_MS);
      const cut = setTimeout(() => {
        server.closeAllConnections();
      }, patience);
      // A turn later, so that connections which wait to be accepted are: closing would reset them.
      setImmediate(() => {
        // Not the method of an HTTP server, which ends all connections without a request, also those to which one is on its
        // way.
        NetServer.prototype.close.call(server, () => {
          clearTimeout(grace);
          clearTimeout(cut);
          resolve();
        });
      });
      for (const outgoing of this.#answering) this.#endWith(outgoing);
      this.#endIdle(GRACE_MS);
    });
  }

  /** Ends the connections on which nothing is under way, and nothing has been for so many milliseconds. */
  #endIdle(since: number): void {
    const now = performance.now();
    for (const [socket, { active, last, bytes }] of this.#connections) {
      if (active === 0 && socket.bytesRead === bytes && now - last >= since) socket.destroy();
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
