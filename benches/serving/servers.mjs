// The two servers of the serving benchmarks, loaded alike: Sparrow, and OpenSearch from a folder of peers.
import { execFile } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { createClient, findApiKey } from '../../scripts/lib/api-client.mjs';
import { CLI, ROOT } from '../../scripts/lib/paths.mjs';
import { startServer } from '../../scripts/lib/server-process.mjs';
import { keptFolder } from '../lib/programs.mjs';
import { vectorsOf } from './corpus.mjs';

export const INDEX = 'bench';
export const FIELD = 'v';
export const MODEL = '.sparse_encoder_model_2';
const BULK = 500;
const EVENT_LOOP = fileURLToPath(new URL('event-loop.mjs', import.meta.url));
const run = promisify(execFile);

/** What both are told about the documents; the vector is indexed, and is not part of what a hit shows. */
const mappings = (vector) => ({
  dynamic: false,
  _source: { excludes: [FIELD] },
  properties: { title: { type: 'text' }, text: { type: 'text' }, [FIELD]: vector },
});

/** Sparrow's data directory of so many documents, which suites share and the next run finds again. */
export function sparrowFolder(context, documents) {
  const writers = ['engine', 'documents', 'write-path', 'write-ahead-log', 'tantivy-index', 'segments'];
  return keptFolder(context.work, `sparrow-${documents}`, {
    crates: [...writers, 'analysis', 'encoder', 'mapping', 'postings', 'runtime', 'vectors'],
    files: ['packages/model-splade-tiny'],
    of: context.identity('texts'),
  });
}

/** Starts Sparrow's process; `node` are options for Node itself, `tree` is where it was built, `group` bounds its memory. */
export function startProcess(data, node = [], { tree = ROOT, group } = {}) {
  const args = [...node, join(tree, relative(ROOT, CLI))];
  return startServer(...(group?.around(process.execPath, args) ?? [process.execPath, args]), data);
}

/** A Sparrow of its own on a data directory; `tree` is a built tree of another commit, `group` bounds its memory. */
export async function startSparrow(data, { tree, group } = {}) {
  const server = await startProcess(data, ['--import', EVENT_LOOP], { tree, group });
  const apiKey = findApiKey(data);
  return {
    ...server,
    name: 'Sparrow',
    headers: { Authorization: `ApiKey ${apiKey}`, 'Content-Type': 'application/json' },
    path: `/${INDEX}/_search`,
    request: createClient({ url: server.url, apiKey }),
    create: { mappings: mappings({ type: 'sparse_vector' }), settings: { refresh_interval: -1 } },
    query: ({ text }) => ({ query: { sparse_vector: { field: FIELD, inference_id: MODEL, query: text } } }),
    /** How late the event loop came since this was last asked. */
    async eventLoopDelay() {
      const told = () =>
        server
          .output()
          .split('\n')
          .filter((line) => line.includes('"event loop"'));
      const before = told().length;
      process.kill(server.pid, 'SIGUSR2');
      for (let waited = 0; waited < 200; waited += 1) {
        await new Promise((resolve) => setTimeout(resolve, 10));
        if (told().length > before) return JSON.parse(told().at(-1)).delayMs;
      }
      return null;
    },
  };
}

/** OpenSearch 2 with a heap of 2 GB. */
export async function startOpenSearch(peers, data, port = 9270) {
  const script = join(peers, 'opensearch', 'opensearch.sh');
  // A session of its own, as Sparrow has one: a scheduler that shares time between sessions treats them alike.
  const { stdout } = await run('setsid', [
    ...['--wait', script, 'start', '--version', '2', '--heap', '2g', '--port', String(port), '--data', data],
  ]);
  const pid = Number(/pid (\d+)/.exec(stdout)[1]);
  const url = `http://127.0.0.1:${port}`;
  const plain = await sameNiceness(pid);
  return {
    name: 'OpenSearch 2.19',
    pid,
    url,
    niceness: plain,
    headers: { 'Content-Type': 'application/json' },
    path: `/${INDEX}/_search?request_cache=false`,
    request: createClient({ url, apiKey: '' }),
    create: {
      mappings: mappings({ type: 'rank_features' }),
      settings: {
        ...{ number_of_shards: 1, number_of_replicas: 0, refresh_interval: -1 },
        'index.translog.durability': 'async',
      },
    },
    query: ({ tokens }) => ({ query: { neural_sparse: { [FIELD]: { query_tokens: features(tokens) } } } }),
    stop: () => run(script, ['stop', '--port', String(port)]),
  };
}

/** Loads documents unless they are there already. */
export async function load(server, texts, vectors, log) {
  if ((await countOf(server)) === texts.length) return;
  await server.request('DELETE', `/${INDEX}`).catch(() => undefined);
  await server.request('PUT', `/${INDEX}`, server.create);
  const vector = server.name === 'Sparrow' ? (tokens) => tokens : features;
  for (let from = 0; from < texts.length; from += BULK) {
    let lines = '';
    for (let at = from; at < Math.min(from + BULK, texts.length); at += 1) {
      const { id, title, text } = texts[at];
      lines += `{"index":{"_id":${JSON.stringify(id)}}}\n`;
      lines += `${JSON.stringify({ title, text, [FIELD]: vector(vectors.row(at)) })}\n`;
    }
    const answer = await server.request('POST', `/${INDEX}/_bulk?filter_path=errors,items.*.error`, lines);
    if (answer.errors) throw new Error(`${server.name}: ${JSON.stringify(answer).slice(0, 500)}`);
    if (from % 20_000 === 0) log(`${server.name}: ${from} documents`);
  }
  await server.request('POST', `/${INDEX}/_refresh`);
  if (server.name !== 'Sparrow') await server.request('POST', `/${INDEX}/_forcemerge?max_num_segments=1`);
  await server.request('POST', `/${INDEX}/_flush`);
}

/**
 * Loads Sparrow through its pipeline, as a user does; with vectors that it made before where a peer needs the same ones.
 */
export async function fill(context, sparrow, texts) {
  if (context.peers !== undefined && context.size !== 'smoke') {
    await load(sparrow, texts, await vectorsOf(context, texts), context.log);
    return;
  }
  if ((await countOf(sparrow)) === texts.length) return;
  await sparrow.request('PUT', `/${INDEX}`, sparrow.create);
  const processors = [{ inference: { model_id: MODEL, input_output: [{ input_field: 'text', output_field: FIELD }] } }];
  await sparrow.request('PUT', `/_ingest/pipeline/${INDEX}`, { processors });
  for (let from = 0; from < texts.length; from += 1000) {
    const lines = texts
      .slice(from, from + 1000)
      .map(
        ({ id, title: name, text }) =>
          `{"index":{"_id":${JSON.stringify(id)}}}\n${JSON.stringify({ title: name, text })}\n`,
      );
    await sparrow.request('POST', '/texts/_bulk', lines.join(''));
  }
  const { failures } = await sparrow.request('POST', '/_reindex', {
    source: { index: 'texts' },
    dest: { index: INDEX, pipeline: INDEX },
  });
  if (failures.length > 0) throw new Error(JSON.stringify(failures[0]));
  await sparrow.request('DELETE', '/texts');
  await sparrow.request('POST', `/${INDEX}/_flush`);
}

/** Documents in the index, once it is open; none if there is no such index. */
async function countOf(server) {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return (await server.request('GET', `/${INDEX}/_count`)).count;
    } catch (error) {
      if (error.status === 404) return 0;
      // OpenSearch answers before its shards are there.
      if (attempt > 100) throw error;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }
}

/** CPU nanoseconds of a process by thread name, with the numbers at the end of names taken off. */
export function threadCpu(pid) {
  const byName = new Map();
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    try {
      const name = readFileSync(`/proc/${pid}/task/${task}/comm`, 'utf8')
        .trim()
        .replace(/[-\d]+$/, '');
      const [running] = readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ');
      byName.set(name, (byName.get(name) ?? 0) + Number(running));
    } catch {
      // A thread that ended meanwhile.
    }
  }
  return byName;
}

/** A feature's name must not hold a dot. */
export function features(tokens) {
  return Object.fromEntries(
    Object.entries(tokens).map(([token, weight]) => [token.replaceAll('.', 'full stop'), weight]),
  );
}

/** The peer's script starts it with lower priority: takes that back. Says the niceness it has in the end. */
async function sameNiceness(pid) {
  const tasks = readdirSync(`/proc/${pid}/task`);
  await run('renice', ['-n', '0', '-p', ...tasks]).catch(() => undefined);
  return Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1).split(' ')[16]);
}
