// Scripts and objects of nested fields: one suite for every engine behind the routes, as in engines.test.ts.
import { randomBytes } from 'node:crypto';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { ENGINES, IS_ELASTICSEARCH } from '../support/engines.js';
import type { RunningServer } from '../support/server.js';

describe.each(ENGINES)('over the $name engine', ({ name, start }) => {
  const run = randomBytes(4).toString('hex');
  const of = (index: string) => `scripted-${run}-${index}`;
  let server: RunningServer;

  async function ask(method: string, path: string, body?: unknown, status = 200): Promise<any> {
    const answer = await server.request(method, path, body);
    expect(answer.status, `${method} ${path}: ${answer.text}`).toBe(status);
    return answer.body;
  }
  const search = (body: object) => ask('POST', `/${of('sales')}/_search`, body);
  const found = async (body: object): Promise<any[]> => (await search(body)).hits.hits;

  beforeAll(async () => {
    server = await start({ args: ['--deploy-at-start', 'false'] });
    await ask('PUT', `/${of('sales')}`, {
      mappings: {
        properties: {
          kind: { type: 'keyword' },
          price: { type: 'integer' },
          count: { type: 'integer' },
          tokens: { type: 'sparse_vector' },
          parts: {
            type: 'nested',
            properties: { name: { type: 'keyword' }, size: { type: 'integer' }, tokens: { type: 'sparse_vector' } },
          },
        },
      },
    });
    const docs = [
      { kind: 'a', price: 3, count: 2, tokens: { red: 1 }, parts: [{ name: 'x', size: 4, tokens: { iron: 2 } }] },
      {
        kind: 'a',
        price: 5,
        count: 1,
        tokens: { red: 2 },
        parts: [
          { name: 'x', size: 1 },
          { name: 'y', size: 9 },
        ],
      },
      { kind: 'b', price: 2, count: 7, tokens: { blue: 1 }, parts: [{ name: 'y', size: 2, tokens: { iron: 1 } }] },
    ];
    const lines = docs.map((doc, n) => `${JSON.stringify({ index: { _id: String(n) } })}\n${JSON.stringify(doc)}\n`);
    const written = await ask('POST', `/${of('sales')}/_bulk?refresh=true`, lines.join(''));
    expect(written.errors, JSON.stringify(written)).toBe(false);
  }, 120_000);

  afterAll(async () => {
    for (const index of ['sales', 'changed']) await server.request('DELETE', `/${of(index)}`);
    await server.request('DELETE', `/_ingest/pipeline/${of('total')}`);
    await server.stop();
  });

  describe.skipIf(IS_ELASTICSEARCH && name === 'cluster')('scripts', () => {
    const total = { source: "doc['price'].value * doc['count'].value" };

    it('compute values of buckets, and choose among these', async () => {
      const sums = { price: { sum: { field: 'price' } }, count: { sum: { field: 'count' } } };
      const paths = { p: 'price', c: 'count' };
      const aggs = {
        kinds: {
          terms: { field: 'kind' },
          aggs: {
            ...sums,
            mean: { bucket_script: { buckets_path: paths, script: 'params.p / params.c' } },
            few: {
              bucket_selector: {
                buckets_path: paths,
                script: { source: 'params.c < params.most', params: { most: 5 } },
              },
            },
          },
        },
      };
      const { aggregations } = await search({ size: 0, aggs });
      expect(aggregations.kinds.buckets.map((it: any) => [it.key, it.mean.value])).toEqual([['a', 8 / 3]]);
    });

    it('compute fields of hits, also of fused ones', async () => {
      const script_fields = { total: { script: total } };
      const hits = await found({ query: { match_all: {} }, sort: ['price'], script_fields });
      expect(hits.map((hit) => hit.fields.total)).toEqual([[14], [6], [5]]);
      const rrf = { retrievers: [{ standard: { query: { term: { kind: 'b' } } } }] };
      const [fused] = await found({ retriever: { rrf }, script_fields });
      expect(fused.fields.total).toEqual([14]);
    });

    it('sort, filter and score', async () => {
      const sorted = await found({ sort: { _script: { type: 'number', script: total, order: 'asc' } } });
      expect(sorted.map((hit) => [hit._id, hit.sort])).toEqual([
        ['1', [5]],
        ['0', [6]],
        ['2', [14]],
      ]);
      const script = { ...total, source: `${total.source} > params.least`, params: { least: 5 } };
      const filtered = await found({ query: { bool: { filter: [{ script: { script } }] } }, sort: ['price'] });
      expect(filtered.map((hit) => hit._id)).toEqual(['2', '0']);
      const scored = await found({ query: { script_score: { query: { match_all: {} }, script: total } } });
      expect(scored.map((hit) => [hit._id, hit._score])).toEqual([
        ['2', 14],
        ['0', 6],
        ['1', 5],
      ]);
    });

    it('change documents', async () => {
      await ask('PUT', `/${of('changed')}/_doc/1?refresh=true`, { n: 1 }, 201);
      const update = (body: object, status = 200, id = '1') =>
        ask('POST', `/${of('changed')}/_update/${id}?refresh=true`, body, status);
      const source = async (id = '1') => (await ask('GET', `/${of('changed')}/_doc/${id}`))._source;
      await update({ script: { source: 'ctx._source.n += params.by', params: { by: 4 } } });
      expect(await source()).toEqual({ n: 5 });
      expect((await update({ script: "ctx.op = 'noop'" })).result).toBe('noop');
      await update({ script: 'ctx._source.n = 7', upsert: { n: 1 } }, 201, '2');
      expect(await source('2')).toEqual({ n: 1 });
      await update({ script: 'ctx._source.n = 7', upsert: {}, scripted_upsert: true }, 201, '3');
      expect(await source('3')).toEqual({ n: 7 });
      const changed = await ask('POST', `/${of('changed')}/_update_by_query?refresh=true`, {
        query: { range: { n: { gte: 5 } } },
        script: 'ctx._source.n *= 10',
      });
      expect(changed.updated).toBe(2);
      expect([await source(), await source('2'), await source('3')]).toEqual([{ n: 50 }, { n: 1 }, { n: 70 }]);
      expect((await update({ script: "ctx.op = 'delete'" })).result).toBe('deleted');
    });

    it('run in pipelines', async () => {
      const processors = [{ script: { source: 'ctx.total = ctx.price * ctx.count' } }];
      await ask('PUT', `/_ingest/pipeline/${of('total')}`, { processors });
      await ask('PUT', `/${of('changed')}/_doc/9?pipeline=${of('total')}`, { price: 2, count: 3 }, 201);
      expect((await ask('GET', `/${of('changed')}/_doc/9`))._source.total).toBe(6);
    });
  });

  describe('nested objects', () => {
    const nested = (query: object, more: object = {}) => ({ nested: { path: 'parts', query, ...more } });

    it('match each by itself, and are shown', async () => {
      const both = { bool: { must: [{ term: { 'parts.name': 'x' } }, { range: { 'parts.size': { gt: 5 } } }] } };
      expect(await found({ query: nested(both) })).toEqual([]);
      const [hit] = await found({ query: nested({ range: { 'parts.size': { gt: 5 } } }, { inner_hits: {} }) });
      expect(hit._id).toBe('1');
      expect(hit.inner_hits.parts.hits.hits[0]).toMatchObject({
        _nested: { field: 'parts', offset: 1 },
        _source: { name: 'y', size: 9 },
      });
    });

    it('are found by tokens, sorted by, and counted', async () => {
      const sparse = { sparse_vector: { field: 'parts.tokens', query_vector: { iron: 3 } } };
      const hits = await found({ query: nested(sparse, { score_mode: 'max' }) });
      expect(hits.map((hit) => hit._id)).toEqual(['0', '2']);
      expect(hits[0]._score).toBeCloseTo(6, 2);
      const sort = [{ 'parts.size': { order: 'desc', mode: 'max', nested: { path: 'parts' } } }];
      expect((await found({ sort })).map((hit) => hit._id)).toEqual(['1', '0', '2']);
      const { aggregations } = await search({
        size: 0,
        aggs: {
          parts: {
            nested: { path: 'parts' },
            aggs: { names: { terms: { field: 'parts.name' }, aggs: { back: { reverse_nested: {} } } } },
          },
        },
      });
      expect(aggregations.parts.doc_count).toBe(4);
      expect(aggregations.parts.names.buckets.map((it: any) => [it.key, it.doc_count, it.back.doc_count])).toEqual([
        ['x', 2, 2],
        ['y', 2, 2],
      ]);
    });

    it('are shown and found beside a fusion', async () => {
      const rrf = {
        retrievers: [
          { standard: { query: nested({ term: { 'parts.name': 'y' } }, { inner_hits: { name: 'ys' } }) } },
          { standard: { query: { sparse_vector: { field: 'tokens', query_vector: { blue: 1 } } } } },
        ],
      };
      const hits = await found({ retriever: { rrf } });
      expect(hits.map((hit) => hit._id)).toEqual(['2', '1']);
      expect(hits.map((hit) => hit.inner_hits.ys.hits.hits.length)).toEqual([1, 1]);
    });
  });
});
