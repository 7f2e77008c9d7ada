// Nearest neighbours among dense vectors: recall against an exact scan, the time of both, what building a graph takes, in time and bytes.
// The Rust program (crates/vectors/examples/bench_knn.rs) compares the exact answers with scores in double precision and every score
// shown with the vector's own, and ends with an error when recall is below the floor. SPARROW_BENCH_EMBEDDINGS names a folder with
// passages.f32 and queries.f32 (rows of 384 little-endian floats) for real embeddings (`examples/encode_corpus.rs` of the encoder
// writes them); without it they are drawn from a mixture. Over real ones hnswlib, FAISS and usearch run too (dense/knn.py of the
// peers' folder): the same vectors and questions, one thread, the best time of each question in three rounds.
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
/** Recall@10 that 100 candidates have to reach: over 50,000 real embeddings it is 0.950, and a change that loses a hundredth is to be seen. */
const FLOOR = 0.94;
const CHECKED = 'exact answers with double precision, every score, recall@10 with the floor';

/** @param {import('../lib/context.mjs').Context} context */
export async function run(context) {
  const { count, dims, questions } = SIZES[context.size];
  const program = await context.rustExample('bench_knn');
  const numbers = ['--count', `${count}`, '--questions', `${questions}`, '--dims', `${dims}`, '--floor', `${FLOOR}`];
  const files = context.size === 'smoke' ? [] : embeddings();
  const lines = await captureJson(program, [...numbers, ...files]);
  const peers = files.length > 0 ? await peersOf(context, ['--count', `${count}`, '--questions', `${questions}`]) : [];
  return { rows: [...describe(lines), ...compare(lines, peers)] };
}

/** What dense/knn.py of the peers' folder prints, or nothing where it cannot run. */
async function peersOf(context, numbers) {
  const script = context.peers === undefined ? undefined : join(context.peers, 'dense', 'knn.py');
  if (script === undefined || !existsSync(script)) return [];
  const python = await context.python();
  if (python.skipped !== undefined) return [];
  const [, vectors, , queries] = embeddings();
  return captureJson(python.path, [script, vectors, queries, ...numbers]);
}

/** Recall@10 at which times are compared. */
const RECALLS = [0.95, 0.99];

/**
 * Times at equal recall, building and exact scans, against each peer. A peer that does not reach a recall has no row for it.
 * @param {object[]} lines what our program printed
 * @param {object[]} peers what dense/knn.py printed
 */
export function compare(lines, peers) {
  const rows = [];
  const checked = 'recall@10 of both against an exact scan of the same vectors';
  const engines = [...new Set(peers.filter((line) => line.width !== undefined).map((line) => line.engine))];
  for (const engine of engines) {
    const kind = engine.endsWith('int8') ? 'int8_hnsw' : 'hnsw';
    const ours = lines.filter(
      (line) =>
        line.part === 'search' &&
        line.kind === kind &&
        line.what === 'graph' &&
        line.filter === 1 &&
        line.method === 'Graph',
    );
    const own = ours.map((line) => [line.recall, line.p50_us / 1000]);
    const other = peers
      .filter((line) => line.engine === engine && line.width !== undefined)
      .map((line) => [line.recall, line.p50_ms]);
    for (const recall of RECALLS) {
      const [sparrow, peer] = [timeAt(own, recall), timeAt(other, recall)];
      if (sparrow === undefined || peer === undefined) continue;
      const what = `${kind}, recall@10 of ${recall}: p50`;
      rows.push({ what, against: engine, unit: 'ms', sparrow, peer, checked, detail: { own, other } });
    }
    const built = (all) =>
      all.find((line) => line.build_s !== undefined && (line.kind ?? line.engine) === (all === lines ? kind : engine));
    const [sparrow, peer] = [built(lines)?.build_s, built(peers)?.build_s];
    if (sparrow === undefined || peer === undefined) continue;
    rows.push({
      what: `${kind}: building the graph`,
      against: engine,
      unit: 's',
      sparrow,
      peer,
      checked,
      detail: null,
    });
  }
  const scan = lines.find((line) => line.part === 'search' && line.kind === 'hnsw' && line.filter === 1)?.exact_p50_us;
  for (const line of peers.filter((line) => line.bytes !== undefined && scan !== undefined)) {
    rows.push({
      what: 'exact scan: p50',
      against: line.engine,
      unit: 'ms',
      sparrow: scan / 1000,
      peer: line.p50_ms,
      checked,
      detail: line,
    });
  }
  return rows;
}

/**
 * The time at which a recall is reached, between the two widths around it.
 * @param {[number, number][]} curve recall and time by width, ascending
 */
export function timeAt(curve, recall) {
  const above = curve.findIndex(([reached]) => reached >= recall);
  if (above < 0) return undefined;
  if (above === 0) return curve[0][1];
  const [[low, before], [high, after]] = [curve[above - 1], curve[above]];
  return before + ((after - before) * (recall - low)) / (high - low);
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
