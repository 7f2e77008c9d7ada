// The Rust program that searches sparse vectors with Sparrow's postings (crates/postings/examples/bench_top_k).
import { readdirSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';

import { StepFailed } from '../../scripts/lib/process.mjs';
import { fingerprint } from '../../scripts/lib/stamp.mjs';
import { readAnswers } from './answers.mjs';
import { captureJson, folder } from './programs.mjs';
import { accuracy } from './statistics.mjs';

/** Sparrow keeps 11 significant bits of a weight: the scores of two documents may each be off by 2^-11, half of the last bit. */
const SPARROW_TOLERANCE = 2 ** -10;

/**
 * One run of the program, which compares every answer with scoring all documents, bit by bit. Here the answers are compared with
 * the exact ones of the full weights.
 *
 * @param {import('./context.mjs').Context} context
 * @param {string} program
 * @param {object} corpus
 * @param {string} corpus.docs prefix of the documents' vectors
 * @param {string} corpus.queries prefix of the questions' vectors
 * @param {number} corpus.questions the first so many
 * @param {number} corpus.passes over all questions
 * @param {object} corpus.truth see answers.mjs
 * @param {number[]} [corpus.filters] shares of the documents that pass; each is measured too
 * @param {{ count: number, deleted: number }} [corpus.segmented] measures the same documents in segments too
 * @param {'avx2' | 'scalar'} [corpus.kernel] instead of the best one
 * @returns {Promise<object>} p50, p95, mean (milliseconds) of the plain search, `variants` by name, `loop` beside them, sizes
 */
export async function searchSparrow(context, program, corpus) {
  const { docs, queries, questions, truth, passes, kernel, filters = [], segmented } = corpus;
  const results = folder(context.work, 'runs');
  const run = `sparrow-${basename(docs)}${kernel === undefined ? '' : `-${kernel}`}`;
  const args = ['--docs', docs, '--queries', queries, '--questions', `${questions}`];
  args.push('--passes', `${passes}`, '--runs', results, '--name', run, '--index', keptIndex(context, docs));
  if (filters.length > 0) args.push('--filters', filters.join(','));
  if (segmented !== undefined) args.push('--segments', `${segmented.count}`, '--deleted', `${segmented.deleted}`);
  const lines = await captureJson(program, args, { env: kernel === undefined ? {} : { SPARROW_SIMD: kernel } });
  const short = ({ p50_ms, p95_ms, p99_ms, mean_ms }) => ({ p50: p50_ms, p95: p95_ms, p99: p99_ms, mean: mean_ms });
  const variants = Object.fromEntries(lines.map((line) => [line.name, short(line.sparrow)]));
  const answers = readAnswers(join(results, run)).ids;
  const { allRight } = accuracy(answers, truth, { tolerance: SPARROW_TOLERANCE });
  if (allRight < 1)
    throw new StepFailed(`Sparrow answers only ${allRight} of the questions right over ${basename(docs)}`);
  const [first] = lines;
  if (kernel !== undefined && first.instructions !== kernel) {
    // A processor without these instructions.
    if (kernel !== 'scalar') return { p50: null, p95: null, unavailable: first.instructions };
    throw new StepFailed(`SPARROW_SIMD=scalar ran ${first.instructions}`);
  }
  return {
    ...variants.plain,
    plain: variants.plain,
    variants,
    loop: short(first.taat),
    recall: accuracy(answers, truth).recall,
    bytesPerDocument: first.bytes_per_document,
    bytesPerPosting: first.bytes_per_posting,
    postingsPerQuestion: first.postings_per_question,
    indexBytes: first.index_bytes,
    buildSeconds: first.build_s,
    instructions: first.instructions,
  };
}

/** Where the Rust program keeps its index for the next round: another one for other sources, and the old ones go. */
function keptIndex(context, docs) {
  const home = folder(context.work, 'sparrow');
  const file = `${basename(docs)}.${fingerprint([join('crates', 'postings')]).slice(0, 16)}`;
  for (const old of readdirSync(home)) {
    if (old.startsWith(`${basename(docs)}.`) && old !== file) rmSync(join(home, old));
  }
  return join(home, file);
}
