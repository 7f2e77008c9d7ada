// Full-text search beside Lucene: disjunctions, conjunctions and phrases over the same texts, ten hits, no totals, one segment.
// Lucene runs in process (words/words.sh of the peers' folder); ours is asked through the addon, JSON in and JSON out, so that a call
// that finds nothing has a row of its own. They take turns. In a turn each asks all questions in rounds, of which the first ones are not
// counted, and takes a question's shortest time; of the turns the lowest median and 95th percentile count, for both. The row about each
// question for the first time says what a cache spares. The answers of each turn's last round are compared: the score at each rank with
// Lucene's (times k1 + 1, which Elasticsearch 8 keeps in the score), and the documents but for those that share the last score. Those of
// some questions are also compared with a search that scores every match, one document after another; profiles show that it does.
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { NativeSearchEngine } from '@sparrow-search/engine';

import { bulkLines } from '../../scripts/lib/api-client.mjs';
import { StepFailed } from '../../scripts/lib/process.mjs';
import { capture, captureJson, folder, keptFolder } from '../lib/programs.mjs';
import { figure } from '../lib/rows.mjs';
import { percentile } from '../lib/statistics.mjs';

export const title = 'words: disjunctions, conjunctions and phrases';
/** `--prepare` makes what a later run finds in the work folder. */
export const prepares = true;

const SIZES = {
  smoke: { passages: 1000, questions: 40, turns: 1, warmup: 0, rounds: 1, checked: 40 },
  quick: { passages: 20_000, questions: 500, turns: 2, warmup: 1, rounds: 3, checked: 100 },
  full: { passages: 200_000, questions: 2000, turns: 3, warmup: 2, rounds: 3, checked: 200 },
};
const INDEX = 'words';
const BULK = 2000;
const K = 10;
/** Lucene's scores lack this factor, which is the same for all documents. */
const K1_PLUS_ONE = 2.2;
/** Sums of single precision numbers depend on their order. */
const PRECISION = 1e-5;
/** The modes by Lucene's names, and the time against Lucene's that is asked for. */
const MODES = {
  or: { what: 'disjunctions', target: 0.5, query: (terms) => ({ match: { text: terms.join(' ') } }) },
  and: { what: 'conjunctions', target: 1, query: (terms) => match(terms.join(' '), 'and') },
  phrase: { what: 'phrases', target: 1, query: (terms) => ({ match_phrase: { text: terms.slice(-2).join(' ') } }) },
};
const match = (query, operator) => ({ match: { text: { query, operator } } });

/** As profiles name a search that scores every match of a query. */
const SCORES_ALL = 'document_at_a_time';

/** @param {import('../lib/context.mjs').Context} context */
export async function run(context) {
  const size = SIZES[context.size];
  const texts = await context.texts(size.passages);
  const asked = (await context.questions(size.questions)).map((text) => text.replaceAll(/\s+/g, ' '));
  const made = {
    crates: ['tantivy-index', 'write-path', 'segments', 'analysis', 'mapping', 'runtime'],
    of: context.identity('texts'),
  };
  const work = keptFolder(context.work, `words-${context.size}`, made);
  const engine = await NativeSearchEngine.open({ data: join(work, 'data'), models: [], deployAtStart: false });
  try {
    const { execute, terms } = client(engine);
    await fill(execute, work, texts);
    if (context.prepare) return { rows: [] };
    const analysed = [];
    for (const text of asked) analysed.push(await terms(text));
    const queries = Object.fromEntries(Object.entries(MODES).map(([mode, { query }]) => [mode, analysed.map(query)]));
    const turns = [];
    for (let turn = 0; turn < size.turns; turn += 1) {
      const found = {};
      for (const mode of Object.keys(MODES)) found[mode] = await ask(execute, queries[mode], size);
      const lucene = await luceneOf(context, texts, asked, size);
      compareWithLucene(found, lucene);
      turns.push({ found, lucene });
    }
    for (const mode of Object.keys(MODES)) {
      await compareWithAllScores(execute, mode, queries[mode].slice(0, size.checked), turns[0].found[mode].answers);
    }
    const nothing = Array.from({ length: 200 }, (_, at) => ({ match: { text: `qqzzxx${at}` } }));
    const bare = await ask(execute, nothing, size);
    return { rows: describe(size, turns, bare), notes: notes(asked.length, size, turns) };
  } finally {
    await engine.close();
  }
}

function client(engine) {
  const execute = async (op, body, query = {}, path = { index: INDEX }) => {
    const reply = await engine.execute({ op, path, query }, body === undefined ? undefined : Buffer.from(body));
    return JSON.parse(Buffer.from(reply.body).toString());
  };
  /** What Lucene's analyzer does too: phrases are of the last two terms. */
  const terms = async (text) => {
    const { tokens } = await execute('analyze', JSON.stringify({ analyzer: 'standard', text }));
    return tokens.map(({ token }) => token);
  };
  return { execute: Object.assign(execute, { raw: (request, body) => engine.execute(request, body) }), terms };
}

/** Writes the passages and merges them into one segment, unless an earlier run has. */
async function fill(execute, work, texts) {
  const done = join(work, 'filled.json');
  if (existsSync(done)) return;
  await execute('delete_index', undefined, { ignore_unavailable: 'true' }).catch(() => {});
  const mappings = { _source: { enabled: false }, properties: { text: { type: 'text' } } };
  const settings = { number_of_shards: 1, refresh_interval: '-1' };
  await execute('create_index', JSON.stringify({ settings, mappings }));
  for (let from = 0; from < texts.length; from += BULK) {
    const documents = texts.slice(from, from + BULK).map(({ id, text }) => ({ _id: id, text }));
    const { errors } = await execute('bulk', bulkLines(documents));
    if (errors) throw new StepFailed('a passage is refused');
  }
  await execute('refresh');
  await execute('force_merge', undefined, { max_num_segments: '1' });
  await execute('refresh');
  const { count } = await execute('count');
  if (count !== texts.length) throw new StepFailed(`${count} of ${texts.length} passages are there`);
  writeFileSync(done, '{}');
}

const bodyOf = (query, more = {}) =>
  Buffer.from(JSON.stringify({ query, size: K, track_total_hits: false, _source: false, ...more }));

/** Asks all questions round by round: the first time of each, its best time of those that count, its answer. Milliseconds. */
async function ask(execute, queries, { warmup, rounds }) {
  const bodies = queries.map((query) => bodyOf(query));
  const request = { op: 'search', path: { index: INDEX }, query: {} };
  const [first, best, answers] = [[], [], []];
  for (let round = 0; round < warmup + rounds; round += 1) {
    for (const [at, body] of bodies.entries()) {
      const begun = performance.now();
      const reply = await execute.raw(request, body);
      const took = performance.now() - begun;
      if (round === 0) first.push(took);
      if (round >= warmup) best[at] = Math.min(best[at] ?? Infinity, took);
      if (round === warmup + rounds - 1) answers.push(hitsOf(JSON.parse(Buffer.from(reply.body).toString())));
    }
  }
  return { first, best, answers };
}

const hitsOf = ({ hits }) => hits.hits.map(({ _id, _score }) => ({ id: _id, score: _score }));

/**
 * A function score without functions has the scores of its query, and scores every match: the same hits have to come.
 *
 * @param {(op: string, body: Buffer) => Promise<object>} execute
 */
async function compareWithAllScores(execute, mode, queries, answers) {
  let compared = 0;
  for (const [at, query] of queries.entries()) {
    const full = await execute('search', bodyOf({ function_score: { query } }, { profile: true }));
    const fast = await execute('search', bodyOf(query, { profile: true }));
    // A query without a match is not searched for at all.
    if (executorsOf(full).some((name) => name !== SCORES_ALL) || executorsOf(fast).includes(SCORES_ALL)) {
      const names = [fast, full].map((answer) => executorsOf(answer).join(' and '));
      throw new StepFailed(`${mode} ${at}: searched by ${names[0]}, and by ${names[1]} where every match is scored`);
    }
    if (executorsOf(full).length > 0 && executorsOf(fast).length > 0) compared += 1;
    const all = hitsOf(full);
    if (agree(answers[at], all, 1)) continue;
    const [one, other] = [all, answers[at]].map((hits) => JSON.stringify(hits));
    throw new StepFailed(`${mode} ${at}: ${other}, and when every match is scored ${one}`);
  }
  if (compared === 0) throw new StepFailed(`${mode}: no question was searched for in two ways`);
}

/** How the hits of a profiled search were found, each way once. */
const executorsOf = ({ profile }) => [
  ...new Set(profile.shards.flatMap(({ searches }) => searches.flatMap(({ query }) => query.flatMap(namesIn)))),
];

const namesIn = ({ debug }) => debug?.executors ?? [];

/**
 * Lucene's times and answers, or why there are none.
 *
 * @returns {Promise<{ skipped: string } | { times: Map<string, object>, answers: Map<string, { id: string, score: number }[][]> }>}
 */
async function luceneOf(context, texts, asked, { warmup, rounds }) {
  const script = context.peers === undefined ? undefined : join(context.peers, 'words', 'words.sh');
  if (script === undefined || !existsSync(script)) return { skipped: 'no peers given (--peers)' };
  const home = folder(context.work, 'peers', `words-${context.size}`);
  const files = ['docs.jsonl', 'queries.txt', 'answers.tsv', 'index'].map((name) => join(home, name));
  const [docs, queries, out, index] = files;
  const lines = texts.map(({ id, text }) => `${JSON.stringify({ id, text })}\n`).join('');
  if (!existsSync(docs) || readFileSync(docs, 'utf8') !== lines) {
    rmSync(index, { recursive: true, force: true });
    writeFileSync(docs, lines);
  }
  writeFileSync(queries, asked.map((text) => `${text}\n`).join(''));
  mkdirSync(index, { recursive: true });
  const corpus = ['--docs', docs, '--queries', queries, '--index', index];
  const modes = ['--mode', Object.keys(MODES).join(',')];
  const numbers = ['--k', `${K}`, '--count-to', `${K}`, '--warmup', `${warmup}`, '--reps', `${rounds}`];
  try {
    if (readdirSync(index).length === 0) await capture('bash', [script, ...corpus, '--mode', 'or', '--reps', '1']);
    const times = await captureJson('bash', [script, ...corpus, ...modes, ...numbers, '--out', out]);
    const answers = new Map(Object.keys(MODES).map((mode) => [mode, asked.map(() => [])]));
    for (const line of readFileSync(out, 'utf8').split('\n')) {
      const [mode, question, rank, id, score] = line.split('\t');
      if (id !== undefined) answers.get(mode)[Number(question)][Number(rank) - 1] = { id, score: Number(score) };
    }
    return { times: new Map(times.map((time) => [time.mode, time])), answers };
  } catch (error) {
    return { skipped: `Lucene does not run: ${error.message.split('\n').slice(0, 3).join(' ')}` };
  }
}

/**
 * Whether two lists are the same best hits: equal scores at every rank, within rounding, and equal documents but for those whose score
 * is the last one.
 *
 * @param {{ id: string, score: number }[]} ours
 * @param {{ id: string, score: number }[]} theirs
 * @param {number} factor what their scores lack
 */
export function agree(ours, theirs, factor = K1_PLUS_ONE) {
  if (ours.length !== theirs.length) return false;
  const near = (a, b) => Math.abs(a - b) <= PRECISION * Math.max(Math.abs(a), Math.abs(b));
  const last = (theirs.at(-1)?.score ?? 0) * factor;
  const known = new Map(theirs.map(({ id, score }) => [id, score * factor]));
  return ours.every(
    ({ id, score }, rank) =>
      near(score, theirs[rank].score * factor) && (known.has(id) ? near(score, known.get(id)) : near(score, last)),
  );
}

/** Throws unless both have found the same best hits for every question. */
function compareWithLucene(found, lucene) {
  if (lucene.skipped !== undefined) return;
  for (const [mode, { what }] of Object.entries(MODES)) {
    const [ours, theirs] = [found[mode].answers, lucene.answers.get(mode)];
    const wrong = ours.findIndex((hits, at) => !agree(hits, theirs[at]));
    if (wrong < 0) continue;
    const [one, other] = [ours[wrong], theirs[wrong]].map((hits) => JSON.stringify(hits));
    throw new StepFailed(`${what} ${wrong}: ${one}, and Lucene ${other}`);
  }
}

/** The times of each turn at a share of the questions: ours, and Lucene's where it ran. */
const timesAt = (turns, mode, share) =>
  turns.map(({ found, lucene }) => ({
    ours: percentile(found[mode].best, share / 100),
    theirs: lucene.skipped === undefined ? lucene.times.get(mode)[`p${share}_ms`] : undefined,
  }));

function describe({ passages, checked }, turns, bare) {
  const where = `${passages.toLocaleString('en-US')} passages`;
  const [{ found, lucene }] = turns;
  const isCompared = lucene.skipped === undefined;
  const own = `${checked} questions with a search that scores every match`;
  const rows = [];
  for (const [mode, { what, target }] of Object.entries(MODES)) {
    for (const share of [50, 95]) {
      const times = timesAt(turns, mode, share);
      rows.push({
        what: `${what}, ${where}, p${share}`,
        against: isCompared ? 'Lucene 10 in process' : null,
        unit: 'ms',
        sparrow: Math.min(...times.map(({ ours }) => ours)),
        peer: isCompared ? Math.min(...times.map(({ theirs }) => theirs)) : null,
        target: passages === SIZES.full.passages && isCompared ? { at_most: target } : null,
        checked: isCompared ? `scores and documents of all questions with Lucene, ${own}` : own,
        detail: { turns: times, lucene: isCompared ? turns.map((turn) => turn.lucene.times.get(mode)) : lucene },
      });
    }
    const { first, best } = found[mode];
    const [once, often] = [first, best].map((times) => percentile(times, 0.5));
    rows.push({
      what: `${what}, ${where}, each question for the first time, p50`,
      against: 'Sparrow, the same questions repeated',
      unit: 'ms',
      sparrow: once,
      peer: often,
      checked: 'the answers of the last round of each turn',
      detail: { p95: percentile(first, 0.95) },
    });
  }
  rows.push({
    what: 'a call that finds nothing, p50',
    unit: 'ms',
    sparrow: percentile(bare.best, 0.5),
    checked: 'that it finds nothing',
    detail: { p95: percentile(bare.best, 0.95) },
  });
  if (bare.answers.some((hits) => hits.length > 0)) throw new StepFailed('a word that is nowhere is found');
  return rows;
}

function notes(questions, { warmup, rounds }, turns) {
  const isCompared = turns[0].lucene.skipped === undefined;
  const lines = [
    `${questions.toLocaleString('en-US')} questions, one at a time, ten hits without totals or sources`,
    `turns: ${turns.length}, in each of which ${isCompared ? 'Sparrow and then Lucene are' : 'Sparrow is'} asked all questions ${warmup + rounds} ` +
      `times; a question's time is the shortest of its last ${rounds}, and a row shows the smallest p50 or p95 of the turns`,
    'each question for the first time: in the first turn, against the shortest times of the same turn',
    'Sparrow is called through the addon, with JSON in and out: short reads run on the thread that asks, others on another one; ' +
      'Lucene runs on the thread that asks',
  ];
  if (turns.length === 1 || !isCompared) return lines;
  const ranges = Object.entries(MODES).map(([mode, { what }]) => {
    const [median, high] = [50, 95].map((share) => {
      const ratios = timesAt(turns, mode, share).map(({ ours, theirs }) => ours / theirs);
      return `${figure(Math.min(...ratios))} to ${figure(Math.max(...ratios))}`;
    });
    return `${what} p50 ${median}, p95 ${high}`;
  });
  return [...lines, `the ratio differs from turn to turn: ${ranges.join('; ')}`];
}
