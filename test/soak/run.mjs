// The soak: a server that is used in every way at once, for as long as one likes, and should be at the end as it was at the beginning.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';

import { findApiKey } from '../../scripts/lib/api-client.mjs';
import { CLI } from '../../scripts/lib/paths.mjs';
import { spawnServer } from '../../scripts/lib/server-process.mjs';
import { Random } from '../crash/random.mjs';
import { EMBEDDED, INDICES, keeper, searcher, writer } from './clients.mjs';
import { MODEL, PROPERTIES } from './requests.mjs';
import { Sampler } from './samples.mjs';
import { World } from './world.mjs';

const SEARCHERS = 3;
const WRITERS = 2;
/** How much of the time goes by before anything is compared: caches fill, and the compiler of JavaScript learns. */
const WARM_UP = 0.25;
/** Windows of a run, and the shortest that one may be. */
const WINDOWS = 60;
const SHORTEST_WINDOW_MS = 1000;

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Lets all clients work for some seconds.
 *
 * @param {{ seconds: number, seed: number, say?: (line: string) => void }} options
 * @returns `windows` after the warm-up, `failures`, `unexpected`, `differences` from the model, `ended`, and counts
 */
export async function soak({ seconds, seed, say = () => undefined }) {
  const folder = mkdtempSync(join(tmpdir(), 'sparrow-soak-'));
  const data = join(folder, 'data');
  const server = spawnServer(process.execPath, [CLI, '--repo-path', join(folder, 'repos')], data);
  const endWithHarness = () => {
    if (server.running()) process.kill(-server.pid, 'SIGKILL');
  };
  process.once('exit', endWithHarness);
  try {
    const { url } = await server.ready;
    const world = new World({ url, apiKey: findApiKey(data) });
    await prepare(world);
    const windows = await work(world, server, { data: folder, seconds, seed, say });
    const differences = server.running() ? await compare(world) : ['the server ended by itself'];
    world.close();
    const { requests, cut, failures, unexpected } = world;
    const ended = await end(server);
    return { requests, cut, windows, failures, unexpected, differences, ended };
  } finally {
    endWithHarness();
    process.off('exit', endWithHarness);
    rmSync(folder, { recursive: true, force: true });
  }
}

async function prepare(world) {
  const must = async (...request) => {
    const [method, path, body] = request;
    if ((await world.ask({ method, path, body })) === undefined) {
      throw new Error(`the soak cannot begin: ${[...world.unexpected, ...world.failures].join('; ')}`);
    }
  };
  const settings = { number_of_replicas: 0, refresh_interval: '500ms' };
  for (const index of [...INDICES, 'soak-cut']) {
    await must('PUT', `/${index}`, { settings, mappings: { properties: PROPERTIES } });
    world.documents.set(index, new Map());
  }
  // What of it was written is not known: those connections are cut.
  world.documents.delete('soak-cut');
  await must('PUT', '/_snapshot/soak', { type: 'fs', settings: { location: 'soak' } });
  await must('GET', `/_ml/trained_models/${MODEL}`);
  const inference = { model_id: MODEL, input_output: [{ input_field: 'body', output_field: 'embedding' }] };
  await must('PUT', '/_ingest/pipeline/soak-embed', { processors: [{ inference }, { remove: { field: 'v' } }] });
  await must('PUT', '/soak-embedded-0', EMBEDDED);
  await must('POST', '/_aliases', { actions: [{ add: { index: 'soak-embedded-0', alias: 'soak-embedded' } }] });
}

async function work(world, server, { data, seconds, seed, say }) {
  const begun = performance.now();
  const elapsed = () => (performance.now() - begun) / 1000;
  const clients = [
    ...Array.from({ length: SEARCHERS }, (_, at) => searcher(world, Random.of(seed, 1, at))),
    ...Array.from({ length: WRITERS }, (_, at) => writer(world, Random.of(seed, 2, at), at)),
    keeper(world, Random.of(seed, 3)),
  ];
  // One that breaks ends the run: its error is the harness's own.
  let broken;
  for (const client of clients) client.catch((error) => (broken ??= error));
  const sampler = new Sampler(world, { pid: server.pid, data });
  const windows = [];
  const every = Math.max(SHORTEST_WINDOW_MS, (1000 * seconds) / WINDOWS);
  while (elapsed() < seconds && server.running() && broken === undefined) {
    await pause(every);
    if (!server.running()) break;
    const window = await sampler.look(elapsed());
    if (window.seconds > WARM_UP * seconds) windows.push(window);
    say(
      `${window.seconds} s: ${world.requests} requests, ${(window.anonymousBytes / 2 ** 20).toFixed(0)} MiB, ` +
        `${window.descriptors} descriptors, p99 ${window.p99.toFixed(0)} ms; ${world.failures.length} failures, ` +
        `${world.unexpected.length} unexpected`,
    );
  }
  world.over = true;
  await Promise.allSettled(clients);
  if (broken !== undefined) throw broken;
  return windows;
}

/** Sentences about documents that are not as the model says. */
async function compare(world) {
  const differences = [];
  await world.ask({ method: 'POST', path: '/_refresh' });
  for (const [index, have] of world.documents) {
    const counted = await world.ask({ method: 'GET', path: `/${index}/_count` });
    if (counted?.body.count !== have.size) {
      differences.push(`${index} counts ${counted?.body.count} documents instead of ${have.size}`);
    }
    const body = { size: 10_000, query: { match_all: {} }, _source: ['n'] };
    const answer = await world.ask({ method: 'POST', path: `/${index}/_search`, body });
    const found = new Map((answer?.body.hits.hits ?? []).map((hit) => [hit._id, hit._source.n]));
    for (const [id, n] of have) {
      if (found.get(id) !== n) differences.push(`${index}/${id} has ${found.get(id)} instead of ${n}`);
    }
    for (const id of found.keys()) if (!have.has(id)) differences.push(`${index}/${id} should not be there`);
  }
  return differences;
}

/** Ends the server; sentences about how that went wrong. */
async function end(server) {
  if (!server.running()) return [`it ended by itself: ${server.output().slice(-1000)}`];
  process.kill(-server.pid, 'SIGTERM');
  const late = pause(30_000).then(() => 'late');
  const code = await Promise.race([server.exited, late]);
  return code === 0 ? [] : [`it ended with ${code}: ${server.output().slice(-1000)}`];
}
