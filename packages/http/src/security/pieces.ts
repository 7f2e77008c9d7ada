import type { Turns } from '@sparrow-search/engine';

/** Characters that are written before they become bytes. */
const PIECE = 64 * 1024;

/** The bytes of a long answer, written piece by piece: there is no text that could become too long. */
export class Pieces {
  readonly #pieces: Buffer[] = [];
  #text = '';
  #length = 0;

  /** @param take takes room for the bytes of a piece before it is kept, and is told how many there are with it; absent: that was done before */
  constructor(private readonly take: (bytes: number, all: number) => void = () => undefined) {}

  /** @throws what `take` throws */
  add(text: string): void {
    this.#text += text;
    if (this.#text.length >= PIECE) this.#keep();
  }

  /**
   * Adds items with commas between them. Others have turns meanwhile.
   *
   * @throws what `take` throws, and `turns`
   */
  async addAll<T>(
    items: Iterable<T>,
    write: (item: T) => string,
    turns: Pick<Turns, 'isOver' | 'next'>,
  ): Promise<void> {
    let comma = '';
    for (const item of items) {
      this.add(comma + write(item));
      comma = ',';
      if (turns.isOver) await turns.next();
    }
  }

  /** @throws what `take` throws */
  end(): Buffer {
    this.#keep();
    return Buffer.concat(this.#pieces);
  }

  #keep(): void {
    const piece = Buffer.from(this.#text);
    this.#text = '';
    this.#length += piece.length;
    this.take(piece.length, this.#length);
    this.#pieces.push(piece);
  }
}
