// Groups of statistics, which searches name in `stats`, and figures of the node that tools read.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { kindsOf } from '../support/declared-kinds.js';
import { type Answer, type RunningServer, startServer } from '../support/server.js';

let server: RunningServer;
const call = (method: string, path: string, body?: unknown): Promise<Answer> => server.request(method, path, body);

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
});

afterAll(async () => {
  await server.stop();
});

describe('groups of statistics', () => {
  const groups = async (query: string) =>
    (await call('GET', `/grouped/_stats/search?${query}`)).body.indices.grouped.primaries.search.groups;
  const search = (body: object, query = ''): Promise<Answer> => call('POST', `/grouped/_search${query}`, body);

  beforeAll(async () => {
    await call('PUT', '/grouped/_doc/1?refresh=true', { a: 1 });
    await search({ stats: ['bar', 'baz', 'bar'] });
    await search({}, '?stats=bar,uri');
    await search({ stats: ['bar'], query: { range: { a: { gt: 5 } } } });
  });

  it('count the searches that name them', async () => {
    // A name that `stats` has twice counts once.
    const all = await groups('groups=*');
    expect(Object.keys(all)).toEqual(['bar', 'baz', 'uri']);
    expect(all.bar).toMatchObject({ query_total: 3, query_current: 0, query_failure: 0, fetch_total: 2 });
    expect(all.baz).toMatchObject({ query_total: 1, fetch_total: 1 });
    expect(all.bar.open_contexts).toBeUndefined();
  });

  it('are shown where their names are asked for', async () => {
    expect(Object.keys(await groups('groups=ba*,nothing'))).toEqual(['bar', 'baz']);
    expect(Object.keys(await groups('groups=_all'))).toEqual(['bar', 'baz', 'uri']);
    expect(await groups('groups=nothing')).toBeUndefined();
    expect(await groups('')).toBeUndefined();
    const { body } = await call('GET', '/_stats?groups=baz');
    expect(body._all.total.search.groups).toEqual({ baz: (await groups('groups=baz')).baz });
  });

  it('are bounded in number and length', async () => {
    const names = Array.from({ length: 65 }, (_, n) => `g${String(n)}`);
    const many = await search({ stats: names });
    const reason = '[stats] has [65] groups, at most [64] are possible on this server';
    expect([many.status, many.body.error.root_cause[0].reason]).toEqual([400, reason]);
    const long = await search({ stats: ['x'.repeat(1001)] });
    expect([long.status, long.text]).toEqual([
      400,
      expect.stringContaining('the name of a group in [stats] is too long'),
    ]);
  });

  it('count a search that fails', async () => {
    await search({ stats: ['broken'], query: { exists: { field: '_source' } } });
    expect((await groups('groups=broken')).broken).toMatchObject({ query_total: 1, query_failure: 1, fetch_total: 0 });
  });
});

describe('the node', () => {
  const section = async (path: string) => Object.values<Record<string, any>>((await call('GET', path)).body.nodes)[0];

  it('names its aggregations, with the types of values that they take', async () => {
    const { aggregations } = (await section('/_nodes/aggregations')) ?? {};
    expect(aggregations).toMatchObject({ filter: { types: ['other'] }, ip_range: { types: ['ip'] } });
    expect(Object.keys(aggregations).sort()).toEqual(kindsOf('Aggregation'));
  });

  it('shows its settings flat on request', async () => {
    expect((await section('/_nodes/settings'))?.['settings'].client).toEqual({ type: 'node' });
    expect((await section('/_nodes/settings?flat_settings=true'))?.['settings']['client.type']).toBe('node');
  });
});

describe('a closed index', () => {
  it('has no open segments, unless unloaded ones are asked for', async () => {
    await call('PUT', '/shut/_doc/1?refresh=true', { a: 1 });
    await call('POST', '/shut/_flush');
    await call('POST', '/shut/_close');
    const count = async (query: string) => {
      const path = `/_stats/segments?expand_wildcards=closed&forbid_closed_indices=false${query}`;
      return (await call('GET', path)).body.indices.shut.primaries.segments.count;
    };
    expect(await count('')).toBe(0);
    expect(await count('&include_unloaded_segments=true')).toBe(1);
  });
});
