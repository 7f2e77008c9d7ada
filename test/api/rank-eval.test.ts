// `_rank_eval` against the real engine: what the measures are is tested in Rust, here is how they are asked for.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

let server: RunningServer;
const call = (method: string, path: string, body?: unknown) => server.request(method, path, body);
const rated = (...ratings: [string, number][]) => ratings.map(([_id, rating]) => ({ _index: 'books', _id, rating }));
const match = (title: string) => ({ query: { match: { title } } });
const evaluate = async (requests: object[], metric: object, path = '/books/_rank_eval'): Promise<any> => {
  const answer = await call('POST', path, { requests, metric });
  expect(answer.status, answer.text).toBe(200);
  return answer.body;
};

beforeAll(async () => {
  server = await startServer();
  await call('PUT', '/books', { mappings: { properties: { title: { type: 'text' }, year: { type: 'integer' } } } });
  const titles = ['red fox', 'red fox red', 'red deer in a long title', 'blue whale'];
  const lines = titles.flatMap((title, at) => [{ index: { _id: String(at + 1) } }, { title, year: 2000 + at }]);
  await call('POST', '/books/_bulk?refresh=true', `${lines.map((line) => JSON.stringify(line)).join('\n')}\n`);
});
afterAll(async () => {
  await server.stop();
});

describe('_rank_eval', () => {
  it('judges the first hits of searches', async () => {
    const requests = [
      { id: 'fox', request: match('fox'), ratings: rated(['1', 1], ['2', 3], ['9', 1]) },
      { id: 'red', request: { ...match('red'), size: 1, sort: ['year'] }, ratings: rated(['3', 2]) },
    ];
    const precision = await evaluate(requests, { precision: { k: 3 } });
    expect(precision.failures).toEqual({});
    expect(precision.details.fox).toMatchObject({
      metric_score: 1,
      unrated_docs: [],
      metric_details: { precision: { relevant_docs_retrieved: 2, docs_retrieved: 2 } },
    });
    // The window is that of the metric, whatever the search says.
    expect(precision.details.red).toMatchObject({
      metric_score: 1 / 3,
      unrated_docs: [
        { _index: 'books', _id: '1' },
        { _index: 'books', _id: '2' },
      ],
    });
    const [hit] = precision.details.red.hits;
    expect(hit).toEqual({ hit: { _index: 'books', _id: '1', _score: null, sort: [2000] }, rating: null });
    expect(precision.details.red.hits[2].rating).toBe(2);
    expect(precision.metric_score).toBeCloseTo((1 + 1 / 3) / 2, 6);

    const recall = await evaluate(requests, { recall: { k: 2 } });
    expect([recall.details.fox.metric_score, recall.details.red.metric_score]).toEqual([2 / 3, 0]);
    const first = await evaluate(requests, { mean_reciprocal_rank: {} });
    expect(first.details.red.metric_details).toEqual({ mean_reciprocal_rank: { first_relevant: 3 } });
    const gain = await evaluate(requests, { dcg: { normalize: true, k: 3 } });
    expect(gain.details.red).toMatchObject({
      metric_score: 0.5,
      metric_details: { dcg: { dcg: 1.5, ideal_dcg: 3, normalized_dcg: 0.5, unrated_docs: 2 } },
    });
    const expected = await evaluate(requests, { expected_reciprocal_rank: { maximum_relevance: 3 } });
    expect(expected.details.red.metric_score).toBeCloseTo(3 / 8 / 3, 6);
    const metric = { expected_reciprocal_rank: { maximum_relevance: 1 } };
    const above = await call('POST', '/books/_rank_eval', { requests, metric });
    expect([above.status, above.body.error.reason], above.text).toEqual([
      400,
      expect.stringContaining('[expected_reciprocal_rank] takes ratings up to [maximum_relevance] [1], got ['),
    ]);
  });

  it('shows what is asked for, and searches what the path names', async () => {
    const request = { id: 'q', request: match('whale'), ratings: rated(['4', 1]), summary_fields: ['title'] };
    const answer = await evaluate([request], { precision: {} }, '/_rank_eval');
    expect(answer.details.q.hits[0].hit._source).toEqual({ title: 'blue whale' });
    const nowhere = await call('GET', '/gone/_rank_eval', { requests: [request], metric: { precision: {} } });
    expect(nowhere.status).toBe(404);
    const ignored = await call('POST', '/gone/_rank_eval?ignore_unavailable=true', {
      requests: [request],
      metric: { precision: {} },
    });
    expect(ignored.body.metric_score).toBe(0);
    expect(ignored.body.failures).toEqual({});
  });

  it('tells of a search that fails, and judges the others', async () => {
    const bad = { id: 'bad', request: { query: { range: { year: { gte: 'soon' } } } }, ratings: [] };
    const good = { id: 'good', request: match('whale'), ratings: rated(['4', 1]) };
    const answer = await evaluate([bad, good], { precision: {} });
    expect(answer.metric_score).toBe(1);
    expect(Object.keys(answer.details)).toEqual(['good']);
    expect(answer.failures.bad.error.type).toBe('search_phase_execution_exception');
  });

  it('is good for comparing retrievers', async () => {
    const retriever = { rrf: { query: 'blue whale' } };
    const answer = await evaluate([{ id: 'r', request: { retriever }, ratings: rated(['4', 1]) }], { dcg: {} });
    expect(answer.metric_score).toBe(1);
  });

  it.each([
    ['no metric', { requests: [{ id: 'a', request: {}, ratings: [] }] }, 'no evaluation metric is provided'],
    ['no requests', { metric: { precision: {} } }, 'no search requests with rated results are provided'],
    ['an unknown metric', { requests: [], metric: { accuracy: {} } }, 'unknown evaluation metric [accuracy]'],
    ['an unknown key', { requests: [], metric: { precision: {} }, deep: 1 }, '[rank_eval] unknown field [deep]'],
    ['templates', { templates: [{ id: 'a' }], metric: { precision: {} } }, '[templates] are not supported'],
    [
      'a template',
      { requests: [{ id: 'a', template_id: 't', params: {}, ratings: [] }], metric: { precision: {} } },
      '[template_id] and [params] of request [a] are not supported',
    ],
    [
      'aggregations',
      { requests: [{ id: 'a', request: { aggs: { a: {} } }, ratings: [] }], metric: { precision: {} } },
      'Query in rated requests should not contain aggregations.',
    ],
    ['no ratings', { requests: [{ id: 'a', request: {} }], metric: { precision: {} } }, 'Required [ratings]'],
    [
      'two ratings of one document',
      { requests: [{ id: 'a', request: {}, ratings: rated(['1', 1], ['1', 2]) }], metric: { precision: {} } },
      'Found duplicate rated document key',
    ],
    [
      'an id twice',
      {
        requests: [
          { id: 'a', request: {}, ratings: [] },
          { id: 'a', request: {}, ratings: [] },
        ],
        metric: { precision: {} },
      },
      'Found duplicate request id [a]',
    ],
    [
      'a negative rating',
      { requests: [{ id: 'a', request: {}, ratings: rated(['1', -1]) }], metric: { precision: {} } },
      '[rating] must be between 0 and 1000, was [-1]',
    ],
  ])('refuses %s', async (_what, body, expected) => {
    const answer = await call('POST', '/books/_rank_eval', body);
    expect(answer.status, answer.text).toBe(400);
    expect(answer.text).toContain(expected);
  });
});
