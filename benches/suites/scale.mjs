// How the cost of a sparse search over HTTP grows with the documents of one index, up to ten million: while they are loaded, where the
// loading pauses, and at the end, in the segments that there are then and in one. A loading that was interrupted goes on where it was; the
// stage in which that happened has no rate, and the memory is then said to be that of a process that has not loaded everything.
import { fork } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { usage } from '../../scripts/lib/server-process.mjs';
import { DerivedDocuments } from '../lib/derived.mjs';
import { filesIn } from '../lib/files.mjs';
import { MemoryGroup, forgetPages, readAheadOf } from '../lib/memory-group.mjs';
import { machine, revision } from '../lib/machine.mjs';
import { keptFolder } from '../lib/programs.mjs';
import { percentile } from '../lib/statistics.mjs';
import { readVectors } from '../lib/vectors.mjs';
import { readVocabulary } from '../lib/vocabulary.mjs';
import { ask } from '../serving/ask.mjs';
import { FIELD, startSparrow } from '../serving/servers.mjs';
import { Connection } from '../serving/wire.mjs';

export const title = 'Growth of cost: sparse search over HTTP in one large index';
export const prepares = true;

const SIZES = {
  smoke: { passages: 200, stages: [500, 2000], bulk: 100, questions: 40, checked: 5, rounds: 1, probeEveryMs: 5 },
  quick: {
    passages: 5000,
    stages: [10_000, 100_000],
    bulk: 1000,
    questions: 400,
    checked: 20,
    rounds: 2,
    probeEveryMs: 20,
  },
  full: {
    ...{ passages: 50_000, stages: [100_000, 1_000_000, 10_000_000], bulk: 2000 },
    ...{ questions: 800, checked: 20, rounds: 3, probeEveryMs: 100 },
  },
};
const INDEX = 'scale';
const PROBER = fileURLToPath(new URL('../serving/prober.mjs', import.meta.url));
const AT_ONCE = 2;
const CLIENTS = 32;
const BOUNDED_ROUNDS = 3;
/** Tokens of a question: its heaviest. */
const TOKENS = 24;
const HITS = 10;
/** A stored weight has 11 significant bits: a score differs by half of the last one at most. */
const PRECISION = 2 ** -11;
/** What was asked for at the last stage, in milliseconds and bytes. */
const GOAL = { p50: 2, p95: 6, loading: 4, resident: 4e9 };

/** @param {import('../lib/context.mjs').Context} context */
export async function run(context) {
  const size = SIZES[context.size];
  const passages = await context.vectors('texts', size.passages);
  const documents = new DerivedDocuments(readVectors(passages.prefix), readVocabulary());
  const questions = await questionsOf(context, size.questions);
  const last = size.stages.at(-1);
  const data =
    context.size === 'smoke'
      ? mkdtempSync(join(context.work, 'scale-'))
      : keptFolder(context.work, `scale-${last}`, {
          crates: [
            'engine',
            'documents',
            'write-path',
            'write-ahead-log',
            'tantivy-index',
            'segments',
            'mapping',
            'postings',
            'runtime',
          ],
          files: ['packages/model-splade-tiny', 'benches/lib/derived.mjs'],
          of: [context.identity('texts'), size.passages],
        });
  try {
    const found = await inUnboundedMemory(context, size, data, documents, questions);
    if (found === undefined) return { rows: [] };
    const bounded = await inBoundedMemory(context, size, data, questions, found.truth);
    return describe(context, size, { ...found, bounded, bytes: bytesOf(data) });
  } finally {
    if (context.size === 'smoke') rmSync(data, { recursive: true, force: true });
  }
}

/** What a process without bounds takes, stage by stage and at the end in one segment; undefined where that is only prepared. */
async function inUnboundedMemory(context, size, data, documents, questions) {
  const last = size.stages.at(-1);
  const server = await startSparrow(data);
  try {
    const stages = new Kept(context, `stages-${last}`, data);
    const isNew = (await countOf(server)) === undefined;
    for (const [at, count] of size.stages.entries()) {
      const loading = await load(context, size, server, documents, [size.stages[at - 1] ?? 0, count], questions);
      // A stage that an earlier run has passed cannot be measured any more, and one that it has measured need not be.
      const { count: there } = await server.request('GET', `/${INDEX}/_count`);
      if (context.prepare || there > count || (loading === undefined && stages.has(count))) continue;
      await settle(server);
      const measured = await measure(context, size, server, questions);
      // A process that only opened the index has mapped what it was asked for, and not what it wrote and merged.
      const { anonymous, resident } = usage(server.pid);
      const memory = { anonymous, resident, isOfLoader: isNew };
      stages.set(count, { count, loading, ...measured, memory, by: thisRun() });
    }
    if (context.prepare) return undefined;
    const truth = exactScores(context, documents, data, last, questions.slice(0, size.checked));
    // A connection that has rested that long may be closed.
    await server.request('GET', '/').catch(() => undefined);
    const checked = await check(server, last, questions, truth);
    await server.request('POST', `/${INDEX}/_forcemerge?max_num_segments=1`);
    await settle(server);
    const merged = await measure(context, size, server, questions);
    await check(server, last, questions, truth);
    return { stages: stages.all(), merged, checked, truth };
  } finally {
    await server.stop();
  }
}

/** The heaviest tokens of questions that have as many. */
async function questionsOf(context, count) {
  const { prefix } = await context.vectors('questions', count * 4);
  const vectors = readVectors(prefix);
  const tokens = readVocabulary();
  const questions = [];
  for (let row = 0; row < vectors.rows && questions.length < count; row += 1) {
    const pairs = [];
    for (let at = vectors.ptr[row]; at < vectors.ptr[row + 1]; at += 1) pairs.push([vectors.idx[at], vectors.val[at]]);
    if (pairs.length < TOKENS) continue;
    const heaviest = pairs.sort(([, a], [, b]) => b - a).slice(0, TOKENS);
    questions.push({
      columns: heaviest,
      tokens: Object.fromEntries(heaviest.map(([column, weight]) => [tokens[column], weight])),
    });
  }
  if (questions.length < count) throw new Error(`only ${questions.length} questions have ${TOKENS} tokens`);
  return questions;
}

const query = ({ tokens }) => ({ query: { sparse_vector: { field: FIELD, query_vector: tokens } }, _source: false });

/** Documents in the index, or undefined when there is none. */
async function countOf(server) {
  const { count } = await server.request('GET', `/${INDEX}/_count`).catch((error) => {
    if (error.status !== 404) throw error;
    return { count: undefined };
  });
  return count;
}

/**
 * Loads the documents of a stage in bulks, while a client asks now and then.
 *
 * @param {[from: number, to: number]} stage documents before it and after it
 * @returns what it took, or undefined if all were there
 */
async function load(context, size, server, documents, [from, count], questions) {
  let there = await countOf(server);
  if (there === undefined) {
    await server.request('PUT', `/${INDEX}`, {
      mappings: { dynamic: false, _source: { excludes: [FIELD] }, properties: { [FIELD]: { type: 'sparse_vector' } } },
    });
    there = 0;
  }
  if (there >= count) return undefined;
  // What was under way when a loading was interrupted may be missing, but nothing before it.
  const isResumed = there > from;
  let next = isResumed ? Math.max(from, Math.floor(there / size.bulk - AT_ONCE) * size.bulk) : from;
  const begunAt = next;
  const begun = performance.now();
  const { cpuMs: before } = usage(server.pid);
  const headers = { ...server.headers, 'Content-Type': 'application/x-ndjson' };
  const writer = async () => {
    const connection = await Connection.open(server.url);
    while (next < count) {
      const first = next;
      next = Math.min(count, next + size.bulk);
      const body = bulkOf(documents, first, next);
      const message = connection.encode('POST', `/${INDEX}/_bulk?filter_path=errors`, headers, body);
      const { status, body: answer } = await connection.send(message);
      if (status !== 200 || JSON.parse(answer.toString()).errors) throw new Error(answer.toString());
      if (first % 100_000 < size.bulk) context.log(`${first} documents`);
    }
    connection.close();
  };
  const endProbe = await probe(context, server, questions, size.probeEveryMs);
  await Promise.all(Array.from({ length: AT_ONCE }, writer));
  const latencies = await endProbe();
  await server.request('POST', `/${INDEX}/_refresh`);
  const seconds = (performance.now() - begun) / 1000;
  const { cpuMs, anonymous, resident } = usage(server.pid);
  const loaded = count - begunAt;
  context.log(`${count} documents: ${Math.round(loaded / seconds)} a second`);
  return {
    // Of an interrupted stage this is only the rest.
    ...(isResumed ? { resumedAt: begunAt } : {}),
    ...{ documents: loaded, seconds, perSecond: loaded / seconds, cpuSeconds: (cpuMs - before) / 1000 },
    ...{ memory: { anonymous, resident }, searches: latencies.length, ms: spread(latencies) },
    // What the last tenth of the stage looked like, where the index was largest.
    atTheEnd: spread(latencies.slice(-Math.ceil(latencies.length / 10))),
  };
}

/** Bytes of a document at most: the longest that was seen has 7,412. */
const LONGEST = 16_384;

function bulkOf(documents, from, to) {
  const bytes = Buffer.allocUnsafe((to - from) * LONGEST);
  let end = 0;
  for (let number = from; number < to; number += 1) {
    end += bytes.write(`{"index":{"_id":"${number}"}}\n{"${FIELD}":`, end);
    end = documents.write(number, bytes, end);
    end += bytes.write('}\n', end);
  }
  return bytes.subarray(0, end);
}

const spread = (values) => ({ p50: percentile(values, 0.5), p95: percentile(values, 0.95) });

/** Asks every so often from a process of its own; what comes back ends that and gives the milliseconds that each answer took. */
async function probe({ work }, server, questions, everyMs) {
  const folder = mkdtempSync(join(work, 'probe-'));
  const file = join(folder, 'plan.json');
  const bodies = questions.map((question) => JSON.stringify(query(question)));
  const { url, headers } = server;
  writeFileSync(file, JSON.stringify({ url, path: `/${INDEX}/_search`, headers, bodies, everyMs }));
  const child = fork(PROBER, [file]);
  const message = () =>
    new Promise((resolve, reject) => {
      child.once('message', resolve);
      child.once('exit', (code) => reject(new Error(`the prober ended with ${code}`)));
    });
  await message();
  return async () => {
    const found = message();
    child.send('end');
    const latencies = await found;
    rmSync(folder, { recursive: true });
    return latencies;
  };
}

/** Waits until no segments are merged any more, which is when the processor rests. */
async function settle({ pid, request }) {
  await request('POST', `/${INDEX}/_flush`);
  for (let before = usage(pid).cpuMs, quiet = 0; quiet < 3;) {
    await new Promise((resolve) => setTimeout(resolve, 1000));
    const { cpuMs } = usage(pid);
    quiet = cpuMs - before < 100 ? quiet + 1 : 0;
    before = cpuMs;
  }
}

/** One client, and as many as are there in a busy hour; the best of the rounds. */
async function measure(context, size, server, questions) {
  const asks = { ...server, path: `/${INDEX}/_search`, query };
  const count = questions.length;
  const best = {};
  for (let round = 0; round < size.rounds; round += 1) {
    for (const [name, clients] of [
      ['one', 1],
      ['many', CLIENTS],
    ]) {
      const result = await ask(context, asks, questions, { clients, count, warm: Math.ceil(count / 4) });
      context.log(
        `${clients} clients: p50 ${result.ms.p50} ms, p95 ${result.ms.p95} ms, ${Math.round(result.perSecond)} a second`,
      );
      if (!(best[name]?.ms.p50 <= result.ms.p50)) best[name] = result;
    }
  }
  const { indices } = await server.request('GET', `/${INDEX}/_segments`);
  const [[shard]] = Object.values(indices[INDEX].shards);
  return { ...best, segments: Object.keys(shard.segments).length };
}

/**
 * The same questions, by one client, to a process that may not use more memory than the goal, files included. Many clients at once would be
 * refused: where files have to be read again, a search takes long.
 *
 * @returns {Promise<object | undefined>} the rounds, the first of which finds nothing of the files in memory; undefined where a process cannot be bounded
 */
async function inBoundedMemory(context, size, data, questions, truth) {
  const group = MemoryGroup.open(GOAL.resident);
  if (group === undefined) return undefined;
  try {
    forgetPages(data);
    const server = await startSparrow(data, { group });
    try {
      const asks = { ...server, path: `/${INDEX}/_search`, query };
      const rounds = [];
      for (let round = 0; round < BOUNDED_ROUNDS; round += 1) {
        const result = await ask(context, asks, questions, { clients: 1, count: questions.length, warm: 0 });
        context.log(`bounded memory: p50 ${result.ms.p50} ms, p95 ${result.ms.p95} ms`);
        rounds.push(result);
      }
      await check(server, size.stages.at(-1), questions, truth);
      return { rounds, peak: group.peak(), memory: usage(server.pid), readAheadKb: readAheadOf(data) };
    } finally {
      await server.stop();
    }
  } finally {
    group.close();
  }
}

/**
 * The scores of the best hits of some questions, from all documents drawn once more; kept, as it takes minutes.
 *
 * @param {string} data the folder of the documents, whose name says what they are made of
 */
function exactScores(context, documents, data, count, questions) {
  const kept = new Kept(context, `exact-${count}`, JSON.stringify([data, questions.map(({ columns }) => columns)]));
  if (!kept.has(count)) kept.set(count, scoresOf(context, documents, count, questions));
  return kept.get(count);
}

function scoresOf({ log }, documents, count, questions) {
  log(`scores of all ${count} documents for ${questions.length} questions`);
  const asking = new Map();
  questions.forEach(({ columns }, question) => {
    for (const [column, weight] of columns) asking.set(column, [...(asking.get(column) ?? []), [question, weight]]);
  });
  const best = questions.map(() => []);
  const scores = new Float64Array(questions.length);
  for (let number = 0; number < count; number += 1) {
    scores.fill(0);
    documents.each(number, (column, weight) => {
      const asked = asking.get(column);
      if (asked !== undefined) for (const [question, times] of asked) scores[question] += weight * times;
    });
    scores.forEach((score, question) => {
      const list = best[question];
      if (score === 0 || (list.length === HITS && score <= list.at(-1))) return;
      list.splice(list.findIndex((other) => other < score) >>> 0, 0, score);
      list.length = Math.min(list.length, HITS);
    });
  }
  return best;
}

/** What a figure that a later run shows has to name. */
const thisRun = () => ({ commit: revision().commit, date: new Date().toISOString().slice(0, 10), cpu: machine().cpu });

/** Which run measured the stages that this one only shows. */
function notesOfEarlier(stages, name) {
  const { commit, cpu } = thisRun();
  const earlier = stages.filter(({ by }) => by.commit !== commit || by.cpu !== cpu);
  return earlier.map(
    ({ count, by }) =>
      `${name(count)} documents, loaded and in segments: ${by.date}, commit ${by.commit.slice(0, 10)}, ${by.cpu}`,
  );
}

/** What a run found and the next one needs, by number, in a file of the work folder; forgotten when it was found about something else. */
class Kept {
  #file;
  #of;
  #found;

  /** @param {string} of what it was found about */
  constructor({ work, size }, name, of) {
    this.#file = size === 'smoke' ? undefined : join(work, `growth-${name}.json`);
    this.#of = of;
    const kept = this.#file !== undefined && existsSync(this.#file) ? JSON.parse(readFileSync(this.#file, 'utf8')) : {};
    this.#found = new Map(kept.of === of ? kept.found : []);
  }

  has = (number) => this.#found.has(number);
  get = (number) => this.#found.get(number);
  all = () => [...this.#found.values()];

  set(number, value) {
    this.#found.set(number, value);
    if (this.#file !== undefined) writeFileSync(this.#file, JSON.stringify({ of: this.#of, found: [...this.#found] }));
  }
}

/** All documents are there, and the best hits have the scores of the best documents. */
async function check({ request }, count, questions, truth) {
  const { count: there } = await request('GET', `/${INDEX}/_count`);
  if (there !== count) throw new Error(`there are ${there} documents, not ${count}`);
  for (const [at, expected] of truth.entries()) {
    const { hits } = await request('POST', `/${INDEX}/_search`, query(questions[at]));
    const scores = hits.hits.map(({ _score: score }) => score);
    const differs = expected.findIndex((score, rank) => !(Math.abs(scores[rank] - score) <= score * PRECISION));
    if (differs >= 0 || scores.length !== expected.length) {
      throw new Error(`question ${at}: hit ${differs + 1} has ${scores[differs]}, not ${expected[differs]}`);
    }
  }
  return `${truth.length} questions: the scores of the ten hits are the ten best of all documents, within 11 bits of a weight`;
}

const bytesOf = (folder) => filesIn(folder).reduce((sum, file) => sum + statSync(file).size, 0);

function describe({ size: form }, size, { stages, merged, bounded, checked, bytes }) {
  const name = (count) => count.toLocaleString('en-US');
  const last = stages.at(-1);
  const goal = (at_most, at) => (form === 'full' && at === last ? { target: { at_most } } : {});
  const rows = stages.flatMap((stage) => {
    const in_ = `${name(stage.count)} documents`;
    const answers = { checked: stage === last ? checked : 'the larger index is', detail: stage };
    return [
      ...(stage.loading === undefined
        ? []
        : stage.loading.resumedAt !== undefined
          ? [
              {
                what: `${in_}: loaded`,
                skipped: `the loading was interrupted, and went on at ${name(stage.loading.resumedAt)} documents`,
              },
            ]
          : [
              { what: `${in_}: loaded`, unit: 'documents/s', sparrow: stage.loading.perSecond, ...answers },
              {
                ...{
                  what: `${in_}: one client beside the loading, p50`,
                  unit: 'ms',
                  sparrow: stage.loading.atTheEnd.p50,
                },
                ...{ ...answers, ...goal(GOAL.loading, stage) },
              },
            ]),
      ...['p50', 'p95'].map((at) => ({
        ...{ what: `${in_} in ${stage.segments} segments: one client, ${at}`, unit: 'ms', sparrow: stage.one.ms[at] },
        ...{ ...answers, ...goal(GOAL[at], stage) },
      })),
      { what: `${in_}: ${CLIENTS} clients`, unit: '1/s', sparrow: stage.many.perSecond, ...answers },
    ];
  });
  const in_ = name(last.count);
  const { memory } = last;
  const kind = memory.isOfLoader ? 'memory' : 'memory of a process that did not load them';
  const one = { checked, detail: merged };
  rows.push(
    ...['p50', 'p95'].map((at) => ({
      ...{ what: `${in_} documents in one segment: one client, ${at}`, unit: 'ms', sparrow: merged.one.ms[at], ...one },
      ...goal(GOAL[at], last),
    })),
    {
      what: `${in_} documents in one segment: ${CLIENTS} clients`,
      unit: '1/s',
      sparrow: merged.many.perSecond,
      ...one,
    },
    {
      what: `${in_} documents: ${kind}, mapped files counted`,
      unit: 'MB',
      sparrow: memory.resident / 1e6,
      checked,
      detail: memory,
      ...(form === 'full' && memory.isOfLoader ? { target: { at_most: GOAL.resident / 1e6 } } : {}),
    },
    { what: `${in_} documents: ${kind}, anonymous`, unit: 'MB', sparrow: memory.anonymous / 1e6, checked },
    ...inBoundedMemoryRows(
      `${in_} documents in one segment and ${GOAL.resident / 1e6} MB of memory, files counted`,
      bounded,
      checked,
    ),
    { what: `${in_} documents: on disk, in one segment`, unit: 'MB', sparrow: bytes / 1e6, checked },
  );
  const notes = [
    ...notesOfEarlier(stages, name),
    ...(bounded === undefined
      ? []
      : [
          'with bounded memory: a control group holds the server alone, and nothing of the files is in memory when it starts; ' +
            `the disk reads ${bounded.readAheadKb ?? 'unknown'} KB ahead`,
        ]),
    `documents derived from ${name(size.passages)} passages, without sources; bulks of ${name(size.bulk)}, ${AT_ONCE} at a time, usual settings; ` +
      `questions of ${TOKENS} tokens, ${HITS} hits without sources; client and server share the machine's cores; the best of ${size.rounds} rounds counts`,
    'beside the loading: the median of the last tenth of a stage’s questions, where the index is largest',
    `${size.checked} of the ${size.questions} questions that are timed are checked`,
  ];
  return { rows, notes };
}

function inBoundedMemoryRows(in_, bounded, checked) {
  if (bounded === undefined) return [{ what: in_, skipped: 'this system lets no process be bounded' }];
  const [first] = bounded.rounds;
  const last = bounded.rounds.at(-1);
  return [
    { what: `${in_}: asked for the first time, p50`, unit: 'ms', sparrow: first.ms.p50, checked, detail: bounded },
    { what: `${in_}: asked for the last time, p50`, unit: 'ms', sparrow: last.ms.p50, checked },
    { what: `${in_}: asked for the last time, p95`, unit: 'ms', sparrow: last.ms.p95, checked },
  ];
}
