// Ranked answers of engines in files, in the peers' format: NAME.ids (int32, k a question, -1 for none) and NAME.scores (f32).
import { existsSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import process from 'node:process';

import { at } from '../../scripts/lib/paths.mjs';
import { capture, folder } from './programs.mjs';

/** How many exact answers a question are kept: enough for a tolerant comparison of ten. */
const DEPTH = 100;

/** @returns {{ ids: Int32Array, scores: Float32Array }} */
export function readAnswers(prefix) {
  const read = (Type, ending) => new Type(new Uint8Array(readFileSync(`${prefix}.${ending}`)).buffer);
  return { ids: read(Int32Array, 'ids'), scores: read(Float32Array, 'scores') };
}

/**
 * The exact best answers by the typed-array index in double precision, which shares no code with Sparrow. Kept in the work
 * folder.
 *
 * @param {import('./context.mjs').Context} context
 * @param {string} docs prefix of the documents' vectors
 * @param {string} queries prefix of the questions' vectors
 * @returns {Promise<{ prefix: string, ids: Int32Array, scores: Float32Array, depth: number }>} of all questions, and the files' prefix
 */
export async function groundTruth(context, docs, queries) {
  const prefix = join(folder(context.work, 'truth'), `${basename(docs)}--${basename(queries)}`);
  if (!existsSync(`${prefix}.ids`)) {
    context.log(`exact answers for ${basename(docs)}`);
    const program = at('benches', 'peers', 'typed-array-search.mjs');
    await capture(process.execPath, [program, docs, queries, prefix, '--depth', `${DEPTH}`, '--precise']);
  }
  return { prefix, ...readAnswers(prefix), depth: DEPTH };
}
