// What somebody with only TypeScript has: the full-text engines MiniSearch, FlexSearch and Orama on the same texts and questions, and
// a good inverted index in typed arrays over the same sparse vectors.
//
// Texts: each engine builds its index and answers raw questions, with its own defaults, in a process of its own. Sparrow gets them over
// HTTP, twice: once as text alone (BM25, as they do), once through the model (sparse vectors); its times include HTTP and, by meaning,
// the encoding of the question. Quality is nDCG@10 on SQuAD's development questions, of Sparrow for exactly the questions that an
// engine had time for. Vectors: Sparrow's Rust program and the typed arrays take turns, the better round of each counts.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';

import { ndcg } from '@sparrow-search/server';

import { at } from '../../scripts/lib/paths.mjs';
import { StepFailed } from '../../scripts/lib/process.mjs';
import { usage } from '../../scripts/lib/server-process.mjs';
import { groundTruth, readAnswers } from '../lib/answers.mjs';
import { openDataset } from '../lib/datasets.mjs';
import { capture, captureJson, folder } from '../lib/programs.mjs';
import { searchSparrow } from '../lib/postings-program.mjs';
import { MODEL, fill, startSparrow } from '../lib/server.mjs';
import { derivedVectors, findPythonPeers } from '../lib/sparse-peers.mjs';
import { accuracy, summarize } from '../lib/statistics.mjs';

export const title = 'engines in JavaScript: full text, and sparse vectors in typed arrays';
/** `--prepare` makes what a later run finds in the work folder. */
export const prepares = true;

/** Pinned: figures are only comparable over the same versions. */
const ENGINES = { minisearch: '7.2.0', flexsearch: '0.8.212', '@orama/orama': '3.1.18' };
const SIZES = {
  smoke: { vectors: [1500], vectorQuestions: 60, passes: 1, rounds: 1 },
  quick: { texts: 5000, questions: 300, seconds: 10, vectors: [30_000], vectorQuestions: 300, passes: 2, rounds: 2 },
  full: {
    texts: Infinity,
    questions: 1000,
    seconds: 15,
    vectors: [100_000, 1_000_000],
    vectorQuestions: 500,
    passes: 2,
    rounds: 2,
  },
};
const BASE = 100_000;
const SEED = 7;
const K = 10;
const WARM_UP = 20;
/** The least nDCG@10 that Sparrow's two searches may have on a sample of SQuAD: far below what they have. */
const LEAST_NDCG = 0.6;

/** @param {import('../lib/context.mjs').Context} context */
export async function run(context) {
  const size = SIZES[context.size];
  const vectors = await compareVectors(context, size);
  if (size.texts === undefined || context.prepare) return { rows: vectors };
  const { rows, notes } = await compareTexts(context, size);
  return { rows: [...vectors, ...rows], notes };
}

async function compareVectors(context, { vectors, vectorQuestions, passes, rounds }) {
  const rows = [];
  const queries = (await context.vectors('questions', vectorQuestions)).prefix;
  const program = context.prepare ? undefined : await context.rustExample('bench_top_k');
  for (const count of vectors) {
    const what = `sparse scoring, ${count.toLocaleString('en-US')} documents`;
    const docs = await vectorsOf(context, count);
    if (docs.skipped !== undefined) {
      rows.push({ what, against: 'typed arrays', skipped: docs.skipped });
      continue;
    }
    const truth = await groundTruth(context, docs.prefix, queries);
    if (context.prepare) continue;
    const sparrow = { docs: docs.prefix, queries, questions: vectorQuestions, passes, truth };
    const found = { sparrow: [], typed: [] };
    for (let round = 0; round < rounds; round += 1) {
      found.sparrow.push(await searchSparrow(context, program, sparrow));
      found.typed.push(await typedArrays(context, docs.prefix, queries, { passes, truth }));
    }
    const [best, peer] = [found.sparrow, found.typed].map((all) => ({
      ...all[0],
      p50: Math.min(...all.map(({ p50 }) => p50)),
      p95: Math.min(...all.map(({ p95 }) => p95)),
    }));
    for (const share of ['p50', 'p95']) {
      rows.push({
        what: `${what}, ${share}`,
        against: 'an inverted index in typed arrays',
        unit: 'ms',
        sparrow: best[share],
        peer: peer[share],
        target: count >= BASE && share === 'p50' ? { at_most: 1 / 6 } : null,
        checked: 'both with exact answers in double precision',
        detail: { sparrow: best, peer },
      });
    }
  }
  return rows;
}

async function vectorsOf(context, count) {
  if (count <= BASE) return context.vectors('texts', count);
  const tools = await findPythonPeers(context);
  return tools.skipped === undefined
    ? derivedVectors(tools, (await context.vectors('texts', BASE)).prefix, count, SEED)
    : tools;
}

async function typedArrays(context, docs, queries, { passes, truth }) {
  const result = join(folder(context.work, 'runs'), 'js-typed-arrays');
  const script = at('benches', 'peers', 'typed-array-search.mjs');
  const heap = ['--expose-gc', '--max-old-space-size=8000'];
  const args = [...heap, script, docs, queries, result, '--passes', `${passes}`];
  const [figures] = await captureJson(process.execPath, args);
  const { recall } = accuracy(readAnswers(result).ids, truth);
  // Single precision against double: two documents may be closer than it can tell.
  if (recall < 0.9999) throw new StepFailed(`the typed arrays answer only ${recall} right`);
  return figures;
}

async function compareTexts(context, size) {
  const modules = await install(context);
  if (modules.skipped !== undefined) return { rows: [{ what: 'full text', skipped: modules.skipped }], notes: [] };
  const corpus = await readCorpus(context, size);
  const input = join(context.work, 'js-engines.json');
  const { texts, questions } = corpus;
  writeFileSync(
    input,
    JSON.stringify({ texts: texts.map(({ text }) => text), questions: questions.map(({ text }) => text) }),
  );
  const sparrow = await measureSparrow(context, corpus);
  const rows = [];
  for (const [engine, version] of Object.entries(ENGINES)) {
    const heap = ['--expose-gc', '--max-old-space-size=8000'];
    const script = at('benches', 'peers', 'fulltext-search.mjs');
    const args = [...heap, script, engine, modules.path, input, `${size.seconds}`];
    const [found] = await captureJson(process.execPath, args);
    context.log(`${engine}: ${found.count} questions, p50 ${found.p50.toFixed(2)} ms`);
    rows.push(...compareEngine(corpus, sparrow, { ...found, against: `${engine.split('/').at(-1)} ${version}` }));
  }
  const notes = [
    `${corpus.name}: ${texts.length} texts, ${questions.length} questions; an engine is asked for at most ${size.seconds} s`,
    'build of Sparrow: over HTTP, written to the log on disk; memory of Sparrow: anonymous, of the whole server with the model',
  ];
  return { rows, notes };
}

/** Installs the engines into the work folder: they are no dependency of the project. */
async function install(context) {
  const path = context.folder('javascript');
  const done = join(path, 'installed.json');
  const wanted = JSON.stringify(ENGINES);
  if (existsSync(done) && readFileSync(done, 'utf8') === wanted) return { path };
  writeFileSync(join(path, 'package.json'), '{ "private": true }\n');
  const packages = Object.entries(ENGINES).map(([name, version]) => `${name}@${version}`);
  const quiet = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  try {
    await capture('npm', ['install', '--save-exact', ...quiet, ...packages], { cwd: path });
  } catch (error) {
    return { skipped: `npm brings no engines: ${error.message.split('\n')[0]}` };
  }
  writeFileSync(done, wanted);
  return { path };
}

/** SQuAD with judgements where there is data, else glosses without. */
async function readCorpus(context, size) {
  const squad = context.data === undefined ? undefined : join(context.data, 'squad');
  if (squad === undefined || !existsSync(squad)) {
    const texts = await context.texts(size.texts === Infinity ? 20_000 : size.texts);
    const questions = (await context.questions(size.questions)).map((text) => ({ text }));
    return { name: 'glosses of WordNet', texts, questions };
  }
  const collection = openDataset(squad);
  const [grades, all] = [await collection.judgements(), await collection.questions(Infinity)];
  // Spread over all, since neighbours ask about the same paragraph.
  const step = Math.max(1, Math.floor(all.length / size.questions));
  const questions = Array.from({ length: Math.min(size.questions, all.length) }, (_, index) => all[index * step]).map(
    ({ id, text }) => ({ text, grades: grades.get(id) }),
  );
  const wanted = new Set(questions.flatMap((question) => [...question.grades.keys()]));
  const corpus = await collection.texts(Infinity);
  // A smaller corpus keeps what the questions look for.
  const texts = [...corpus.filter(({ id }) => wanted.has(id)), ...corpus.filter(({ id }) => !wanted.has(id))]
    .slice(0, Math.max(wanted.size, size.texts))
    .map(({ id, title: head, text }) => ({ id, text: head ? `${head} ${text}` : text }));
  return { name: 'SQuAD', texts, questions };
}

/** Sparrow over HTTP: the texts alone, then with the model's vectors. */
async function measureSparrow(context, { texts, questions }) {
  const data = mkdtempSync(join(context.work, 'js-engines-'));
  const server = await startSparrow(data);
  try {
    const { request } = server;
    const documents = texts.map(({ id, text }) => ({ _id: id, text }));
    const text = { type: 'text', analyzer: 'english' };
    const textSeconds = await fill(request, 'words', documents, { mappings: { properties: { text } } });
    context.log(`Sparrow indexed ${texts.length} texts in ${textSeconds.toFixed(1)} s`);
    const inference = { model_id: MODEL, input_output: [{ input_field: 'text', output_field: 'tokens' }] };
    await request('PUT', '/_ingest/pipeline/encode', { processors: [{ inference }] });
    const mappings = { _source: { excludes: ['tokens'] }, properties: { text, tokens: { type: 'sparse_vector' } } };
    const meaningSeconds = await fill(request, 'meanings', documents, { mappings, pipeline: 'encode' });
    context.log(`Sparrow encoded and indexed them in ${meaningSeconds.toFixed(1)} s`);
    const memoryBytes = usage(server.pid)?.anonymous ?? null;
    const words = await ask(request, 'words', questions, (question) => ({ match: { text: question } }));
    const meaning = await ask(request, 'meanings', questions, (question) => ({
      sparse_vector: { field: 'tokens', inference_id: MODEL, query: question },
    }));
    return {
      memoryBytes,
      words: { ...words, buildSeconds: textSeconds },
      meaning: { ...meaning, buildSeconds: meaningSeconds },
    };
  } finally {
    await server.stop();
    rmSync(data, { recursive: true, force: true });
  }
}

async function ask(request, index, questions, query) {
  const [times, ranked] = [[], []];
  for (const { text } of questions.slice(0, WARM_UP)) {
    await request('POST', `/${index}/_search`, { query: query(`${text} so`), _source: false });
  }
  for (const { text } of questions) {
    const asked = performance.now();
    const { hits } = await request('POST', `/${index}/_search`, { query: query(text), _source: false, size: K });
    times.push(performance.now() - asked);
    ranked.push(hits.hits.map(({ _id }) => _id));
  }
  return { ...summarize(times), ranked };
}

function compareEngine({ texts, questions, name }, sparrow, found) {
  const { against, ranked, ...figures } = found;
  const asked = questions.slice(0, ranked.length);
  const where = `${texts.length.toLocaleString('en-US')} texts`;
  const row = (what, unit, ours, theirs, checked = '') => ({
    what: `${what}, ${where}`,
    against,
    unit,
    sparrow: ours,
    peer: theirs,
    checked,
    detail: figures,
  });
  const rows = [
    row('build, words alone', 's', sparrow.words.buildSeconds, found.buildSeconds),
    row('build, through the model', 's', sparrow.meaning.buildSeconds, found.buildSeconds),
    row('memory', 'MB', sparrow.memoryBytes / 1e6, found.memoryBytes / 1e6),
    row('a question by words, p50', 'ms', sparrow.words.p50, found.p50),
    row('a question by meaning, p50', 'ms', sparrow.meaning.p50, found.p50),
  ];
  if (asked[0]?.grades === undefined) return rows;
  const quality = (lists) => asked.reduce((sum, { grades }, at) => sum + ndcg(lists[at], grades, K), 0) / asked.length;
  const theirs = quality(ranked.map((list) => list.map((position) => texts[position].id)));
  const judged = `${asked.length} judged questions of ${name}, the same for both`;
  for (const [kind, label] of [
    ['words', 'nDCG@10 by words'],
    ['meaning', 'nDCG@10 by meaning'],
  ]) {
    const ours = quality(sparrow[kind].ranked);
    if (ours < LEAST_NDCG) throw new StepFailed(`Sparrow's ${label} is ${ours} on ${asked.length} questions`);
    rows.push(row(label, 'nDCG@10', ours, theirs, judged));
  }
  return rows;
}
