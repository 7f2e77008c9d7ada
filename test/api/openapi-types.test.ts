// The types of answers that the OpenAPI document has from what a real server answers: those that operations.ts does not give.
// `UPDATE_API_TYPES=1 npx vitest run test/api/openapi-types.test.ts` writes them anew.
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { ENDPOINTS } from '@sparrow-search/server';
import { afterAll, beforeAll, expect, it } from 'vitest';

import { BODIES, operationOf, pathOf, populate } from '../support/examples.js';
import { type RunningServer, startServer } from '../support/server.js';
import { type Shape, merged, misfit, shapeOf } from '../support/shapes.js';

const FILE = fileURLToPath(new URL('../../packages/endpoints/src/openapi/shapes.generated.ts', import.meta.url));
const RERANKER = fileURLToPath(new URL('../../crates/encoder/tests/fixtures/cross-bert', import.meta.url));
const HEAD =
  '// Written by test/api/openapi-types.test.ts: the types of answers that operations.ts does not give, from what a real server answers.\n' +
  '/* eslint-disable */\n' +
  'export const SHAPES: Readonly<Record<string, Readonly<Record<string, unknown>> | undefined>> = ';

/** Operations whose answer is a table, or of which only statistics are told: nobody writes those down by hand. */
const SEEN = [
  ...['authenticate', 'cluster_state', 'cluster_stats', 'delete_inference', 'index_segments', 'index_stats', 'ml_info'],
  ...['nodes_info', 'nodes_stats', 'recovery', 'search_shards', 'snapshot_status', 'trained_model_stats'],
];

let server: RunningServer;
/** What each operation was seen to answer when it did what was asked. */
const answers = new Map<string, unknown[]>();

beforeAll(async () => {
  // Repositories lie beside the data otherwise, where those of an earlier run are.
  const models = await mkdtemp(join(tmpdir(), 'sparrow-models-'));
  cpSync(RERANKER, join(models, 'reranker'), { recursive: true });
  const repositories = await mkdtemp(join(tmpdir(), 'sparrow-types-'));
  server = await startServer({ args: ['--repo-path', repositories, '--models', models] });
  for (const endpoint of ENDPOINTS) {
    const operation = operationOf(endpoint);
    if (endpoint.method === 'HEAD' || operation === 'openapi') continue;
    await populate(server);
    const query = endpoint.reply === 'text' ? '?format=json' : '';
    const sent = endpoint.body ? BODIES[operation] : undefined;
    const { status, body } = await server.request(endpoint.method, `${pathOf(endpoint)}${query}`, sent);
    const isJson = typeof body === 'object' && body !== null;
    if (status < 300 && isJson) saw(operation, body);
  }
  await more();
}, 240_000);

afterAll(async () => {
  await server.stop();
});

function saw(operation: string, answer: unknown): void {
  answers.set(operation, [...(answers.get(operation) ?? []), answer]);
}

/** What needs something that an earlier answer names, or that no example makes. */
async function more(): Promise<void> {
  const ask = async (operation: string, method: string, path: string, body?: unknown): Promise<any> => {
    const answer = await server.request(method, path, body);
    expect(answer.status, `${method} ${path}: ${answer.text}`).toBeLessThan(300);
    saw(operation, answer.body);
    return answer.body;
  };
  await populate(server);
  const { _scroll_id: scroll } = await ask('search', 'POST', '/books/_search?scroll=1m', { size: 1 });
  const highlight = { fields: { title: {} } };
  const query = { match: { title: 'one' } };
  await ask('search', 'POST', '/books/_search', { query, highlight, sort: ['tag'], profile: true });
  await ask('search', 'POST', '/books/_search', { query, explain: true, fields: ['title'], version: true });
  await ask('scroll', 'POST', '/_search/scroll', { scroll: '1m', scroll_id: scroll });
  await ask('clear_scroll', 'DELETE', '/_search/scroll', { scroll_id: [scroll] });
  const { id } = await ask('open_point_in_time', 'POST', '/books/_pit?keep_alive=1m');
  await ask('close_point_in_time', 'DELETE', '/_pit', { id });
  const processors = [{ set: { field: 'a', value: 1 } }];
  await ask('put_pipeline', 'PUT', '/_ingest/pipeline/types', { processors });
  const docs = [{ _source: { a: 1 } }];
  await ask('simulate_pipeline', 'POST', '/_ingest/pipeline/_simulate', { docs, pipeline: { processors } });
  const sparse = { service: 'elser', service_settings: { num_allocations: 1, num_threads: 1 } };
  await ask('put_inference', 'PUT', '/_inference/sparse_embedding/types', sparse);
  await ask('infer', 'POST', '/_inference/sparse_embedding/types', { input: ['some words'] });
  await ask('update_inference', 'PUT', '/_inference/sparse_embedding/types/_update', BODIES['update_inference']);
  await ask('delete_inference', 'DELETE', '/_inference/sparse_embedding/types');
  const ranks = { service: 'elasticsearch', service_settings: { ...sparse.service_settings, model_id: 'reranker' } };
  await ask('put_inference', 'PUT', '/_inference/rerank/types', ranks);
  await ask('infer', 'POST', '/_inference/rerank/types', { query: 'words', input: ['some words'] });
  const start = '/_ml/trained_models/.all-minilm-l6-v2/deployment/_start?wait_for=started';
  await ask('start_deployment', 'POST', start);
  const dense = '/_ml/trained_models/.all-minilm-l6-v2';
  await ask('infer_trained_model', 'POST', `${dense}/_infer`, { docs: [{ text_field: 'some words' }] });
  await ask('update_deployment', 'POST', `${dense}/deployment/_update`, { number_of_allocations: 1 });
  const copy = { source: { index: 'books' }, dest: { index: 'types-copy' } };
  const { task } = await ask('reindex', 'POST', '/_reindex?wait_for_completion=false', copy);
  await ask('get_task', 'GET', `/_tasks/${String(task)}?wait_for_completion=true`);
  await ask('create_index', 'PUT', '/types-1', { aliases: { 'types-alias': {} } });
  await ask('create_doc', 'PUT', '/types-1/_create/one', { title: 'one' });
  await ask('rollover', 'POST', '/types-alias/_rollover/types-2');
  await ask('resolve_index', 'GET', '/_resolve/index/types-*');
  await server.request('PUT', '/types-1/_settings', { 'index.blocks.write': true });
  await ask('clone_index', 'PUT', '/types-1/_clone/types-clone');
  const repository = '/_snapshot/types';
  await ask('put_repository', 'PUT', repository, { type: 'fs', settings: { location: 'types' } });
  await ask('get_repository', 'GET', repository);
  await ask('create_snapshot', 'PUT', `${repository}/one?wait_for_completion=true`, { indices: 'books' });
  await ask('get_snapshot', 'GET', `${repository}/one`);
  await ask('clone_snapshot', 'PUT', `${repository}/one/_clone/two`, { indices: 'books' });
  await ask('verify_repository', 'POST', `${repository}/_verify`);
  await ask('cleanup_repository', 'POST', `${repository}/_cleanup`);
  await ask('snapshot_status', 'GET', `${repository}/one/_status`);
  const renamed = { rename_pattern: '(.+)', rename_replacement: 'types-$1' };
  await ask('restore_snapshot', 'POST', `${repository}/one/_restore?wait_for_completion=true`, renamed);
  await ask('delete_snapshot', 'DELETE', `${repository}/one`);
}

/** An operation a line: types change with what is answered, and a difference is to be readable. */
function written(all: Record<string, Shape>): string {
  const lines = Object.entries(all).map(([operation, it]) => `  ${JSON.stringify(operation)}: ${JSON.stringify(it)},`);
  return `{\n${lines.join('\n')}\n};\n`;
}

/** What the generated file says. */
function known(): Record<string, Shape> {
  const text = readFileSync(FILE, 'utf8').slice(HEAD.length);
  return JSON.parse(text.replace(/,\n\};\n$/, '\n}')) as Record<string, Shape>;
}

function described(): Record<string, Shape> {
  return Object.fromEntries(
    SEEN.flatMap((operation) => {
      const [first, ...rest] = (answers.get(operation) ?? []).map((answer) => shapeOf(answer));
      return first === undefined ? [] : [[operation, rest.reduce(merged, first)] as const];
    }),
  );
}

it('are those of what the server answers', () => {
  if (process.env['UPDATE_API_TYPES'] === '1') {
    writeFileSync(FILE, `${HEAD}${written(described())}`);
  }
  const types = known();
  expect(Object.keys(types)).toEqual(SEEN);
  // What all others answer is held against the document as it comes: test/support/documented.ts.
  expect(answers.size).toBeGreaterThan(130);
  const wrong = SEEN.flatMap((operation) =>
    (answers.get(operation) ?? [])
      .map((answer) => misfit(answer, types[operation] ?? {}))
      .filter((problem) => problem !== undefined)
      .map((it) => `${operation}: ${it}`),
  );
  expect(wrong).toEqual([]);
});

it('tell what does not fit', () => {
  const shape = merged(shapeOf({ n: 1, list: [{ name: 'x' }] }), shapeOf({ n: 1.5, list: [] }));
  expect(misfit({ n: 2, list: [{ name: 'y', more: 1 }] }, shape)).toBeUndefined();
  expect(misfit({ n: 2, list: [{ name: 3 }] }, shape)).toBe('$.list[0].name is integer, not string');
});
