// What a request costs on its way: the same index and the same requests through the addon in this process and over HTTP, timed by
// tinybench one after another. The difference is HTTP, keys and sockets; `count` shows what an answer without work costs. Searching
// with a given vector is compared with the typed arrays in this process too. No question is asked twice while there are new ones.
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import { NativeSearchEngine } from '@sparrow-search/engine';
import { Bench } from 'tinybench';

import { bulkLines } from '../../scripts/lib/api-client.mjs';
import { StepFailed } from '../../scripts/lib/process.mjs';
import { MODEL as MODEL_FOLDER } from '../lib/corpus.mjs';
import { MODEL, fill, startSparrow } from '../lib/server.mjs';
import { percentile } from '../lib/statistics.mjs';
import { readVectors } from '../lib/vectors.mjs';
import { readVocabulary } from '../lib/vocabulary.mjs';
import { TypedArrayIndex } from '../peers/typed-array-index.mjs';

export const title = 'requests through the addon and over HTTP';
/** `--prepare` makes what a later run finds in the work folder. */
export const prepares = true;

const SIZES = {
  smoke: { documents: 300, questions: 60, milliseconds: 30, checked: 10 },
  quick: { documents: 5000, questions: 2000, milliseconds: 800, checked: 50 },
  full: { documents: 10_000, questions: 20_000, milliseconds: 1500, checked: 200 },
};
const INDEX = 'bench';
const SCRATCH = 'bench-written';
const BULK = 100;
const K = 10;
/** Scores differ by the rounding of weights to 11 bits. */
const PRECISION = 2 ** -11;

/** @param {import('../lib/context.mjs').Context} context */
export async function run(context) {
  const size = SIZES[context.size];
  const texts = await context.texts(size.documents);
  const vectors = readVectors((await context.vectors('texts', size.documents)).prefix);
  const questions = await context.questions(size.questions);
  const asked = readVectors((await context.vectors('questions', Math.min(2000, questions.length))).prefix);
  if (context.prepare) return { rows: [] };
  const requests = requestsOf(texts, questions, asked);
  const typed = new TypedArrayIndex(vectors);
  const data = mkdtempSync(join(context.work, 'addon-'));
  try {
    const http = await overHttp(context, data, texts, requests, size);
    const addon = await throughAddon(data, requests, size);
    check(http.answers, addon.answers);
    checkVectors(addon.answers['by a given vector'], texts, typed, asked);
    const arrays = await time({ arrays: { call: arraysCall(typed, asked), checked: 0 } }, size);
    return { rows: describe(texts.length, http.times, addon.times, arrays.times.arrays), notes: notes(size) };
  } finally {
    rmSync(data, { recursive: true, force: true });
  }
}

/**
 * The requests by what they do: `make(i)` is the i-th of its kind as an operation with its path and body, and as method and URL.
 */
function requestsOf(texts, questions, asked) {
  const vocabulary = readVocabulary();
  const vector = (row) => {
    const columns = Array.from(asked.idx.subarray(asked.ptr[row], asked.ptr[row + 1]));
    return Object.fromEntries(columns.map((column, at) => [vocabulary[column], asked.val[asked.ptr[row] + at]]));
  };
  const words = (text) => ({ match: { text } });
  const meaning = (query) => ({ sparse_vector: { field: 'tokens', inference_id: MODEL, query } });
  const search = (body) => (at) => ({
    ...{ op: 'search', path: { index: INDEX }, method: 'POST', url: `/${INDEX}/_search` },
    body: JSON.stringify(body(at)),
  });
  // Each kind has its own stretch of the questions, so that no cache knows what another kind asked.
  const question = (kind, at) => questions[(Math.floor((kind * questions.length) / 3) + at) % questions.length];
  return {
    count: () => ({ op: 'count', path: { index: INDEX }, method: 'GET', url: `/${INDEX}/_count` }),
    'get by id': (at) => {
      const { id } = texts[at % texts.length];
      return {
        op: 'get_doc',
        path: { index: INDEX, id },
        method: 'GET',
        url: `/${INDEX}/_doc/${encodeURIComponent(id)}`,
      };
    },
    'search by words': search((at) => ({ query: words(question(0, at)) })),
    'by a given vector': search((at) => ({
      query: { sparse_vector: { field: 'tokens', query_vector: vector(at % asked.rows) } },
    })),
    'search by meaning': search((at) => ({ query: meaning(question(1, at)) })),
    'both, fused': search((at) => ({
      sub_searches: [{ query: words(question(2, at)) }, { query: meaning(question(2, at)) }],
      rank: { rrf: {} },
    })),
    [`bulk of ${BULK} texts`]: (at) => {
      const documents = Array.from({ length: BULK }, (_, index) => texts[(at * BULK + index) % texts.length]);
      const body = bulkLines(documents.map(({ id, title: head, text }) => ({ _id: id, title: head, text })));
      return { op: 'bulk', path: { index: SCRATCH }, method: 'POST', url: `/${SCRATCH}/_bulk`, body };
    },
  };
}

async function overHttp(context, data, texts, requests, size) {
  const server = await startSparrow(data);
  try {
    const { request } = server;
    const inference = { model_id: MODEL, input_output: [{ input_field: 'text', output_field: 'tokens' }] };
    await request('PUT', '/_ingest/pipeline/encode', { processors: [{ inference }] });
    const text = { type: 'text', analyzer: 'english' };
    const properties = { title: text, text, tokens: { type: 'sparse_vector' } };
    const documents = texts.map(({ id, title: head, text: body }) => ({ _id: id, title: head, text: body }));
    const mappings = { _source: { excludes: ['tokens'] }, properties };
    const seconds = await fill(request, INDEX, documents, { mappings, pipeline: 'encode' });
    context.log(`${texts.length} texts encoded and indexed in ${seconds.toFixed(1)} s`);
    await request('PUT', `/${SCRATCH}`, { mappings: { properties: { title: text, text } } });
    return await time(
      calls(requests, size, ({ method, url, body, op }) =>
        request(method, url, op === 'bulk' || body === undefined ? body : JSON.parse(body)),
      ),
      size,
    );
  } finally {
    await server.stop();
  }
}

async function throughAddon(data, requests, size) {
  const engine = await NativeSearchEngine.open({ data, models: [MODEL_FOLDER], deployAtStart: true });
  try {
    const execute = async ({ op, path, body }) => {
      const reply = await engine.execute({ op, path, query: {} }, body === undefined ? undefined : Buffer.from(body));
      return reply.body;
    };
    return await time(calls(requests, size, execute), size);
  } finally {
    await engine.close();
  }
}

/** The requests of each kind, made ready outside of what is timed. */
function calls(requests, { checked }, send) {
  const entries = Object.entries(requests).map(([kind, make]) => {
    const answers = kind === 'count' || kind.startsWith('bulk') ? 0 : checked;
    return [kind, { make, send, checked: answers }];
  });
  return Object.fromEntries(entries);
}

function arraysCall(typed, { ptr, idx, val, rows }) {
  return (at) => {
    const [from, to] = [ptr[at % rows], ptr[(at % rows) + 1]];
    return typed.search(idx.subarray(from, to), val.subarray(from, to), K);
  };
}

/** Times each kind by tinybench; answers of the first requests are kept for comparison. */
async function time(kinds, { milliseconds }) {
  const answers = {};
  const bench = new Bench({ time: milliseconds, warmupTime: milliseconds / 4, retainSamples: true, throws: true });
  for (const [kind, { make, send, call, checked }] of Object.entries(kinds)) {
    answers[kind] = [];
    for (let at = 0; at < checked; at += 1) {
      const answer = await send(make(at));
      answers[kind].push(answer instanceof Uint8Array ? JSON.parse(Buffer.from(answer).toString()) : answer);
    }
    let [next, request] = [checked, undefined];
    const prepared = { beforeEach: () => (request = make?.(next++)) };
    bench.add(
      kind,
      call === undefined ? async () => send(request) : () => call(next++),
      make === undefined ? {} : prepared,
    );
  }
  await bench.run();
  const times = Object.fromEntries(
    bench.tasks.map(({ name, result }) => {
      const { samples } = result.latency;
      const [p50, p95] = [0.5, 0.95].map((share) => percentile(samples, share));
      return [name, { p50, p95, mean: result.latency.mean, count: samples.length }];
    }),
  );
  return { times, answers };
}

/** Both ways answer the same documents with the same scores. */
function check(http, addon) {
  for (const [kind, answers] of Object.entries(http)) {
    for (const [at, answer] of answers.entries()) {
      const [one, other] = [answer, addon[kind][at]].map((found) => JSON.stringify(found.hits ?? found));
      if (one !== other) throw new StepFailed(`${kind} ${at}: HTTP answers ${one}, the addon ${other}`);
    }
  }
}

/** Given vectors find what the typed arrays find, but for documents whose rounded scores cannot be told apart. */
function checkVectors(answers, texts, typed, { ptr, idx, val, rows }) {
  const position = new Map(texts.map(({ id }, at) => [id, at]));
  for (const [at, { hits }] of answers.entries()) {
    const row = at % rows;
    const [from, to] = [ptr[row], ptr[row + 1]];
    const exact = typed.search(idx.subarray(from, to), val.subarray(from, to), 10 * K);
    const scores = new Map(exact.map(({ doc, score }) => [doc, score]));
    const least = (exact[Math.min(K, exact.length) - 1]?.score ?? 0) * (1 - 2 * PRECISION);
    const wrong = hits.hits.find(({ _id }) => !((scores.get(position.get(_id)) ?? -1) >= least));
    if (wrong !== undefined || hits.hits.length !== Math.min(K, exact.length)) {
      throw new StepFailed(`question ${at}: ${JSON.stringify(hits.hits.map(({ _id }) => _id))} are not the best`);
    }
  }
}

function describe(documents, http, addon, arrays) {
  const where = `${documents.toLocaleString('en-US')} documents`;
  const rows = Object.keys(http).map((kind) => ({
    what: `${kind}, ${where}, p50`,
    against: 'the same over HTTP',
    unit: 'ms',
    sparrow: addon[kind].p50,
    peer: http[kind].p50,
    checked: 'documents and scores of both ways',
    detail: { addon: addon[kind], http: http[kind] },
  }));
  rows.push({
    what: `by a given vector through the addon, ${where}, p50`,
    against: 'typed arrays in the same process',
    unit: 'ms',
    sparrow: addon['by a given vector'].p50,
    peer: arrays.p50,
    checked: 'the documents of both',
    detail: { addon: addon['by a given vector'], arrays },
  });
  return rows;
}

const notes = ({ questions }) => [
  `one request at a time; ${questions.toLocaleString('en-US')} different questions; the vector of a request is JSON, parsed and looked up by token`,
];
