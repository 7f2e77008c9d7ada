// npm run demo -- [--limit N] [--url URL] [--data DIR] [--json FILE]
//
// The documented workflow against a running server, on real text: WordNet's synsets become a reverse dictionary, which finds
// the word for a meaning. Every step is a request that anybody could make.
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

import { ApiError, bulkLines, createClient, findApiKey, waitForTask } from './lib/api-client.mjs';
import { main } from './lib/process.mjs';
import { setUp } from './lib/setup.mjs';
import { Bar, accent, bold, columns, dim, megabytes, number, seconds, step } from './lib/terminal.mjs';
import { synsets } from './lib/wordnet.mjs';

const MODEL = '.sparse_encoder_model_2';
const SOURCE = 'wordnet';
const SEMANTIC = 'reverse-dictionary';
const PIPELINE = 'reverse-dictionary';
const BULK = 1000;
const REPEATS = 20;

const QUESTIONS = [
  'someone who collects stamps',
  'fear of open spaces',
  'to walk without hurry',
  'a doctor who treats children',
  'feeling of having been somewhere before',
  'unable to sleep at night',
];

/** The server's memory, asked for while it works. */
class Memory {
  peak = { anonymous: 0, resident: 0 };
  #request;

  constructor(request) {
    this.#request = request;
  }

  async sample() {
    const { nodes } = await this.#request('GET', '/_nodes/stats');
    const { mem } = Object.values(nodes)[0].process;
    this.peak.anonymous = Math.max(this.peak.anonymous, mem.anonymous_in_bytes ?? 0);
    this.peak.resident = Math.max(this.peak.resident, mem.resident_in_bytes);
    return mem;
  }

  toString() {
    const { anonymous, resident } = this.peak;
    return `${megabytes(anonymous)} anonymous, ${megabytes(resident)} resident with mapped files`;
  }
}

await main(async (args) => {
  const { values } = parseArgs({
    args,
    options: {
      url: { type: 'string', default: process.env.SPARROW_URL ?? 'http://127.0.0.1:9200' },
      data: { type: 'string', default: process.env.SPARROW_DATA ?? 'data' },
      limit: { type: 'string' },
      json: { type: 'string' },
    },
  });
  await setUp({ only: ['packages'] });
  const request = createClient({ url: values.url, apiKey: findApiKey(values.data) });
  const begun = performance.now();
  const memory = new Memory(request);
  const info = await request('GET', '/');
  console.log(`${bold('Sparrow')} at ${values.url}, interface ${info.version.number}`);

  const documents = await load(request, memory, Number(values.limit ?? Infinity));
  await deploy(request);
  await prepare(request);
  const encoding = await reindex(request, memory, documents.length);
  const latency = await ask(request);

  await memory.sample();
  const total = performance.now() - begun;
  step('Summary');
  console.log(`  ${number(documents.length)} meanings in ${seconds(total)}, of which encoding ${seconds(encoding)}`);
  console.log(
    `  semantic questions: p50 ${latency.p50.toFixed(1)} ms, p95 ${latency.p95.toFixed(1)} ms, as seen from here`,
  );
  console.log(`  server memory at its peak: ${memory}`);
  if (values.json !== undefined) {
    const report = { documents: documents.length, totalMs: total, encodingMs: encoding, latency, memory: memory.peak };
    writeFileSync(values.json, `${JSON.stringify(report, null, 2)}\n`);
  }
});

async function load(request, memory, limit) {
  step(`Load WordNet into the index [${SOURCE}]`);
  await remove(request, SOURCE);
  await request('PUT', `/${SOURCE}`, {
    mappings: {
      properties: {
        words: { type: 'text' },
        part: { type: 'keyword' },
        definition: { type: 'text', analyzer: 'english' },
      },
    },
  });
  const documents = [];
  for (const synset of synsets()) {
    if (documents.length >= limit) break;
    documents.push(synset);
  }
  const bar = new Bar(documents.length);
  for (let at = 0; at < documents.length; at += BULK) {
    const answer = await request('POST', `/${SOURCE}/_bulk`, bulkLines(documents.slice(at, at + BULK)));
    if (answer.errors) {
      throw new Error(JSON.stringify(answer.items.map((item) => item.index.error).find(Boolean)));
    }
    bar.update(Math.min(at + BULK, documents.length));
    if (at % (BULK * 10) === 0) await memory.sample();
  }
  bar.end();
  await request('POST', `/${SOURCE}/_refresh`);
  return documents;
}

async function deploy(request) {
  step(`Deploy the model ${MODEL}`);
  const { trained_model_stats: stats } = await request('GET', `/_ml/trained_models/${MODEL}/_stats`);
  if (stats[0]?.deployment_stats?.state === 'started') {
    console.log('  it is deployed already: the server does that by default');
    return;
  }
  await request('POST', `/_ml/trained_models/${MODEL}/deployment/_start?wait_for=started`);
  console.log('  deployed');
}

async function prepare(request) {
  step(`Create the index [${SEMANTIC}] with a sparse_vector field, and the pipeline that fills it`);
  await remove(request, SEMANTIC);
  await request('PUT', `/${SEMANTIC}`, {
    mappings: {
      properties: {
        definition_embedding: { type: 'sparse_vector' },
        words: { type: 'text' },
        part: { type: 'keyword' },
        definition: { type: 'text', analyzer: 'english' },
      },
    },
  });
  await request('PUT', `/_ingest/pipeline/${PIPELINE}`, {
    description: 'token-weight pairs of the definition',
    processors: [
      {
        inference: {
          model_id: MODEL,
          input_output: [{ input_field: 'definition', output_field: 'definition_embedding' }],
        },
      },
    ],
  });
  console.log('  done');
}

async function reindex(request, memory, total) {
  step(`Reindex [${SOURCE}] through the pipeline into [${SEMANTIC}], as a task`);
  const { task } = await request('POST', '/_reindex?wait_for_completion=false&refresh=true', {
    source: { index: SOURCE, size: 500 },
    dest: { index: SEMANTIC, pipeline: PIPELINE },
  });
  console.log(dim(`  GET /_tasks/${task}?detailed=true`));
  const bar = new Bar(total);
  let watching = Promise.resolve();
  const response = await waitForTask(request, task, (status) => {
    watching = watching.then(async () => {
      const { anonymous_in_bytes: anonymous, resident_in_bytes: resident } = await memory.sample();
      bar.update((status?.created ?? 0) + (status?.updated ?? 0), dim(megabytes(anonymous ?? resident)));
    });
  });
  await watching;
  bar.update(response.created + response.updated);
  const elapsed = bar.end();
  if (response.failures.length > 0) throw new Error(JSON.stringify(response.failures[0]));
  await request('POST', `/${SEMANTIC}/_refresh`);
  return elapsed;
}

async function ask(request) {
  step('Ask');
  const times = [];
  for (const question of QUESTIONS) {
    const lexical = await search(request, { match: { definition: question } });
    const query = { text_expansion: { definition_embedding: { model_id: MODEL, model_text: question } } };
    const semantic = await search(request, query);
    console.log(`\n  ${accent(`“${question}”`)}`);
    columns(['by words', ...lexical.map(show)], ['by meaning', ...semantic.map(show)]);
    for (let repeat = 0; repeat < REPEATS; repeat += 1) {
      // Another ending each time, so that the encoder works and no cache answers.
      const asked = performance.now();
      await search(request, {
        text_expansion: { definition_embedding: { model_id: MODEL, model_text: `${question} ${'.'.repeat(repeat)}` } },
      });
      times.push(performance.now() - asked);
    }
  }
  times.sort((a, b) => a - b);
  return { p50: times[Math.floor(times.length * 0.5)], p95: times[Math.floor(times.length * 0.95)] };
}

async function search(request, query) {
  const answer = await request('POST', `/${SEMANTIC}/_search`, { query, size: 5, _source: ['words', 'definition'] });
  return answer.hits.hits;
}

function show({ _score: score, _source: { words, definition } }) {
  return `${score.toFixed(1).padStart(5)}  ${words.slice(0, 2).join(', ')}: ${definition}`;
}

async function remove(request, index) {
  try {
    await request('DELETE', `/${index}`);
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 404)) throw error;
  }
}
