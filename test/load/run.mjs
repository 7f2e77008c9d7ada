// Starts a server, fills it, and measures it under load; what `npm run test:load` and its short form in the second tier do.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';

import { CLI } from '../../scripts/lib/paths.mjs';
import { startServer } from '../../scripts/lib/server-process.mjs';
import { Random } from '../crash/random.mjs';
import { measure, measureArrivals } from './measure.mjs';
import { aggregation, documents, randomSearch } from './requests.mjs';

const MODEL = '.sparse_encoder_model_2';

/** Clients that search beside a reindex, and those that tell how much the server carries. */
const BESIDE = 32;
const CARRYING = 8;

/** How often a task is looked at, in milliseconds. */
const LOOK_MS = 200;

/** The share of what the server carries that leaves it idle for most of the time. */
const UNLOADED = 0.1;

/** Fewest requests that arrive in a second: with less, none might come while they are counted. */
const FEWEST = 3;

/**
 * Measures each of some numbers of clients for so many milliseconds, then searches beside a reindex, and arrivals at a fixed rate.
 *
 * @param {object} options
 * @param {number[]} options.clients
 * @param {number} options.ms
 * @param {number} options.seed
 * @param {number} options.count documents
 * @param {boolean} options.patient whether clients that are refused wait for as long as they are told
 * @param {boolean} options.reindex whether there is a reindex
 * @param {number} options.times how much more arrives than the server carries; 0: nothing arrives at a fixed rate
 * @param {(text: string) => void} options.say
 */
export async function runLoad({ clients, ms, seed, count, patient, reindex, times, say }) {
  const generator = new Random(seed);
  const random = () => generator.next();
  const data = mkdtempSync(join(tmpdir(), 'sparrow-load-'));
  const started = await startServer(process.execPath, [CLI, '--deploy-at-start', 'false'], data);
  try {
    const apiKey = readFileSync(join(data, 'owner.key'), 'utf8').trim();
    const server = { pid: started.pid, url: started.url, apiKey };
    const search = { random, patient, next: () => randomSearch(random) };
    await fill(server, random, count);
    // What is compiled and cached with the first requests is no part of it.
    await measure(server, { ...search, clients: 8, ms: Math.min(ms, 2000) });
    const rows = [];
    const add = (name, row) => {
      say(
        `${name}: ${row.ok} answered, p99 ${row.p99.toFixed(1)} ms, ${row.refused} refused, ${row.failed + row.cut} failed`,
      );
      rows.push({ name, ...row });
      return row;
    };
    for (const number of clients) {
      add(`${number} client${number === 1 ? '' : 's'}`, await measure(server, { ...search, clients: number, ms }));
    }
    if (reindex) {
      const row = await besideReindex(server, () => measure(server, { ...search, clients: BESIDE, ms }));
      say(`the reindex wrote ${row.reindexed} documents meanwhile`);
      add(`${BESIDE} clients beside a reindex`, row);
    }
    if (times > 0) {
      const next = () => aggregation(random);
      const carried = await measure(server, { random, patient, next, clients: CARRYING, ms });
      say(`of aggregations the server carries ${carried.perSecond.toFixed(0)} in a second`);
      for (const share of [UNLOADED, times]) {
        const rate = Math.max(FEWEST, carried.perSecond * share);
        const name = `${rate.toFixed(0)} aggregations arriving in a second, ${share} times what it carries`;
        add(name, await measureArrivals(server, { rate, ms, next }));
      }
    }
    return rows;
  } finally {
    await started.stop();
    rmSync(data, { recursive: true, force: true });
  }
}

/** Reindexes through a model, as a task, while something is measured; how many documents that wrote goes into the row. */
async function besideReindex(server, measured) {
  const ask = (method, path, body) => send(server, method, path, JSON.stringify(body), 'application/json');
  await ask('POST', `/_ml/trained_models/${MODEL}/deployment/_start?wait_for=started`);
  const inference = { model_id: MODEL, input_output: [{ input_field: 'text', output_field: 'embedding' }] };
  await ask('PUT', '/_ingest/pipeline/load-embed', { processors: [{ inference }] });
  const mappings = { properties: { embedding: { type: 'sparse_vector' } } };
  await ask('PUT', '/load-embedded', { mappings, settings: { refresh_interval: '200ms' } });
  const body = { source: { index: 'load', size: 50 }, dest: { index: 'load-embedded', pipeline: 'load-embed' } };
  let isOver = false;
  let reindexed = 0;
  const begin = async () => (await ask('POST', '/_reindex?wait_for_completion=false', body)).task;
  const reindex = async () => {
    for (let task = await begin(); ;) {
      const { task: found, completed } = await ask('GET', `/_tasks/${task}`);
      const { created, updated } = found.status;
      if (isOver && !completed) await ask('POST', `/_tasks/${task}/_cancel?wait_for_completion=true`);
      if (isOver || completed) reindexed += created + updated;
      if (isOver) return;
      // Whatever there is to write has been written: the same again.
      if (completed) task = await begin();
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  };
  const going = reindex();
  const count = async () => (await ask('GET', '/load-embedded/_count')).count;
  // The first batch waits for the model to get going.
  while ((await count()) === 0) await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  const row = await measured();
  isOver = true;
  await going;
  await ask('POST', `/_ml/trained_models/${MODEL}/deployment/_stop?force=true`);
  await ask('DELETE', '/load-embedded');
  return { ...row, reindexed };
}

async function send({ url, apiKey }, method, path, body, type) {
  const headers = { authorization: `ApiKey ${apiKey}`, ...(body === undefined ? {} : { 'content-type': type }) };
  const answer = await fetch(url + path, { method, headers, body });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text.slice(0, 300)}`);
  return JSON.parse(text);
}

async function fill(server, random, count) {
  for (let done = 0; done < count; done += 1000) {
    const lines = documents(random, Math.min(1000, count - done));
    const { errors } = await send(server, 'POST', '/load/_bulk?refresh=true', lines, 'application/x-ndjson');
    if (errors) throw new Error('the index could not be filled');
  }
}
