// Exact top-10 search over sparse vectors on one thread, in process: Sparrow's postings against Lucene, BMP, Seismic and a plain loop
// over the same vectors and questions.
//
// The vectors are the embedded model's for real passages; a million of them is derived from 100,000 with a fixed seed. Engines take
// turns as processes of their own (Sparrow, Lucene, BMP, Seismic, Sparrow, …), and the better of the rounds counts for each,
// median and 95th percentile apart: these machines are shared. The plain loop runs in Sparrow's process, pass by pass in turns.
// The Rust program compares every answer with scoring all documents, bit by bit, for the weights as Sparrow stores them; here the
// answers of all engines are compared with exact ones of the full weights.
import { statSync } from 'node:fs';
import { basename } from 'node:path';

import { StepFailed } from '../../scripts/lib/process.mjs';
import { groundTruth, readAnswers } from '../lib/answers.mjs';
import { LUCENE_TOLERANCE, findLucene, luceneIndex, searchLucene } from '../lib/lucene.mjs';
import { searchSparrow } from '../lib/postings-program.mjs';
import {
  bmpIndex,
  derivedVectors,
  findPythonPeers,
  searchBmp,
  searchSeismic,
  seismicIndex,
} from '../lib/sparse-peers.mjs';
import { accuracy, exponent } from '../lib/statistics.mjs';

export const title = 'exact sparse top 10, one thread';
/** `--prepare` makes what a later run finds in the work folder. */
export const prepares = true;

const BASE = 100_000;
const SEED = 7;
const SIZES = {
  smoke: { questions: 60, corpora: [{ rows: 1500, rounds: 1, passes: 1, segments: true, kernels: true }] },
  quick: { questions: 500, corpora: [{ rows: 30_000, rounds: 2, passes: 2, segments: true, kernels: true }] },
  full: {
    questions: 1000,
    corpora: [
      { rows: 10_000, rounds: 2, passes: 3, peers: ['lucene'] },
      { rows: BASE, rounds: 2, passes: 3, peers: ['lucene', 'bmp', 'seismic'], segments: true, kernels: true },
      { rows: 1_000_000, questions: 500, rounds: 2, passes: 2, peers: ['lucene', 'bmp', 'seismic'] },
    ],
  },
};
const FILTERS = [0.5, 0.05, 0.005];
const SEGMENTS = { count: 5, deleted: 0.2 };
/** BMP and Seismic get fewer questions where they are slow; the first ones of the same. */
const FEWER_QUESTIONS = { from: 500_000, count: 300 };
/** Below this share of right answers somebody is not answering the same question. */
const LEAST_RECALL = { lucene: 0.999, bmp: 0.9 };
/** A filter that is no cheaper by less than this is as cheap. */
const NOISE = 1.05;
const CHECKED = 'every answer of Sparrow with scoring all documents, bit by bit; all engines with exact answers';

const name = (rows) => rows.toLocaleString('en-US');
const target = { lucene: 0.05, loop: { p50: 0.2, p95: 0.125 }, bmp: 0.1, seismic: 0.2, bytes: 1.5, filter: 1.1 };

/** @param {import('../lib/context.mjs').Context} context */
export async function run(context) {
  const { corpora, ...size } = SIZES[context.size];
  const program = context.prepare ? undefined : await context.rustExample('bench_top_k');
  const peers = { lucene: await findLucene(context), python: await findPythonPeers(context) };
  const measured = [];
  const rows = [];
  for (const plan of corpora) {
    const questions = plan.questions ?? size.questions;
    const queries = (await context.vectors('questions', questions)).prefix;
    const docs = await vectorsOf(context, peers, plan.rows);
    if (docs.skipped !== undefined) {
      rows.push({ what: `${name(plan.rows)} documents`, skipped: docs.skipped });
      continue;
    }
    const corpus = { ...plan, docs: docs.prefix, queries, questions };
    corpus.truth = await groundTruth(context, corpus.docs, queries);
    const engines = await prepare(context, peers, corpus);
    if (context.prepare) continue;
    const figures = await measure(context, program, peers, corpus, engines);
    measured.push({ corpus, figures });
    rows.push(...describe(corpus, figures, engines));
  }
  if (context.prepare) return { rows };
  return { rows: [...rows, ...growth(measured)], notes: notesOf(measured) };
}

async function vectorsOf(context, { python }, rows) {
  if (rows <= BASE) return context.vectors('texts', rows);
  if (python.skipped !== undefined) return python;
  return derivedVectors(python, (await context.vectors('texts', BASE)).prefix, rows, SEED);
}

/** Indexes of the peers, or why there is none. */
async function prepare(context, peers, { rows, docs, queries, truth, peers: wanted = [] }) {
  const unless = (peer, found, build) => {
    if (!wanted.includes(peer)) return null;
    return found.skipped === undefined ? build() : found;
  };
  return {
    lucene: await unless('lucene', peers.lucene, () => luceneIndex(context, peers.lucene, docs, queries)),
    bmp: await unless('bmp', peers.python, () => bmpIndex(peers.python, docs, rows)),
    seismic: await unless('seismic', peers.python, () => seismicIndex(peers.python, docs, rows, queries, truth.prefix)),
  };
}

const there = (engine) => engine !== null && engine.skipped === undefined;

/** All engines in turns; of each the best round. */
async function measure(context, program, peers, corpus, engines) {
  const { rows, docs, queries, questions, truth, rounds, passes } = corpus;
  const fewer = { questions: rows >= FEWER_QUESTIONS.from ? FEWER_QUESTIONS.count : questions, passes };
  const python = peers.python;
  const sparrow = { ...corpus, filters: FILTERS, segmented: corpus.segments ? SEGMENTS : undefined };
  const turns = { sparrow: () => searchSparrow(context, program, sparrow) };
  if (there(engines.lucene)) {
    for (const mode of ['default', 'exact']) {
      const times = { warmup: rows > BASE ? 1 : 2, passes };
      turns[`lucene ${mode}`] = async () => {
        const found = await searchLucene(context, peers.lucene, engines.lucene.index, queries, mode, times);
        return { ...found, recall: checkLucene(found.ids, truth, rows) };
      };
    }
  }
  if (there(engines.bmp)) {
    turns.bmp = async () => {
      const found = await searchBmp(python, engines.bmp.index, queries, fewer);
      const recall = accuracy(readAnswers(found.answers).ids, truth).recall;
      if (recall < LEAST_RECALL.bmp) throw new StepFailed(`BMP answers ${recall} right at ${rows}`);
      return { p50: found.p50_ms, p95: found.p95_ms, mean: found.mean_ms, batchMean: found.batch_mean_ms, recall };
    };
  }
  if (there(engines.seismic)) {
    const { index, settings } = engines.seismic;
    for (const [at, setting] of settings.entries()) {
      turns[`seismic ${at}`] = () => searchSeismic(python, { index, setting }, queries, truth.prefix, fewer);
    }
  }
  if (corpus.kernels) {
    for (const kernel of ['avx2', 'scalar']) {
      turns[kernel] = () => searchSparrow(context, program, { ...corpus, kernel });
    }
  }
  const found = {};
  for (let round = 0; round < rounds; round += 1) {
    for (const [engine, search] of Object.entries(turns)) {
      const others = context.watchOthers();
      const answer = await search();
      (found[engine] ??= []).push({ ...answer, otherCores: others() });
      context.log(
        `${name(rows)}, round ${round + 1}, ${engine}: p50 ${(answer.p50 ?? answer.plain?.p50)?.toFixed(3)} ms`,
      );
    }
  }
  return merge(found, basename(docs));
}

function checkLucene(ids, truth, rows) {
  const { recall } = accuracy(ids, truth, { tolerance: LUCENE_TOLERANCE });
  if (recall < LEAST_RECALL.lucene) throw new StepFailed(`Lucene answers ${recall} right at ${rows} documents`);
  return accuracy(ids, truth).recall;
}

/** The lowest median and the lowest 95th percentile of the rounds. */
function merge(found, corpus) {
  const best = (rounds) => ({
    ...rounds[0],
    p50: Math.min(...rounds.map(({ p50 }) => p50)),
    p95: Math.min(...rounds.map(({ p95 }) => p95)),
    mean: Math.min(...rounds.map(({ mean }) => mean)),
  });
  const merged = Object.fromEntries(Object.entries(found).map(([engine, rounds]) => [engine, best(rounds)]));
  for (const engine of ['sparrow', 'avx2', 'scalar']) {
    if (merged[engine] === undefined || merged[engine].unavailable) continue;
    merged[engine].loop = best(found[engine].map(({ loop }) => loop));
    const names = Object.keys(found[engine][0].variants);
    merged[engine].variants = Object.fromEntries(
      names.map((variant) => [variant, best(found[engine].map(({ variants }) => variants[variant]))]),
    );
    merged[engine].buildSeconds = Math.max(...found[engine].map(({ buildSeconds }) => buildSeconds));
  }
  const otherCores = Object.values(found).flatMap((rounds) => rounds.map((round) => round.otherCores ?? 0));
  return { ...merged, corpus, otherCores: Math.max(...otherCores) };
}

/** The faster of Lucene's modes, median and 95th percentile apart. */
function betterLucene(figures) {
  const [first, second] = [figures['lucene default'], figures['lucene exact']];
  const faster = (share) => (first[share] <= second[share] ? first[share] : second[share]);
  const detail = { default: withoutIds(first), exact: withoutIds(second) };
  return { p50: faster('p50'), p95: faster('p95'), detail };
}

const withoutIds = (found) => ({ ...found, ids: undefined });

function describe(corpus, figures, engines) {
  const size = `${name(corpus.rows)} documents`;
  const { sparrow } = figures;
  const own = { p99: sparrow.p99, mean: sparrow.mean, instructions: sparrow.instructions, recall: sparrow.recall };
  const rows = [];
  const compare = (against, peer, targets, detail = {}) => {
    for (const share of ['p50', 'p95']) {
      rows.push({
        what: `exact top 10, ${size}, ${share}`,
        against,
        unit: 'ms',
        sparrow: sparrow[share],
        peer: peer[share],
        target: targets === null ? null : { at_most: targets[share] ?? targets },
        checked: CHECKED,
        detail: { sparrow: own, peer: detail },
      });
    }
  };
  const skip = (against, engine) => rows.push({ what: `exact top 10, ${size}`, against, skipped: engine.skipped });
  const promised = corpus.rows >= BASE;
  const lucene = there(engines.lucene) ? betterLucene(figures) : undefined;
  if (lucene !== undefined) compare('Lucene 10, better mode', lucene, promised ? target.lucene : null, lucene.detail);
  else if (engines.lucene !== null) skip('Lucene 10', engines.lucene);
  compare('plain f32 loop, compiled', sparrow.loop, promised ? target.loop : null, sparrow.loop);
  if (there(engines.bmp)) compare('BMP, blocks of 8', figures.bmp, target.bmp, figures.bmp);
  else if (engines.bmp !== null) skip('BMP', engines.bmp);
  if (there(engines.seismic)) {
    // What is promised is about the highest recall that was looked for.
    const promisedAt = engines.seismic.settings.findLastIndex(({ isPublished }) => !isPublished);
    for (const [at, setting] of engines.seismic.settings.entries()) {
      const found = figures[`seismic ${at}`];
      const against = `Seismic at recall ${found.recall.toFixed(3)}${setting.isPublished ? ', its published settings' : ''}`;
      compare(against, found, at === promisedAt ? target.seismic : null, { ...found, setting });
      rows.push({
        what: `exact top 10, ${size}, mean`,
        against: `${against}, one batch call on one thread`,
        unit: 'ms',
        sparrow: sparrow.mean,
        peer: found.batch_mean,
        checked: CHECKED,
        detail: { sparrow: own, peer: { ...found, setting } },
      });
    }
  } else if (engines.seismic !== null) skip('Seismic', engines.seismic);
  return [
    ...rows,
    ...describeFilters(size, sparrow, promised),
    ...describeVariants(size, figures, promised),
    {
      what: `index, ${size}`,
      against: lucene === undefined ? null : 'Lucene 10',
      unit: 'bytes a document',
      sparrow: sparrow.bytesPerDocument,
      peer: lucene === undefined ? null : engines.lucene.bytes / corpus.rows,
      target: lucene === undefined || !promised ? null : { at_most: target.bytes },
      checked: 'the size of the bytes searched: postings and the weights as they are given back',
      detail: { bytesPerPosting: sparrow.bytesPerPosting, buildSeconds: sparrow.buildSeconds, lucene: engines.lucene },
    },
  ];
}

function describeFilters(size, { variants, plain }, promised) {
  const times = FILTERS.map((share) => variants[`filter ${share}`]);
  const rows = FILTERS.map((share, index) => ({
    what: `filter that ${share * 100}% pass, ${size}, p50`,
    against: 'Sparrow unfiltered',
    unit: 'ms',
    sparrow: times[index].p50,
    peer: variants.plain.p50,
    target: promised ? { at_most: target.filter } : null,
    checked: CHECKED,
    detail: times[index],
  }));
  const slower = times.filter((time, index) => index > 0 && time.p50 > times[index - 1].p50 * NOISE).length;
  return [
    ...rows,
    {
      what: `stricter filters that take longer, ${size}`,
      unit: 'filters',
      sparrow: slower,
      target: promised ? { at_most: 0 } : null,
      checked: CHECKED,
      detail: { unfiltered: plain.p50, ...Object.fromEntries(FILTERS.map((share, at) => [share, times[at].p50])) },
    },
  ];
}

function describeVariants(size, figures, promised) {
  const { variants } = figures.sparrow;
  const several = Object.keys(variants).find((variant) => variant.includes('segments'));
  const rows = [];
  if (several !== undefined) {
    rows.push({
      what: `${several.replace('0.2', '20%')}, ${size}, warm, p50`,
      against: 'Sparrow, one clean segment',
      unit: 'ms',
      sparrow: variants[several].p50,
      peer: variants.plain.p50,
      target: promised ? { at_most: 1.3 } : null,
      checked: CHECKED,
      detail: variants[several],
    });
  }
  for (const [kernel, most] of [
    ['avx2', 0.5],
    ['scalar', 1],
  ]) {
    const found = figures[kernel];
    if (found === undefined) continue;
    const row = { what: `with ${kernel} only, ${size}, p50`, against: 'plain f32 loop, compiled', unit: 'ms' };
    if (found.unavailable) rows.push({ ...row, skipped: `this processor runs ${found.unavailable}` });
    else {
      const detail = { sparrow: found.plain, loop: found.loop };
      rows.push({
        ...row,
        sparrow: found.p50,
        peer: found.loop.p50,
        target: promised ? { at_most: most } : null,
        checked: CHECKED,
        detail,
      });
    }
  }
  return rows;
}

/** How the median grows from the smallest corpus to the largest. */
function growth(measured) {
  if (measured.length < 3) return [];
  const points = (value) => measured.map(({ corpus, figures }) => [corpus.rows, value(figures)]);
  const sparrow = points((figures) => figures.sparrow.p50);
  const row = { unit: 'exponent', sparrow: exponent(sparrow), checked: CHECKED };
  const rows = [{ ...row, what: 'growth of p50 with the documents', target: { at_most: 0.7 }, detail: { sparrow } }];
  if (measured.every(({ figures }) => figures['lucene default'] !== undefined)) {
    const lucene = points((figures) => betterLucene(figures).p50);
    const against = { what: 'growth of p50 with the documents', against: 'Lucene 10', target: { at_most: 1 } };
    rows.push({ ...row, ...against, peer: exponent(lucene), detail: { sparrow, lucene } });
  }
  return rows;
}

/** How many terms a document has in the mean. */
const termsOf = ({ docs, rows }) => Math.round(statSync(`${docs}.idx`).size / 4 / rows);

function notesOf(measured) {
  return measured.map(({ corpus, figures }) => {
    const { postingsPerQuestion, recall, instructions } = figures.sparrow;
    return (
      `${name(corpus.rows)} documents of ${termsOf(corpus)} terms: ${corpus.questions} questions touch ${name(postingsPerQuestion)} postings each; ${instructions}; ` +
      `${(100 * recall).toFixed(2)}% of Sparrow's answers are the exact ones of the full weights (all are, within 11 bits); ` +
      `other processes used at most ${figures.otherCores} cores while an engine was measured`
    );
  });
}
