// Sparse matrices as the sparse track of big-ann-benchmarks keeps them: three 64-bit numbers (rows, columns, entries), a 64-bit pointer for
// each row and one more, then all columns (32 bits), then all values (f32), little-endian. Rows are read in stretches: a file may be larger
// than what Node reads at once.
import { closeSync, openSync, readFileSync, readSync, statSync, writeFileSync, writeSync } from 'node:fs';

const HEADER = 24;
/** How many rows are read at once. */
const STRETCH = 20_000;

export class CsrFile {
  #file;
  #pointers;

  constructor(path) {
    this.path = path;
    this.#file = openSync(path, 'r');
    const [rows, columns, entries] = this.#numbers(0, 3);
    const bytes = HEADER + 8 * (rows + 1) + 8 * entries;
    if (statSync(path).size !== bytes) throw new Error(`${path} should have ${bytes} bytes`);
    this.rows = rows;
    this.columns = columns;
    this.entries = entries;
    this.#pointers = this.#numbers(HEADER, rows + 1);
  }

  /** How many rows a file has. */
  static rowsOf(path) {
    const file = new CsrFile(path);
    file.close();
    return file.rows;
  }

  close() {
    closeSync(this.#file);
  }

  /** How many entries the first `rows` rows have. */
  entriesOf(rows) {
    return this.#pointers[rows];
  }

  /** The columns and values of the first `count` rows, one after another. */
  *read(count = this.rows) {
    for (let from = 0; from < count; from += STRETCH) {
      const to = Math.min(count, from + STRETCH);
      const [first, last] = [this.#pointers[from], this.#pointers[to]];
      const columnsAt = HEADER + 8 * (this.rows + 1);
      const idx = new Uint32Array(this.#bytes(columnsAt + 4 * first, 4 * (last - first)));
      const val = new Float32Array(this.#bytes(columnsAt + 4 * (this.entries + first), 4 * (last - first)));
      for (let row = from; row < to; row += 1) {
        const [begin, end] = [this.#pointers[row] - first, this.#pointers[row + 1] - first];
        yield { row, idx: idx.subarray(begin, end), val: val.subarray(begin, end) };
      }
    }
  }

  #numbers(at, count) {
    return Array.from(new BigUint64Array(this.#bytes(at, 8 * count)), Number);
  }

  #bytes(at, length) {
    const bytes = Buffer.alloc(length);
    if (readSync(this.#file, bytes, 0, length, at) !== length) throw new Error(`${this.path} is cut short`);
    return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + length);
  }
}

/**
 * Writes rows of columns and values.
 *
 * @param {{ idx: ArrayLike<number>, val: ArrayLike<number> }[]} rows
 */
export function writeCsr(path, rows, columns) {
  const pointers = [0];
  for (const { idx } of rows) pointers.push(pointers.at(-1) + idx.length);
  const entries = pointers.at(-1);
  const [idx, val] = [new Uint32Array(entries), new Float32Array(entries)];
  rows.forEach((row, at) => {
    idx.set(row.idx, pointers[at]);
    val.set(row.val, pointers[at]);
  });
  const file = openSync(path, 'w');
  for (const part of [[rows.length, columns, entries], pointers]) {
    writeSync(file, new Uint8Array(BigUint64Array.from(part, BigInt).buffer));
  }
  for (const part of [idx, val]) writeFileSync(file, new Uint8Array(part.buffer));
  closeSync(file);
}

/**
 * Exact answers in big-ann's form: two 32-bit numbers (questions, answers a question), all ids (32 bits), then all scores (f32).
 *
 * @returns {{ ids: Int32Array, scores: Float32Array, depth: number }}
 */
export function readGroundTruth(path) {
  const bytes = readFileSync(path);
  const [questions, depth] = [bytes.readUInt32LE(0), bytes.readUInt32LE(4)];
  const length = 4 * questions * depth;
  if (bytes.length !== 8 + 2 * length) throw new Error(`${path} should have ${8 + 2 * length} bytes`);
  const part = (at) => new Uint8Array(bytes.subarray(at, at + length)).buffer;
  return { ids: new Int32Array(part(8)), scores: new Float32Array(part(8 + length)), depth };
}
