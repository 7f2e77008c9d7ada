// onnxruntime-node as a peer of the encoder: benches/peers/encode-onnxruntime-node.mjs, in a process of its own for each run.
import process from 'node:process';

import { at } from '../../scripts/lib/paths.mjs';
import { captureJson } from './programs.mjs';

const SCRIPT = at('benches', 'peers', 'encode-onnxruntime-node.mjs');

/**
 * @typedef {object} Batch what a batch size took
 * @property {number} size
 * @property {number} cpu_s of the best round
 * @property {number} texts
 * @property {number} tokens of a text on average
 */

/** Texts per CPU-second. @param {Batch} batch */
export const rate = ({ texts, cpu_s }) => texts / cpu_s;

/** The batch size of the highest rate. @param {Batch[]} batches */
export const fastest = (batches) => batches.reduce((a, b) => (rate(a) > rate(b) ? a : b));

/**
 * Finds the batch size that is best for a graph. What comes back runs it at that size alone, so that its memory is that of its best
 * size, too.
 *
 * @param {string} graph
 * @param {string} tokenizer
 * @param {{ passages: string[], batches: number[] }} job see the program
 * @returns {Promise<{ size: number, tried: Batch[], run: (job: { questions: string[], rounds: number }) => Promise<object> }>}
 */
export async function atBestBatch(graph, tokenizer, job) {
  const run = async (more) => {
    const input = JSON.stringify({ ...job, ...more });
    return (await captureJson(process.execPath, [SCRIPT, graph, tokenizer], { input }))[0];
  };
  const tried = job.batches.length === 1 ? [] : (await run({ questions: [], rounds: 1 })).batches;
  const size = tried.length === 0 ? job.batches[0] : fastest(tried).size;
  return { size, tried, run: (more) => run({ ...more, batches: [size] }) };
}

/** The best of several runs at one batch size: of each figure the best, for the answers do not differ. */
export function bestRun(runs) {
  // No question was asked, so none was timed.
  const least = (name) => (runs[0][name] === null ? null : Math.min(...runs.map((run) => run[name])));
  return {
    ...runs[0],
    rate: Math.max(...runs.map(({ batches }) => rate(batches[0]))),
    ...Object.fromEntries(
      ['rss_anon_kb', 'rss_kb', 'peak_rss_kb', 'question_p50_ms'].map((name) => [name, least(name)]),
    ),
  };
}
