// Forms of docs/compatibility.md that no other test calls, against the real engine; and all names that are refused.
import { readFileSync } from 'node:fs';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type Answer, type RunningServer, startServer } from '../support/server.js';
import { namesIn } from '../support/rust-names.js';

const CRATES = new URL('../../crates/', import.meta.url);
const source = (path: string): string => readFileSync(new URL(path, CRATES), 'utf8');

let server: RunningServer;
const call = (method: string, path: string, body?: unknown): Promise<Answer> => server.request(method, path, body);
const search = (body: object): Promise<Answer> => call('POST', '/one/_search', body);
const SHARDS = { _shards: { total: 1, successful: 1, failed: 0 } };

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
  const properties = { n: { type: 'integer' }, k: { type: 'keyword' }, t: { type: 'text' } };
  await call('PUT', '/one', { settings: { number_of_replicas: 0 }, mappings: { properties } });
  for (const n of [1, 2, 3]) await call('PUT', `/one/_doc/${String(n)}`, { n, k: n > 1 ? 'b' : 'a', t: 'a word' });
  await call('POST', '/one/_refresh');
});

afterAll(async () => {
  await server.stop();
});

describe('what only Elasticsearch has', () => {
  it.each(namesIn(source('query/src/kinds/mod.rs'), 'UNSUPPORTED'))('the query %s is refused by name', async (name) => {
    const answer = await search({ query: { [name]: {} } });
    expect([answer.status, answer.body.error.reason]).toEqual([400, `[${name}] query is not supported by Sparrow`]);
  });

  it.each(namesIn(source('search-body/src/aggs/parse/mod.rs'), 'ELSEWHERE'))(
    'the aggregation %s is refused by name',
    async (name) => {
      const answer = await search({ aggs: { a: { [name]: {} } } });
      const reason = `[${name}] aggregation [a] is not supported by this server`;
      expect([answer.status, answer.body.error.reason]).toEqual([400, reason]);
    },
  );

  it.each(namesIn(source('search-body/src/retriever/parse.rs'), 'REFUSED'))(
    'the retriever %s is refused by name',
    async (name) => {
      const answer = await search({ retriever: { [name]: {} } });
      expect([answer.status, answer.body.error.reason]).toEqual([
        400,
        `retriever [${name}] is not supported by this server`,
      ]);
    },
  );

  it.each(namesIn(source('search-body/src/body.rs'), 'LATER'))('the section %s is refused by name', async (name) => {
    const answer = await search({ [name]: {} });
    expect([answer.status, answer.body.error.reason]).toEqual([400, `[${name}] is not supported by this server`]);
  });
});

describe('the tables of _cat', () => {
  const columns = async (path: string): Promise<string[]> => {
    const [first = ''] = (await call('GET', `${path}?v`)).text.split('\n');
    return first.trim().split(/ +/);
  };

  it('are listed', async () => {
    expect((await call('GET', '/_cat')).text).toMatch(/^=\^\.\^=\n(\/_cat\/\S+\n)+$/);
  });

  it.each([
    ['/_cat/health', ['epoch', 'timestamp', 'cluster', 'status', 'node.total']],
    ['/_cat/count', ['epoch', 'timestamp', 'count']],
    ['/_cat/count/one', ['epoch', 'timestamp', 'count']],
    ['/_cat/shards', ['index', 'shard', 'prirep', 'state', 'docs', 'store']],
    ['/_cat/shards/one', ['index', 'shard', 'prirep', 'state', 'docs', 'store']],
    ['/_cat/segments', ['index', 'shard', 'prirep', 'ip', 'segment']],
    ['/_cat/segments/one', ['index', 'shard', 'prirep', 'ip', 'segment']],
    ['/_cat/master', ['id', 'host', 'ip', 'node']],
    ['/_cat/nodes', ['ip']],
    ['/_cat/allocation', ['shards', 'shards.undesired', 'write_load.forecast']],
    ['/_cat/pending_tasks', ['insertOrder', 'timeInQueue', 'priority', 'source']],
    ['/_cat/plugins', ['name', 'component', 'version']],
    ['/_cat/templates', ['name', 'index_patterns', 'order', 'version', 'composed_of']],
    ['/_cat/templates/x*', ['name', 'index_patterns', 'order', 'version', 'composed_of']],
    ['/_cat/component_templates', ['name', 'version', 'alias_count']],
    ['/_cat/component_templates/x*', ['name', 'version', 'alias_count']],
    ['/_cat/aliases/x*', ['alias', 'index', 'filter']],
  ])('%s has its columns, and is an array on request', async (path, expected) => {
    expect((await columns(path)).slice(0, expected.length)).toEqual(expected);
    expect((await call('GET', `${path}?format=json`)).body).toBeInstanceOf(Array);
  });

  it('count documents', async () => {
    expect((await call('GET', '/_cat/count/one?h=count')).text).toBe('3\n');
    expect((await call('GET', '/_cat/shards/one?h=index,prirep,state,docs')).text).toBe('one p STARTED 3\n');
  });
});

describe('other ways to the same', () => {
  it.each([
    ['PUT', '/one/_aliases/x', undefined],
    ['POST', '/one/_alias/x', undefined],
    ['POST', '/one/_aliases/x', undefined],
    ['PUT', '/_alias/x', { index: 'one' }],
    ['POST', '/_alias/x', { index: 'one' }],
    ['PUT', '/_aliases/x', { index: 'one' }],
    ['POST', '/_aliases/x', { index: 'one' }],
    ['PUT', '/one/_alias', { alias: 'x' }],
    ['PUT', '/one/_aliases', { alias: 'x' }],
    ['PUT', '/_alias', { index: 'one', alias: 'x' }],
  ])('%s %s %j puts an alias', async (method, path, body) => {
    expect((await call(method, path, body)).body).toMatchObject({ acknowledged: true });
    const shown = { one: { aliases: { x: {} } } };
    for (const from of ['/_alias', '/_aliases', '/_alias/x', '/one/_alias', '/one/_alias/x']) {
      expect((await call('GET', from)).body, from).toEqual(shown);
      if (from !== '/_aliases') expect((await call('HEAD', from)).status, from).toBe(200);
    }
    expect((await call('DELETE', '/one/_aliases/x')).body).toMatchObject({ acknowledged: true });
  });

  it.each([
    ['GET', '/_refresh'],
    ['POST', '/_refresh'],
    ['GET', '/one/_refresh'],
    ['GET', '/_flush'],
    ['POST', '/_flush'],
    ['GET', '/one/_flush'],
    ['POST', '/_cache/clear'],
    ['POST', '/one/_cache/clear'],
    ['POST', '/_forcemerge'],
  ])('%s %s says how many shards', async (method, path) => {
    expect((await call(method, path)).body).toEqual(SHARDS);
  });

  it.each(['/_open', '/_close'])('POST %s without an index is refused', async (path) => {
    const answer = await call('POST', path);
    expect([answer.status, answer.body.error.reason]).toEqual([
      400,
      'Wildcard expressions or all indices are not allowed',
    ]);
  });

  it('mappings and settings of all indices', async () => {
    expect((await call('GET', '/_mapping')).body.one.mappings.properties.n).toEqual({ type: 'integer' });
    expect((await call('GET', '/_mapping/field/n')).body.one.mappings.n.full_name).toBe('n');
    expect((await call('POST', '/one/_mapping', { properties: { z: { type: 'long' } } })).body.acknowledged).toBe(true);
    expect((await call('PUT', '/_settings', { index: { refresh_interval: '2s' } })).body.acknowledged).toBe(true);
    expect((await call('GET', '/_settings')).body.one.settings.index.refresh_interval).toBe('2s');
    expect((await call('GET', '/_cluster/health/one')).body.active_shards).toBe(1);
  });

  it('searches by the other methods and paths', async () => {
    for (const path of ['/_search', '/one/_search']) expect((await call('GET', path)).body.hits.total.value).toBe(3);
    expect((await call('GET', '/_count')).body.count).toBe(3);
    expect((await call('GET', '/_msearch', '{"index":"one"}\n{}\n')).body.responses[0].hits.total.value).toBe(3);
    expect((await call('POST', '/one/_msearch', '{}\n{"size":0}\n')).body.responses).toHaveLength(1);
    for (const path of ['/_validate/query', '/one/_validate/query']) {
      expect((await call('GET', path)).body.valid, path).toBe(true);
    }
    expect((await call('GET', '/_search_shards')).body.shards[0][0].index).toBe('one');
    expect((await call('POST', '/_field_caps?fields=n')).body.fields.n.integer.searchable).toBe(true);
    expect((await call('GET', '/one/_explain/1?q=n:1')).body.matched).toBe(true);
    expect((await call('GET', '/one/_analyze', { text: 'Two Words' })).body.tokens).toHaveLength(2);
  });

  it('scrolls and points in time', async () => {
    const { _scroll_id: id } = (await call('POST', '/one/_search?scroll=1m&size=1')).body;
    expect((await call('GET', `/_search/scroll/${id}`)).body.hits.hits).toHaveLength(1);
    expect((await call('GET', `/_search/scroll?scroll_id=${id}`)).body.hits.hits).toHaveLength(1);
    expect((await call('DELETE', `/_search/scroll/${id}`)).body).toEqual({ succeeded: true, num_freed: 1 });
    const pit = (await call('POST', '/one/_pit?keep_alive=1m')).body.id;
    expect((await call('DELETE', '/_pit', { id: pit })).body).toEqual({ succeeded: true, num_freed: 1 });
  });

  it('reads and writes documents by the other methods and paths', async () => {
    const docs = [{ _index: 'one', _id: '1' }];
    expect((await call('GET', '/_mget', { docs })).body.docs[0].found).toBe(true);
    expect((await call('POST', '/_mtermvectors', { docs })).body.docs[0]).toMatchObject({ found: true });
    expect((await call('GET', '/one/_termvectors/1')).body).toMatchObject({ found: true, term_vectors: {} });
    expect((await call('HEAD', '/one/_source/1')).status).toBe(200);
    expect((await call('POST', '/two/_create/1', { n: 1 })).status).toBe(201);
    expect((await call('PUT', '/_bulk', '{"index":{"_index":"two"}}\n{"n":9}\n')).body.errors).toBe(false);
    expect((await call('PUT', '/two/_bulk', '{"index":{}}\n{"n":9}\n')).body.errors).toBe(false);
    expect((await call('DELETE', '/two')).body).toEqual({ acknowledged: true });
  });

  it('cancels no task where none runs', async () => {
    expect((await call('POST', '/_tasks/_cancel')).body).toEqual({ nodes: {} });
  });

  it('has the paths of the upgrade that older clients use', async () => {
    for (const prefix of ['/_ext/migration', '/_xpack/migration', '/_migration']) {
      expect((await call('GET', `${prefix}/assistance`)).body, prefix).toEqual({ indices: {} });
      expect((await call('GET', `${prefix}/assistance/one`)).body, prefix).toEqual({ indices: {} });
      const upgraded = await call('POST', `${prefix}/upgrade/one?wait_for_completion=true`);
      expect(upgraded.body, prefix).toMatchObject({ timed_out: false, failures: [] });
    }
  });

  it('shows the models and what they do', async () => {
    for (const path of ['', '/.sparse_encoder_model_2']) {
      const models = `/_ml/trained_models${path}`;
      const configs = (await call('GET', models)).body.trained_model_configs as { model_id: string }[];
      expect(configs.map((it) => it.model_id)).toContain('.sparse_encoder_model_2');
      expect((await call('GET', `${models}/_stats`)).body.count).toBe(configs.length);
    }
    const idle = await call('POST', '/_ml/trained_models/.sparse_encoder_model_2/deployment/_infer', {
      docs: [{ text_field: 'x' }],
    });
    expect([idle.status, idle.body.error.reason]).toEqual([409, expect.stringContaining('must be deployed')]);
  });
});

describe('in a search', () => {
  it('min_bucket and sum_bucket look at the buckets of another aggregation', async () => {
    const { body } = await search({
      size: 0,
      aggs: {
        kinds: { terms: { field: 'k' }, aggs: { total: { sum: { field: 'n' } } } },
        least: { min_bucket: { buckets_path: 'kinds>total' } },
        all: { sum_bucket: { buckets_path: 'kinds>total' } },
      },
    });
    expect(body.aggregations.least).toEqual({ value: 1, keys: ['a'] });
    expect(body.aggregations.all).toEqual({ value: 6 });
  });
});
