// node --expose-gc typed-array-search.mjs DOCS QUERIES RESULT [--questions N] [--depth 10] [--passes 0] [--precise]
//
// Searches vectors (prefixes, see ../lib/vectors.mjs) with the typed-array index in a process of its own. Writes RESULT.ids (int32, -1
// for none) and RESULT.scores (f32), `depth` a question; prints one JSON object with the times of `passes` passes after one to
// warm up.
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

import { summarize } from '../lib/statistics.mjs';
import { readVectors } from '../lib/vectors.mjs';
import { TypedArrayIndex } from './typed-array-index.mjs';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    questions: { type: 'string', default: 'Infinity' },
    depth: { type: 'string', default: '10' },
    passes: { type: 'string', default: '0' },
    precise: { type: 'boolean', default: false },
  },
});
const [docs, queries, result] = positionals;
const depth = Number(values.depth);
const used = () => {
  globalThis.gc?.();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
};

const vectors = readVectors(docs);
const before = used();
const begun = performance.now();
const index = new TypedArrayIndex(vectors, { precise: values.precise });
const buildSeconds = (performance.now() - begun) / 1000;
const memoryBytes = used() - before;

const { ptr, idx, val, rows } = readVectors(queries);
const questions = Math.min(rows, Number(values.questions));
const search = (row) => index.search(idx.subarray(ptr[row], ptr[row + 1]), val.subarray(ptr[row], ptr[row + 1]), depth);
const [ids, scores] = [new Int32Array(questions * depth).fill(-1), new Float32Array(questions * depth)];
for (let row = 0; row < questions; row += 1) {
  search(row).forEach(({ doc, score }, rank) => {
    ids[row * depth + rank] = doc;
    scores[row * depth + rank] = score;
  });
}
writeFileSync(`${result}.scores`, new Uint8Array(scores.buffer));
writeFileSync(`${result}.ids`, new Uint8Array(ids.buffer));

const times = [];
for (let pass = 0; pass < Number(values.passes); pass += 1) {
  for (let row = 0; row < questions; row += 1) {
    const asked = performance.now();
    search(row);
    times.push(performance.now() - asked);
  }
}
const figures = times.length === 0 ? null : summarize(times);
console.log(
  JSON.stringify({ docs: vectors.rows, questions, buildSeconds, memoryBytes, indexBytes: index.bytes, ...figures }),
);
