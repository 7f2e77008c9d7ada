// Nearest neighbours among dense vectors: recall against an exact scan, the time of both, what building a graph takes, in time and bytes.
// The Rust program (crates/vectors/examples/bench_knn.rs) compares the exact answers with scores in double precision and every score
// shown with the vector's own, and ends with an error when recall is below the floor. SPARROW_BENCH_EMBEDDINGS names a folder with
// passages.f32 and queries.f32 (rows of 384 little-endian floats) for real embeddings; without it they are drawn from a mixture.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';

import { captureJson } from '../lib/programs.mjs';

export const title = 'nearest neighbours among dense vectors';

const SIZES = {
  // As many as it takes for a graph to be walked with 100 candidates.
  smoke: { count: 6000, dims: 32, questions: 40 },
  quick: { count: 10_000, dims: 384, questions: 200 },
  full: { count: 50_000, dims: 384, questions: 500 },
};
/** Recall@10 that 100 candidates have to reach. */
const FLOOR = 0.95;
const CHECKED = 'exact answers with double precision, every score, recall@10 with the floor';

/** @param {import('../lib/context.mjs').Context} context */
export async function run(context) {
  const { count, dims, questions } = SIZES[context.size];
  const program = await context.rustExample('bench_knn');
  const numbers = ['--count', `${count}`, '--questions', `${questions}`, '--dims', `${dims}`, '--floor', `${FLOOR}`];
  const files = context.size === 'smoke' ? [] : embeddings();
  return { rows: describe(await captureJson(program, [...numbers, ...files])) };
}

function embeddings() {
  const home = process.env.SPARROW_BENCH_EMBEDDINGS;
  if (home === undefined) return [];
  const [vectors, queries] = ['passages.f32', 'queries.f32'].map((name) => join(home, name));
  return existsSync(vectors) && existsSync(queries) ? ['--vectors', vectors, '--queries', queries] : [];
}

/** @param {object[]} lines what the program printed */
export function describe(lines) {
  return lines.flatMap((line) => {
    if (line.part === 'build') {
      const what = (name) => `${line.kind}, ${line.vectors.toLocaleString('en-US')} vectors: ${name}`;
      const bytes = (line.vector_bytes + line.graph_bytes) / line.vectors;
      return [
        { what: what('building the graph'), unit: 's', sparrow: line.build_s, checked: CHECKED, detail: line },
        { what: what('vectors and graph, each'), unit: 'bytes', sparrow: bytes, checked: CHECKED, detail: line },
      ];
    }
    const shown = line.filter === 1 ? [10, 20, 50, 100] : [100];
    if (!shown.includes(line.num_candidates) || (line.filter < 1 && line.what !== 'graph')) return [];
    const filter = line.filter < 1 ? `, filter of ${(line.filter * 100).toString()}%` : '';
    const what = `${line.kind}, ${line.num_candidates.toString()} candidates${filter}, ${line.what}`;
    const floor = line.filter === 1 && line.num_candidates === 100 ? { at_least: FLOOR } : null;
    return [
      {
        what: `${what}: p50`,
        against: 'exact scan',
        unit: 'ms',
        sparrow: line.p50_us / 1000,
        peer: line.exact_p50_us / 1000,
        checked: CHECKED,
        detail: line,
      },
      { what: `${what}: recall@10`, unit: '', sparrow: line.recall, target: floor, checked: CHECKED, detail: line },
    ];
  });
}
