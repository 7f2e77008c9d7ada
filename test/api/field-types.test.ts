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

describe('an ip field', () => {
  const search = async (body: object) => (await call('POST', '/hosts/_search', body)).body;
  const ids = async (query: object) => {
    const { hits } = await search({ query, sort: [{ _doc: 'asc' }] });
    return hits.hits.map((hit: { _id: string }) => hit._id).sort();
  };

  beforeAll(async () => {
    const properties = {
      address: { type: 'ip' },
      lax: { type: 'ip', ignore_malformed: true, null_value: '::1' },
    };
    expect((await call('PUT', '/hosts', { mappings: { properties } })).status).toBe(200);
    const documents = [
      { address: '192.168.0.9' },
      { address: '192.168.0.10', lax: null },
      { address: ['10.0.0.1', '2001:DB8:0::1'], lax: 'home' },
      { lax: '::ffff:10.1.2.3' },
    ];
    const lines = documents.map(
      (source, id) => `${JSON.stringify({ index: { _id: String(id) } })}\n${JSON.stringify(source)}\n`,
    );
    expect((await call('POST', '/hosts/_bulk?refresh=true', lines.join(''))).body.errors).toBe(false);
  });

  it('finds addresses, networks and ranges', async () => {
    expect(await ids({ term: { address: '2001:db8::1' } })).toEqual(['2']);
    expect(await ids({ term: { address: '192.168.0.0/24' } })).toEqual(['0', '1']);
    expect(await ids({ terms: { address: ['10.0.0.0/8', '192.168.0.9'] } })).toEqual(['0', '2']);
    expect(await ids({ range: { address: { gt: '192.168.0.9', lte: '192.168.0.255' } } })).toEqual(['1']);
    expect(await ids({ query_string: { query: 'address:"192.168.0.0/16"' } })).toEqual(['0', '1']);
    expect(await ids({ match: { lax: '10.1.2.3' } })).toEqual(['3']);
    expect(await ids({ term: { lax: '::1' } })).toEqual(['1']);
    expect(await ids({ exists: { field: 'lax' } })).toEqual(['1', '3']);
  });

  it('sorts by address, and shows addresses in their shortest form', async () => {
    const { hits } = await search({
      query: { exists: { field: 'address' } },
      sort: [{ address: 'desc' }],
      docvalue_fields: ['address'],
      fields: ['address'],
    });
    expect(hits.hits.map((hit: { sort: unknown }) => hit.sort)).toEqual([
      ['2001:db8::1'],
      ['192.168.0.10'],
      ['192.168.0.9'],
    ]);
    expect(hits.hits[0].fields.address).toEqual(['10.0.0.1', '2001:db8::1']);
    const next = await search({ sort: [{ address: 'desc' }], search_after: ['192.168.0.10'], size: 1 });
    expect(next.hits.hits[0].sort).toEqual(['192.168.0.9']);
  });

  it('is aggregated', async () => {
    const { aggregations } = await search({
      size: 0,
      aggs: {
        terms: { terms: { field: 'address', order: { _key: 'asc' } } },
        some: { terms: { field: 'address', include: ['192.168.0.9', '192.168.0.10'], missing: '::2' } },
        composite: { composite: { sources: [{ at: { terms: { field: 'address' } } }], after: { at: '10.0.0.1' } } },
        count: { cardinality: { field: 'address' } },
      },
    });
    const keys = (name: string) => aggregations[name].buckets.map((bucket: { key: unknown }) => bucket.key);
    expect(keys('terms')).toEqual(['10.0.0.1', '192.168.0.9', '192.168.0.10', '2001:db8::1']);
    expect(keys('some').sort()).toEqual(['192.168.0.10', '192.168.0.9']);
    expect(keys('composite')).toEqual([{ at: '192.168.0.9' }, { at: '192.168.0.10' }, { at: '2001:db8::1' }]);
    expect(aggregations.count.value).toBe(4);
    const { error } = await search({ aggs: { most: { max: { field: 'address' } } } });
    expect(error.root_cause[0].reason).toBe('Field [address] of type [ip] is not supported for aggregation [max]');
  });

  it.each([
    ['PUT', '/hosts/_doc/9', { address: 'localhost' }, "'localhost' is not an IP string literal."],
    ['PUT', '/hosts/_doc/9', { address: 7 }, "'7' is not an IP string literal."],
    ['PUT', '/bad', { mappings: { properties: { a: { type: 'ip', null_value: 'x' } } } }, '[null_value]'],
    ['PUT', '/bad', { mappings: { properties: { a: { type: 'date', null_value: 'x' } } } }, '[null_value]'],
    ['PUT', '/bad', { mappings: { properties: { a: { type: 'ip', format: 'x' } } } }, 'unknown parameter [format]'],
    ['POST', '/hosts/_search', { query: { term: { address: '10.0.0.0/33' } } }, 'Illegal prefix length [33]'],
    ['POST', '/hosts/_search', { query: { term: { address: 'x' } } }, "'x' is not an IP string literal."],
    ['POST', '/hosts/_search', { query: { range: { address: { gte: '1' } } } }, "'1' is not an IP string literal."],
    ['POST', '/hosts/_search', { query: { prefix: { address: '10.' } } }, '[ip]'],
    ['POST', '/hosts/_search', { sort: ['address'], search_after: ['x'] }, "'x' is not an IP string literal."],
  ])('%s %s %j is refused', async (method, path, body, reason) => {
    const answer = await call(method, path, body);
    expect(answer.status).toBe(400);
    expect(answer.text.replaceAll('\\"', '"')).toContain(reason);
  });

  it('is known to the capabilities of fields', async () => {
    const { body } = await call('GET', '/hosts/_field_caps?fields=address');
    expect(body.fields.address.ip).toMatchObject({ type: 'ip', searchable: true, aggregatable: true });
  });
});

describe('a constant_keyword field', () => {
  it('has its value in every document, and takes no other', async () => {
    const properties = { kind: { type: 'constant_keyword', value: 'log' }, first: { type: 'constant_keyword' } };
    expect((await call('PUT', '/constant', { mappings: { properties } })).status).toBe(200);
    expect((await call('PUT', '/constant/_doc/1', { n: 1 })).status).toBe(201);
    expect((await call('PUT', '/constant/_doc/2?refresh=true', { kind: 'log', first: 'a' })).status).toBe(201);
    const other = await call('PUT', '/constant/_doc/3', { kind: 'metric' });
    expect([other.status, JSON.stringify(other.body)]).toEqual([
      400,
      expect.stringContaining('only accepts values that are equal to the value defined in the mappings [log]'),
    ]);
    expect((await call('PUT', '/constant/_doc/3', { first: 'b' })).status).toBe(400);
    const mapping = (await call('GET', '/constant/_mapping')).body.constant.mappings.properties;
    expect(mapping.first).toEqual({ type: 'constant_keyword', value: 'a' });
    const count = async (query: object) => (await call('POST', '/constant/_count', { query })).body.count;
    for (const query of [
      { term: { kind: 'log' } },
      { terms: { kind: ['metric', 'log'] } },
      { prefix: { kind: 'lo' } },
      { wildcard: { kind: 'l*g' } },
      { match: { kind: 'log' } },
      { exists: { field: 'kind' } },
    ]) {
      expect([query, await count(query)]).toEqual([query, 2]);
    }
    expect(await count({ term: { kind: 'metric' } })).toBe(0);
    const body = { fields: ['kind'], sort: ['kind', 'n'], aggs: { k: { terms: { field: 'kind' } } } };
    const { hits, aggregations } = (await call('POST', '/constant/_search', body)).body;
    expect(hits.hits.map((hit: any) => [hit._id, hit.fields.kind, hit.sort[0]])).toEqual([
      ['1', ['log'], 'log'],
      ['2', ['log'], 'log'],
    ]);
    expect(aggregations.k.buckets).toEqual([{ key: 'log', doc_count: 2 }]);
  });
});

describe('a binary field', () => {
  it('keeps bytes in the source, and is found where it is stored', async () => {
    const properties = { blob: { type: 'binary' }, kept: { type: 'binary', doc_values: true } };
    expect((await call('PUT', '/blobs', { mappings: { properties } })).status).toBe(200);
    expect((await call('PUT', '/blobs/_doc/1?refresh=true', { blob: 'U29tZQ==', kept: 'U29tZQ==' })).status).toBe(201);
    const count = async (query: object) => (await call('POST', '/blobs/_count', { query })).body;
    expect((await count({ exists: { field: 'kept' } })).count).toBe(1);
    expect((await count({ exists: { field: 'blob' } })).count).toBe(0);
    expect((await call('POST', '/blobs/_count', { query: { term: { blob: 'U29tZQ==' } } })).status).toBe(400);
    expect((await call('PUT', '/blobs/_doc/2', { blob: 'no base 64' })).status).toBe(400);
    expect((await call('GET', '/blobs/_doc/1')).body._source.blob).toBe('U29tZQ==');
    const { body } = await call('GET', '/blobs/_field_caps?fields=blob');
    expect(body.fields.blob.binary).toMatchObject({ searchable: false, aggregatable: false });
  });
});

describe('an index that ignores what its fields cannot take', () => {
  const properties = {
    n: { type: 'integer' },
    day: { type: 'date' },
    strict: { type: 'integer', ignore_malformed: false },
    word: { type: 'keyword' },
  };
  const found = async (query: object): Promise<string[]> => {
    const { body } = await call('POST', '/loose/_search', { query });
    return body.hits.hits.map((hit: { _id: string }) => hit._id).sort();
  };

  it('takes the rest of the documents, and says which fields it ignored', async () => {
    const settings = { 'index.mapping.ignore_malformed': true };
    expect((await call('PUT', '/loose', { settings, mappings: { properties } })).status).toBe(200);
    await call('PUT', '/loose/_doc/a', { n: 'many', day: '2024-01-02', word: 'x' });
    await call('PUT', '/loose/_doc/b?refresh=true', { n: [1, 'two'], day: 'soon', word: 'x' });
    expect((await call('PUT', '/loose/_doc/c', { strict: 'no' })).status).toBe(400);
    expect((await call('PUT', '/loose/_doc/c', { word: { an: 'object' } })).status).toBe(400);
    expect(await found({ term: { word: 'x' } })).toEqual(['a', 'b']);
    expect(await found({ term: { n: 1 } })).toEqual(['b']);
    expect(await found({ exists: { field: 'day' } })).toEqual(['a']);
    expect(await found({ term: { _ignored: 'n' } })).toEqual(['a', 'b']);
    expect(await found({ term: { _ignored: 'day' } })).toEqual(['b']);
    const shown = await call('GET', '/loose/_mapping');
    expect(shown.body.loose.mappings.properties).toEqual(properties);
  });

  it('does so again when its log is replayed', async () => {
    await call('PUT', '/loose/_doc/d', { n: 'many', word: 'late' });
    await server.kill();
    server = await startServer({ data: server.data });
    await call('POST', '/loose/_refresh');
    expect(await found({ term: { word: 'late' } })).toEqual(['d']);
    expect(await found({ term: { _ignored: 'n' } })).toEqual(['a', 'b', 'd']);
  });
});
