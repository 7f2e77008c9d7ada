// The node as a cluster, and what is counted: against the real engine.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type Answer, type RunningServer, startServer } from '../support/server.js';

const ARGS = ['--deploy-at-start', 'false'];
let server: RunningServer;
const call = (method: string, path: string, body?: unknown): Promise<Answer> => server.request(method, path, body);
const get = async (path: string): Promise<any> => (await call('GET', path)).body;

beforeAll(async () => {
  server = await startServer({ args: ARGS });
  await call('PUT', '/one', {
    settings: { number_of_replicas: 0 },
    mappings: { properties: { s: { type: 'sparse_vector' }, t: { type: 'text' } } },
  });
  await call('PUT', '/two', { settings: { number_of_replicas: 1 } });
});

afterAll(async () => {
  await server.stop();
});

describe('cluster health', () => {
  it.each([
    ['/one?wait_for_status=green', 200, 'green'],
    ['/two?wait_for_status=green&timeout=50ms', 408, 'yellow'],
    ['/two?wait_for_status=green&timeout=50ms&return_200_for_cluster_health_timeout', 200, 'yellow'],
    ['?wait_for_nodes=%3E%3D1&wait_for_active_shards=2', 200, 'yellow'],
    ['?wait_for_nodes=ge(2)&timeout=20ms', 408, 'yellow'],
    ['?wait_for_active_shards=5&timeout=20ms', 408, 'yellow'],
    ['?wait_for_no_relocating_shards=true&wait_for_events=languid', 200, 'yellow'],
  ])('waits for what is asked for: %s', async (path, status, colour) => {
    const answer = await call('GET', `/_cluster/health${path}`);
    expect([answer.status, answer.body.status, answer.body.timed_out]).toEqual([
      status,
      colour,
      status === 408 || path.includes('return_200'),
    ]);
  });

  it('waits until an index is there', async () => {
    const waiting = call('GET', '/_cluster/health/later?wait_for_status=yellow&timeout=20s');
    await new Promise((resolve) => setTimeout(resolve, 100));
    await call('PUT', '/later');
    expect((await waiting).body).toMatchObject({ status: 'yellow', timed_out: false, active_shards: 1 });
    await call('DELETE', '/later');
  });

  it('shows indices and shards', async () => {
    const { indices } = await get('/_cluster/health?level=shards');
    expect(indices.two).toMatchObject({ status: 'yellow', number_of_replicas: 1, unassigned_shards: 1 });
    expect(indices.one.shards['0']).toMatchObject({ status: 'green', primary_active: true, active_shards: 1 });
    expect((await get('/_cluster/health?level=indices')).indices.one.shards).toBeUndefined();
    expect((await get('/_cluster/health/o*?expand_wildcards=none')).active_shards).toBe(0);
  });

  it.each([
    ['wait_for_status=blue', 'No enum constant org.elasticsearch.cluster.health.ClusterHealthStatus.BLUE'],
    ['wait_for_nodes=many', 'For input string: "many"'],
    ['wait_for_active_shards=few', 'cannot parse ActiveShardCount[few]'],
    ['level=planet', 'level parameter must be one of [cluster] or [indices] or [shards] but was [planet]'],
  ])('refuses %s', async (query, reason) => {
    const answer = await call('GET', `/_cluster/health?${query}`);
    expect([answer.status, answer.body.error.reason]).toEqual([400, reason]);
  });
});

describe('the cluster', () => {
  it('shows the parts of the state that are asked for', async () => {
    const all = await get('/_cluster/state');
    expect(all.metadata.indices.one).toMatchObject({ state: 'open', settings: { index: { number_of_shards: '1' } } });
    expect(all.metadata.indices.one.mappings._doc.properties.t).toEqual({ type: 'text' });
    expect(all.nodes[all.master_node].name).toBe('sparrow');
    expect(all.cluster_uuid).toBe((await get('/')).cluster_uuid);
    expect(all.routing_nodes.unassigned).toHaveLength(1);
    const some = await get('/_cluster/state/metadata,routing_table/o*');
    expect(Object.keys(some).sort()).toEqual(['cluster_name', 'cluster_uuid', 'metadata', 'routing_table']);
    expect(Object.keys(some.routing_table.indices)).toEqual(['one']);
    expect(await get('/_cluster/state/blocks')).toMatchObject({ blocks: {} });
    await call('PUT', '/one/_block/write');
    expect((await get('/_cluster/state/blocks')).blocks.indices.one['8']).toMatchObject({ retryable: false });
    await call('PUT', '/one/_settings', { 'index.blocks.write': false });
    const unknown = await call('GET', '/_cluster/state/metadat');
    expect(unknown.body.error.reason).toBe(
      'request [/_cluster/state/metadat] contains unrecognized metric: [metadat] -> did you mean [metadata]?',
    );
  });

  it('keeps settings, and refuses those that it does not have', async () => {
    expect(await get('/_cluster/settings')).toEqual({ persistent: {}, transient: {} });
    const put = await call('PUT', '/_cluster/settings?flat_settings', {
      persistent: { action: { auto_create_index: 'logs-*,-*' } },
      transient: { 'search.max_buckets': 2 },
    });
    expect(put.body).toEqual({
      acknowledged: true,
      persistent: { 'action.auto_create_index': 'logs-*,-*' },
      transient: { 'search.max_buckets': '2' },
    });
    const refused = await call('PUT', '/other/_doc/1', {});
    expect([refused.status, refused.body.error.reason]).toEqual([
      404,
      'no such index [other] and [action.auto_create_index] contains [-*] which forbids automatic creation of the index',
    ]);
    expect((await call('PUT', '/logs-1/_doc/1?refresh', { n: 1 })).status).toBe(201);
    await call('PUT', '/logs-1/_doc/2', { n: 2 });
    await call('PUT', '/logs-1/_doc/3?refresh', { n: 3 });
    const buckets = await call('POST', '/logs-1/_search', { aggs: { n: { terms: { field: 'n' } } } });
    expect(buckets.text).toContain('too_many_buckets_exception');
    await call('PUT', '/_cluster/settings', { persistent: { 'action.*': null }, transient: { 'search.*': null } });
    expect(await get('/_cluster/settings')).toEqual({ persistent: {}, transient: {} });
    expect((await get('/_cluster/settings?include_defaults&flat_settings')).defaults).toMatchObject({
      'action.destructive_requires_name': 'true',
    });
    for (const [body, status, reason] of [
      [{ persistent: { 'foo.bar': 1 } }, 400, 'persistent setting [foo.bar], not recognized'],
      [{ transient: { 'cluster.name': 'x' } }, 400, 'transient setting [cluster.name], not dynamically updateable'],
      [{}, 400, 'Validation Failed: 1: no settings to update;'],
      [{ other: {} }, 400, '[cluster_update_settings_request] unknown field [other]'],
    ] as const) {
      const answer = await call('PUT', '/_cluster/settings', body);
      expect([answer.status, answer.body.error.reason]).toEqual([status, reason]);
    }
    expect(await get('/_cluster/settings')).toEqual({ persistent: {}, transient: {} });
  });

  it('bounds how long scrolls and points in time are kept, by a setting', async () => {
    await call('PUT', '/_cluster/settings', { transient: { 'search.max_keep_alive': '1m' } });
    const refused = (asked: string, most: string): string =>
      `Keep alive for request (${asked}) is too large. It must be less than (${most}). This limit can be set by changing ` +
      'the [search.max_keep_alive] cluster level setting.';
    const reason = async (path: string, body?: object) => (await call('POST', path, body)).body.error?.reason;
    expect(await reason('/logs-1/_search?scroll=2m')).toBe(refused('2m', '1m'));
    expect(await reason('/logs-1/_pit?keep_alive=2m')).toBe(refused('2m', '1m'));
    const { _scroll_id: scroll_id } = (await call('POST', '/logs-1/_search?scroll=1m&size=1')).body;
    expect(await reason('/_search/scroll', { scroll_id, scroll: '3m' })).toBe(refused('3m', '1m'));
    await call('PUT', '/_cluster/settings', { transient: { 'search.max_keep_alive': null } });
    expect(await reason('/_search/scroll', { scroll_id, scroll: '3m' })).toBeUndefined();
    expect(await reason('/logs-1/_search?scroll=2d')).toBe(refused('2d', '1d'));
    await call('DELETE', '/_search/scroll', { scroll_id });
  });

  it('refuses expensive clauses of a search while a setting says so', async () => {
    const fields = { quick: { type: 'text', index_prefixes: {} } };
    const properties = { text: { type: 'text', fields }, n: { type: 'integer' }, list: { type: 'nested' } };
    await call('PUT', '/costly', { mappings: { properties } });
    await call('PUT', '/_cluster/settings', { transient: { 'search.allow_expensive_queries': false } });
    const status = async (query: object) => (await call('POST', '/costly/_search', { query })).status;
    const expensive = [
      { prefix: { text: 'a' } },
      { wildcard: { text: 'a*' } },
      { regexp: { text: 'a.' } },
      { fuzzy: { text: 'ab' } },
      { range: { text: { gte: 'a' } } },
      { nested: { path: 'list', query: { match_all: {} } } },
      { script: { script: 'true' } },
      { script_score: { query: { match_all: {} }, script: '1' } },
    ];
    for (const query of expensive) {
      expect(await status(query), JSON.stringify(query)).toBe(400);
      expect(await status({ bool: { must_not: [{ constant_score: { filter: query } }] } })).toBe(400);
    }
    for (const query of [{ prefix: { 'text.quick': 'a' } }, { range: { n: { gte: 1 } } }, { match: { text: 'a' } }]) {
      expect(await status(query), JSON.stringify(query)).toBe(200);
    }
    await call('PUT', '/_cluster/settings', { transient: { 'search.allow_expensive_queries': null } });
    for (const query of expensive) expect(await status(query), JSON.stringify(query)).toBe(200);
    await call('DELETE', '/costly');
  });

  it('lets patterns stand for what is deleted only where a setting says so', async () => {
    await call('PUT', '/gone-1');
    expect((await call('DELETE', '/gone-*')).status).toBe(400);
    await call('PUT', '/_cluster/settings', { persistent: { 'action.destructive_requires_name': false } });
    expect((await call('POST', '/gone-*/_close')).body.indices).toEqual({ 'gone-1': { closed: true } });
    expect((await call('POST', '/gone-*/_open')).status).toBe(200);
    expect((await call('DELETE', '/gone-*')).body).toEqual({ acknowledged: true });
    await call('PUT', '/_cluster/settings', { persistent: { 'action.destructive_requires_name': null } });
    expect((await call('HEAD', '/gone-1')).status).toBe(404);
  });

  it('shows that nothing waits and nothing is far away', async () => {
    expect(await get('/_cluster/pending_tasks')).toEqual({ tasks: [] });
    expect(await get('/_remote/info')).toEqual({});
  });

  it('describes the node and counts what it does', async () => {
    const { nodes, _nodes } = await get('/_nodes');
    expect(_nodes).toEqual({ total: 1, successful: 1, failed: 0 });
    const [id = ''] = Object.keys(nodes);
    expect(nodes[id]).toMatchObject({ name: 'sparrow', version: '8.19.21', plugins: [] });
    expect(nodes[id].http.publish_address).toBe(new URL(server.url).host);
    expect(Object.keys((await get('/_nodes/http')).nodes[id])).not.toContain('os');
    expect((await get(`/_nodes/${id}/os`)).nodes[id].os.available_processors).toBeGreaterThan(0);
    expect((await get('/_nodes/elsewhere/os')).nodes).toEqual({});
    const stats = (await get('/_nodes/stats')).nodes[id];
    expect(stats.indices.docs.count).toBeGreaterThanOrEqual(3);
    expect(stats.process.mem.resident_in_bytes).toBeGreaterThan(1e6);
    expect(stats.fs.total.total_in_bytes).toBeGreaterThan(0);
    expect(Object.keys((await get(`/_nodes/${id}/stats/indices/docs`)).nodes[id].indices)).toEqual(['docs']);
    expect((await get('/_nodes/stats/indices?level=indices')).nodes[id].indices.indices.one.docs.count).toBe(0);
    const unknown = await call('GET', '/_nodes/stats/transprot');
    expect(unknown.body.error.reason).toBe(
      'request [/_nodes/stats/transprot] contains unrecognized metric: [transprot] -> did you mean [transport]?',
    );
    const cluster = await get('/_cluster/stats');
    expect(cluster).toMatchObject({ status: 'yellow', nodes: { count: { total: 1 } } });
    expect(cluster.indices.mappings.field_types).toContainEqual({
      name: 'sparse_vector',
      count: 1,
      index_count: 1,
      script_count: 0,
    });
    expect((await call('GET', '/_nodes/hot_threads')).text).toContain(':::');
  });
});

describe('statistics', () => {
  it('counts what is done with an index', async () => {
    await call('PUT', '/counted', { mappings: { properties: { s: { type: 'sparse_vector' } } } });
    await call('PUT', '/counted/_doc/1', { s: { a: 1 } });
    await call('PUT', '/counted/_doc/2', { s: { b: 2 } });
    await call('PUT', '/counted/_create/1', {});
    await call('DELETE', '/counted/_doc/2');
    await call('POST', '/counted/_update/1', { doc: { s: { a: 1 } } });
    await call('GET', '/counted/_doc/1');
    await call('GET', '/counted/_doc/none');
    await call('POST', '/counted/_refresh');
    const scroll = (await call('POST', '/counted/_search?scroll=1m', {})).body._scroll_id;
    const open = (await get('/counted/_stats')).indices.counted;
    expect(open).toMatchObject({ health: 'yellow', status: 'open' });
    expect(open.primaries).toMatchObject({
      docs: { count: 1 },
      indexing: {
        index_total: 2,
        delete_total: 1,
        index_failed: 1,
        index_failed_due_to_version_conflict: 1,
        noop_update_total: 1,
      },
      get: { total: 2, exists_total: 1, missing_total: 1 },
      search: { query_total: 1, fetch_total: 1, scroll_current: 1, open_contexts: 1, scroll_total: 0 },
      translog: { operations: 3 },
      // A deleted one counts until it is merged away.
      sparse_vector: { value_count: 2 },
      segments: { count: 1 },
    });
    expect(open.primaries.store.size_in_bytes).toBeGreaterThan(0);
    await call('DELETE', '/_search/scroll', { scroll_id: scroll });
    await call('POST', '/counted/_flush');
    const { total, shards } = (await get('/counted/_stats?level=shards')).indices.counted;
    expect(total).toMatchObject({
      search: { scroll_current: 0, open_contexts: 0, scroll_total: 1 },
      flush: { total: 1 },
      translog: { operations: 0 },
    });
    expect(shards['0'][0]).toMatchObject({ routing: { state: 'STARTED', primary: true }, seq_no: { max_seq_no: 2 } });
  });

  it('shows the metrics, levels and indices that are asked for', async () => {
    const some = await get('/_stats/docs,merge?level=cluster');
    expect([Object.keys(some), Object.keys(some._all.primaries)]).toEqual([
      ['_shards', '_all'],
      ['docs', 'merges'],
    ]);
    expect(Object.keys((await get('/o*/_stats/store')).indices)).toEqual(['one']);
    await call('POST', '/one/_close');
    expect((await call('GET', '/one/_stats')).body.error.type).toBe('index_closed_exception');
    expect((await get('/one/_stats?forbid_closed_indices=false')).indices.one.status).toBe('close');
    await call('POST', '/one/_open');
    for (const [path, reason] of [
      [
        '/_stats/fieldata',
        'request [/_stats/fieldata] contains unrecognized metric: [fieldata] -> did you mean [fielddata]?',
      ],
      ['/_stats/_all,get', 'request [/_stats/_all,get] contains _all and individual metrics [_all,get]'],
      ['/_stats?level=x', 'level parameter must be one of [cluster] or [indices] or [shards] but was [x]'],
    ] as const) {
      expect((await call('GET', path)).body.error.reason).toBe(reason);
    }
  });

  it('shows segments and recoveries', async () => {
    await call('PUT', '/segmented/_doc/1?refresh', { a: 1 });
    const shard = (await get('/segmented/_segments')).indices.segmented.shards['0'][0];
    expect(shard).toMatchObject({ num_committed_segments: 0, num_search_segments: 1 });
    expect(shard.segments._0).toMatchObject({ num_docs: 1, deleted_docs: 0, committed: false, search: true });
    await call('POST', '/segmented/_flush');
    expect((await get('/segmented/_segments')).indices.segmented.shards['0'][0].num_committed_segments).toBe(1);
    const recovered = (await get('/segmented/_recovery')).segmented.shards[0];
    expect(recovered).toMatchObject({ id: 0, type: 'EMPTY_STORE', stage: 'DONE', primary: true });
    expect(await get('/_recovery?active_only')).toEqual({});
    expect((await call('GET', '/nowhere/_recovery')).status).toBe(404);
  });
});

describe('tables', () => {
  it('has the tables that tools read', async () => {
    const tasks = await call('GET', '/_cat/tasks');
    expect(tasks.text).toMatch(
      /^cluster:monitor\/tasks\/lists\s+\S+:\d+\s+-\s+transport\s+\d+\s+\d\d:\d\d:\d\d\s+\S+\s+127\.0\.0\.1\s+sparrow\n$/,
    );
    expect((await call('GET', '/_cat/tasks?detailed&v')).text).toContain('description');
    const pools = await get('/_cat/thread_pool/s*,w*?format=json&h=name,active,size');
    expect(pools.map((pool: any) => pool.name)).toEqual(['search', 'write']);
    expect((await call('GET', '/_cat/recovery/one?h=i,s,ty,st,fp,bp,top')).text).toMatch(
      /^one 0 empty_store done 100\.0% 100\.0% 100\.0%\n$/,
    );
    for (const empty of ['fielddata', 'fielddata/t', 'nodeattrs', 'repositories', 'plugins', 'pending_tasks']) {
      expect((await call('GET', `/_cat/${empty}`)).text).toBe('');
    }
    const models = await get('/_cat/ml/trained_models?format=json&bytes=b');
    expect(models.length).toBeGreaterThan(0);
    expect(Number(models[0].heap_size)).toBeGreaterThan(0);
    const [node] = await get('/_cat/nodes?format=json&h=*');
    expect(node).toMatchObject({ name: 'sparrow', master: '*' });
    expect(Number(node['ram.percent'])).toBeGreaterThan(0);
    expect((await call('GET', '/_cat/allocation')).text).toMatch(/^\s*\d+ .*\n\s*\d+\s+UNASSIGNED\s*\n$/);
    expect((await call('GET', '/_cat/shards/two?h=i,p,st,ur,indexing.index_total&s=p')).text).toMatch(
      /^two p STARTED\s+0\ntwo r UNASSIGNED INDEX_CREATED\s*\n$/,
    );
    expect((await call('GET', '/_cat/segments/segmented?h=i,g,dc,ic,size.memory')).text).toMatch(
      /^segmented 0 1 true 0\n$/,
    );
    expect((await call('GET', '/_cat/shards?help')).text).toContain('search.query_total');
  });
});
