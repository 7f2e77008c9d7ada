// `npm run bench -- --quick-peers`: fetches other engines, measures them and Sparrow on the same texts and vectors, and draws five charts.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';

import { ROOT, at } from '../../scripts/lib/paths.mjs';
import { duration, line, step, table } from '../../scripts/lib/terminal.mjs';
import { createContext } from '../lib/context.mjs';
import { captureJson, folder, keptFolder } from '../lib/programs.mjs';
import { beginRecord, writeRecord } from '../lib/record.mjs';
import { run as hybridSuite } from '../suites/hybrid.mjs';
import { openSparrow } from './addon.mjs';
import { drawCharts } from './charts.mjs';
import { TITLES, fetchPeers } from './fetch.mjs';
import { bigAnnVectors, denseVectors, sparseVectors, wordFiles, wordNetPassages } from './material.mjs';
import { measureDense, measureSparse, measureWords } from './measure.mjs';

/** How much of the material is taken. A graph takes minutes where a list of entries takes seconds. */
const SIZES = {
  smoke: { documents: 600, dense: 300, questions: 40, passes: 1 },
  quick: { documents: 30_000, dense: 15_000, questions: 500, passes: 2 },
};
const HYBRID = { smoke: 300, quick: 10_000 };
const NO_TEXTS = 'the folder of --data has vectors, and no texts';

/**
 * @param {object} options
 * @param {string} [options.data] a folder as datasets.mjs reads it
 * @param {string} [options.cache] keeps what is fetched and made for the next run; a temporary folder without it
 * @param {string} options.out gets the charts, a page that shows them, and the record
 * @param {number} [options.documents] how many, instead of 30,000
 * @param {boolean} [options.smoke] a little of everything, and no other engine: whether the answers are right
 * @param {string} options.command what was typed
 * @returns {Promise<number>} 0, or 1 where a chart could not be drawn
 */
export async function quickPeers({ data, cache, out, documents, smoke = false, command }) {
  const begun = performance.now();
  const home = cache === undefined ? mkdtempSync(join(tmpdir(), 'sparrow-quick-peers-')) : folder(resolve(cache));
  const size = { ...SIZES[smoke ? 'smoke' : 'quick'], ...(documents === undefined ? {} : { documents }) };
  const endRecord = beginRecord({ suite: 'quick-peers', title: 'five charts beside other engines', command });
  try {
    step(`other engines, in ${cache === undefined ? 'a temporary folder' : relative(ROOT, home)}`);
    const peers = smoke ? withoutPeers() : await fetchPeers(home, line);
    const { measured, corpus } = await measureAll(home, peers, { data, size, smoke });
    const charts = drawCharts(measured);
    const engines = [...peers.values()].map(({ name, version, skipped }) => ({ name, version, skipped }));
    const record = endRecord({
      corpus,
      size,
      engines,
      charts: charts.map(({ name, title, notes }) => ({ name, title, notes })),
      measured,
    });
    show(charts, record, out, begun);
    return charts.some(({ svg }) => svg === undefined) && measured.words.failed !== NO_TEXTS ? 1 : 0;
  } finally {
    if (cache === undefined) rmSync(home, { recursive: true, force: true });
  }
}

const withoutPeers = () =>
  new Map(Object.keys(TITLES).map((name) => [name, { name, skipped: 'a smoke run fetches nothing' }]));

async function measureAll(cache, peers, { data, size, smoke }) {
  const work = folder(cache, smoke ? 'smoke' : 'work');
  const options = { size: smoke ? 'smoke' : 'peers', data, work, prepare: false, log: line };
  const context = createContext(options);
  const dataset = context.corpus.data;
  const indices = mkdtempSync(join(work, 'sparrow-'));
  const sparrow = await openSparrow(indices);
  const part = async (title, measure) => {
    step(title);
    try {
      return await measure();
    } catch (error) {
      line(`failed: ${error.message}`);
      return { failed: error.message.split('\n')[0] };
    }
  };
  try {
    if (dataset?.kind === 'big-ann') {
      const home = folder(work, 'vectors');
      const sparse = await part('sparse vectors', async () => {
        const vectors = await bigAnnVectors(context, home, dataset, size.documents);
        return measureSparse(context, sparrow, peers, { sparse: vectors, home }, { ...size, count: size.questions });
      });
      const none = { failed: NO_TEXTS };
      return { measured: { sparse, words: none, dense: none, hybrid: none }, corpus: dataset.files };
    }
    const given = dataset === undefined ? undefined : await context.texts(size.documents);
    const texts = given ?? wordNetPassages(size.documents);
    const questions = (await context.questions(size.questions)).slice(0, size.questions);
    const joined = texts.map(({ title, text }) => (given === undefined || title === '' ? text : `${title} ${text}`));
    const made = { identity: context.identity('texts'), size, passages: given === undefined };
    const models = ['packages/model-splade-tiny', 'packages/model-minilm-l6', 'benches/quick-peers/material.mjs'];
    const home = keptFolder(work, 'material', { crates: ['encoder'], files: models, of: made });
    step(`material: ${texts.length} texts, ${questions.length} questions`);
    const words = await wordFiles(
      context,
      home,
      joined.map((text) => ({ text })),
      questions,
    );
    const sparseMade = await sparseVectors(context, sparrow, home, joined, questions);
    const dense = await denseVectors(sparrow, home, joined.slice(0, size.dense), questions);
    const material = { home, words, sparse: sparseMade, dense };
    const limits = { passes: size.passes, count: size.questions };
    const measured = {
      sparse: await part('sparse vectors', () => measureSparse(context, sparrow, peers, material, limits)),
      words: await part('words', () => measureWords(context, sparrow, peers, material, limits)),
      dense: await part('dense vectors', () => measureDense(context, sparrow, peers, material, limits)),
    };
    await sparrow.close();
    measured.hybrid = await part('a hybrid question', () =>
      measureHybrid(context, peers, { ...material, texts }, smoke),
    );
    return { measured, corpus: context.corpus.source() };
  } finally {
    await sparrow.close();
    rmSync(indices, { recursive: true, force: true });
  }
}

/** The suite's server and questions, and beside it one that is put together of three libraries. */
async function measureHybrid(context, peers, { home, words, sparse, dense, texts }, smoke) {
  const count = Math.min(HYBRID[smoke ? 'smoke' : 'quick'], texts.length);
  const dataset = context.corpus.data;
  const grades = (await dataset?.judgements()) ?? new Map();
  const judged = grades.size === 0 ? [] : await dataset.questions(Infinity);
  const { rows, notes } = await hybridSuite({
    ...context,
    texts: () => Promise.resolve(texts.slice(0, count)),
    judged: judged.map(({ id, text }) => ({ text, grades: grades.get(id) })),
  });
  const row = (what) => rows.find((each) => each.what === what)?.sparrow;
  const ways = [
    ['all three, fused, one client', 'Sparrow, all three'],
    ['words alone, one client', 'Sparrow, words alone'],
    ['sparse alone, one client', 'Sparrow, sparse alone'],
    ['dense alone, one client', 'Sparrow, dense alone'],
  ];
  const searches = ways.map(([what, name]) => ({ name, p50: row(`${what}, p50`), p95: row(`${what}, p95`) }));
  const results = [{ name: 'Sparrow over HTTP', searches }];
  const parts = ['bm25s', 'seismic', 'hnswlib'].map((name) => peers.get(name));
  const missing = parts.find(({ skipped }) => skipped !== undefined);
  const name = 'three libraries in one Python';
  if (missing === undefined) {
    const files = [words.json, sparse.documents, sparse.questions, dense.documents, dense.questions, home];
    const args = [at('benches', 'peers', 'hybrid_engines.py'), ...files, '--rows', `${count}`];
    const [found] = await captureJson(parts[0].python, args, { seconds: 300 });
    results.push({ name, searches: [{ name, ...found }] });
  } else results.push({ name, skipped: missing.skipped, searches: [] });
  const quality = rows
    .filter(({ what }) => what.startsWith('nDCG'))
    .map(({ what, sparrow, checked }) => `${what}: ${sparrow.toFixed(3)} (${checked})`);
  const ours = `${count.toLocaleString('en-US')} texts; Sparrow gets a text, encodes it with two models and answers ten hits with their sources`;
  const theirs =
    'the libraries (bm25s, Seismic, hnswlib) get words and vectors ready made, answer numbers, and are called in their own process';
  return { results, notes: [ours, theirs, ...notes, ...quality] };
}

/** Prints the tables, and writes charts, page and record. */
function show(charts, record, out, begun) {
  mkdirSync(out, { recursive: true });
  const page = [
    '# Sparrow beside other engines',
    '',
    `\`${record.command}\`, ${record.date.slice(0, 10)}, ${record.machine.cpu}, ${record.machine.cores} cores; other processes used ` +
      `${record.machine.load.otherCores ?? '?'} of them. All figures are in [the record](record.json).`,
  ];
  for (const { name, title, svg, table: rows, notes } of charts) {
    console.log(`\n${title}`);
    if (svg !== undefined) {
      writeFileSync(join(out, `${name}.svg`), svg);
      table(rows);
    }
    for (const note of notes) line(note);
    const [head, ...body] = rows.map((cells) => `| ${cells.join(' | ')} |`);
    const lines = head === undefined ? [] : [head, `|${'---|'.repeat(rows[0].length)}`, ...body, ''];
    const picture = svg === undefined ? [] : [`![${title}](${name}.svg)`, ''];
    page.push('', `## ${title}`, '', ...picture, ...lines, ...notes.map((note) => `- ${note}`));
  }
  writeFileSync(join(out, 'index.md'), `${page.join('\n')}\n`);
  writeRecord(join(out, 'record.json'), record);
  line(`\n${duration(performance.now() - begun)}; the charts are in ${relative(ROOT, join(out, 'index.md'))}`);
}
