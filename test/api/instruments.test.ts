// What an operator sees: figures for Prometheus, statistics that agree with them, slow logs, hot threads, liveness and readiness.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { ENDPOINTS } from '@sparrow-search/server';

import { type Family, readPage, valueOf } from '../support/prometheus.js';
import { type RunningServer, logLines, startServer } from '../support/server.js';

let server: RunningServer;
const call = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
  server.request(method, path, body, { headers });
const page = async (): Promise<Map<string, Family>> => readPage((await call('GET', '/metrics')).text);

/** Lines of the log, waited for. */
async function logged(isWanted: (line: Record<string, any>) => boolean): Promise<Record<string, any>[]> {
  for (let tries = 0; ; tries += 1) {
    const lines = logLines(server).filter(isWanted);
    if (lines.length > 0 || tries > 40) return lines;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

beforeAll(async () => {
  server = await startServer();
});
afterAll(async () => {
  await server.stop();
});

describe('GET /metrics', () => {
  it('counts requests by route, never by path, and by class of status', async () => {
    const before = await page();
    for (const id of ['a', 'b', 'c']) await call('PUT', `/counted-${id}/_doc/${id}`, { t: id });
    await call('GET', '/counted-a/_doc/none');
    await call('GET', '/no/such/route/at/all');
    const after = await page();
    const grown = (labels: Record<string, string>): number =>
      valueOf(after, 'sparrow_http_requests_total', labels) - valueOf(before, 'sparrow_http_requests_total', labels);
    expect(grown({ route: '/{index}/_doc/{id}', method: 'PUT', status: '2xx' })).toBe(3);
    expect(grown({ route: '/{index}/_doc/{id}', method: 'GET', status: '4xx' })).toBe(1);
    expect(grown({ route: 'unmatched', status: '4xx' })).toBe(1);
    const routes = new Set(after.get('sparrow_http_requests_total')?.samples.map(({ labels }) => labels['route']));
    const known = new Set([...ENDPOINTS.map(({ path }) => path), 'unmatched']);
    expect([...routes].filter((route) => !known.has(route ?? ''))).toEqual([]);
    const name = 'sparrow_http_request_duration_seconds_count';
    expect(valueOf(after, name, { route: '/{index}/_doc/{id}', method: 'PUT' })).toBe(
      valueOf(after, 'sparrow_http_requests_total', { route: '/{index}/_doc/{id}', method: 'PUT' }),
    );
  });

  it('has a unit and a help for everything, and no name that a client chose', async () => {
    await call('PUT', '/a-very-telling-name', {});
    const { text, headers } = await call('GET', '/metrics');
    expect(headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(text).not.toContain('a-very-telling-name');
    const families = readPage(text);
    for (const name of [
      ...['sparrow_process_resident_memory_bytes', 'sparrow_event_loop_delay_seconds', 'sparrow_gc_pause_seconds'],
      ...[
        'sparrow_lane_queue_length',
        'sparrow_lane_rejected_total',
        'sparrow_encoder_batches_total',
        'sparrow_log_bytes',
      ],
      ...['sparrow_refresh_lag_seconds', 'sparrow_merges_total', 'sparrow_filter_cache_hits_total', 'sparrow_segments'],
      ...['sparrow_http_connections_open', 'sparrow_encoder_model_bytes', 'sparrow_http_requests_rejected_total'],
      ...['sparrow_request_memory_bytes', 'sparrow_in_flight_bytes', 'sparrow_indices_refusing_writes'],
    ]) {
      expect([name, families.has(name)]).toEqual([name, true]);
    }
    expect([...families.keys()].every((name) => /^sparrow_[a-z_]+$/.test(name))).toBe(true);
    expect(valueOf(families, 'sparrow_ready')).toBe(1);
    expect(valueOf(families, 'sparrow_engine_answers')).toBe(1);
    for (const reason of ['disk_failed', 'flood_stage']) {
      expect(valueOf(families, 'sparrow_indices_refusing_writes', { reason })).toBe(0);
    }
    // This request itself holds some.
    expect(valueOf(families, 'sparrow_request_memory_limit_bytes', { of: 'all' })).toBeGreaterThan(1e8);
    const allocated = valueOf(families, 'sparrow_allocated_memory_bytes');
    const { body } = await call('GET', '/_nodes/stats/breaker');
    const [node] = Object.values<any>(body.nodes);
    // The same figure, read between two looks at it: a model that is loaded meanwhile makes it grow.
    const looks = [allocated, valueOf(await page(), 'sparrow_allocated_memory_bytes')];
    const { estimated_size_in_bytes: estimated } = node.breakers.parent;
    expect(estimated).toBeGreaterThan(0.98 * Math.min(...looks));
    expect(estimated).toBeLessThan(1.02 * Math.max(...looks));
    expect(valueOf(families, 'sparrow_in_flight_limit_bytes')).toBeGreaterThan(1e7);
    expect(valueOf(families, 'sparrow_process_resident_memory_bytes')).toBeGreaterThan(1e7);
  });

  it('counts what the encoder does', async () => {
    const before = await page();
    const infer = { docs: [{ text_field: 'a text that nobody has sent before' }] };
    const model = '/_ml/trained_models/.elser_model_2/_infer';
    expect((await call('POST', model, infer)).status).toBe(200);
    expect((await call('POST', model, infer)).status).toBe(200);
    const after = await page();
    const grown = (name: string): number => valueOf(after, name) - valueOf(before, name);
    expect(grown('sparrow_encoder_texts_total')).toBe(2);
    expect(grown('sparrow_encoder_cache_hits_total')).toBe(1);
    expect(grown('sparrow_encoder_cache_misses_total')).toBe(1);
    expect(grown('sparrow_encoder_batches_total')).toBe(1);
    expect(grown('sparrow_encoder_tokens_total')).toBeGreaterThan(5);
    expect(grown('sparrow_encoder_busy_seconds_total')).toBeGreaterThan(0);
  });

  it('never counts backwards when an index goes', async () => {
    await call('PUT', '/passing/_doc/1?refresh=true', { t: 'x' });
    await call('GET', '/passing/_search');
    // Nothing is left that a refresh in the background would show between two looks.
    await call('POST', '/_refresh');
    const names = ['sparrow_indexed_documents_total', 'sparrow_search_queries_total', 'sparrow_refreshes_total'];
    const before = await page();
    const documents = valueOf(before, 'sparrow_documents');
    await call('DELETE', '/passing');
    const after = await page();
    for (const name of names) expect(valueOf(after, name)).toBeGreaterThanOrEqual(valueOf(before, name));
    expect(valueOf(after, 'sparrow_documents')).toBe(documents - 1);
  });

  it('needs the privilege to monitor, and counts who was refused', async () => {
    const { encoded } = (
      await call('POST', '/_security/api_key', {
        name: 'reader',
        role_descriptors: { r: { cluster: [], indices: [{ names: ['*'], privileges: ['read'] }] } },
      })
    ).body;
    const before = await page();
    expect((await server.request('GET', '/metrics', undefined, { apiKey: encoded })).status).toBe(403);
    expect((await server.request('GET', '/metrics', undefined, { apiKey: null })).status).toBe(401);
    const after = await page();
    for (const reason of ['forbidden', 'unauthenticated']) {
      const name = 'sparrow_http_requests_rejected_total';
      expect(valueOf(after, name, { reason }) - valueOf(before, name, { reason })).toBe(1);
    }
    const monitor = (
      await call('POST', '/_security/api_key', { name: 'm', role_descriptors: { m: { cluster: ['monitor'] } } })
    ).body;
    expect((await server.request('GET', '/metrics', undefined, { apiKey: monitor.encoded })).status).toBe(200);
  });
});

describe('the statistics of nodes', () => {
  it('agree with the figures for Prometheus', async () => {
    for (let id = 0; id < 5; id += 1) await call('PUT', `/agreed/_doc/${String(id)}`, { t: 'words', n: id });
    await call('POST', '/_refresh');
    await call('DELETE', '/agreed/_doc/4?refresh=true');
    for (let times = 0; times < 4; times += 1)
      await call('POST', '/agreed/_search', { query: { match: { t: 'words' } } });
    await call('GET', '/agreed/_doc/1');
    const { nodes } = (await call('GET', '/_nodes/stats')).body;
    const stats = nodes[Object.keys(nodes)[0] ?? ''];
    const families = await page();
    const { indexing, search, get, refresh, docs, segments, store } = stats.indices;
    const value = (name: string, labels?: Record<string, string>): number =>
      valueOf(families, `sparrow_${name}`, labels);
    // An index that another test deleted has left the statistics, but not the counters.
    const gone = value('indexed_documents_total') - indexing.index_total;
    expect(gone).toBeGreaterThanOrEqual(0);
    expect(gone).toBeLessThanOrEqual(1);
    expect(value('deleted_documents_total')).toBe(indexing.delete_total);
    expect(value('search_queries_total') - search.query_total).toBeLessThanOrEqual(1);
    expect(value('gets_total')).toBe(get.total);
    expect(value('refreshes_total')).toBeGreaterThanOrEqual(refresh.total);
    expect(value('documents')).toBe(docs.count);
    expect(value('segments')).toBe(segments.count);
    expect(value('store_bytes')).toBe(store.size_in_bytes);
    for (const lane of ['search', 'write']) {
      expect(value('lane_workers', { lane })).toBe(stats.thread_pool[lane].threads);
      expect(value('lane_completed_total', { lane })).toBeGreaterThanOrEqual(stats.thread_pool[lane].completed);
    }
    expect(stats.http.current_open).toBeGreaterThan(0);
    expect(value('http_connections_total')).toBeGreaterThanOrEqual(stats.http.total_opened);
    expect(Object.keys(stats.jvm.gc.collectors)).toEqual(['young', 'old']);
  });
});

describe('slow logs', () => {
  it('of searches name what was asked, how long it took, and whose request it was', async () => {
    await call('PUT', '/slow', {
      settings: {
        'index.search.slowlog.threshold.query.warn': '1h',
        'index.search.slowlog.threshold.query.info': '0ms',
        'index.search.slowlog.threshold.fetch.trace': '0ms',
      },
    });
    await call('PUT', '/slow/_doc/1?refresh=true', { t: 'needle' });
    const trace = '0af7651916cd43dd8448eb211c80319c';
    const headers = { 'x-opaque-id': 'who-asked', traceparent: `00-${trace}-b7ad6b7169203331-01` };
    const search = { query: { match: { t: 'needle' } } };
    const answer = await call('POST', '/slow/_search', search, headers);
    const lines = await logged((line) => line['elasticsearch.slowlog.id'] === 'who-asked');
    expect(lines.map((line) => [line['log.level'], line['log.logger']])).toEqual([
      ['INFO', 'index.search.slowlog.query'],
      ['TRACE', 'index.search.slowlog.fetch'],
    ]);
    expect(lines[0]).toMatchObject({
      'event.dataset': 'elasticsearch.index_search_slowlog',
      'elasticsearch.slowlog.message': '[slow][0]',
      'elasticsearch.slowlog.search_type': 'QUERY_THEN_FETCH',
      'elasticsearch.slowlog.source': JSON.stringify(search),
      'elasticsearch.slowlog.total_hits': '1 hits',
      'elasticsearch.slowlog.total_shards': 1,
      'trace.id': trace,
      request_id: answer.headers['x-request-id'],
    });
    expect(lines[0]?.['elasticsearch.slowlog.took']).toMatch(/^[\d.]+(?:nanos|micros|ms|s)$/);
    expect(Date.parse(String(lines[0]?.['@timestamp']))).toBeGreaterThan(Date.now() - 60_000);
  });

  it('of searches also come from a multi search', async () => {
    await call('POST', '/_msearch', '{"index":"slow"}\n{"query":{"match_all":{}}}\n'.repeat(4), {
      'x-opaque-id': 'several',
    });
    await logged((line) => line['elasticsearch.slowlog.id'] === 'several');
    await new Promise((resolve) => setTimeout(resolve, 200));
    const lines = await logged(
      (line) => line['elasticsearch.slowlog.id'] === 'several' && line['log.logger'] === 'index.search.slowlog.query',
    );
    expect(lines).toHaveLength(4);
  });

  it('of writes show the document, as far as the index says', async () => {
    await call('PUT', '/slow-writes', {
      settings: { 'index.indexing.slowlog.threshold.index.warn': '0ms', 'index.indexing.slowlog.source': '9' },
    });
    await call('PUT', '/slow-writes/_doc/x1', { title: 'a long title' });
    const [line] = await logged((one) => one['elasticsearch.slowlog.id'] === 'x1');
    expect(line).toMatchObject({
      'log.level': 'WARN',
      'event.dataset': 'elasticsearch.index_indexing_slowlog',
      'elasticsearch.slowlog.source': '{"title":',
    });
    expect(line?.['elasticsearch.slowlog.message']).toMatch(/^\[slow-writes\/.+\]$/);
  });

  it('end with the threshold', async () => {
    await call('PUT', '/slow/_settings', { 'index.search.slowlog.threshold.query.info': null });
    await call('PUT', '/slow/_settings', { 'index.search.slowlog.threshold.fetch.trace': '-1' });
    await call('POST', '/slow/_search', {}, { 'x-opaque-id': 'silent' });
    await call('POST', '/slow-writes/_doc', {}, { 'x-opaque-id': 'after' });
    await logged((line) => line['msg'] === 'never');
    expect(server.output()).not.toContain('"silent"');
  });
});

describe('hot threads', () => {
  it('are those that work while the request waits', async () => {
    let working = true;
    const work = (async (): Promise<void> => {
      while (working) await call('GET', '/_search?q=anything');
    })();
    const { text } = await call('GET', '/_nodes/hot_threads?interval=300ms&threads=2');
    working = false;
    await work;
    expect(text).toMatch(/^::: \{sparrow\}/);
    expect(text).toContain('interval=300ms, busiestThreads=2');
    if (process.platform === 'linux') expect(text).toMatch(/\d+\.\d% \[cpu=\d.*cpu usage by thread '[^']+' \[\d+\]/);
    expect((await call('GET', '/_nodes/hot_threads?interval=2m')).status).toBe(400);
  });
});

describe('liveness and readiness', () => {
  it('need no key', async () => {
    for (const [path, status] of [
      ['/_live', 'live'],
      ['/_ready', 'ready'],
      ['/_health', 'ready'],
    ] as const) {
      const answer = await server.request('GET', path, undefined, { apiKey: null });
      expect([answer.status, answer.body]).toEqual([200, { status }]);
      expect(answer.headers['cache-control']).toBe('no-store');
      expect(answer.headers['x-content-type-options']).toBe('nosniff');
    }
  });
});
