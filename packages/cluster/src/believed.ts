/** How long what the cluster or the engine said is believed. */
const BELIEVED_MS = 5_000;
const MOST_BELIEVED = 1_000;

/** Answers that are asked for again after five seconds. */
export class Believed<T> {
  readonly #known = new Map<string, { readonly until: number; readonly answer: Promise<T> }>();

  /** The answer by a name: the one that is known, or that of `ask`. One that fails is not kept. */
  of(name: string, ask: () => Promise<T>): Promise<T> {
    const now = Date.now();
    const known = this.#known.get(name);
    if (known !== undefined && known.until > now) return known.answer;
    const answer = ask();
    answer.catch(() => this.#known.delete(name));
    // Expired answers are removed, the oldest first: each may be as long as a mapping.
    this.#known.delete(name);
    for (const [other, { until }] of this.#known) {
      if (until > now && this.#known.size < MOST_BELIEVED) break;
      this.#known.delete(other);
    }
    this.#known.set(name, { until: now + BELIEVED_MS, answer });
    return answer;
  }

  /** Asks again next time for one name. */
  drop(name: string): void {
    this.#known.delete(name);
  }

  forget(): void {
    this.#known.clear();
  }
}

/** A function that calls `make` once for each object that it is given, and remembers the result as long as the object is in use. */
export function derived<F extends object, T>(make: (from: F) => T): (from: F) => T {
  const made = new WeakMap<F, { readonly value: T }>();
  return (from) => {
    const known = made.get(from) ?? { value: make(from) };
    made.set(from, known);
    return known.value;
  };
}
