// `flattened`: objects of any keys, each of whose values is found in the whole field and under its path.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

let server: RunningServer;

const LABELS = {
  urgent: { priority: 'urgent', release: ['v1.2.5', 'v1.3.0'], timestamp: { created: 1541458026, closed: 1541457010 } },
  low: { priority: 'low', owner: { name: 'Ada', active: true } },
  mixed: [{ priority: 'low' }, { note: 'urgent' }],
  none: null,
};

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
  const properties = {
    labels: { type: 'flattened', ignore_above: 20 },
    shallow: { type: 'flattened', depth_limit: 2, null_value: 'nothing' },
    text: { type: 'text' },
  };
  const made = await server.request('PUT', '/bugs', { mappings: { dynamic: 'strict', properties } });
  expect(made.status).toBe(200);
  const lines = Object.entries(LABELS).map(
    ([id, labels]) => `{"index":{"_id":"${id}"}}\n${JSON.stringify({ labels, text: `bug ${id}` })}\n`,
  );
  const { body } = await server.request('POST', '/bugs/_bulk?refresh=true', lines.join(''));
  expect(body.errors).toBe(false);
});

afterAll(() => server.stop());

const search = async (body: object): Promise<any> => {
  const answer = await server.request('POST', '/bugs/_search', body);
  expect(answer.status, JSON.stringify(answer.body)).toBe(200);
  return answer.body;
};
const ids = async (query: object): Promise<string[]> =>
  (await search({ query })).hits.hits.map((hit: { _id: string }) => hit._id).sort();

describe('objects in a flattened field', () => {
  it('are found by any of their values, and by those under one path', async () => {
    expect(await ids({ term: { labels: 'urgent' } })).toEqual(['mixed', 'urgent']);
    expect(await ids({ term: { 'labels.priority': 'urgent' } })).toEqual(['urgent']);
    expect(await ids({ term: { 'labels.release': 'v1.3.0' } })).toEqual(['urgent']);
    expect(await ids({ term: { 'labels.timestamp.created': '1541458026' } })).toEqual(['urgent']);
    expect(await ids({ terms: { 'labels.owner.active': ['true'] } })).toEqual(['low']);
    expect(await ids({ match: { 'labels.owner.name': 'Ada' } })).toEqual(['low']);
    expect(await ids({ query_string: { query: 'labels.priority:low AND text:bug' } })).toEqual(['low', 'mixed']);
    expect(await ids({ prefix: { 'labels.release': 'v1.2' } })).toEqual(['urgent']);
    expect(await ids({ range: { 'labels.priority': { gt: 'm' } } })).toEqual(['urgent']);
    expect(await ids({ term: { 'labels.missing': 'urgent' } })).toEqual([]);
  });

  it('have fields that exist', async () => {
    expect(await ids({ exists: { field: 'labels' } })).toEqual(['low', 'mixed', 'urgent']);
    expect(await ids({ exists: { field: 'labels.owner.name' } })).toEqual(['low']);
  });

  it('are counted, sorted and shown by their paths', async () => {
    const answer = await search({
      size: 4,
      sort: [{ 'labels.priority': 'desc' }, '_seq_no'],
      fields: ['labels', 'labels.owner.name'],
      aggs: {
        all: { terms: { field: 'labels' } },
        priorities: { terms: { field: 'labels.priority' } },
        owners: { cardinality: { field: 'labels.owner.name' } },
      },
    });
    expect(answer.hits.hits.map((hit: any) => [hit._id, hit.sort[0]])).toEqual([
      ['urgent', 'urgent'],
      ['low', 'low'],
      ['mixed', 'low'],
      ['none', null],
    ]);
    const low = answer.hits.hits.find((hit: { _id: string }) => hit._id === 'low');
    expect(low.fields).toEqual({ labels: [LABELS.low], 'labels.owner.name': ['Ada'] });
    const keys = (buckets: any[]): unknown => buckets.map((bucket) => [bucket.key, bucket.doc_count]);
    expect(keys(answer.aggregations.priorities.buckets)).toEqual([
      ['low', 2],
      ['urgent', 1],
    ]);
    expect(keys(answer.aggregations.all.buckets.slice(0, 2))).toEqual([
      ['low', 2],
      ['urgent', 2],
    ]);
    expect(answer.aggregations.owners.value).toBe(1);
  });

  it('keep their mapping, which their keys do not change', async () => {
    const { body } = await server.request('GET', '/bugs/_mapping');
    expect(body.bugs.mappings.properties).toEqual({
      labels: { type: 'flattened', ignore_above: 20 },
      shallow: { type: 'flattened', depth_limit: 2, null_value: 'nothing' },
      text: { type: 'text' },
    });
    const caps = await server.request('GET', '/bugs/_field_caps?fields=labels*');
    expect(Object.keys(caps.body.fields)).toEqual(['labels']);
    expect(caps.body.fields.labels.flattened).toMatchObject({ searchable: true, aggregatable: true });
  });

  it('are found by what an update, a script and a restart leave of them', async () => {
    await server.request('POST', '/bugs/_update/none?refresh=true', { doc: { labels: { priority: 'none' } } });
    expect(await ids({ term: { 'labels.priority': 'none' } })).toEqual(['none']);
    const script = { source: "ctx._source.labels = ['priority': 'scripted', 'long': params.long]" };
    const long = 'x'.repeat(21);
    await server.request('POST', '/bugs/_update/none?refresh=true', { script: { ...script, params: { long } } });
    expect(await ids({ term: { 'labels.priority': 'scripted' } })).toEqual(['none']);
    // Longer than `ignore_above`.
    expect(await ids({ term: { 'labels.long': long } })).toEqual([]);
    expect(await ids({ term: { _ignored: 'labels' } })).toEqual(['none']);
    await server.kill();
    server = await startServer({ args: ['--deploy-at-start', 'false'], data: server.data });
    expect(await ids({ term: { 'labels.priority': 'scripted' } })).toEqual(['none']);
  });
});

describe('what a flattened field does not take', () => {
  const refused = async (document: object): Promise<string> => {
    const { status, body } = await server.request('PUT', '/bugs/_doc/refused', document);
    return `${String(status)} ${String(body.error.caused_by?.reason ?? body.error.reason)}`;
  };

  it('is refused by name', async () => {
    expect(await refused({ labels: 'urgent' })).toBe(
      '400 Failed to parse object: expecting token of type [START_OBJECT] but found [VALUE_STRING]',
    );
    expect(await refused({ shallow: { a: { b: { c: 1 } } } })).toBe(
      '400 The provided [flattened] field [shallow] exceeds the maximum depth limit of [2].',
    );
    expect(await refused({ labels: { 'a\0b': 1 } })).toContain('cannot contain the reserved character');
    const many = Object.fromEntries(Array.from({ length: 1001 }, (_, at) => [`k${String(at)}`, at]));
    expect(await refused({ labels: many })).toContain('more than [1000] different keys');
  });

  it('has a bound for the keys of all documents', async () => {
    await server.request('PUT', '/many', { mappings: { properties: { labels: { type: 'flattened' } } } });
    const document = (from: number): object => ({
      labels: Object.fromEntries(Array.from({ length: 1000 }, (_, at) => [`k${String(from + at)}`, at])),
    });
    const lines = Array.from(
      { length: 11 },
      (_, at) => `{"index":{"_id":"${String(at)}"}}\n${JSON.stringify(document(at * 1000))}\n`,
    );
    const { body } = await server.request('POST', '/many/_bulk?refresh=true', lines.join(''));
    expect(body.items.map((item: any) => item.index.status)).toEqual([...Array.from({ length: 10 }, () => 201), 400]);
    expect(body.items[10].index.error.reason).toContain('have [10000] different keys');
    // Keys that are there already are taken, also when the index was opened anew.
    await server.kill();
    server = await startServer({ args: ['--deploy-at-start', 'false'], data: server.data });
    const put = async (from: number): Promise<number> =>
      (await server.request('PUT', `/many/_doc/again${String(from)}`, document(from))).status;
    expect([await put(0), await put(9000), await put(9500)]).toEqual([201, 201, 400]);
  });

  it('has a value for nulls where the mapping has one', async () => {
    await server.request('PUT', '/bugs/_doc/null?refresh=true', { shallow: { a: { b: null } } });
    expect(await ids({ term: { 'shallow.a.b': 'nothing' } })).toEqual(['null']);
  });

  it('is a mapping with sub-fields', async () => {
    const labels = { type: 'flattened', fields: { raw: { type: 'keyword' } } };
    const { status, body } = await server.request('PUT', '/other', { mappings: { properties: { labels } } });
    expect([status, body.error.reason]).toEqual([400, expect.stringContaining('[fields')]);
  });
});
