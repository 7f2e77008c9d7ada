// Measures Sparrow and the other engines on the same material, one after another, and compares answers with exact ones.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';

import { at } from '../../scripts/lib/paths.mjs';
import { StepFailed } from '../../scripts/lib/process.mjs';
import { CsrFile } from '../lib/csr.mjs';
import { captureJson, folder } from '../lib/programs.mjs';
import { accuracy } from '../lib/statistics.mjs';
import { timeAt } from '../suites/knn.mjs';
import { K, ask, build } from './addon.mjs';
import { DIMS } from './material.mjs';

const peer = (name) => at('benches', 'peers', name);
/** Below this share of right answers Sparrow's exact searches are wrong; its weights have 11 bits. */
const LEAST = 0.995;
/** Widths of a graph's search, and the recall at which times are compared. */
const WIDTHS = [10, 20, 50, 100, 200, 400];
export const RECALL = 0.95;
/** How long an engine may take for one chart. */
const secondsFor = (documents) => Math.max(240, documents / 125);
/** How long an engine of JavaScript is asked. */
const JS_SECONDS = 20;

/**
 * @typedef {object} Measured
 * @property {string} name
 * @property {string} [skipped] why there is nothing else
 * @property {{ seconds: number, count: number, bytes?: number }} [index] what building took
 * @property {boolean} [isJs] whether it is written in JavaScript
 * @property {{ name: string, p50?: number, p95?: number, mean?: number, share?: number, settings?: object }[]} searches milliseconds; `share`
 *   is the share of answers that are the exact ones
 */

const answersIn = (path) => new Int32Array(new Uint8Array(readFileSync(path)).buffer);
const shareOf = (ids, truth) => accuracy(ids, truth).recall;
const failed = (name, error) => ({
  name,
  skipped: error.message.trim().split('\n').at(-1).slice(0, 200),
  searches: [],
});

/** What an engine gave, or why it gave nothing: one that fails does not end the run. */
async function tried(engine, log, measure) {
  if (engine.skipped !== undefined) return { name: engine.name, skipped: engine.skipped, searches: [] };
  log(`${engine.version}`);
  return measure().catch((error) => failed(engine.version, error));
}

/** Sparrow's exact search has to be exact. */
function mustBeRight(what, share) {
  if (share < LEAST) throw new StepFailed(`${what}: only ${share} of Sparrow's answers are the exact ones`);
}

/** @returns {Promise<Measured[]>} */
export async function measureSparse(context, sparrow, peers, { sparse, home }, { passes, count }) {
  const [documents, asked] = [sparse.documents, sparse.questions].map((path) => new CsrFile(path));
  const { rows } = sparse;
  const questions = Math.min(count, asked.rows);
  const shape = { rows, terms: Math.round(documents.entriesOf(rows) / rows), asked: questions };
  const vector = ({ idx, val }) => Object.fromEntries(Array.from(idx, (column, n) => [`t${column}`, val[n]]));
  const vectors = function* vectors(file, many) {
    for (const row of file.read(many)) yield vector(row);
  };
  const bodies = [...vectors(asked, questions)].map((tokens) => ({
    query: { sparse_vector: { field: 'v', query_vector: tokens } },
  }));
  const postings = postingsOf(documents, asked, rows, questions);
  const index = await build(sparrow, 'sparse', { v: { type: 'sparse_vector' } }, wrapped(vectors(documents, rows)));
  const truth = { ...sparse.truth, ids: sparse.truth.ids.subarray(0, questions * sparse.truth.depth) };
  const found = await ask(sparrow, 'sparse', bodies, passes);
  const share = shareOf(found.ids, truth);
  mustBeRight('sparse vectors', share);
  const own = { name: 'Sparrow', index, searches: [{ ...found, share, name: 'Sparrow, exact', ids: undefined }] };
  const results = [own];
  for (const name of ['seismic', 'pisa', 'bmp']) {
    const engine = peers.get(name);
    results.push(
      await tried(engine, context.log, async () => {
        const work = folder(home, name);
        const numbers = ['--questions', `${questions}`, '--passes', `${passes}`, '--rows', `${rows}`];
        const files = [sparse.documents, sparse.questions, sparse.truth.prefix, work];
        const args = [peer('sparse_engines.py'), name, ...files, ...numbers, '--depth', `${sparse.truth.depth}`];
        const lines = await captureJson(engine.python, args, { seconds: secondsFor(rows) });
        return sparseEngine(engine.version, lines, rows, (path) => shareOf(answersIn(path), truth));
      }),
    );
  }
  [documents, asked].forEach((file) => file.close());
  return { results, shape: { ...shape, postings } };
}

const wrapped = function* wrapped(vectors) {
  for (const v of vectors) yield { v };
};

/** How many entries of documents have a term of a question, in the mean. */
function postingsOf(documents, asked, rows, questions) {
  const counts = new Float64Array(documents.columns);
  for (const { idx } of documents.read(rows)) for (const column of idx) counts[column] += 1;
  let sum = 0;
  for (const { idx } of asked.read(questions)) for (const column of idx) sum += counts[column] ?? 0;
  return Math.round(sum / questions);
}

/** What sparse_engines.py printed. Of an engine's indexes the one that was built soonest counts, in its favour. */
export function sparseEngine(name, lines, count, share) {
  const searches = lines
    .filter(({ what }) => what === 'search')
    .map(({ why, source, settings, batch, answers, mean, p50, p95 }) => ({
      ...{ name, why, source, settings, mean, p50, p95, share: share(answers) },
      ...(batch === undefined ? {} : { batch }),
    }));
  const built = lines.filter(({ what }) => what === 'index').sort((one, other) => one.build_s - other.build_s)[0];
  return { name, index: { seconds: built.build_s, bytes: built.bytes, count, settings: built }, searches };
}

/** @returns {Promise<{ results: Measured[], shape: object }>} */
export async function measureWords(context, sparrow, peers, { words, home }, { passes }) {
  const { texts, questions, truth } = words;
  const index = await build(
    sparrow,
    'words',
    { text: { type: 'text' } },
    texts.map((text) => ({ text })),
  );
  const found = await ask(
    sparrow,
    'words',
    questions.map((text) => ({ query: { match: { text } } })),
    passes,
  );
  const share = shareOf(found.ids, truth);
  mustBeRight('words', share);
  const results = [{ name: 'Sparrow', index, searches: [{ ...found, share, name: 'Sparrow', ids: undefined }] }];
  const engine = async (name, measure) => results.push(await tried(peers.get(name), context.log, () => measure(name)));
  const count = texts.length;
  await engine('lucene', async (name) => {
    const { java, version } = peers.get(name);
    const out = join(home, 'lucene.ids');
    const args = [...java.slice(1), ...words.files, folder(home, 'lucene-index'), out, `${passes}`];
    const [line] = await captureJson(java[0], args, { seconds: secondsFor(count) });
    return oneSearch(version, line, count, shareOf(answersIn(out), truth));
  });
  for (const each of ['tantivy', 'bm25s']) {
    await engine(each, async (name) => {
      const { python, version } = peers.get(name);
      const out = join(home, `${name}.ids`);
      const args = [peer('word_engines.py'), name, words.json, out, '--passes', `${passes}`];
      const [line] = await captureJson(python, args, { seconds: secondsFor(count) });
      return oneSearch(version, line, count, shareOf(answersIn(out), truth));
    });
  }
  for (const each of ['minisearch', 'flexsearch', 'lunr', 'orama']) {
    await engine(each, async (name) => {
      const { modules, version } = peers.get(name);
      const args = ['--expose-gc', '--max-old-space-size=6000', peer('fulltext-search.mjs')];
      const given = [name === 'orama' ? '@orama/orama' : name, modules, words.json, `${JS_SECONDS}`];
      const [line] = await captureJson(process.execPath, [...args, ...given], { seconds: secondsFor(count) });
      const ids = new Int32Array(K * line.ranked.length).fill(-1);
      line.ranked.forEach((list, question) => list.forEach((id, rank) => (ids[K * question + rank] = id)));
      // Each ranks in its own way: the share says how much of it is BM25's.
      const measured = oneSearch(version, { ...line, build_s: line.buildSeconds }, count, shareOf(ids, truth));
      return { ...measured, isJs: true };
    });
  }
  const length = Math.round(texts.reduce((sum, text) => sum + text.split(' ').length, 0) / count);
  return { results, shape: { rows: count, words: length, asked: questions.length } };
}

const oneSearch = (name, { build_s: seconds, mean, p50, p95 }, count, share) => ({
  name,
  index: { seconds, count },
  searches: [{ name, mean, p50, p95, share }],
});

/** A vector as clients of Elasticsearch 9.3 send it: the other engines are given arrays of floats, and nobody has to read digits. */
function base64(numbers) {
  const bytes = Buffer.alloc(4 * numbers.length);
  numbers.forEach((number, at) => bytes.writeFloatBE(number, 4 * at));
  return bytes.toString('base64');
}

/** @returns {Promise<{ results: Measured[], shape: object }>} */
export async function measureDense(context, sparrow, peers, { dense }, { passes }) {
  const [vectors, asked] = [dense.documents, dense.questions].map(floatsOf);
  const rows = (floats) => floats.length / DIMS;
  const row = (floats, n) => Array.from(floats.subarray(n * DIMS, (n + 1) * DIMS));
  const truth = nearest(vectors, asked);
  const documents = function* documents() {
    for (let n = 0; n < rows(vectors); n += 1) yield { v: row(vectors, n) };
  };
  const mapping = {
    type: 'dense_vector',
    dims: DIMS,
    similarity: 'dot_product',
    index_options: { type: 'hnsw', m: 16 },
  };
  const index = await build(sparrow, 'dense', { v: mapping }, documents());
  const own = [];
  for (const width of WIDTHS) {
    const bodies = Array.from({ length: rows(asked) }, (_, n) => ({
      query: { knn: { field: 'v', query_vector: base64(row(asked, n)), k: K, num_candidates: width } },
    }));
    const { ids, ...times } = await ask(sparrow, 'dense', bodies, passes);
    own.push({ width, share: shareOf(ids, truth), ...times });
  }
  const results = [{ name: 'Sparrow', index, searches: atRecall('Sparrow', own) }];
  if (results[0].searches.length === 0) throw new StepFailed(`dense vectors: no search of Sparrow's reaches ${RECALL}`);
  for (const name of ['hnswlib', 'faiss', 'usearch']) {
    const engine = peers.get(name);
    const given = [
      '--dims',
      `${DIMS}`,
      '--questions',
      `${rows(asked)}`,
      '--widths',
      WIDTHS.join(','),
      '--engines',
      name,
    ];
    const printed = [];
    const answer = await tried(engine, context.log, async () => {
      const args = [peer('dense_engines.py'), dense.documents, dense.questions, ...given];
      printed.push(...(await captureJson(engine.python, args, { seconds: secondsFor(2 * rows(vectors)) })));
      return undefined;
    });
    results.push(...(answer === undefined ? denseEngines(engine.version, printed) : [answer]));
  }
  return { results, shape: { rows: rows(vectors), dims: DIMS, asked: rows(asked) } };
}

function floatsOf(path) {
  return new Float32Array(new Uint8Array(readFileSync(path)).buffer);
}

/** What dense_engines.py printed, for each graph that it built. */
export function denseEngines(version, lines) {
  return [...new Set(lines.map(({ engine }) => engine))].flatMap((engine) => {
    const of = lines.filter((line) => line.engine === engine);
    const built = of.find((line) => line.build_s !== undefined);
    if (built === undefined) return [];
    const curve = of
      .filter(({ width }) => width !== undefined)
      .map(({ width, recall: share, p50_ms: p50, p95_ms: p95 }) => ({ width, share, p50, p95 }));
    const name = engine.replace(/^\S+/, version).replace(' hnsw', '');
    return [{ name, index: { seconds: built.build_s, count: built.vectors }, searches: atRecall(name, curve) }];
  });
}

/** The time at which a recall is reached, between two widths; nothing where it is not reached. */
function atRecall(name, curve) {
  const p50 = timeAt(
    curve.map(({ share, p50: time }) => [share, time]),
    RECALL,
  );
  return p50 === undefined ? [] : [{ name, p50, share: RECALL, settings: { curve } }];
}

/** The exact ten by inner product in double precision. */
export function nearest(vectors, asked, dims = DIMS) {
  const [count, questions] = [vectors.length / dims, asked.length / dims];
  const depth = Math.min(2 * K, count);
  const [ids, scores] = [new Int32Array(questions * depth), new Float32Array(questions * depth)];
  const products = new Float64Array(count);
  for (let question = 0; question < questions; question += 1) {
    const from = question * dims;
    for (let n = 0; n < count; n += 1) {
      let sum = 0;
      for (let dim = 0; dim < dims; dim += 1) sum += vectors[n * dims + dim] * asked[from + dim];
      products[n] = sum;
    }
    const order = Int32Array.from(products.keys()).sort((one, other) => products[other] - products[one]);
    for (let rank = 0; rank < depth; rank += 1) {
      ids[question * depth + rank] = order[rank];
      scores[question * depth + rank] = products[order[rank]];
    }
  }
  return { ids, scores, depth };
}
