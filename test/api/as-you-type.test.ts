// `search_as_you_type`: what is found, and in which order, while somebody types.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

let server: RunningServer;
const TITLES = {
  apart: 'The fox is brown and quick',
  beside: 'A quick brown fox jumps',
  start: 'Quick brown bread',
  other: 'Slow green tea',
};

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
  const title = { type: 'search_as_you_type', fields: { raw: { type: 'keyword' } } };
  const four = { type: 'search_as_you_type', max_shingle_size: 4, analyzer: 'english' };
  const { status } = await server.request('PUT', '/titles', { mappings: { properties: { title, four } } });
  expect(status).toBe(200);
  for (const [id, text] of Object.entries(TITLES)) {
    await server.request('PUT', `/titles/_doc/${id}`, { title: text, four: text });
  }
  await server.request('POST', '/titles/_refresh');
});

afterAll(() => server.stop());

const ids = async (query: object): Promise<string[]> => {
  const { status, body } = await server.request('POST', '/titles/_search', { query });
  expect(status, JSON.stringify(body)).toBe(200);
  return body.hits.hits.map((hit: { _id: string }) => hit._id);
};
const typed = (query: string): Promise<string[]> =>
  ids({ multi_match: { query, type: 'bool_prefix', fields: ['title', 'title._2gram', 'title._3gram'] } });

describe('a field for completion', () => {
  it('finds unfinished words, words side by side first', async () => {
    expect(await typed('gre')).toEqual(['other']);
    expect((await typed('quick br')).sort()).toEqual(['apart', 'beside', 'start']);
    expect((await typed('brown f'))[0]).toBe('beside');
    expect((await typed('quick brown fo'))[0]).toBe('beside');
    expect((await typed('quick brown br'))[0]).toBe('start');
  });

  it('has sub-fields for neighbouring words, with the analyzer of the field', async () => {
    expect(await ids({ match: { 'title._2gram': 'brown fox' } })).toEqual(['beside']);
    expect(await ids({ match: { 'title._3gram': 'brown fox' } })).toEqual([]);
    expect(await ids({ match: { 'four._4gram': 'quick brown foxes jumping' } })).toEqual(['beside']);
    expect(await ids({ match_phrase: { title: 'brown fox' } })).toEqual(['beside']);
    expect(await ids({ term: { 'title.raw': TITLES.other } })).toEqual(['other']);
  });

  it('shows its mapping as it was put, also when that is put again', async () => {
    const shown = async (): Promise<object> =>
      (await server.request('GET', '/titles/_mapping')).body.titles.mappings.properties;
    const expected = {
      title: { type: 'search_as_you_type', fields: { raw: { type: 'keyword' } } },
      four: { type: 'search_as_you_type', max_shingle_size: 4, analyzer: 'english' },
    };
    expect(await shown()).toEqual(expected);
    const again = await server.request('PUT', '/titles/_mapping', { properties: await shown() });
    expect(again.status, JSON.stringify(again.body)).toBe(200);
    expect(await shown()).toEqual(expected);
    await server.kill();
    server = await startServer({ args: ['--deploy-at-start', 'false'], data: server.data });
    expect(await shown()).toEqual(expected);
    expect((await typed('brown f'))[0]).toBe('beside');
  });

  it('keeps sub-fields of any name but its own', async () => {
    const title = { type: 'search_as_you_type', fields: { _raw: { type: 'keyword' } }, doc_values: false };
    expect((await server.request('PUT', '/own', { mappings: { properties: { title } } })).status).toBe(200);
    const shown = await server.request('GET', '/own/_mapping');
    expect(shown.body.own.mappings.properties.title).toEqual({
      type: 'search_as_you_type',
      fields: { _raw: { type: 'keyword' } },
    });
    const taken = { type: 'search_as_you_type', fields: { _2gram: { type: 'keyword' } } };
    const { status, body } = await server.request('PUT', '/taken', { mappings: { properties: { title: taken } } });
    expect(status).toBe(400);
    expect(JSON.stringify(body.error)).toContain('has a sub-field [_2gram] of its own');
  });

  it('takes two to four neighbouring words', async () => {
    const title = { type: 'search_as_you_type', max_shingle_size: 5 };
    const { status, body } = await server.request('PUT', '/other', { mappings: { properties: { title } } });
    expect(status).toBe(400);
    expect(JSON.stringify(body.error)).toContain('[max_shingle_size] must be at least [2] and at most [4], got [5]');
  });
});
