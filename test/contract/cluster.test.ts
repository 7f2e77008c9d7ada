// What there is only over a cluster: several servers that are one, and what is refused by name.
import { randomBytes } from 'node:crypto';
import { cpSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { CLUSTER, IS_ELASTICSEARCH, NO_CLUSTER, NODE, OVER_CLUSTER } from '../support/engines.js';
import type { RunningServer } from '../support/server.js';

const MODEL = '.sparse_encoder_model_2';
const run = randomBytes(4).toString('hex');
const of = (name: string) => `together-${run}-${name}`;

async function ask(server: RunningServer, method: string, path: string, body?: unknown, status = 200, apiKey?: string) {
  const answer = await server.request(method, path, body, apiKey === undefined ? {} : { apiKey });
  expect(answer.status, `${method} ${path}: ${answer.text}`).toBe(status);
  return answer.body;
}

/** Gives a server a model of its own. */
async function upload(server: RunningServer, id: string): Promise<void> {
  const file = (name: string): Buffer =>
    readFileSync(fileURLToPath(new URL(`../../crates/encoder/tests/fixtures/plain-mlm/${name}`, import.meta.url)));
  const definition = file('model.onnx');
  const { model } = JSON.parse(file('tokenizer.json').toString()) as { model: { vocab: Record<string, number> } };
  const path = `/_ml/trained_models/${id}`;
  await ask(server, 'PUT', path, {
    model_type: 'pytorch',
    input: { field_names: ['body'] },
    inference_config: { text_expansion: { tokenization: { bert: { max_sequence_length: 16 } } } },
  });
  await ask(server, 'PUT', `${path}/definition/0`, {
    ...{ total_definition_length: definition.length, total_parts: 1, definition: definition.toString('base64') },
  });
  await ask(server, 'PUT', `${path}/vocabulary`, { vocabulary: Object.keys(model.vocab) });
}

/** A folder with a model, whose weights may be others than those of the fixture. */
function modelFolder(id: string, isOther: boolean): string {
  const folder = mkdtempSync(join(tmpdir(), 'sparrow-models-'));
  const fixture = fileURLToPath(new URL('../../crates/encoder/tests/fixtures/checkpoint-bert', import.meta.url));
  cpSync(fixture, join(folder, id), { recursive: true });
  const file = join(folder, id, 'model.safetensors');
  const bytes = readFileSync(file);
  // The names of tensors and where they are stand in front: numbers of 16 bits, of which some get another sign.
  const from = 8 + Number(bytes.readBigUInt64LE());
  if (isOther) for (let at = from + 1; at < bytes.length; at += 6) bytes[at] = (bytes[at] ?? 0) ^ 0x80;
  writeFileSync(file, bytes);
  return folder;
}

/** A task as the cluster keeps it: the server that works on it, and until when it is that server's. */
async function kept(task: string): Promise<{ readonly owner: string; readonly lease_until: number }> {
  const number = task.slice(task.indexOf(':') + 1);
  const answer = await fetch(`${NODE}/.sparrow-tasks/_doc/${number}`);
  expect(answer.status).toBe(200);
  return ((await answer.json()) as { _source: { owner: string; lease_until: number } })._source;
}

describe.skipIf(CLUSTER === undefined)(
  `two servers over one cluster${CLUSTER === undefined ? ` (${NO_CLUSTER})` : ''}`,
  () => {
    let one: RunningServer;
    let two: RunningServer;

    beforeAll(async () => {
      [one, two] = await Promise.all([OVER_CLUSTER.start(), OVER_CLUSTER.start()]);
      await ask(one, 'PUT', `/${of('source')}`, { mappings: { properties: { content: { type: 'text' } } } });
      await ask(one, 'PUT', `/${of('dest')}`, { mappings: { properties: { tokens: { type: 'sparse_vector' } } } });
      await ask(one, 'PUT', `/_ingest/pipeline/${of('embed')}`, {
        processors: [
          { inference: { model_id: MODEL, input_output: [{ input_field: 'content', output_field: 'tokens' }] } },
        ],
      });
    }, 120_000);

    afterAll(async () => {
      for (const index of ['source', 'dest', 'watched', 'handed', 'changed', 'filled', 'raced'])
        await two.request('DELETE', `/${of(index)}`);
      for (const pipeline of ['embed', 'late']) await two.request('DELETE', `/_ingest/pipeline/${of(pipeline)}`);
      await Promise.all([one.stop(), two.stop()]);
    });

    it('have the same pipelines at once, also when both change them', async () => {
      const set = (value: string) => ({ processors: [{ set: { field: 'by', value } }] });
      for (let round = 0; round < 5; round += 1) {
        await ask(one, 'PUT', `/_ingest/pipeline/${of('late')}`, set(`one ${round}`));
        const made = await ask(two, 'POST', `/_ingest/pipeline/${of('late')}/_simulate`, { docs: [{ _source: {} }] });
        expect(made.docs[0].doc._source.by).toBe(`one ${round}`);
      }
      const names = Array.from({ length: 6 }, (_, at) => of(`race-${at}`));
      await Promise.all(
        names.map((name, at) => ask(at % 2 === 0 ? one : two, 'PUT', `/_ingest/pipeline/${name}`, set(name))),
      );
      for (const server of [one, two]) {
        const known = Object.keys(await ask(server, 'GET', '/_ingest/pipeline'));
        expect(known).toEqual(expect.arrayContaining(names));
      }
      for (const name of names) await ask(two, 'DELETE', `/_ingest/pipeline/${name}`);
      await ask(one, 'GET', `/_ingest/pipeline/${names[0]}`, undefined, 404);
    });

    it('have the inference endpoints of each other at once, and keep them', async () => {
      const [id, path] = [of('endpoint'), `/_inference/sparse_embedding/${of('endpoint')}`];
      const made = await ask(one, 'PUT', path, {
        service: 'elasticsearch',
        service_settings: { model_id: MODEL, num_allocations: 1, num_threads: 1 },
        chunking_settings: { strategy: 'sentence', max_chunk_size: 50, sentence_overlap: 0 },
      });
      const tokens = await ask(two, 'POST', path, { input: 'whales' });
      expect(Object.keys(tokens.sparse_embedding[0].embedding)).toContain('whale');
      expect((await ask(two, 'GET', path)).endpoints).toEqual([made]);
      const other = of('deployed');
      await ask(two, 'PUT', `/_inference/sparse_embedding/${other}`, {
        service: 'elasticsearch',
        service_settings: { deployment_id: MODEL },
      });
      await ask(two, 'PUT', `${path}/_update`, { service_settings: { num_allocations: 2 } });
      const settings = (await ask(one, 'GET', path)).endpoints[0].service_settings;
      expect([settings.num_allocations, settings.model_id]).toEqual([2, MODEL]);
      await ask(one, 'DELETE', `/_inference/${other}`);
      await ask(two, 'GET', `/_inference/${other}`, undefined, 404);
      const third = await OVER_CLUSTER.start();
      try {
        expect((await ask(third, 'GET', path)).endpoints[0].inference_id).toBe(id);
        await ask(third, 'POST', path, { input: 'whales' });
      } finally {
        await third.stop();
      }
      await ask(one, 'DELETE', `/_inference/${id}?force=true`);
      let status = 200;
      for (let attempt = 0; status !== 404 && attempt < 100; attempt += 1) {
        ({ status } = await two.request('POST', path, { input: 'whales' }));
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      expect(status).toBe(404);
    });

    it('start, change and stop deployments together, also a server that comes later', async () => {
      const id = of('deployment');
      const allocations = async (server: RunningServer): Promise<number | undefined> => {
        const { trained_model_stats: all } = await ask(server, 'GET', `/_ml/trained_models/${MODEL}/_stats`);
        const mine = all.find(({ deployment_stats: stats }: any) => stats?.deployment_id === id);
        return mine?.deployment_stats.number_of_allocations;
      };
      await ask(one, 'POST', `/_ml/trained_models/${MODEL}/deployment/_start?deployment_id=${id}`);
      await expect.poll(() => allocations(two)).toBe(1);
      await ask(two, 'POST', `/_ml/trained_models/${id}/deployment/_update`, { number_of_allocations: 2 });
      await expect.poll(() => allocations(one)).toBe(2);
      const third = await OVER_CLUSTER.start();
      try {
        await expect.poll(() => allocations(third)).toBe(2);
        await ask(one, 'POST', `/_ml/trained_models/${id}/deployment/_stop`);
        for (const server of [two, third]) await expect.poll(() => allocations(server)).toBeUndefined();
      } finally {
        await third.stop();
      }
    });

    it('try a deployment again that one of them could not start, and stop none that a pipeline or an index uses', async () => {
      const [id, model] = [of('retried'), of('own')];
      const running = async (server: RunningServer): Promise<boolean> => {
        const { trained_model_stats: all } = await ask(server, 'GET', '/_ml/trained_models/_stats?size=1000');
        return all.some(({ deployment_stats: stats }: any) => stats?.deployment_id === id);
      };
      const options = { args: ['--deploy-at-start', 'false'] };
      const [first, second] = await Promise.all([OVER_CLUSTER.start(options), OVER_CLUSTER.start(options)]);
      try {
        await upload(first, model);
        await ask(first, 'POST', `/_ml/trained_models/${model}/deployment/_start?deployment_id=${id}`);
        await expect.poll(() => second.output()).toContain('a deployment cannot be as it is wanted on this server');
        expect(await running(second)).toBe(false);
        await upload(second, model);
        await expect.poll(() => running(second)).toBe(true);
        // A pipeline that the other server makes at this moment uses it.
        const inference = { model_id: id, input_output: [{ input_field: 'a', output_field: 'b' }] };
        await ask(second, 'PUT', `/_ingest/pipeline/${id}`, { processors: [{ inference }] });
        await ask(first, 'POST', `/_ml/trained_models/${id}/deployment/_stop`, undefined, 409);
        await ask(second, 'DELETE', `/_ingest/pipeline/${id}`);
        await ask(first, 'POST', `/_ml/trained_models/${id}/deployment/_stop`);
        await expect.poll(() => running(second)).toBe(false);

        await ask(first, 'PUT', `/_inference/sparse_embedding/${of('used')}`, {
          service: 'elasticsearch',
          service_settings: { model_id: model, num_allocations: 1, num_threads: 1 },
        });
        const t = { type: 'semantic_text', inference_id: of('used') };
        await ask(second, 'PUT', `/${of('uses')}`, { mappings: { properties: { t } } });
        const refused = await ask(first, 'DELETE', `/_inference/${of('used')}`, undefined, 409);
        expect(refused.error.reason).toContain(`is being used in the mapping for indexes: [${of('uses')}]`);
        const dry = await ask(first, 'DELETE', `/_inference/${of('used')}?dry_run=true`);
        expect(dry).toMatchObject({ acknowledged: false, indexes: [of('uses')] });
        await ask(second, 'DELETE', `/${of('uses')}`);
        await ask(first, 'DELETE', `/_inference/${of('used')}`);
      } finally {
        await Promise.all([first.stop(), second.stop()]);
      }
    }, 120_000);

    it('agree about fields that both add to an index at the same moment, and about their passages', async () => {
      const field = { type: 'semantic_text', inference_id: MODEL };
      const names = Array.from({ length: 6 }, (_, at) => `field${at}`);
      const server = (at: number) => (at % 2 === 0 ? one : two);
      await ask(one, 'PUT', `/${of('raced')}`, { mappings: { properties: { base: field } } });
      const text = (at: number) => `the whale ${at} is the largest animal`;
      // The first texts of a field settle what it is, while others are put.
      await Promise.all([
        ...names.map((name, at) =>
          ask(server(at), 'PUT', `/${of('raced')}/_mapping`, { properties: { [name]: field } }),
        ),
        ...[0, 1, 2, 3].map((at) => ask(server(at), 'PUT', `/${of('raced')}/_doc/base${at}`, { base: text(at) }, 201)),
      ]);
      await Promise.all(
        names.flatMap((name, at) =>
          [one, two].map((by, n) => ask(by, 'PUT', `/${of('raced')}/_doc/${name}-${n}`, { [name]: text(at) }, 201)),
        ),
      );
      await ask(one, 'POST', `/${of('raced')}/_refresh`);
      for (const by of [one, two]) {
        const shown = (await ask(by, 'GET', `/${of('raced')}/_mapping`))[of('raced')].mappings.properties;
        for (const [name, count] of [...names.map((it) => [it, 2] as const), ['base', 4] as const]) {
          expect(shown[name], name).toMatchObject({ ...field, model_settings: { task_type: 'sparse_embedding' } });
          const query = { semantic: { field: name, query: 'a big sea creature' } };
          const { hits } = await ask(by, 'POST', `/${of('raced')}/_search`, { query });
          expect(hits.total.value, name).toBe(count);
        }
      }
    });

    it('know a key at once, and its end within seconds', async () => {
      const { id, encoded } = await ask(one, 'POST', '/_security/api_key', { name: 'k', role_descriptors: {} });
      await ask(two, 'GET', '/_security/_authenticate', undefined, 200, encoded);
      await ask(two, 'DELETE', '/_security/api_key', { ids: [id] });
      await ask(two, 'GET', '/_security/_authenticate', undefined, 401, encoded);
      let status = 200;
      for (let attempt = 0; status !== 401 && attempt < 100; attempt += 1) {
        ({ status } = await one.request('GET', '/_security/_authenticate', undefined, { apiKey: encoded }));
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      expect(status).toBe(401);
    });

    it('go on with a copy whose server was killed: every document is there, and none is read twice that was set down', async () => {
      const total = 600;
      const lines = Array.from(
        { length: total },
        (_, at) => `{"index":{"_id":"${at}"}}\n{"content":"the number ${at} of a list"}\n`,
      );
      await ask(one, 'POST', `/${of('source')}/_bulk?refresh=true`, lines.join(''));
      const { task } = await ask(
        one,
        'POST',
        '/_reindex?wait_for_completion=false&refresh=true&requests_per_second=200',
        {
          source: { index: of('source'), size: 40 },
          dest: { index: of('dest'), pipeline: of('embed') },
        },
      );
      for (let done = 0; done < 100;) {
        const { status } = (await ask(two, 'GET', `/_tasks/${task}`)).task;
        done = status.created;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      await one.kill();
      let found = await ask(two, 'GET', `/_tasks/${task}`);
      expect(found.completed).toBe(false);
      for (const end = Date.now() + 60_000; !found.completed && Date.now() < end;) {
        await new Promise((resolve) => setTimeout(resolve, 250));
        found = await ask(two, 'GET', `/_tasks/${task}`);
      }
      expect(found).toMatchObject({ completed: true, response: { total, failures: [] } });
      const { created, updated } = found.response;
      expect(created + updated).toBe(total);
      // What was written and not set down when the server died is one batch at most.
      expect(updated).toBeLessThanOrEqual(40);
      expect((await ask(two, 'GET', `/${of('dest')}/_count`)).count).toBe(total);
      one = await OVER_CLUSTER.start();
    }, 120_000);

    it('go on at once with a copy whose server was told to stop, and copy nothing twice', async () => {
      await ask(one, 'PUT', `/${of('handed')}`, { mappings: { properties: { tokens: { type: 'sparse_vector' } } } });
      const path = '/_reindex?wait_for_completion=false&refresh=true&requests_per_second=100';
      const body = { source: { index: of('source'), size: 20 }, dest: { index: of('handed'), pipeline: of('embed') } };
      const { task } = await ask(one, 'POST', path, body);
      for (let created = 0; created < 100;) {
        ({ created } = (await ask(two, 'GET', `/_tasks/${task}`)).task.status);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      const { owner } = await kept(task);
      expect(await one.stop()).toBe(0);
      // A lease that is not given back goes on for 15 seconds.
      const after = await kept(task);
      if (after.owner === owner) expect(after.lease_until).toBeLessThanOrEqual(Date.now());
      const { created: before } = (await ask(two, 'GET', `/_tasks/${task}`)).task.status;
      for (let created = before; created === before;) {
        ({ created } = (await ask(two, 'GET', `/_tasks/${task}`)).task.status);
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      const done = await ask(two, 'GET', `/_tasks/${task}?wait_for_completion=true`);
      expect(done.response).toMatchObject({ total: 600, created: 600, updated: 0, failures: [] });
      one = await OVER_CLUSTER.start();
    }, 120_000);

    it('refuse to search a field with another model than the one that filled it, as the native engine does', async () => {
      const index = of('filled');
      await ask(one, 'PUT', `/${index}`, { mappings: { properties: { tokens: { type: 'sparse_vector' } } } });
      const query = { text_expansion: { tokens: { model_id: MODEL, model_text: 'a list' } } };
      await ask(one, 'PUT', `/${index}/_doc/1?refresh=true&pipeline=${of('embed')}`, { content: 'a list' }, 201);
      expect((await ask(two, 'POST', `/${index}/_search`, { query })).hits.hits).toHaveLength(1);
      // As if a model with other weights had written: its name and a fingerprint stand in the mapping.
      const found = (await (await fetch(`${NODE}/${index}/_mapping`)).json()) as any;
      const { _meta } = found[index].mappings;
      expect(_meta.sparrow.models.tokens.model).toBe(MODEL);
      _meta.sparrow.models.tokens = { model: 'theirs', fingerprint: 'another' };
      const headers = { 'content-type': 'application/json' };
      const body = JSON.stringify({ _meta });
      expect((await fetch(`${NODE}/${index}/_mapping`, { method: 'PUT', headers, body })).status).toBe(200);
      let answer = await two.request('POST', `/${index}/_search`, { query });
      for (const end = Date.now() + 10_000; answer.status === 200 && Date.now() < end;) {
        await new Promise((resolve) => setTimeout(resolve, 250));
        answer = await two.request('POST', `/${index}/_search`, { query });
      }
      expect(answer.status, answer.text).toBe(400);
      expect(answer.body.error.reason).toBe(
        `failed to create query: field [tokens] holds the output of model [theirs] and cannot be searched with model [${MODEL}]: ` +
          'their vocabularies or weights differ',
      );
      // Tokens that are given are nobody's.
      await ask(two, 'POST', `/${index}/_search`, {
        query: { sparse_vector: { field: 'tokens', query_vector: { list: 1 } } },
      });
      const shown = (await ask(two, 'GET', `/${index}/_mapping`))[index].mappings;
      expect(shown).toEqual({
        properties: {
          tokens: { type: 'sparse_vector' },
          content: expect.anything() as unknown,
          model_id: expect.anything() as unknown,
        },
      });
    });

    it('mix no passages of models that have one name and different weights', async () => {
      const [index, model] = [of('weights'), `own-${run}`];
      const start = (isOther: boolean) => OVER_CLUSTER.start({ args: ['--models', modelFolder(model, isOther)] });
      const [first, second] = await Promise.all([start(false), start(true)]);
      try {
        await ask(first, 'PUT', `/_inference/text_embedding/${index}`, {
          service: 'elasticsearch',
          service_settings: { num_allocations: 1, num_threads: 1, model_id: model },
        });
        const body = { type: 'semantic_text', inference_id: index };
        await ask(first, 'PUT', `/${index}`, { mappings: { properties: { body, n: { type: 'integer' } } } });
        await ask(first, 'PUT', `/${index}/_doc/1?refresh=true`, { body: 'a list', n: 1 }, 201);
        const search = { query: { semantic: { field: 'body', query: 'a list' } } };
        expect((await ask(first, 'POST', `/${index}/_search`, search)).hits.hits).toHaveLength(1);
        const asked: [string, string, object][] = [
          ['POST', '_search', search],
          ['PUT', '_doc/2', { body: 'a list' }],
          ['POST', '_update/1', { doc: { body: 'another list' } }],
        ];
        for (const [method, path, sent] of asked) {
          const answer = await second.request(method, `/${index}/${path}`, sent);
          expect([answer.status, answer.text], path).toEqual([400, expect.stringContaining('weights')]);
        }
        // What needs no model is done.
        await ask(second, 'POST', `/${index}/_update/1?refresh=true`, { doc: { n: 2 } });
        const { hits } = await ask(first, 'POST', `/${index}/_search`, search);
        expect(hits.hits.map(({ _id, _source }: any) => [_id, _source])).toEqual([['1', { body: 'a list', n: 2 }]]);
      } finally {
        await first.request('DELETE', `/${index}`);
        await first.request('DELETE', `/_inference/${index}?force=true`);
        await Promise.all([first.stop(), second.stop()]);
      }
    }, 120_000);

    it('live with a mapping and an index that somebody changed without them', async () => {
      const index = of('changed');
      const direct = async (method: string, path: string, body: object): Promise<unknown> => {
        const headers = { 'content-type': 'application/json' };
        return (await fetch(`${NODE}${path}`, { method, headers, body: JSON.stringify(body) })).json();
      };
      const query = { text_expansion: { tokens: { model_id: MODEL, model_text: 'a list' } } };
      await ask(one, 'PUT', `/${index}`, { mappings: { properties: { tokens: { type: 'sparse_vector' } } } });
      const line = '{"index":{"_id":"1"}}\n{"content":"a list of numbers"}\n';
      await ask(one, 'POST', `/${index}/_bulk?refresh=true&pipeline=${of('embed')}`, line);
      // What Sparrow wrote down about the fields is gone, and a field came to them.
      await direct('PUT', `/${index}/_mapping`, { _meta: { theirs: 1 }, properties: { more: { type: 'keyword' } } });
      const { mappings } = (await ask(two, 'GET', `/${index}/_mapping`))[index];
      expect(mappings._meta).toEqual({ theirs: 1 });
      expect(['rank_features', 'sparse_vector']).toContain(mappings.properties.tokens.type);
      await ask(two, 'PUT', `/${index}/_mapping`, { properties: { again: { type: 'sparse_vector' } } });
      const shown = (await ask(one, 'GET', `/${index}/_mapping`))[index].mappings;
      expect(shown.properties).toMatchObject({ more: { type: 'keyword' }, again: { type: 'sparse_vector' } });
      expect(shown._meta).toEqual({ theirs: 1 });
      expect((await ask(one, 'POST', `/${index}/_search`, { query })).hits.hits).toHaveLength(1);
      // Another index has the name, with another field: that is an answer or a refusal, and no failure.
      await direct('DELETE', `/${index}`, {});
      await direct('PUT', `/${index}`, { mappings: { properties: { tokens: { type: 'keyword' } } } });
      const { status, text } = await one.request('POST', `/${index}/_search`, { query });
      expect([200, 400], text).toContain(status);
    });

    it('cancel each other’s tasks', async () => {
      await ask(one, 'PUT', `/${of('watched')}`, { mappings: { properties: { tokens: { type: 'sparse_vector' } } } });
      const { task } = await ask(one, 'POST', '/_reindex?wait_for_completion=false&requests_per_second=20', {
        source: { index: of('source'), size: 10 },
        dest: { index: of('watched'), pipeline: of('embed') },
      });
      const listed = await ask(two, 'GET', '/_tasks?actions=*reindex');
      expect(Object.keys(listed.nodes.sparrow.tasks)).toContain(task);
      await ask(two, 'POST', `/_tasks/${task}/_cancel`);
      const done = await ask(one, 'GET', `/_tasks/${task}?wait_for_completion=true`);
      expect(done.response.canceled).toBe('by user request');
      expect(done.response.created).toBeLessThan(600);
    });

    it.each([
      ['POST', `/${of('dest')}/_search`, { query: { semantic: { field: 'a', query: 'b' } } }, 'Field [a]'],
      // Elasticsearch has these as they are here.
      ...(IS_ELASTICSEARCH
        ? []
        : ([
            [
              'PUT',
              `/${of('refused')}`,
              { mappings: { properties: { v: { type: 'dense_vector' } } } },
              'the dense_vector field [v] without [dims]',
            ],
          ] as const)),
      [
        'POST',
        `/_reindex?dry_run=true`,
        { source: { index: of('dest') }, dest: { index: of('b') }, script: { source: '' } },
        '[script] of a reindex with [dry_run]',
      ],
      ['GET', '/.sparrow-state/_search', undefined, 'belong to Sparrow'],
      ['DELETE', '/.sparrow-tasks', undefined, 'belong to Sparrow'],
    ] as const)('refuse %s %s %j by name', async (method, path, body, sentence) => {
      const refused = await ask(one, method, path, body, 400);
      expect(refused.error.type).toBe('illegal_argument_exception');
      expect(refused.error.reason).toContain(sentence);
    });

    it('keep their own indices out of what patterns stand for', async () => {
      for (const path of [
        '/*/_search?expand_wildcards=all&size=100',
        '/.*/_search?expand_wildcards=all',
        '/_all/_search?expand_wildcards=all',
      ]) {
        const { hits } = await ask(one, 'POST', path);
        expect(hits.hits.filter(({ _index }: { _index: string }) => _index.startsWith('.sparrow-'))).toEqual([]);
      }
      expect(JSON.stringify(await ask(one, 'GET', '/_cat/indices?format=json&expand_wildcards=all'))).not.toContain(
        '.sparrow-',
      );
      expect(JSON.stringify(await ask(one, 'GET', '/_mapping?expand_wildcards=all'))).not.toContain('.sparrow-');
    });
  },
);
