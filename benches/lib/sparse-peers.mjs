// BMP and Seismic on the same vectors, through the peers' folder and its Python: indexes and settings in the work folder, each
// search a process of its own.
import { existsSync, readFileSync } from 'node:fs';
import os from 'node:os';
import { basename, join } from 'node:path';

import { at } from '../../scripts/lib/paths.mjs';
import { capture, captureJson, folder } from './programs.mjs';

/** Seismic's lists are capped by `--n-postings`, which bounds its recall and makes its memory; 4000 is what its authors publish. */
const SEISMIC_LARGE = 500_000;
const SEISMIC_BUILD = { small: ['--n-postings', '2000', '--knn', '10'], large: ['--n-postings', '4000'] };
/** Memory that building and searching take: 15 and 12 GB at a million documents. */
const BMP_BYTES_A_DOCUMENT = { build: 15_500, search: 13_000 };
const SEISMIC_RECALLS = [0.95, 0.98];
/** Its authors' settings for SPLADE on MS MARCO, with which they publish recalls of 0.957 and 0.972. */
const SEISMIC_PUBLISHED = [
  { cut: 5, factor: 0.8, knn: 0, isPublished: true },
  { cut: 6, factor: 0.7, knn: 0, isPublished: true },
];
/** What the sweep tries to find the fastest setting of a recall: the whole grid at a million would take half an hour. */
const SWEEP = {
  small: ['--knn-used', '0,5', '--cuts', '5,6,8,10,14', '--factors', '0.6,0.7,0.8'],
  large: ['--cuts', '8,10,14,16,20,40', '--factors', '0.5,0.6,0.7,0.8'],
};
const NICE = ['-n', '19'];

/** @typedef {{ python: string, peers: string, work: string, log: (text: string) => void }} Tools */

/** @returns {Promise<Tools | { skipped: string }>} */
export async function findPythonPeers(context) {
  if (context.peers === undefined) return { skipped: 'no peers given (--peers)' };
  const python = await context.python();
  if (python.skipped !== undefined) return python;
  return { python: python.path, peers: context.peers, work: context.work, log: context.log };
}

/** What could be allocated now; the free memory that Node knows leaves out what caches would give back. */
function availableMemory() {
  try {
    return 1024 * Number(/^MemAvailable:\s+(\d+) kB$/m.exec(readFileSync('/proc/meminfo', 'utf8'))[1]);
  } catch {
    return os.freemem();
  }
}

const sparse = (tools, name) => join(tools.peers, 'sparse', name);
const niced = (tools, ...args) => capture('nice', [...NICE, tools.python, ...args]);

/** Vectors in scipy's form, beside the others. */
export async function npz(tools, prefix) {
  const file = `${prefix}.npz`;
  if (!existsSync(file)) await niced(tools, at('benches', 'peers', 'vectors.py'), 'npz', prefix, file);
  return file;
}

/**
 * A larger corpus with real co-occurrence: 60% of the terms of one document and 40% of another with the same heaviest term.
 *
 * @returns {Promise<{ prefix: string, rows: number }>}
 */
export async function derivedVectors(tools, prefix, rows, seed) {
  const target = `${prefix}-derived-${seed}-${rows}`;
  if (!existsSync(`${target}.ptr`)) {
    tools.log(`deriving ${rows} documents from ${basename(prefix)}`);
    const args = ['--docs', `${rows}`, '--seed', `${seed}`];
    await niced(tools, sparse(tools, 'derive_corpus.py'), await npz(tools, prefix), `${target}.npz`, ...args);
    await niced(tools, at('benches', 'peers', 'vectors.py'), 'csr', `${target}.npz`, target);
  }
  return { prefix: target, rows };
}

/**
 * BMP with blocks of 8 documents.
 *
 * @returns {Promise<{ index: string, index_bytes: number, build_s: number } | { skipped: string }>}
 */
export async function bmpIndex(tools, docs, rows) {
  const built = existsSync(join(tools.work, 'peers', basename(docs), 'bmp-8-build.json'));
  const missing = BMP_BYTES_A_DOCUMENT[built ? 'search' : 'build'] * rows - availableMemory();
  if (missing > 0) return { skipped: `it needs ${(missing / 1e9).toFixed(1)} GB more memory than is free` };
  const home = folder(tools.work, 'peers', basename(docs));
  const index = join(home, 'bmp-8');
  if (!built) {
    tools.log(`BMP's index of ${basename(docs)}`);
    const script = sparse(tools, 'bench_bmp.py');
    await niced(tools, script, 'ciff', await npz(tools, docs), `${index}.ciff`);
    await niced(tools, script, 'build', `${index}.ciff`, index, '--bsize', '8', '--dir', home, '--name', 'bmp-8-build');
    // It is not needed any more, and large.
    await capture('rm', [`${index}.ciff`]);
  }
  return { index, ...JSON.parse(readFileSync(join(home, 'bmp-8-build.json'), 'utf8')) };
}

/** @returns {Promise<object>} mean_ms, p50_ms, p95_ms, batch_mean_ms; the answers are in `answers`.ids and .scores */
export async function searchBmp(tools, index, queries, { questions, passes }) {
  const [home, name] = [join(index, '..'), 'bmp-8-search'];
  const args = ['--bsize', '8', '--dir', home, '--name', name, '--reps', `${passes}`, '--batch-reps', '1'];
  const script = sparse(tools, 'bench_bmp.py');
  await capture(tools.python, [
    script,
    'search',
    index,
    await npz(tools, queries),
    ...args,
    '--queries',
    `${questions}`,
  ]);
  return { ...JSON.parse(readFileSync(join(home, `${name}.json`), 'utf8')), answers: join(home, name) };
}

/**
 * Seismic's index, the fastest settings that reach a recall@10 of 0.95 and of 0.98, or its best, and those that its authors publish.
 *
 * @param {string} truth prefix of the exact answers
 * @returns {Promise<{ index: string, build: object, settings: Setting[] }>}
 */
export async function seismicIndex(tools, docs, rows, queries, truth) {
  const size = rows >= SEISMIC_LARGE ? 'large' : 'small';
  const home = folder(tools.work, 'peers', basename(docs));
  const index = join(home, 'seismic');
  const script = sparse(tools, 'bench_seismic.py');
  if (!existsSync(join(home, 'seismic-build.json'))) {
    tools.log(`Seismic's index of ${basename(docs)} (at a million documents ten minutes of processor time)`);
    const args = ['--dir', home, '--name', 'seismic-build', ...SEISMIC_BUILD[size]];
    await niced(tools, script, 'build', await npz(tools, docs), index, ...args);
  }
  const sweep = join(home, 'seismic.sweep.tsv');
  if (!existsSync(sweep)) {
    tools.log(`Seismic's settings for ${basename(docs)}`);
    await capture(tools.python, [at('benches', 'peers', 'truth.py'), truth, `${truth}.npz`]);
    const args = ['--dir', home, '--name', 'seismic', '--reps', '1', ...SWEEP[size]];
    await niced(tools, script, 'sweep', index, await npz(tools, queries), `${truth}.npz`, ...args);
  }
  const build = JSON.parse(readFileSync(join(home, 'seismic-build.json'), 'utf8'));
  const table = readFileSync(sweep, 'utf8');
  const best = SEISMIC_RECALLS.map((recall) => bestSetting(table, recall));
  return { index, build, settings: [...best, ...SEISMIC_PUBLISHED] };
}

/**
 * From the sweep's table: the fastest of those with enough recall, or of those within a thousandth of the best.
 *
 * @typedef {{ recall?: number, mean?: number, cut: number, factor: number, knn: number, isPublished?: boolean }} Setting
 * @returns {Setting}
 */
export function bestSetting(table, wanted) {
  const rows = table
    .trim()
    .split('\n')
    .slice(1)
    .map((line) => line.split('\t').map(Number))
    .map(([recall, mean, cut, factor, knn]) => ({ recall, mean, cut, factor, knn }));
  const least = Math.min(wanted, Math.max(...rows.map(({ recall }) => recall)) - 0.001);
  return rows.filter(({ recall }) => recall >= least).sort((a, b) => a.mean - b.mean)[0];
}

/** @returns {Promise<{ mean: number, p50: number, p95: number, batch_mean: number, recall: number }>} milliseconds */
export async function searchSeismic(tools, { index, setting }, queries, truth, { questions, passes }) {
  const { cut, factor, knn } = setting;
  const args = ['--cut', `${cut}`, '--factor', `${factor}`, '--knn', `${knn}`];
  const [figures] = await captureJson(tools.python, [
    ...[at('benches', 'peers', 'search_seismic.py'), tools.peers, index, await npz(tools, queries), truth],
    ...[join(index, '..', 'seismic-search'), ...args, '--questions', `${questions}`, '--passes', `${passes}`],
  ]);
  return figures;
}
