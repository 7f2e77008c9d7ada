import { setImmediate } from 'node:timers/promises';

/** For how long a piece of work holds the event loop before others get a turn, in milliseconds. */
const MOST_MS = 5;

/**
 * Most turns that others have after a piece of work: one for each millisecond that it took. A request takes several, and one over a new
 * connection as many more as there are connections before it, since one is accepted in each. An idle turn takes some microseconds.
 */
const MOST_TURNS = 100;

/** Divides long work on the event loop, so that requests are answered meanwhile. */
export class Turns {
  #begun = performance.now();

  /** Lets others have turns if this one has taken long enough. Awaited between any two small parts of the work. */
  async next(): Promise<void> {
    if (!this.isOver) return;
    const turns = Math.min(performance.now() - this.#begun, MOST_TURNS);
    for (let turn = 0; turn < turns; turn += 1) await setImmediate();
    this.#begun = performance.now();
  }

  /** Whether this turn has taken long enough: where there are many parts, it saves waiting for nothing. */
  get isOver(): boolean {
    return performance.now() - this.#begun >= MOST_MS;
  }
}
