// Nearest neighbours among dense vectors: recall against an exact scan, the time of both, what building a graph takes, in time and bytes.
// Where there is no filter, the Rust program (crates/vectors/examples/bench_knn.rs) counts the exact hits, and compares those of every
// twentieth question with scores in double precision. It compares every score shown with the vector's own, and ends with an error when
// recall is below the floor.
// SPARROW_BENCH_EMBEDDINGS names a folder with passages.f32 and queries.f32 (rows of 384 little-endian floats) for real embeddings
// (`examples/encode_corpus.rs` of the encoder writes them); without it they are drawn from a mixture. The record says which. Over real
// ones hnswlib, FAISS and usearch run too, after our program (peers/dense_engines.py and peers/short_codes.py): the same vectors, questions and widths
// of a search, one thread, the best time of each question in three rounds, for both. The record says which versions of them ran, and how
// they build graphs.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import process from 'node:process';

import { at } from '../../scripts/lib/paths.mjs';
import { StepFailed } from '../../scripts/lib/process.mjs';
import { captureJson, pythonVersions } from '../lib/programs.mjs';
import { figure } from '../lib/rows.mjs';

export const title = 'nearest neighbours among dense vectors';

const SIZES = {
  // As many as it takes for a graph to be walked with 100 candidates.
  smoke: { count: 6000, dims: 64, questions: 40 },
  quick: { count: 10_000, dims: 384, questions: 200 },
  full: { count: 50_000, dims: 384, questions: 500 },
};
/**
 * Recall@10 that 100 candidates have to reach, or 200 by codes of one bit. Over 50,000 real embeddings it is 0.946, and losing a hundredth of that is an error; the
 * mixture is so easy that all are found.
 */
const FLOOR = { real: 0.94, generated: 0.99 };
/** The candidates that have to reach it: codes of one bit want more. */
const candidatesOfFloor = (kind) => (kind === 'bbq_hnsw' ? 200 : 100);
/** The kind whose codes have as many bits as those that all graphs are built by. */
const LONG = 'int8_hnsw';
/** Kinds of shorter codes, how much longer than it they may take at equal recall, and bytes that a vector may take of what walks read. */
const SHORT = { int4_hnsw: { most: 1.3 }, bbq_hnsw: { most: 1.3, bytes: 120 } };
const CHECKED =
  'every score with the vector’s own; unfiltered, the number of exact hits, and those of every twentieth question with double precision; ' +
  'recall@10 with the floor';
const ROUNDS = 3;
/** How the peers build their graphs. Said rather than left to their program's defaults, so that the record is certain to be right. */
const PEERS_GRAPHS = { m: 16, efConstruction: 200 };
/** How many times as many candidates as `ef_construction` says our builder looks at (THOROUGHNESS in crates/vectors/src/graph/insert.rs). */
export const THOROUGHNESS = 2;
/** The packages in which the peers come, by the first word of an engine's name. */
const PACKAGES = { hnswlib: 'hnswlib', faiss: 'faiss-cpu', usearch: 'usearch' };
const NO_PEERS = { lines: [], versions: {} };
/** Why a search compared what it did, as `bench_knn` names its method. */
const METHODS = {
  Graph: (what) => what,
  Codes: (what) => (what === 'graph' ? 'codes scanned instead of the graph' : 'no graph, codes scanned'),
  Exact: (what) => (what === 'graph' ? 'scanned instead of the graph' : 'no graph, scanned'),
};

/** @param {import('../lib/context.mjs').Context} context */
export async function run(context) {
  const { count, dims, questions } = SIZES[context.size];
  const program = await context.rustExample('bench_knn');
  const files = context.size === 'smoke' ? [] : embeddings();
  const floor = files.length > 0 ? FLOOR.real : FLOOR.generated;
  const numbers = ['--count', `${count}`, '--questions', `${questions}`];
  const options = [...numbers, '--dims', `${dims}`, '--floor', `${floor}`, '--rounds', `${ROUNDS}`];
  const given = files.length > 0 ? ['--vectors', files[0], '--queries', files[1]] : [];
  const lines = await captureJson(program, [...options, ...given]);
  const { m, efConstruction } = PEERS_GRAPHS;
  const graphs = ['--m', `${m}`, '--ef-construction', `${efConstruction}`];
  const { lines: peers, versions } =
    files.length > 0
      ? await peersOf(context, files, [...numbers, ...graphs, '--widths', widthsOf(lines).join(',')])
      : NO_PEERS;
  const corpus =
    files.length > 0 ? provenance(files, dims) : { generated: `mixture of 200 clusters, ${dims} dimensions` };
  const rows = [...describe(lines, floor), ...compareCodes(lines), ...compare(lines, peers)];
  const said = notes(lines, peers, corpus);
  if (peers.length === 0) return { rows, notes: said, corpus };
  return { rows, notes: [...said, graphsNote(lines, versions)], corpus, peers: { versions, graphs: PEERS_GRAPHS } };
}

/** What dense_engines.py and short_codes.py print, and the versions of what it ran; nothing where it cannot run. */
async function peersOf(context, files, options) {
  const python = await context.python();
  if (python.skipped !== undefined) return NO_PEERS;
  const printed = [];
  for (const script of ['dense_engines.py', 'short_codes.py'])
    printed.push(...(await captureJson(python.path, [at('benches', 'peers', script), ...files, ...options])));
  // Of an engine that is not installed there is nothing to compare.
  const lines = printed.filter((line) => line.skipped === undefined);
  const packages = new Set(lines.map((line) => PACKAGES[line.engine.split(' ', 1)[0]]));
  return { lines, versions: await pythonVersions(python.path, [...packages]) };
}

/** The files of real embeddings, for the record. */
function provenance(files, dims) {
  return {
    embeddings: files.map((file) => {
      const bytes = readFileSync(file);
      const rows = bytes.length / (4 * dims);
      return { name: basename(file), rows, sha256: createHash('sha256').update(bytes).digest('hex') };
    }),
  };
}

/** Lines about searches of a whole graph, by their width. */
const walks = (lines, kind) =>
  lines.filter((line) => line.part === 'search' && line.kind === kind && line.what === 'graph' && line.filter === 1);

/** Widths of a search that our program measured: the peers are to be measured at the same ones. */
const widthsOf = (lines) => walks(lines, 'hnsw').map((line) => line.num_candidates);

/** Recall@10 at which times are compared. */
const RECALLS = [0.95, 0.99];

/** Our kind of graph that is like a peer's. */
const kindLike = (engine) => ({ int8: 'int8_hnsw', rabitq: 'bbq_hnsw' })[engine.split(' ').at(-1)] ?? 'hnsw';

/** The peers that have graphs. */
const graphsOf = (peers) => [...new Set(peers.filter((line) => line.width !== undefined).map((line) => line.engine))];

/** Recall and time by width of our graphs of a kind, ascending. @returns {[number, number][]} */
const ownCurve = (lines, kind) =>
  walks(lines, kind)
    .filter((line) => line.method === 'Graph')
    .map((line) => [line.recall, line.p50_us / 1000]);

/** A peer's recall and time by width, ascending. @returns {[number, number][]} */
const curveOf = (peers, engine) =>
  peers.filter((line) => line.engine === engine && line.width !== undefined).map((line) => [line.recall, line.p50_ms]);

/** Times at equal recall of graphs of shorter codes, against those of eight bits. @param {object[]} lines what our program printed */
export function compareCodes(lines) {
  const long = ownCurve(lines, LONG);
  return Object.entries(SHORT).flatMap(([kind, { most }]) => {
    const short = ownCurve(lines, kind);
    return RECALLS.flatMap((recall) => {
      const [sparrow, peer] = [timeAt(short, recall), timeAt(long, recall)];
      if (sparrow === undefined || peer === undefined) return [];
      const target = recall === RECALLS[0] ? { at_most: most } : null;
      const what = `${kind}, recall@10 of ${recall}: p50`;
      return [{ what, against: LONG, unit: 'ms', sparrow, peer, target, checked: CHECKED, detail: { short, long } }];
    });
  });
}

/**
 * Times at equal recall, building and exact scans, against each peer. A peer that does not reach a recall has no row for it, but a note.
 * @param {object[]} lines what our program printed
 * @param {object[]} peers what dense_engines.py printed
 */
export function compare(lines, peers) {
  const rows = [];
  const checked = 'recall@10 of both against an exact scan of the same vectors';
  for (const engine of graphsOf(peers)) {
    const kind = kindLike(engine);
    const build = lines.find((line) => line.part === 'build' && line.kind === kind);
    const theirs = peers.find((line) => line.engine === engine && line.build_s !== undefined);
    if (build?.vectors !== theirs?.vectors) {
      throw new StepFailed(`${engine} has ${theirs?.vectors} vectors, and ours ${build?.vectors}`);
    }
    const own = ownCurve(lines, kind);
    const other = curveOf(peers, engine);
    for (const recall of RECALLS) {
      const [sparrow, peer] = [timeAt(own, recall), timeAt(other, recall)];
      if (sparrow === undefined || peer === undefined) continue;
      const what = `${kind}, recall@10 of ${recall}: p50`;
      rows.push({ what, against: engine, unit: 'ms', sparrow, peer, checked, detail: { own, other } });
    }
    const [sparrow, peer] = [build.build_s, theirs.build_s];
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
  const scan = walks(lines, 'hnsw')[0]?.exact_p50_us;
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

function notes(lines, peers, { embeddings, generated }) {
  const of = embeddings?.map(({ name, rows }) => `${rows.toLocaleString('en-US')} rows of ${name}`).join(', ');
  const said = [
    `vectors: ${of === undefined ? `generated, a ${generated}` : `real embeddings, ${of}`}; the best of ${ROUNDS} rounds of each question counts`,
    'a row names the way in which the last question was answered; where a filter lets few vectors pass, they are scanned',
  ];
  if (peers.length === 0) return said;
  const beyond = graphsOf(peers).flatMap((engine) => {
    const reached = Math.max(...curveOf(peers, engine).map(([recall]) => recall));
    const missed = RECALLS.filter((recall) => recall > reached);
    return missed.length === 0
      ? []
      : [`${engine} reaches ${figure(reached)} and has no row for ${missed.join(' and ')}`];
  });
  return [
    ...said,
    `our program ran first, then the peers, not in turns; all have ${ROUNDS} rounds, and the widths ${widthsOf(lines).join(', ')}, between ` +
      `which times at equal recall are interpolated; our hnsw walks by codes of 8 bits and compares the best exactly, the peers' walks compare floats ` +
      'unless they say int8 or rabitq, which are codes of one bit, and of these the floats of all candidates afterwards, as ours',
    ...(beyond.length === 0 ? [] : [`up to the largest width, ${beyond.join('; ')}`]),
  ];
}

/**
 * Which peers ran, and how they and we build graphs.
 * @param {object[]} lines what our program printed
 * @param {Record<string, string | null>} versions of the peers, by package
 */
export function graphsNote(lines, versions) {
  const peers = Object.entries(versions).map(([name, version]) => `${name} ${version ?? '(version unknown)'}`);
  const { m, ef_construction: asked } = lines.find((line) => line.part === 'build');
  return (
    `the peers are ${peers.join(', ')}; they build graphs with M ${PEERS_GRAPHS.m} and efConstruction ${PEERS_GRAPHS.efConstruction}, we with ` +
    `m ${m} and ef_construction ${asked}, for which our builder looks at ${asked * THOROUGHNESS} candidates`
  );
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

/** Files of real vectors and of those of questions, or none. */
function embeddings() {
  const home = process.env.SPARROW_BENCH_EMBEDDINGS;
  if (home === undefined) return [];
  const [vectors, queries] = ['passages.f32', 'queries.f32'].map((name) => join(home, name));
  return existsSync(vectors) && existsSync(queries) ? [vectors, queries] : [];
}

/** @param {object[]} lines what the program printed @param {number} floor recall that 100 candidates have to reach, or 200 by one bit */
export function describe(lines, floor) {
  return lines.flatMap((line) => {
    if (line.part === 'build') {
      const what = (name) => `${line.kind}, ${line.vectors.toLocaleString('en-US')} vectors: ${name}`;
      const bytes = (line.vector_bytes + line.graph_bytes) / line.vectors;
      return [
        { what: what('building the graph'), unit: 's', sparrow: line.build_s, checked: CHECKED, detail: line },
        {
          what: what('a vector, with its share of the graph'),
          unit: 'bytes',
          sparrow: bytes,
          checked: CHECKED,
          detail: line,
        },
        {
          what: what('codes and graph of a vector, which walks read'),
          unit: 'bytes',
          sparrow: line.walked_bytes / line.vectors,
          target: SHORT[line.kind]?.bytes === undefined ? null : { at_most: SHORT[line.kind].bytes },
          checked: CHECKED,
          detail: line,
        },
      ];
    }
    const floorAt = candidatesOfFloor(line.kind);
    const shown = line.filter === 1 ? [...new Set([10, 20, 50, 100, floorAt])] : [100];
    if (!shown.includes(line.num_candidates) || (line.filter < 1 && line.what !== 'graph')) return [];
    const filter = line.filter < 1 ? `, filter of ${(line.filter * 100).toString()}%` : '';
    const what = `${line.kind}, ${line.num_candidates.toString()} candidates${filter}, ${METHODS[line.method](line.what)}`;
    const isFloor = line.filter === 1 && line.num_candidates === floorAt && line.what === 'graph';
    const detail = { checked: CHECKED, detail: line };
    // An exact scan is not set against itself.
    const peer = line.method === 'Exact' ? {} : { against: 'exact scan', peer: line.exact_p50_us / 1000 };
    return [
      { what: `${what}: p50`, unit: 'ms', sparrow: line.p50_us / 1000, ...peer, ...detail },
      { what: `${what}: recall@10`, sparrow: line.recall, target: isFloor ? { at_least: floor } : null, ...detail },
    ];
  });
}
