/** Longest that is made twice as long when it is full; what is longer is made four times as long. */
const DOUBLED = 8 * 1024 * 1024;

/** Bytes that come in pieces. Each goes to its place as it comes: joining them all at the end would hold the event loop. */
export class Gathered {
  #bytes: Buffer = NOTHING;
  #length = 0;

  /**
   * @param expected how many there will be, if that is known; else 0
   * @param limit the most there may be
   */
  constructor(
    private readonly expected: number,
    private readonly limit: number,
  ) {}

  get length(): number {
    return this.#length;
  }

  /** Adds a piece, which nobody may change from then on. */
  add(piece: Buffer): void {
    const before = this.#length;
    this.#length += piece.length;
    if (before === 0) {
      // Mostly the first is all.
      this.#bytes = piece;
      return;
    }
    if (this.#bytes.length < this.#length) this.#grow(before);
    piece.copy(this.#bytes, before);
  }

  /** All that came. */
  bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  /**
   * Room for what came, and some times as much. Not for all that was announced: that costs a client nothing, and so much memory, used or
   * not, makes Node look for garbage all the time.
   */
  #grow(used: number): void {
    const wanted = this.#length * (this.#length > DOUBLED ? 4 : 2);
    const most = this.expected > 0 ? Math.min(this.expected, this.limit) : this.limit;
    const larger = Buffer.allocUnsafeSlow(Math.max(Math.min(wanted, most), this.#length));
    this.#bytes.copy(larger, 0, 0, used);
    this.#bytes = larger;
  }
}

const NOTHING = Buffer.alloc(0);
