import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

let server: RunningServer;
const call = async (method: string, path: string, body?: unknown) => server.request(method, path, body);

beforeAll(async () => {
  server = await startServer();
});
afterAll(async () => {
  await server.stop();
});

describe('reads', () => {
  it('settings by name, with defaults', async () => {
    const settings = { number_of_replicas: 0, 'index.priority': 3, 'translog.flush_threshold_size': '160b' };
    expect((await call('PUT', '/settings-1', { settings })).status).toBe(200);
    const read = async (path: string) => (await call('GET', path)).body['settings-1'];
    expect(await read('/settings-1/_settings/index.number_of_r*')).toEqual({
      settings: { index: { number_of_replicas: '0' } },
    });
    expect(await read('/_settings/index.priority,index.number_of_shards?flat_settings=true')).toEqual({
      settings: { 'index.number_of_shards': '1', 'index.priority': '3' },
    });
    expect((await read('/settings-1/_settings/_all')).settings.index.translog).toEqual({
      flush_threshold_size: '160b',
    });
    const { defaults } = await read('/settings-1/_settings?include_defaults=true&flat_settings=true');
    expect(defaults).toMatchObject({ 'index.refresh_interval': '1s', 'index.max_result_window': '10000' });
    expect(defaults).not.toHaveProperty(['index.priority']);
  });

  it.each([
    [{ 'soft_deletes.enabled': false }, 'Creating indices with soft-deletes disabled is no longer supported'],
    [{ 'translog.flush_threshold_size': '5 parsecs' }, '[index.translog.flush_threshold_size]'],
    [{ 'routing.allocation.enable': 'some' }, '[index.routing.allocation.enable]'],
    [{ 'search.slowlog.threshold.query.warn': 'soon' }, '[index.search.slowlog.threshold.query.warn]'],
    [{ 'search.slowlog.nothing': 1 }, 'unknown setting [index.search.slowlog.nothing]'],
  ])('the setting %j is refused', async (settings, reason) => {
    const { status, body } = await call('PUT', '/refused', { settings });
    expect(status).toBe(400);
    expect(body.error.reason).toContain(reason);
    expect((await call('HEAD', '/refused')).status).toBe(404);
  });

  it('stored fields, versions and sources of single documents', async () => {
    const properties = {
      title: { type: 'text', store: true },
      made: { type: 'date', store: true },
      count: { type: 'integer' },
      inner: { properties: { deep: { type: 'keyword', store: true } } },
    };
    await call('PUT', '/stored', { mappings: { properties } });
    await call('PUT', '/stored/_doc/1', { title: 'a b', made: '2024-05-06', count: 3, inner: { deep: ['x', 'y'] } });
    const { body } = await call('GET', '/stored/_doc/1?stored_fields=title,made,count,inner.deep');
    expect(body.fields).toEqual({ title: ['a b'], made: ['2024-05-06T00:00:00.000Z'], 'inner.deep': ['x', 'y'] });
    expect(body).not.toHaveProperty('_source');
    expect((await call('GET', '/stored/_doc/1?stored_fields=title&_source=count')).body).toMatchObject({
      fields: { title: ['a b'] },
      _source: { count: 3 },
    });
    expect((await call('GET', '/stored/_doc/1?stored_fields=inner')).body.error.reason).toBe(
      "field [inner] isn't a leaf field",
    );
    const docs = [
      { _id: '1' },
      { _id: '1', stored_fields: ['title', '_source'] },
      { _id: '1', version: 1 },
      { _id: '1', version: 7 },
    ];
    const found = (await call('POST', '/stored/_mget?stored_fields=made', { docs })).body.docs;
    expect(found[0]).toMatchObject({ found: true, fields: { made: ['2024-05-06T00:00:00.000Z'] } });
    expect(found[0]).not.toHaveProperty('_source');
    expect(found[1]).toMatchObject({ fields: { title: ['a b'] }, _source: { count: 3 } });
    expect(found[2]).toMatchObject({ found: true });
    expect(found[3].error.type).toBe('version_conflict_engine_exception');
    for (const wrong of [{ _routing: 'x' }, { fields: 'title' }, { stored_fields: 3 }, { version_type: 'best' }]) {
      expect((await call('POST', '/stored/_mget', { docs: [{ _id: '1', ...wrong }] })).status).toBe(400);
    }
  });

  it('aliases by names, patterns and exclusions', async () => {
    const aliases = { a1: {}, a2: {}, b1: {} };
    await call('PUT', '/aliased', { aliases });
    const names = async (list: string) => {
      const { status, body } = await call('GET', `/_alias/${list}`);
      return [status, Object.keys(body.aliased?.aliases ?? {}), body.error];
    };
    expect(await names('b1,a*,-a1')).toEqual([200, ['a2', 'b1'], undefined]);
    expect(await names('a1,b1,-a*')).toEqual([200, ['b1'], undefined]);
    expect(await names('-a1,a*,-a2')).toEqual([404, ['a1'], 'alias [-a1] missing']);
    expect(await names('a*,-none')).toEqual([200, ['a1', 'a2'], undefined]);
  });

  it('a misspelled member of an update', async () => {
    const { status, body } = await call('POST', '/stored/_update/1', { dac: {} });
    expect([status, body.error.reason]).toEqual([400, '[1:2] [UpdateRequest] unknown field [dac] did you mean [doc]?']);
  });

  it('a mapping below a type', async () => {
    const mappings = { _doc: { properties: {} } };
    const { body } = await call('PUT', '/typed', { mappings });
    expect(body.error).toMatchObject({
      type: 'illegal_argument_exception',
      reason: 'The mapping definition cannot be nested under a type',
    });
    expect((await call('PUT', '/stored/_mapping', mappings)).body.error.reason).toBe(
      'Types cannot be provided in put mapping requests',
    );
  });
});
