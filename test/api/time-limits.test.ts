// What a search still does for its hits when its time is over: it shows them without what takes long.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

let server: RunningServer;
const DOCUMENTS = 400;
// Every one of many thousand words is held against the pattern.
const pattern = { regexp: { text: '(a|b)*a(a|b){9}|x[0-9]+' } };
const highlight = { fields: { text: { highlight_query: pattern, number_of_fragments: 1 } } };

const search = async (body: object, more = ''): Promise<any> => {
  const { status, body: answer } = await server.request('POST', `/slow/_search?timeout=100ms${more}`, body);
  return more === '' ? answer : [status, answer.error?.type];
};

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
  const properties = { text: { type: 'text' }, id: { type: 'keyword' } };
  await server.request('PUT', '/slow', { mappings: { properties } });
  const text = Array.from({ length: 4000 }, (_, word) => `x${String(word)}`).join(' ');
  const lines = Array.from(
    { length: DOCUMENTS },
    (_, at) => `{"index":{"_id":"${String(at)}"}}\n${JSON.stringify({ id: String(at), text })}\n`,
  );
  const { body } = await server.request('POST', '/slow/_bulk?refresh=true', lines.join(''));
  expect(body.errors).toBe(false);
});

afterAll(() => server.stop());

describe('hits whose time is over', () => {
  it('are shown without highlights', async () => {
    const answer = await search({ size: DOCUMENTS, _source: false, highlight });
    expect([answer.timed_out, answer.hits.hits.length]).toEqual([true, DOCUMENTS]);
    expect(answer.hits.hits.at(-1)).not.toHaveProperty('highlight');
  });

  it('are an error where a part is not wanted', async () => {
    const body = { size: DOCUMENTS, _source: false, highlight };
    expect(await search(body, '&allow_partial_search_results=false')).toEqual([504, 'timeout_exception']);
  });

  it('are counted and not shown in buckets', async () => {
    const hits = { top_hits: { _source: false, highlight } };
    const ids = { terms: { field: 'id', size: DOCUMENTS }, aggs: { hits } };
    const answer = await search({ size: 0, aggs: { ids } });
    const { buckets } = answer.aggregations.ids;
    expect([answer.timed_out, buckets.length]).toEqual([true, DOCUMENTS]);
    expect(buckets.at(-1).hits.hits).toMatchObject({ total: { value: 1 }, hits: [] });
  });

  it('are shown without explanations', async () => {
    // They are found in a third of the time, and explained in thirty times that.
    const should = Array.from({ length: 20 }, (_, at) => ({ prefix: { text: `x${String(at)}` } }));
    const answer = await search({ size: DOCUMENTS, _source: false, explain: true, query: { bool: { should } } });
    expect([answer.timed_out, answer.hits.hits.length]).toEqual([true, DOCUMENTS]);
    for (const hit of answer.hits.hits) expect(hit).not.toHaveProperty('_explanation');
  });
});

describe('highlighting hits of many buckets', () => {
  it('marks the words of each', async () => {
    const hits = { top_hits: { _source: false, highlight: { fields: { text: {} } } } };
    const ids = { terms: { field: 'id', size: 20 }, aggs: { hits } };
    const query = { match: { text: 'x17' } };
    const { body } = await server.request('POST', '/slow/_search', { size: 0, query, aggs: { ids } });
    const { buckets } = body.aggregations.ids;
    expect(buckets).toHaveLength(20);
    for (const bucket of buckets) {
      expect(bucket.hits.hits.hits[0].highlight.text[0]).toContain('<em>x17</em>');
    }
  });
});
