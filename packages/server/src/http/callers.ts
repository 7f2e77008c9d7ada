import type { Socket } from 'node:net';

/** Requests over different connections that come within so many milliseconds are concurrent. */
const APART_MS = 2;

/** Tells a client that asks one thing after the other from several that ask at the same time. */
export class Callers {
  #last: Socket | undefined;
  #at = -Infinity;

  /**
   * Whether a request has just come over another connection than the one before it.
   *
   * @param now milliseconds of a clock that is not set back
   */
  concurrent(socket: Socket, now: number): boolean {
    const concurrent = socket !== this.#last && now - this.#at < APART_MS;
    this.#last = socket;
    this.#at = now;
    return concurrent;
  }
}
