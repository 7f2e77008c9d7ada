// Documents with the vectors that Sparrow's encoder made of them, as both servers are loaded with them.
import { openSync, readFileSync, readSync } from 'node:fs';

import { shortest } from '../lib/derived.mjs';
import { readVocabulary } from '../lib/vocabulary.mjs';

/** Rows of a sparse matrix in three files: `.ptr` (u32, rows + 1), `.idx` (u32, numbers of the vocabulary), `.val` (f32). */
export class Vectors {
  #ptr;
  #idx;
  #val;
  #tokens;

  constructor(prefix) {
    this.#ptr = new Uint32Array(whole(`${prefix}.ptr`));
    this.#idx = openSync(`${prefix}.idx`);
    this.#val = openSync(`${prefix}.val`);
    this.#tokens = readVocabulary();
  }

  get rows() {
    return this.#ptr.length - 1;
  }

  /** The weights of a row by token. */
  row(number) {
    const from = this.#ptr[number];
    const length = this.#ptr[number + 1] - from;
    const terms = new Uint32Array(part(this.#idx, from * 4, length * 4));
    const weights = new Float32Array(part(this.#val, from * 4, length * 4));
    return Object.fromEntries(Array.from(terms, (term, at) => [this.#tokens[term], shortest(weights[at])]));
  }
}

/**
 * The vectors of the first texts.
 *
 * @param {{ vectors(kind: 'texts', count: number): Promise<{ prefix: string }> }} context
 */
export async function vectorsOf(context, texts) {
  const { prefix } = await context.vectors('texts', texts.length);
  return new Vectors(prefix);
}

function whole(path) {
  const bytes = readFileSync(path);
  return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
}

function part(file, from, length) {
  const bytes = Buffer.alloc(length);
  readSync(file, bytes, 0, length, from);
  return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + length);
}
