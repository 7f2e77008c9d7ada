import { setImmediate } from 'node:timers/promises';

/** For how long a piece of work holds the event loop before others get a turn, in milliseconds. */
const MOST_MS = 5;

/** Divides long work on the event loop, so that requests are answered meanwhile. */
export class Turns {
  #begun = performance.now();

  /** Lets others have a turn if this one has taken long enough. Awaited between any two small parts of the work. */
  async next(): Promise<void> {
    if (!this.isOver) return;
    await setImmediate();
    this.#begun = performance.now();
  }

  /** Whether this turn has taken long enough: where there are many parts, it saves waiting for nothing. */
  get isOver(): boolean {
    return performance.now() - this.#begun >= MOST_MS;
  }
}
