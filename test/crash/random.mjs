// Random numbers that come from one seed: the same seed makes the same choices.

/** A small generator (mulberry32); good enough to choose operations, no more. */
export class Random {
  #state;

  /** @param {number} seed */
  constructor(seed) {
    this.#state = seed >>> 0;
  }

  /** A generator of its own for a part of the work, so that one part's choices do not depend on another's timing. */
  static of(...parts) {
    let hash = 0x811c9dc5;
    for (const part of parts) hash = Math.imul(hash ^ part, 0x01000193) ^ (hash >>> 13);
    return new Random(hash);
  }

  /** In [0, 1). */
  next() {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number in [0, below). */
  below(below) {
    return Math.floor(this.next() * below);
  }

  chance(probability) {
    return this.next() < probability;
  }

  /** One of `items`, or undefined where there is none. */
  pick(items) {
    return items[this.below(items.length)];
  }

  /** One of `[weight, item]`, as often as its weight says. */
  weighted(entries) {
    let left = this.next() * entries.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, item] of entries) {
      left -= weight;
      if (left < 0) return item;
    }
    return entries.at(-1)?.[1];
  }
}
