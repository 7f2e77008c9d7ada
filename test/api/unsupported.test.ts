// What only Elasticsearch has: every path of the official client is served, or refused by a sentence about it.
import { readFileSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

import { Client } from '@elastic/elasticsearch';
import { ENDPOINTS } from '@sparrow-search/server';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { fakeApp } from '../support/app.js';
import { type RunningServer, startServer } from '../support/server.js';

const unhandled = (method: string, path: string): string => `no handler found for uri [${path}] and method [${method}]`;

/** Methods and paths of the client, as the files of its interface set them, with a value for each parameter. */
function pathsOfClient(): (readonly [method: string, path: string])[] {
  const folder = join(dirname(createRequire(import.meta.url).resolve('@elastic/elasticsearch')), 'lib/api/api');
  const found = new Map<string, readonly [string, string]>();
  for (const file of readdirSync(folder).filter((name) => name.endsWith('.js'))) {
    let methods: string[] = [];
    for (const line of readFileSync(join(folder, file), 'utf8').split('\n')) {
      const set = /\bmethod = (.+);$/.exec(line)?.[1];
      if (set !== undefined) methods = [...set.matchAll(/'([A-Z]+)'/g)].map(([, method = '']) => method);
      const path = /\bpath = [`'](\/.*)[`'];$/.exec(line)?.[1];
      if (path === undefined) continue;
      const shape = path.replaceAll(/\$\{[^}]*params\.\w+[^}]*\}/g, '{}');
      for (const method of methods) found.set(`${method} ${shape}`, [method, shape]);
    }
  }
  return [...found.values()];
}

const served = new Set(ENDPOINTS.map(({ path }) => path.replaceAll(/\{\w+\}/g, '{}')));
/** The task is a name in the client's paths, and a parameter in the table. */
const isServed = (path: string): boolean =>
  served.has(path) || served.has(path.replace(/^\/_inference\/\w+\//, '/_inference/{}/'));

describe('paths of the client', () => {
  const all = pathsOfClient();

  it('are all found', () => {
    expect(all.length).toBeGreaterThan(700);
    expect(all.filter(([, path]) => path.includes('$'))).toEqual([]);
    expect(all.filter(([, path]) => isServed(path)).length).toBeGreaterThan(250);
  });

  it('are served, or refused by a sentence about them', async () => {
    const { call, engine } = await fakeApp();
    const silent: string[] = [];
    for (const [method, shape] of all) {
      if (isServed(shape)) continue;
      const path = shape.replaceAll('{}', 'some');
      const response = await call(method, path);
      const { error } = method === 'HEAD' ? { error: 'HEAD' } : ((await response.json()) as { error: string });
      const isTold =
        String(error).startsWith(`${unhandled(method, path)}: `) && / (?:is|are) not part of this server/.test(error);
      if (response.status !== 400 || !isTold) silent.push(`${method} ${path}: ${JSON.stringify(error)}`);
    }
    expect(silent).toEqual([]);
    expect(engine.asked).toEqual([]);
  });

  it('that are served are not refused', async () => {
    const { call } = await fakeApp();
    const refused: string[] = [];
    for (const { method, path } of ENDPOINTS) {
      const text = await (await call(method, path.replaceAll(/\{\w+\}/g, 'some'))).text();
      if (text.includes('not part of this server') || text.includes('no handler')) refused.push(`${method} ${path}`);
    }
    expect(refused).toEqual([]);
  });
});

describe('a name that begins with an underscore', () => {
  it.each([
    ['POST', '/_query', ': ES|QL is not part of this server, use [_search]'],
    ['GET', '/_query/async/x', ': ES|QL is not part of this server, use [_search]'],
    ['GET', '/one/_eql/search', ': EQL is not part of this server, use [_search]'],
    ['GET', '/_nodes/usage', ': the use of features is not part of this server, use [_nodes/stats]'],
    ['PUT', '/_snapshot/some/_analyze', ': the analysis of repositories is not part of this server, use [_verify]'],
    // The path is served, but only by the method that lists.
    ['PUT', '/_ilm/policy/some', ': the management of index lifecycles is not part of this server'],
    ['PUT', '/_nodes/some/shutdown', ': managing nodes from afar is not part of this server'],
    ['GET', '/_serach', ' -> did you mean [/_search]?'],
    ['POST', '/_serach', ' -> did you mean [/_search]?'],
    ['POST', '/books/_serach', ' -> did you mean [/books/_search]?'],
    ['POST', '/_all/_cuont', ' -> did you mean [/_all/_count]?'],
    ['GET', '/_cat/indexes', ' -> did you mean [/_cat/indices]?'],
    ['GET', '/_cluster/helth', ' -> did you mean [/_cluster/health]?'],
    ['GET', '/_licence', ' -> did you mean [/_license]?'],
    ['POST', '/_nope', ''],
    ['POST', '/books/_nope', ''],
    ['GET', '/a/b/c/d', ''],
  ])('is no index: %s %s', async (method, path, more) => {
    const { call, engine } = await fakeApp();
    const response = await call(method, path);
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({ error: unhandled(method, path) + more });
    expect(engine.asked).toEqual([]);
  });

  it.each([
    ['GET', '/_all'],
    ['GET', '/_all/_search'],
    ['DELETE', '/_all'],
    ['GET', '/_nope'],
    ['GET', '/_nope/_search'],
    ['POST', '/_reindex/some:1/_rethrottle'],
    ['GET', '/_inference/_all'],
    ['GET', '/_nodes/stats'],
    ['PUT', '/_security/api_key/some'],
  ])('is answered where it is known, or where an index is spoken of: %s %s', async (method, path) => {
    const { call } = await fakeApp();
    expect(await (await call(method, path)).text()).not.toContain('no handler found');
  });

  it('is told to nobody without a key', async () => {
    const { app } = await fakeApp();
    for (const path of ['/_query', '/_serach']) expect((await app.request(path)).status).toBe(401);
  });
});

describe('what clients ask for by themselves', () => {
  let server: RunningServer;
  let client: Client;

  beforeAll(async () => {
    server = await startServer({ args: ['--deploy-at-start', 'false'] });
    client = new Client({ node: server.url, auth: { apiKey: server.apiKey } });
  });
  afterAll(async () => {
    await client.close();
    await server.stop();
  });

  it('shows a license that is basic and active', async () => {
    const { license } = await client.license.get();
    const recorded = readFileSync(new URL('../fixtures/recorded/elasticsearch-8.19.21.jsonl', import.meta.url), 'utf8');
    const line = recorded.split('\n').find((one) => one.startsWith('{"name":"license"')) ?? '{}';
    const original = (JSON.parse(line) as { response: { body: { license: object } } }).response.body.license;
    expect(Object.keys(license)).toEqual(Object.keys(original));
    expect(license).toMatchObject({ status: 'active', type: 'basic', max_nodes: 1000, start_date_in_millis: -1 });
    expect(license.uid).toMatch(/^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-8[\da-f]{3}-[\da-f]{12}$/);
    expect((await client.license.get()).license.uid).toBe(license.uid);
  });

  it('says which features are here', async () => {
    const info = await client.xpack.info();
    expect(Object.keys(info)).toEqual(['build', 'license', 'features', 'tagline']);
    expect(info.license).toMatchObject({ type: 'basic', mode: 'basic', status: 'active' });
    expect(info.features.security).toEqual({ available: true, enabled: true });
    expect(info.features.ml).toEqual({ available: true, enabled: true });
    expect(info.features.esql).toEqual({ available: false, enabled: false });
    const { body } = await server.request('GET', '/_xpack?categories=license&human=false');
    expect(Object.keys(body as object)).toEqual(['license']);
    expect((await server.request('GET', '/_xpack?categories=nothing')).status).toBe(400);
  });

  it('reports how it is, by what can be wrong', async () => {
    const before = await client.healthReport({});
    expect(Object.keys(before.indicators)).toEqual(['master_is_stable', 'disk', 'shards_availability']);
    expect(before.indicators.shards_availability).toMatchObject({ status: 'green' });
    await client.indices.create({ index: 'copied', settings: { number_of_replicas: 2 } });
    const { indicators } = await client.healthReport({ feature: 'shards_availability' });
    expect(Object.keys(indicators)).toEqual(['shards_availability']);
    expect(indicators.shards_availability).toMatchObject({
      status: 'yellow',
      symptom: 'This cluster has 2 unavailable replica shards.',
      details: { started_primaries: 1, unassigned_replicas: 2, unassigned_primaries: 0 },
    });
    const brief = await server.request('GET', '/_health_report?verbose=false');
    expect(['yellow', 'red']).toContain(brief.body.status);
    expect(brief.body.indicators.disk.details).toBeUndefined();
    const missing = await server.request('GET', '/_health_report/ilm');
    expect([missing.status, missing.body.error.reason]).toEqual([404, 'Did not find indicator ilm']);
  });

  it('lists nothing of what only Elasticsearch has', async () => {
    expect(await client.rollup.getJobs({ id: '_all' })).toEqual({ jobs: [] });
    expect(await client.ilm.getLifecycle()).toEqual({});
    expect(await client.slm.getLifecycle()).toEqual({});
    expect(await client.ccr.getAutoFollowPattern()).toEqual({ patterns: [] });
    expect(await client.enrich.getPolicy()).toEqual({ policies: [] });
    expect(await client.ingest.processorGrok()).toEqual({ patterns: {} });
    expect(await client.shutdown.getNode()).toEqual({ nodes: [] });
    expect(await client.transform.getTransform({ transform_id: '*' })).toEqual({ count: 0, transforms: [] });
    expect(await client.ml.getJobs({ job_id: '_all' })).toEqual({ count: 0, jobs: [] });
    expect(await client.ml.getDatafeeds({ datafeed_id: '*', allow_no_match: true })).toEqual({
      count: 0,
      datafeeds: [],
    });
    expect(await client.ml.getDataFrameAnalytics()).toEqual({ count: 0, data_frame_analytics: [] });
    expect(await client.ml.getFilters({ filter_id: 'a*,b*' })).toEqual({ count: 0, filters: [] });
    expect(await client.ml.getCalendars({ calendar_id: '*' })).toEqual({
      count: 0,
      calendars: [],
    });
  });

  it.each([
    ['/_ilm/policy/some', 'Lifecycle policy not found: some'],
    ['/_transform/some', 'Transform with id [some] could not be found'],
    ['/_ml/anomaly_detectors/a*,some', "No known job with id 'a*,some'"],
    ['/_ml/datafeeds/*?allow_no_match=false', 'No datafeed with id [*] exists'],
  ])('has none of a name: %s', async (path, reason) => {
    const { status, body } = await server.request('GET', path);
    expect([status, body.error.type, body.error.reason]).toEqual([404, 'resource_not_found_exception', reason]);
  });
});
