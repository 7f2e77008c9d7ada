import type { Server as NetServer, Socket } from 'node:net';

import type { Exposition } from './exposition.js';

/** Counts the connections of a server, and the bytes that went over them. */
export class ConnectionFigures {
  readonly #open = new Set<Socket>();
  #opened = 0;
  #read = 0;
  #written = 0;
  /** What was not understood as HTTP, or came too slowly. */
  malformed = 0;

  watch(server: NetServer): void {
    server.on('connection', (socket: Socket) => {
      this.#opened += 1;
      this.#open.add(socket);
      socket.once('close', () => {
        this.#open.delete(socket);
        this.#read += socket.bytesRead;
        this.#written += socket.bytesWritten;
      });
    });
    server.on('clientError', () => {
      this.malformed += 1;
    });
  }

  get open(): number {
    return this.#open.size;
  }

  /** Connections that were made since the server started. */
  get opened(): number {
    return this.#opened;
  }

  expose(page: Exposition): void {
    let [read, written] = [this.#read, this.#written];
    for (const socket of this.#open) {
      read += socket.bytesRead;
      written += socket.bytesWritten;
    }
    page.gauge('sparrow_http_connections_open', 'Connections that are open.', this.open);
    page.counter('sparrow_http_connections_total', 'Connections that were made.', this.opened);
    page.counter(
      'sparrow_http_received_bytes_total',
      'Bytes that came over connections, before TLS takes them apart.',
      read,
    );
    page.counter('sparrow_http_sent_bytes_total', 'Bytes that went over connections, as TLS made them.', written);
    page.counter(
      'sparrow_http_malformed_total',
      'Requests that were not understood as HTTP, or came too slowly.',
      this.malformed,
    );
  }
}
