// The routing of documents: kept and shown with them, searchable, changed by scripts, pipelines and aliases, and required where the mapping
// says so. An index is not divided, so it decides nothing about where a document is.
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type Answer, type RunningServer, startServer } from '../support/server.js';

const data = mkdtempSync(join(tmpdir(), 'sparrow-routing-'));
let server: RunningServer;
const call = (method: string, path: string, body?: object | string): Promise<Answer> =>
  server.request(method, path, body);
const done = async (method: string, path: string, body?: object | string): Promise<any> => {
  const answer = await call(method, path, body);
  expect(answer.status, answer.text).toBeLessThan(300);
  return answer.body;
};
/** The routing of each document of an index, by id, as searches show it. */
const routings = async (
  index: string,
  query: object = { match_all: {} },
): Promise<Record<string, string | undefined>> => {
  await done('POST', `/${index}/_refresh`);
  const { hits } = await done('POST', `/${index}/_search`, { query, size: 100 });
  return Object.fromEntries(hits.hits.map((hit: any) => [hit._id, hit._routing]));
};
const missing = (index: string, id: unknown): object => ({
  type: 'routing_missing_exception',
  reason: `routing is required for [${index}]/[${String(id)}]`,
  index_uuid: '_na_',
  index,
});

beforeAll(async () => {
  server = await startServer({ data, args: ['--deploy-at-start', 'false'] });
  const lines = [
    { index: { _index: 'notes', _id: 'a', routing: 'ann' } },
    { user: 'ann', n: 1 },
    { create: { _index: 'notes', _id: 'b', _routing: 'bob' } },
    { user: 'bob', n: 2 },
    { index: { _index: 'notes', _id: 'c', routing: 7 } },
    { user: 'seven', n: 3 },
    { index: { _index: 'notes', _id: 'd' } },
    { user: 'none', n: 4 },
  ];
  const body = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
  expect((await done('POST', '/_bulk', body)).errors).toBe(false);
});

afterAll(async () => {
  await server.stop();
});

describe('the routing of a document', () => {
  it('is shown by reads before and after a refresh, and by searches', async () => {
    for (const refresh of [false, true]) {
      if (refresh) await done('POST', '/notes/_refresh');
      expect((await done('GET', '/notes/_doc/a'))._routing).toBe('ann');
      expect((await done('GET', '/notes/_doc/a?_source=false'))._routing).toBe('ann');
      expect(Object.keys(await done('GET', '/notes/_doc/d'))).not.toContain('_routing');
      const { docs } = await done('POST', '/notes/_mget', { ids: ['b', 'c', 'd'] });
      expect(docs.map((doc: any) => doc._routing)).toEqual(['bob', '7', undefined]);
    }
    expect(await routings('notes')).toEqual({ a: 'ann', b: 'bob', c: '7', d: undefined });
    const { hits } = await done('POST', '/notes/_search', { _source: false, query: { ids: { values: ['a'] } } });
    expect([hits.hits[0]._routing, hits.hits[0]._source]).toEqual(['ann', undefined]);
    expect(await done('GET', '/notes/_source/a')).toEqual({ user: 'ann', n: 1 });
  });

  it('is searchable', async () => {
    expect(await routings('notes', { term: { _routing: 'bob' } })).toEqual({ b: 'bob' });
    expect(await routings('notes', { terms: { _routing: ['ann', '7'] } })).toEqual({ a: 'ann', c: '7' });
    expect(await routings('notes', { exists: { field: '_routing' } })).toEqual({ a: 'ann', b: 'bob', c: '7' });
    expect(await routings('notes', { bool: { must_not: { exists: { field: '_routing' } } } })).toEqual({
      d: undefined,
    });
    expect(await routings('notes', { prefix: { _routing: 'a' } })).toEqual({ a: 'ann' });
    expect(await routings('notes', { query_string: { query: '_routing:bob' } })).toEqual({ b: 'bob' });
  });

  it('is where a created document is', async () => {
    const { headers } = await call('PUT', '/located/_doc/1?routing=a%20b', { n: 1 });
    expect(headers['location']).toBe('/located/_doc/1?routing=a%20b');
    const location = async (path: string): Promise<unknown> => {
      const created = await call('PUT', path, { n: 1 });
      expect(created.status, created.text).toBe(201);
      return created.headers['location'];
    };
    await done('PUT', '/located-behind', {
      mappings: { _routing: { required: true } },
      aliases: { 'located-front': { routing: 'own' } },
    });
    expect(await location('/located-front/_doc/1')).toBe('/located-behind/_doc/1?routing=own');
    await done('PUT', '/_ingest/pipeline/locate', { processors: [{ set: { field: '_routing', value: 'set' } }] });
    expect(await location('/located/_doc/2?pipeline=locate&routing=given')).toBe('/located/_doc/2?routing=set');
    expect((await done('GET', '/located-behind/_doc/1?routing=own'))._routing).toBe('own');
  });

  it('is none when it is empty', async () => {
    await done('PUT', '/_ingest/pipeline/empty', { processors: [{ set: { field: '_routing', value: '' } }] });
    const lines = [
      { index: { _id: '1', routing: '' } },
      { n: 1 },
      { index: { _id: '2', routing: 'given', pipeline: 'empty' } },
      { n: 2 },
    ];
    const body = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
    expect((await done('POST', '/empty/_bulk', body)).errors).toBe(false);
    await done('POST', '/empty/_refresh');
    await done('POST', '/_reindex', { source: { index: 'empty' }, dest: { index: 'emptied', routing: '=' } });
    for (const index of ['empty', 'emptied']) {
      expect(await routings(index)).toEqual({ 1: undefined, 2: undefined });
      expect(await routings(index, { exists: { field: '_routing' } })).toEqual({});
    }
    await done('PUT', '/empty-strict', { mappings: { _routing: { required: true } } });
    const { items } = await done('POST', '/empty-strict/_bulk', '{"index":{"_id":"1","routing":""}}\n{"n":1}\n');
    expect(items[0].index.error).toEqual(missing('empty-strict', 1));
    const { docs } = await done('POST', '/empty-strict/_mget', { docs: [{ _id: '1', routing: '' }] });
    expect(docs[0].error.type).toBe('routing_missing_exception');
    await done('PUT', '/empty/_alias/no-routing', { routing: '' });
    await done('PUT', '/no-routing/_doc/3?routing=any', { n: 3 });
    expect((await done('GET', '/empty/_doc/3'))._routing).toBe('any');
  });

  it('stays through updates, unless they bring another', async () => {
    await done('PUT', '/updated/_doc/1?routing=one', { n: 1 });
    await done('POST', '/updated/_update/1', { doc: { n: 2 } });
    expect((await done('GET', '/updated/_doc/1'))._routing).toBe('one');
    await done('POST', '/updated/_update/1', { script: 'ctx._source.seen = ctx._routing' });
    expect(await done('GET', '/updated/_doc/1')).toMatchObject({ _routing: 'one', _source: { seen: 'one' } });
    await done('POST', '/updated/_update/1?routing=two', { doc: { n: 3 } });
    expect((await done('GET', '/updated/_doc/1'))._routing).toBe('two');
    await done('POST', '/updated/_update/1?routing=three', { script: 'ctx._source.n++' });
    expect(await done('GET', '/updated/_doc/1')).toMatchObject({ _routing: 'two', _source: { n: 4 } });
    await done('POST', '/updated/_update/2?routing=new', { doc: { n: 1 }, doc_as_upsert: true });
    expect(await routings('updated')).toEqual({ 1: 'two', 2: 'new' });
    await done('PUT', '/updated/_doc/1', { n: 4 });
    expect(await routings('updated')).toEqual({ 1: undefined, 2: 'new' });
  });

  it('stays through work by query, which may change it', async () => {
    await done('POST', '/notes/_update_by_query?refresh=true', { script: 'ctx._source.r = ctx._routing' });
    expect((await done('GET', '/notes/_doc/b'))._source.r).toBe('bob');
    expect(await routings('notes')).toEqual({ a: 'ann', b: 'bob', c: '7', d: undefined });
    const copy = async (dest: object, script?: string): Promise<Record<string, string | undefined>> => {
      await call('DELETE', '/copy');
      const body = { source: { index: 'notes' }, dest: { index: 'copy', ...dest }, ...(script ? { script } : {}) };
      await done('POST', '/_reindex?refresh=true', body);
      return routings('copy');
    };
    const kept = { a: 'ann', b: 'bob', c: '7', d: undefined };
    expect(await copy({})).toEqual(kept);
    expect(await copy({ routing: 'keep' })).toEqual(kept);
    expect(await copy({ routing: 'discard' })).toEqual({ a: undefined, b: undefined, c: undefined, d: undefined });
    expect(await copy({ routing: '=all' })).toEqual({ a: 'all', b: 'all', c: 'all', d: 'all' });
    expect(await copy({}, 'ctx._routing = ctx._source.user')).toEqual({ a: 'ann', b: 'bob', c: 'seven', d: 'none' });
    expect(await copy({}, 'ctx._routing = null')).toEqual({ a: undefined, b: undefined, c: undefined, d: undefined });
    const refused = await call('POST', '/notes/_update_by_query', { script: 'ctx._routing = "x"' });
    expect(refused.text).toContain('[_routing] cannot be updated');
  });

  it('may be read and set by a pipeline', async () => {
    await done('PUT', '/_ingest/pipeline/route', {
      processors: [
        { set: { field: 'before', value: '{{_routing}}' } },
        { set: { field: '_routing', value: '{{user}}', if: 'ctx.user != null' } },
      ],
    });
    await done('PUT', '/piped/_doc/1?pipeline=route&routing=first', { user: 'ann' });
    await done('PUT', '/piped/_doc/2?pipeline=route&routing=first', {});
    expect((await done('GET', '/piped/_doc/1'))._source.before).toBe('first');
    expect(await routings('piped')).toEqual({ 1: 'ann', 2: 'first' });
  });

  it('may be that of an alias', async () => {
    await done('PUT', '/behind', { aliases: { front: { routing: 'own' } } });
    await done('PUT', '/front/_doc/1', { n: 1 });
    await done('PUT', '/front/_doc/2?routing=own', { n: 1 });
    const refused = await call('PUT', '/front/_doc/3?routing=other', { n: 1 });
    expect([refused.status, refused.body.error.reason]).toEqual([
      400,
      'Alias [front] has index routing associated with it [own], and was provided with routing value [other], rejecting operation',
    ]);
    expect(await routings('behind')).toEqual({ 1: 'own', 2: 'own' });
  });

  it('may be that of an alias that documents are copied to', async () => {
    await done('PUT', '/copied-behind', { aliases: { 'copied-front': { routing: 'ann' } } });
    const copy = async (parameters = ''): Promise<Answer> =>
      call('POST', `/_reindex${parameters}`, { source: { index: 'notes' }, dest: { index: 'copied-front' } });
    const { body: tried } = await copy('?dry_run=true');
    const scripted = {
      source: { index: 'notes' },
      dest: { index: 'copied-front' },
      script: { source: "ctx.op = 'noop'" },
    };
    expect((await call('POST', '/_reindex?dry_run=true', scripted)).body.error.reason).toBe(
      '[script] of a reindex with [dry_run] is not supported by this server',
    );
    const { body: copied } = await copy();
    const reasons = copied.failures.map(({ id, cause }: any) => [id, cause.reason]).sort();
    const refused = (id: string, routing: string): string[] => [
      id,
      `Alias [copied-front] has index routing associated with it [ann], and was provided with routing value [${routing}], rejecting operation`,
    ];
    expect(reasons).toEqual([refused('b', 'bob'), refused('c', '7')]);
    expect([tried.documents.failed, tried.failures.map(({ id }: any) => id).sort()]).toEqual([2, ['b', 'c']]);
    expect(await routings('copied-behind')).toEqual({ a: 'ann', d: 'ann' });
  });

  it('is none to aggregate by', async () => {
    const refused = await call('POST', '/notes/_search', { aggs: { routings: { terms: { field: '_routing' } } } });
    expect([refused.status, refused.body.error.root_cause[0].reason]).toEqual([
      400,
      'Fielddata is not supported on field [_routing] of type [_routing]',
    ]);
  });

  it('is refused when it is longer than a term can be', async () => {
    const line = `{"index":{"_id":"1","routing":"${'x'.repeat(40_000)}"}}\n{"n":1}\n`;
    const { items } = await done('POST', '/long/_bulk', line);
    expect([items[0].index.status, items[0].index.error.reason]).toEqual([
      400,
      'routing is too long, must be no longer than 32766 bytes but was: 40000',
    ]);
  });

  it('survives a filtered source, a restart and a merge', async () => {
    await done('PUT', '/filtered', { mappings: { _source: { excludes: ['secret'] } } });
    await done('PUT', '/none', { mappings: { _source: { enabled: false } } });
    for (const index of ['filtered', 'none']) {
      await done('PUT', `/${index}/_doc/1?routing=r`, { secret: 1, n: 1 });
      expect((await done('GET', `/${index}/_doc/1`))._routing).toBe('r');
    }
    await done('POST', '/none/_refresh');
    const highlight = { fields: { '*': {} } };
    const shown = await done('POST', '/none/_search', { query: { term: { n: 1 } }, highlight });
    expect(shown.hits.hits.map((hit: any) => [hit._id, hit.highlight])).toEqual([['1', undefined]]);
    expect((await done('GET', '/filtered/_doc/1'))._source).toEqual({ n: 1 });
    await server.kill();
    server = await startServer({ data, args: ['--deploy-at-start', 'false'] });
    for (const index of ['filtered', 'none', 'notes']) {
      const id = index === 'notes' ? 'a' : '1';
      const routing = index === 'notes' ? 'ann' : 'r';
      expect((await done('GET', `/${index}/_doc/${id}`))._routing, index).toBe(routing);
      await done('POST', `/${index}/_forcemerge?max_num_segments=1`);
      expect(await routings(index, { term: { _routing: routing } })).toEqual({ [id]: routing });
    }
  });
});

describe('a mapping that requires a routing', () => {
  it('refuses writes and reads without one', async () => {
    await done('PUT', '/strict', { mappings: { _routing: { required: true } } });
    expect((await done('GET', '/strict/_mapping')).strict.mappings).toEqual({ _routing: { required: true } });
    const refused: (readonly [string, string, object?])[] = [
      ['PUT', '/strict/_doc/1', { n: 1 }],
      ['PUT', '/strict/_create/1', { n: 1 }],
      ['POST', '/strict/_update/1', { doc: { n: 1 }, doc_as_upsert: true }],
      ['DELETE', '/strict/_doc/1'],
      ['GET', '/strict/_doc/1'],
      ['GET', '/strict/_source/1'],
      ['GET', '/strict/_explain/1', { query: { match_all: {} } }],
    ];
    for (const [method, path, body] of refused) {
      const answer = await call(method, path, body);
      expect([answer.status, answer.body.error], path).toEqual([
        400,
        { root_cause: [missing('strict', 1)], ...missing('strict', 1) },
      ]);
    }
    expect((await call('POST', '/strict/_doc', { n: 1 })).body.error.type).toBe('routing_missing_exception');
    const { items } = await done('POST', '/strict/_bulk', '{"index":{"_id":"1"}}\n{"n":1}\n{"delete":{"_id":"2"}}\n');
    expect([items[0].index.error, items[1].delete.error]).toEqual([missing('strict', 1), missing('strict', 2)]);
    const { docs } = await done('POST', '/strict/_mget', { docs: [{ _id: '1' }, { _id: '2', routing: 'r' }] });
    expect([docs[0].error.type, docs[1].found]).toEqual(['routing_missing_exception', false]);
  });

  it('takes writes and reads with one, and keeps it in work by query', async () => {
    await done('PUT', '/strict/_doc/1?routing=r', { n: 1 });
    await done('POST', '/strict/_bulk?routing=all&refresh=true', '{"index":{"_id":"2"}}\n{"n":2}\n');
    await done('POST', '/strict/_update/1?routing=r&refresh=true', { doc: { n: 3 } });
    expect(await done('GET', '/strict/_doc/1?routing=r')).toMatchObject({ _routing: 'r', _source: { n: 3 } });
    expect((await done('POST', '/strict/_update_by_query?refresh=true', { script: 'ctx._source.n++' })).updated).toBe(
      2,
    );
    expect(await routings('strict')).toEqual({ 1: 'r', 2: 'all' });
    expect((await done('POST', '/strict/_delete_by_query?refresh=true', { query: { match_all: {} } })).deleted).toBe(2);
  });

  it('holds for term vectors and for documents that queries read', async () => {
    await done('PUT', '/strict-read', {
      mappings: { _routing: { required: true }, properties: { user: { type: 'keyword' } } },
      aliases: { 'strict-front': { routing: 'r' } },
    });
    await done('PUT', '/strict-read/_doc/1?routing=r&refresh=true', { user: 'ann' });
    for (const [method, path] of [
      ['GET', '/strict-read/_termvectors/1'],
      ['POST', '/strict-read/_termvectors/1?routing='],
    ] as const) {
      expect((await call(method, path)).body.error, path).toMatchObject(missing('strict-read', 1));
    }
    expect((await done('GET', '/strict-read/_termvectors/1?routing=r')).found).toBe(true);
    expect((await done('GET', '/strict-front/_termvectors/1')).found).toBe(true);
    expect((await done('POST', '/strict-read/_termvectors', { doc: { user: 'ann' } })).found).toBe(true);
    const { docs } = await done('POST', '/strict-read/_mtermvectors', {
      docs: [{ _id: '1' }, { _id: '1', routing: 'r' }],
    });
    expect([docs[0].error.type, docs[1].found]).toEqual(['routing_missing_exception', true]);
    const lookup = { index: 'strict-read', id: '1', path: 'user' };
    const refused = await call('POST', '/notes/_search', { query: { terms: { 'user.keyword': lookup } } });
    expect([refused.status, refused.text]).toEqual([
      400,
      expect.stringContaining('routing is required for [strict-read]/[1]'),
    ]);
    expect(await routings('notes', { terms: { 'user.keyword': { ...lookup, routing: 'r' } } })).toEqual({ a: 'ann' });
    expect(await routings('notes', { terms: { 'user.keyword': { ...lookup, index: 'strict-front' } } })).toEqual({
      a: 'ann',
    });
  });

  it('holds for a dry run of a copy as for the copy', async () => {
    await done('PUT', '/strict-copy', { mappings: { _routing: { required: true } } });
    await done('PUT', '/_ingest/pipeline/needs-routing', {
      processors: [{ script: { source: 'ctx.seen = ctx._routing.length()', if: 'ctx.n < 4' } }],
    });
    const dry = async (dest: object): Promise<number> => {
      const body = { source: { index: 'notes' }, dest: { index: 'strict-copy', ...dest } };
      return (await done('POST', '/_reindex?dry_run=true', body)).documents.failed;
    };
    expect(await dry({})).toBe(1);
    expect(await dry({ routing: 'discard' })).toBe(4);
    expect(await dry({ pipeline: 'needs-routing' })).toBe(1);
    expect(await dry({ routing: '=all' })).toBe(0);
  });

  it('may be what an index that was made without a mapping begins with', async () => {
    await done('PUT', '/late');
    await done('PUT', '/late/_mapping', { _routing: { required: true } });
    expect((await done('GET', '/late/_mapping')).late.mappings).toEqual({ _routing: { required: true } });
    expect((await call('PUT', '/late/_doc/1', { n: 1 })).body.error.type).toBe('routing_missing_exception');
  });

  it('cannot be changed, and is checked', async () => {
    const changed = await call('PUT', '/strict/_mapping', { _routing: { required: false } });
    expect([changed.status, changed.body.error.reason]).toEqual([
      400,
      expect.stringContaining('Cannot update parameter [required] from [true] to [false]'),
    ]);
    const unknown = await call('PUT', '/other', { mappings: { _routing: { path: 'user' } } });
    expect(unknown.text).toContain('unknown parameter [path] on metadata field [_routing]');
  });
});
