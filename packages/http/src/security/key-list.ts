import type { ApiKey } from './key-store.js';

/** Bytes of keys that were counted once. */
const sizes = new WeakMap<ApiKey, number>();

function sizeOf(key: ApiKey): number {
  let bytes = sizes.get(key);
  if (bytes === undefined) sizes.set(key, (bytes = Buffer.byteLength(JSON.stringify(key))));
  return bytes;
}

/** Keys by their ids, and how many bytes they have together. */
export class KeyList {
  readonly #keys = new Map<string, ApiKey>();
  #bytes = 0;

  constructor(keys: Iterable<ApiKey> = []) {
    for (const key of keys) this.set(key);
  }

  get size(): number {
    return this.#keys.size;
  }

  /** Bytes of all keys as JSON. */
  get bytes(): number {
    return this.#bytes;
  }

  get(id: string): ApiKey | undefined {
    return this.#keys.get(id);
  }

  has(id: string): boolean {
    return this.#keys.has(id);
  }

  /** In the order in which they came. */
  values(): IterableIterator<ApiKey> {
    return this.#keys.values();
  }

  set(key: ApiKey): void {
    this.delete(key.id, key);
    this.#keys.set(key.id, key);
    this.#bytes += sizeOf(key);
  }

  /** Removes a key; one that `next` takes the place of keeps its place. */
  delete(id: string, next?: ApiKey): void {
    const key = this.#keys.get(id);
    if (key === undefined) return;
    this.#bytes -= sizeOf(key);
    if (next === undefined) this.#keys.delete(id);
  }
}
