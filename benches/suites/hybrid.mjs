// The whole of a hybrid question over HTTP: its text in; encoded by both models, searched by words, sparse and dense vectors, fused; ten
// hits with their source out. All questions are distinct, so that no cache of encodings helps. Each list alone is measured beside it.
// Some of the questions are checked before, by another process.
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import { ndcg } from '@sparrow-search/evaluation';

import { bulkLines } from '../../scripts/lib/api-client.mjs';
import { keptFolder } from '../lib/programs.mjs';
import { ask } from '../serving/ask.mjs';
import { startSparrow } from '../serving/servers.mjs';

/** The filling alone takes a quarter of an hour. */
export const prepares = true;
export const title = 'A question by words, sparse and dense vectors at once, over HTTP';

const SIZES = {
  smoke: { documents: 300, questions: 120, one: 30, many: 60, checked: 10, rounds: 1 },
  quick: { documents: 10_000, questions: 8000, one: 400, many: 1000, checked: 50, rounds: 2 },
  // Beside the other engines of `--quick-peers`.
  peers: { documents: 10_000, questions: 5000, one: 300, many: 600, checked: 50, rounds: 2 },
  full: { documents: 200_000, questions: 20_000, one: 800, many: 2000, checked: 200, rounds: 3 },
};
const INDEX = 'hybrid';
const BULK = 250;
const CLIENTS = 32;
/** Hits that every list gives to the fusion, its constant, and the weights of its lists: docs/hybrid-search.md. */
const WINDOW = 100;
/** As many as a list of the fusion looks at for that: an approximate list depends on it. */
const CANDIDATES = 150;
const CONSTANT = 5;
const WEIGHTS = { words: 1, sparse: 1, dense: 1.5 };
const PRECISION = 1e-5;
/** What was asked for at 200,000 passages, in milliseconds. */
const GOAL = { p50: 3, p95: 6 };

/** What decides the contents of the data directory, besides the texts. */
const MADE_BY = {
  crates: [
    ...['engine', 'documents', 'catalog', 'write-path', 'write-ahead-log', 'tantivy-index', 'segments'],
    ...['analysis', 'encoder', 'mapping', 'postings', 'runtime', 'vectors'],
  ],
  files: ['packages/model-splade-tiny', 'packages/model-minilm-l6'],
};

const LISTS = {
  words: (text) => ({ query: { match: { text } } }),
  sparse: (text) => ({ query: { sparse_vector: { field: 'text.semantic', query: text } } }),
  dense: (text) => ({
    query: {
      knn: {
        ...{ field: 'text.semantic', k: WINDOW, num_candidates: CANDIDATES },
        query_vector_builder: { text_embedding: { model_text: text } },
      },
    },
  }),
};
const FUSED = (text) => ({ retriever: { rrf: { query: text } } });

/** @param {import('../lib/context.mjs').Context} context */
export async function run(context) {
  const size = SIZES[context.size];
  const texts = await context.texts(size.documents);
  const questions = [...new Set(await context.questions(size.questions))];
  const data =
    context.size === 'smoke'
      ? mkdtempSync(join(context.work, 'hybrid-'))
      : keptFolder(context.work, `hybrid-${texts.length}`, { ...MADE_BY, of: context.identity('texts') });
  let sparrow = await startSparrow(data);
  try {
    await fill(context, sparrow, texts);
    if (context.prepare) return { rows: [] };
    // They are timed first, after those that are not counted.
    const first = warm(size.one);
    const checked = await check(sparrow, questions.slice(first, first + size.checked));
    const quality = await judge(sparrow, texts, context.judged ?? []);
    // A new process knows no encoding of any of them.
    await sparrow.stop();
    sparrow = await startSparrow(data);
    const measured = await measure(context, size, sparrow, { texts: texts.length, questions, checked });
    return { ...measured, rows: [...measured.rows, ...quality] };
  } finally {
    await sparrow.stop();
    if (context.size === 'smoke') rmSync(data, { recursive: true, force: true });
  }
}

/** How many questions are asked before so many are timed. */
const warm = (count) => Math.ceil(count / 4);

/** Loads what is missing and merges it into one segment: bulks are written in order, one after another. */
async function fill({ log }, { request }, texts) {
  const { count: there } = await request('GET', `/${INDEX}/_count`).catch(() => ({ count: undefined }));
  if (there === undefined) {
    await request('PUT', `/${INDEX}`, {
      mappings: {
        dynamic: false,
        properties: {
          text: { type: 'text', fields: { semantic: { type: 'semantic_text', inference_id: '.hybrid' } } },
        },
      },
    });
  }
  for (let from = there ?? 0; from < texts.length; from += BULK) {
    const lines = texts.slice(from, from + BULK).map(({ id, title: name, text }) => ({ _id: id, title: name, text }));
    const answer = await request('POST', `/${INDEX}/_bulk`, bulkLines(lines));
    if (answer.errors) throw new Error('a document was refused');
    if (from % 10_000 < BULK) log(`${from} documents`);
  }
  // An earlier run may have ended between its last bulk and its merge.
  if (there === texts.length && (await segmentsOf(request)) === 1) return;
  await request('POST', `/${INDEX}/_forcemerge?max_num_segments=1`);
  await request('POST', `/${INDEX}/_flush`);
  await request('POST', `/${INDEX}/_refresh`);
  const { count } = await request('GET', `/${INDEX}/_count`);
  const segments = await segmentsOf(request);
  if (count !== texts.length || segments !== 1) throw new Error(`there are ${count} documents in ${segments} segments`);
}

async function segmentsOf(request) {
  const { indices } = await request('GET', `/${INDEX}/_segments`);
  const [[shard]] = Object.values(indices[INDEX].shards);
  return Object.keys(shard.segments).length;
}

/** The fused hits are what the three lists, asked one by one, make by the documented formula. */
async function check({ request }, questions) {
  for (const text of questions) {
    const fused = new Map();
    for (const [name, query] of Object.entries(LISTS)) {
      const { hits } = await request('POST', `/${INDEX}/_search`, { ...query(text), size: WINDOW, _source: false });
      hits.hits.forEach(({ _id: id }, at) => {
        fused.set(id, (fused.get(id) ?? 0) + WEIGHTS[name] / (CONSTANT + at + 1));
      });
    }
    const expected = [...fused.values()].sort((a, b) => b - a);
    const { hits } = await request('POST', `/${INDEX}/_search`, FUSED(text));
    const differs = hits.hits.findIndex(
      ({ _id: id, _score: score }, at) => !near(score, expected[at]) || !near(score, fused.get(id)),
    );
    if (differs >= 0 || hits.hits.length !== Math.min(10, expected.length)) {
      throw new Error(`“${text}”: hit ${differs + 1} of ${hits.hits.length} is not the one that the lists make`);
    }
  }
  return `${questions.length} questions: the hits and scores are those that the three lists make, asked one by one`;
}

/** nDCG@10 of each way over the questions whose relevant texts are all there. @param {{ text: string, grades: Map<string, number> }[]} judged */
async function judge({ request }, texts, judged) {
  const there = new Set(texts.map(({ id }) => id));
  const asked = judged.filter(({ grades }) => [...grades.keys()].every((id) => there.has(id)));
  const rows = [];
  for (const [name, query] of asked.length === 0 ? [] : Object.entries({ fused: FUSED, ...LISTS })) {
    let sum = 0;
    for (const { text, grades } of asked) {
      const { hits } = await request('POST', `/${INDEX}/_search`, { ...query(text), size: 10, _source: false });
      const ranked = hits.hits.map(({ _id: id }) => id);
      sum += ndcg(ranked, grades);
    }
    const checked = `${asked.length} of ${judged.length} judged questions: those whose relevant texts are all there`;
    rows.push({ what: `nDCG@10, ${name}`, sparrow: sum / asked.length, checked });
  }
  return rows;
}

const near = (score, expected = 0) => Math.abs(score - expected) <= expected * PRECISION;

async function measure(context, size, server, { texts, questions, checked }) {
  const kinds = { fused: FUSED, ...LISTS };
  const one = { clients: 1, count: size.one, warm: warm(size.one) };
  const many = { clients: CLIENTS, count: size.many, warm: warm(size.many) };
  const best = {};
  let asked = 0;
  for (let round = 0; round < size.rounds; round += 1) {
    for (const [name, query, plan] of [
      ...Object.entries(kinds).map((kind) => [...kind, one]),
      ['fused, many', FUSED, many],
    ]) {
      // Never asked before, while there are some.
      const from = asked % questions.length;
      asked += plan.count + plan.warm;
      const turn = [...questions.slice(from), ...questions.slice(0, from)].map((text) => ({ text }));
      const asks = { ...server, path: `/${INDEX}/_search`, query: ({ text }) => query(text) };
      const result = await ask(context, asks, turn, plan);
      context.log(
        `${name}: p50 ${result.ms.p50} ms, p95 ${result.ms.p95} ms, ${Math.round(result.perSecond)} a second`,
      );
      if (!(best[name]?.ms.p50 <= result.ms.p50)) best[name] = result;
    }
  }
  const isGoal = context.size === 'full';
  const row = (what, name, at, extra = {}) => ({
    ...{ what, unit: 'ms', sparrow: best[name].ms[at], checked, detail: best[name] },
    ...extra,
  });
  const rows = [
    ...['p50', 'p95'].map((at) =>
      row(`all three, fused, one client, ${at}`, 'fused', at, isGoal ? { target: { at_most: GOAL[at] } } : {}),
    ),
    ...Object.keys(LISTS).flatMap((name) =>
      ['p50', 'p95'].map((at) => row(`${name} alone, one client, ${at}`, name, at, { checked: 'a part of the above' })),
    ),
    {
      ...row('all three, fused, 32 clients', 'fused, many', 'p50'),
      ...{ unit: '1/s', sparrow: best['fused, many'].perSecond },
    },
  ];
  const notes = [
    `${questions.length} distinct questions over ${texts} passages in one segment; client and server share the machine's cores`,
    'answers have title and text of ten hits; CPU is in microseconds a request; the best of the rounds counts',
  ];
  return { rows, notes };
}
