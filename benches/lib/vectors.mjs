// Sparse vectors in files: rows of a matrix whose columns are the vocabulary's numbers, little-endian. PREFIX.ptr holds a u32 per
// row and one more, PREFIX.idx the columns (u32), PREFIX.val the weights (f32), ascending by column within a row.
import {
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';

import { CsrFile } from './csr.mjs';

const ENDINGS = ['ptr', 'idx', 'val'];
const COPY_BYTES = 1 << 24;

/** @typedef {{ ptr: Uint32Array, idx: Uint32Array, val: Float32Array, rows: number }} Vectors */

/** @returns {Vectors} */
export function readVectors(prefix) {
  const read = (Type, ending) => {
    const bytes = readFileSync(`${prefix}.${ending}`);
    // A small file lies somewhere in Node's pool, where it need not be aligned.
    return bytes.byteOffset % 4 === 0
      ? new Type(bytes.buffer, bytes.byteOffset, bytes.byteLength >> 2)
      : new Type(new Uint8Array(bytes).buffer);
  };
  const ptr = read(Uint32Array, 'ptr');
  const vectors = { ptr, idx: read(Uint32Array, 'idx'), val: read(Float32Array, 'val'), rows: ptr.length - 1 };
  if (vectors.idx.length !== ptr.at(-1) || vectors.val.length !== ptr.at(-1)) throw new Error(`${prefix} is cut short`);
  return vectors;
}

/** How many rows there are, or undefined when the files are not all there or not as long as they should be. */
export function countRows(prefix) {
  if (!ENDINGS.every((ending) => existsSync(`${prefix}.${ending}`))) return undefined;
  const size = (ending) => statSync(`${prefix}.${ending}`).size;
  const rows = (size('ptr') >> 2) - 1;
  if (rows < 0) return undefined;
  const last = pointerAt(prefix, rows);
  return size('idx') === 4 * last && size('val') === 4 * last ? rows : undefined;
}

/** Copies the first `rows` rows into files of their own. */
export function sliceVectors(prefix, rows, target) {
  const lengths = { ptr: 4 * (rows + 1), idx: 4 * pointerAt(prefix, rows), val: 4 * pointerAt(prefix, rows) };
  // The pointers come last: without them nothing counts as there.
  for (const ending of ['idx', 'val', 'ptr']) copyHead(`${prefix}.${ending}`, `${target}.${ending}`, lengths[ending]);
}

/** Copies the first rows of a matrix of csr.mjs, `rows` at most. */
export function copyMatrix(path, rows, target) {
  const matrix = new CsrFile(path);
  const [idx, val] = ['idx', 'val'].map((ending) => openSync(`${target}.${ending}`, 'w'));
  const ptr = new Uint32Array(Math.min(rows, matrix.rows) + 1);
  for (const { row, idx: columns, val: values } of matrix.read(ptr.length - 1)) {
    ptr[row + 1] = ptr[row] + columns.length;
    writeSync(idx, columns);
    writeSync(val, values);
  }
  for (const file of [idx, val]) closeSync(file);
  matrix.close();
  writeFileSync(`${target}.ptr`, ptr);
}

function pointerAt(prefix, row) {
  const file = openSync(`${prefix}.ptr`, 'r');
  try {
    const bytes = Buffer.alloc(4);
    if (readSync(file, bytes, 0, 4, 4 * row) !== 4) throw new Error(`${prefix} has no row ${row}`);
    return bytes.readUInt32LE();
  } finally {
    closeSync(file);
  }
}

function copyHead(from, to, length) {
  const [source, target] = [openSync(from, 'r'), openSync(`${to}.tmp`, 'w')];
  try {
    const chunk = Buffer.alloc(Math.min(length, COPY_BYTES));
    for (let done = 0; done < length;) {
      const count = readSync(source, chunk, 0, Math.min(chunk.length, length - done), done);
      if (count === 0) throw new Error(`${from} is cut short`);
      writeSync(target, chunk, 0, count);
      done += count;
    }
  } finally {
    closeSync(source);
    closeSync(target);
  }
  renameSync(`${to}.tmp`, to);
}
