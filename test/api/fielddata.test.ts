// Texts with `fielddata`, which can be sorted and aggregated by their words.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { Random } from '../support/oracle/random.js';
import { type Answer, type RunningServer, startServer } from '../support/server.js';

let server: RunningServer;
const call = (method: string, path: string, body?: unknown): Promise<Answer> => server.request(method, path, body);

const WORDS = ['Ash', 'birch', 'cedar', 'Elm', 'fir', 'oak'];
/** The texts of each document, by its id. */
const documents = new Map<string, string[]>();
const wordsOf = (texts: readonly string[]): string[] => [...new Set(texts.join(' ').toLowerCase().split(' '))].sort();

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
  const properties = { tree: { type: 'text', fielddata: true }, plain: { type: 'text' } };
  await call('PUT', '/trees', { mappings: { properties } });
  const random = new Random(11);
  for (let n = 0; n < 200; n++) {
    const text = () => random.several(1, 4, () => random.pick(WORDS)).join(' ');
    documents.set(String(n), random.several(1, 2, text));
  }
  for (const half of [0, 1]) {
    const lines = [...documents].filter(([id]) => Number(id) % 2 === half);
    const bulk = lines.map(([_id, tree]) => `${JSON.stringify({ index: { _id } })}\n${JSON.stringify({ tree })}\n`);
    expect((await call('POST', '/trees/_bulk?refresh=true', bulk.join(''))).body.errors).toBe(false);
  }
});

afterAll(async () => {
  await server.stop();
});

describe('a text with fielddata', () => {
  it('is sorted by its first word, or by its last one', async () => {
    for (const order of ['asc', 'desc']) {
      const { body } = await call('POST', '/trees/_search', { size: 500, sort: [{ tree: order }, '_doc'] });
      const key = (texts: string[]): string => wordsOf(texts).at(order === 'asc' ? 0 : -1) ?? '';
      const expected = [...documents.values()].map(key).sort();
      if (order === 'desc') expected.reverse();
      expect(body.hits.hits.map((hit: { sort: [string] }) => hit.sort[0])).toEqual(expected);
      for (const hit of body.hits.hits) expect(hit.sort[0]).toBe(key(documents.get(hit._id) ?? []));
    }
  });

  it('is aggregated by its words', async () => {
    const aggs = {
      words: { terms: { field: 'tree', order: { _key: 'asc' } } },
      many: { cardinality: { field: 'tree' } },
    };
    const { body } = await call('POST', '/trees/_search', { size: 0, query: { match: { tree: 'oak' } }, aggs });
    const matching = [...documents.values()].map(wordsOf).filter((words) => words.includes('oak'));
    const expected = WORDS.map((word) => word.toLowerCase())
      .sort()
      .map((key) => ({ key, doc_count: matching.filter((words) => words.includes(key)).length }));
    expect(body.aggregations.words.buckets).toEqual(expected.filter(({ doc_count }) => doc_count > 0));
    expect(body.aggregations.many.value).toBe(expected.length);
  });

  it('shows its words to scripts and as doc values', async () => {
    const script_fields = { first: { script: "doc['tree'].value" } };
    const { body } = await call('POST', '/trees/_search', { size: 20, docvalue_fields: ['tree'], script_fields });
    for (const { _id, fields } of body.hits.hits) {
      const words = wordsOf(documents.get(_id) ?? []);
      expect(fields).toEqual({ tree: words, first: words.slice(0, 1) });
    }
  });

  it('is known to the capabilities of fields, and to statistics', async () => {
    const { body } = await call('GET', '/trees/_field_caps?fields=*');
    expect(body.fields.tree.text).toMatchObject({ searchable: true, aggregatable: true });
    expect(body.fields.plain.text).toMatchObject({ searchable: true, aggregatable: false });
    const stats = (await call('GET', '/trees/_stats/fielddata?fields=*')).body._all.total.fielddata;
    expect(stats.memory_size_in_bytes).toBeGreaterThan(0);
    expect(stats.fields).toEqual({ tree: { memory_size_in_bytes: stats.memory_size_in_bytes } });
    expect((await call('GET', '/_cat/fielddata/tr*?h=field,size&bytes=b')).text).toBe(
      `tree ${String(stats.memory_size_in_bytes)}\n`,
    );
    expect((await call('GET', '/_cat/fielddata?fields=plain')).text).toBe('');
  });

  it('is decided on when the field is mapped', async () => {
    const put = (fields: object) => call('PUT', '/trees/_mapping', { properties: fields });
    const { status, body } = await put({ plain: { type: 'text', fielddata: true } });
    expect([status, body.error.reason]).toEqual([
      400,
      '[fielddata] of [plain] cannot be switched on in an index that exists: its documents were written without it. Copy ' +
        'them with _reindex into an index whose mapping has it',
    ]);
    expect((await put({ tree: { type: 'text' } })).status).toBe(200);
    expect((await call('POST', '/trees/_search', { sort: ['tree'] })).status).toBe(200);
    expect((await put({ tree: { type: 'text', fielddata: false } })).status).toBe(200);
    expect((await call('POST', '/trees/_search', { sort: ['tree'] })).status).toBe(400);
    expect((await put({ tree: { type: 'text', fielddata: true } })).status).toBe(400);
  });
});
