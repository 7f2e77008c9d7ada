import type { Result, Router } from 'hono/router';
import { TrieRouter } from 'hono/router/trie-router';

/** Most paths whose route is remembered, and how long one may be: searches of a few indices are most of what there is. */
const REMEMBERED = 1000;
const LONGEST = 256;

/**
 * Hono's router that takes literals and parameters in the same place, for handlers of which the first that fits answers: it gives that one
 * alone, which Hono calls without composing, and remembers it. Its tree costs 2 to 5 µs a request otherwise, and composing as much again.
 * Middleware that is put before the routes with `use` would therefore answer every request: the steps of a request are in `application.ts`.
 */
export class FirstMatchRouter<T> implements Router<T> {
  readonly name = 'FirstMatchRouter';
  readonly #tree = new TrieRouter<T>();
  /** What was found, by path and method. */
  readonly #known = new Map<string, Map<string, Result<T>>>();

  add(method: string, path: string, handler: T): void {
    this.#tree.add(method, path, handler);
  }

  match(method: string, path: string): Result<T> {
    const known = this.#known.get(path)?.get(method);
    if (known !== undefined) return known;
    const [all] = this.#tree.match(method, path) as [[T, Record<string, string>][]];
    const first: Result<T> = [all.slice(0, 1)];
    if (all.length > 0 && path.length <= LONGEST) this.#remember(method, path, first);
    return first;
  }

  #remember(method: string, path: string, found: Result<T>): void {
    if (this.#known.size >= REMEMBERED) this.#known.clear();
    const methods = this.#known.get(path) ?? new Map<string, Result<T>>();
    // A copy: the path may be a part of a whole address, which would be kept with it.
    this.#known.set(Buffer.from(path).toString(), methods.set(method, found));
  }
}
