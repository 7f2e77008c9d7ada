import type { Socket } from 'node:net';

/** Requests over different connections that come within so many milliseconds are concurrent. */
const APART_MS = 2;

/** For so many milliseconds after two concurrent requests all others are taken for concurrent too: their clients go on asking. */
const AFTERWARDS_MS = 20;

/** Tells a client that asks one thing after the other from several that ask at the same time. */
export class Callers {
  #last: Socket | undefined;
  #at = -Infinity;
  #concurrentAt = -Infinity;

  /**
   * Whether a request has just come over another connection than the one before it, or did a moment ago.
   *
   * @param now milliseconds of a clock that is not set back
   */
  concurrent(socket: Socket, now: number): boolean {
    if (socket !== this.#last && now - this.#at < APART_MS) this.#concurrentAt = now;
    this.#last = socket;
    this.#at = now;
    return now - this.#concurrentAt < AFTERWARDS_MS;
  }
}
