import type { Server } from 'node:http';
import type { Socket } from 'node:net';

import type { Logger } from '../log.js';
import { network } from '../security/attempts.js';
import { SeldomWarning } from './seldom.js';

/** Set on a connection on which nobody has shown a right key: those that it is one of. */
const AMONG = Symbol('among');

type Marked = Socket & { [AMONG]?: Strangers | undefined };

export interface StrangersOptions {
  /** Connections of one address on which nobody has shown a key. */
  readonly ofAddress: number;
  /** The same of all addresses together. */
  readonly together: number;
}

/** Notes that a right key was shown on a connection. */
export function recognize(socket: Marked): void {
  socket[AMONG]?.forget(socket);
}

/** Whether a connection is watched, and nobody has shown a right key on it yet. */
export function isStranger(socket: Marked): boolean {
  return socket[AMONG] !== undefined;
}

/**
 * The connections on which nobody has shown a right key. Everybody can make them, and so they are bounded below the number of connections
 * that there may be: where there are too many, the oldest is ended. A client with a key has shown it by then.
 */
export class Strangers {
  readonly #all = new Map<Socket, string>();
  readonly #byNetwork = new Map<string, Set<Socket>>();
  readonly #warning: SeldomWarning;

  constructor(
    private readonly most: StrangersOptions,
    log: Pick<Logger, 'warn'>,
  ) {
    this.#warning = new SeldomWarning(log, 'too many connections without a key: the oldest are ended');
  }

  /** Watches the connections of a server, one of TLS once they have agreed on a key. */
  watch(server: Server): void {
    server.on('setSecureContext' in server ? 'secureConnection' : 'connection', (socket: Socket) => {
      this.add(socket);
    });
  }

  /** Counts a connection that was just made, and ends the oldest ones where there are too many. */
  add(socket: Marked): void {
    socket[AMONG] = this;
    const from = network(socket.remoteAddress ?? '');
    const ofAddress = this.#byNetwork.get(from) ?? new Set();
    this.#byNetwork.set(from, ofAddress);
    ofAddress.add(socket);
    this.#all.set(socket, from);
    socket.once('close', () => {
      this.forget(socket);
    });
    this.#endOldest(ofAddress, this.most.ofAddress);
    this.#endOldest(this.#all, this.most.together);
  }

  /** Counts a connection no longer. */
  forget(socket: Marked): void {
    socket[AMONG] = undefined;
    const from = this.#all.get(socket);
    if (from === undefined) return;
    this.#all.delete(socket);
    const ofAddress = this.#byNetwork.get(from);
    ofAddress?.delete(socket);
    if (ofAddress?.size === 0) this.#byNetwork.delete(from);
  }

  #endOldest(among: Pick<Map<Socket, unknown>, 'keys' | 'size'>, most: number): void {
    for (const socket of among.keys()) {
      if (among.size <= most) return;
      const from = this.#all.get(socket);
      this.forget(socket);
      socket.destroy();
      this.#warning.happened({ from });
    }
  }
}
