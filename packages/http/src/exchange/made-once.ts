/** Bytes that are made of the bytes which many answers share, such as their compressed form. */
export class MadeOnce<Name> {
  readonly #made = new WeakMap<Uint8Array, Map<Name, Promise<Uint8Array>>>();

  /**
   * What `make` resolves to, which is called once for the same bytes and name, and again only after it failed. The result is kept as long
   * as the bytes are, so it must not be freed once it is sent.
   */
  of(bytes: Uint8Array, name: Name, make: () => Promise<Uint8Array>): Promise<Uint8Array> {
    const all = this.#made.get(bytes) ?? new Map<Name, Promise<Uint8Array>>();
    this.#made.set(bytes, all);
    let made = all.get(name);
    if (made === undefined) {
      made = make();
      all.set(name, made);
      made.catch(() => all.delete(name));
    }
    return made;
  }
}
