// Objects of nested fields through jobs, copies, merges and snapshots, and what hits show of them.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

let server: RunningServer;
const repositories = mkdtempSync(join(tmpdir(), 'sparrow-objects-'));
const done = async (method: string, path: string, body?: object): Promise<any> => {
  const { status, body: answer } = await server.request(method, path, body);
  expect(status, `${method} ${path} ${JSON.stringify(answer)}`).toBeLessThan(300);
  return answer;
};
const search = (index: string, body: object): Promise<any> => done('POST', `/${index}/_search`, body);
const nested = (path: string, query: object, more: object = {}): object => ({ nested: { path, query, ...more } });
const ids = async (index: string, query: object): Promise<string[]> =>
  (await search(index, { query, sort: ['_seq_no'] })).hits.hits.map((hit: { _id: string }) => hit._id);

const phrase = nested('parts', { match_phrase: { 'parts.says': 'red fox' } });

/** Checks that searches by phrase, range, existence and objects find the documents as they were written. */
async function whole(index: string): Promise<void> {
  expect(await ids(index, phrase)).toEqual(['1', '2']);
  expect(await ids(index, nested('parts', { range: { 'parts.n': { gt: 2 } } }))).toEqual(['2']);
  expect(await ids(index, nested('parts.notes', { exists: { field: 'parts.notes.n' } }))).toEqual(['1']);
  // An object has the values of the objects in it: both of the same one.
  const both = (n: number) =>
    nested('parts', { bool: { filter: [{ term: { 'parts.notes.n': 11 } }, { term: { 'parts.n': n } }] } });
  expect([await ids(index, both(1)), await ids(index, both(2))]).toEqual([['1'], []]);
  const { hits, aggregations } = await search(index, { size: 0, aggs: { o: { nested: { path: 'parts' } } } });
  expect([hits.total.value, aggregations.o.doc_count]).toEqual([3, 3]);
}

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false', '--repo-path', repositories] });
  const notes = { type: 'nested', include_in_parent: true, properties: { n: { type: 'integer' } } };
  const parts = { type: 'nested', properties: { says: { type: 'text' }, n: { type: 'integer' }, notes } };
  const made = await server.request('PUT', '/journey', { mappings: { properties: { t: { type: 'keyword' }, parts } } });
  expect(made.status).toBe(200);
  const documents = [
    {
      parts: [
        { says: 'the red fox', n: 1, notes: [{ n: 10 }, { n: 11 }] },
        { says: 'fox, red', n: 2 },
      ],
    },
    { parts: [{ says: 'a red fox runs', n: 3 }] },
    { t: 'no parts' },
  ];
  for (const [n, document] of documents.entries()) {
    const { status } = await server.request('PUT', `/journey/_doc/${String(n + 1)}?refresh=true`, document);
    expect(status).toBe(201);
  }
});

afterAll(async () => {
  await server.stop();
  rmSync(repositories, { recursive: true, force: true });
});

describe('objects of nested fields', () => {
  it('are found after merges, copies and snapshots', async () => {
    await whole('journey');
    await done('POST', '/journey/_forcemerge?max_num_segments=1');
    await whole('journey');
    await done('PUT', '/journey/_block/write');
    await done('POST', '/journey/_clone/twin');
    await done('PUT', '/journey/_settings', { 'index.blocks.write': null });
    await whole('twin');
    await done('PUT', '/_snapshot/repo', { type: 'fs', settings: { location: join(repositories, 'repo') } });
    await done('PUT', '/_snapshot/repo/one?wait_for_completion=true', { indices: 'journey' });
    const restored = { indices: 'journey', rename_pattern: 'journey', rename_replacement: 'restored' };
    await done('POST', '/_snapshot/repo/one/_restore?wait_for_completion=true', restored);
    await whole('restored');
  });

  it('change with their document in jobs by query', async () => {
    const { mappings } = (await done('GET', '/journey/_mapping')).journey;
    await done('PUT', '/changed', { mappings });
    await done('POST', '/_reindex?refresh=true', {
      source: { index: 'journey', query: phrase },
      dest: { index: 'changed' },
    });
    const script = "ctx._source.parts.add(['says': 'another fox', 'n': 9])";
    const query = nested('parts', { term: { 'parts.n': 3 } });
    expect((await done('POST', '/changed/_update_by_query?refresh=true', { query, script })).updated).toBe(1);
    const nine = nested('parts', { term: { 'parts.n': 9 } });
    expect(await ids('changed', nine)).toEqual(['2']);
    expect(await ids('changed', query)).toEqual(['2']);
    expect((await done('POST', '/changed/_delete_by_query?refresh=true', { query: nine })).deleted).toBe(1);
    expect(await ids('changed', { match_all: {} })).toEqual(['1']);
    const { aggregations } = await search('changed', { size: 0, aggs: { o: { nested: { path: 'parts' } } } });
    expect(aggregations.o.doc_count).toBe(2);
  });

  it('have no part in scores that decide what matches', async () => {
    const parts = { type: 'nested', properties: { n: { type: 'integer' } } };
    await done('PUT', '/scored', { mappings: { properties: { u: { type: 'integer' }, parts } } });
    await done('PUT', '/scored/_doc/1?refresh=true', { u: 4, parts: [{ n: 1 }, { n: 2 }] });
    const query = { function_score: { field_value_factor: { field: 'u' }, boost_mode: 'replace', min_score: 3 } };
    expect(await ids('scored', { bool: { should: [query], minimum_should_match: 1 } })).toEqual(['1']);
    const lists = [{ standard: { query, min_score: 3 } }, { standard: { query: { match_none: {} } } }];
    const { hits } = await search('scored', { retriever: { rrf: { retrievers: lists } } });
    expect(hits.hits).toHaveLength(1);
  });

  it('are shown as inner hits ask for it', async () => {
    const inner_hits = {
      ...{ from: 1, size: 1, sort: [{ 'parts.n': 'asc' }], _source: ['parts.n'] },
      highlight: { fields: { 'parts.says': {} } },
    };
    const query = nested('parts', { match: { 'parts.says': 'fox' } }, { inner_hits });
    const { hits } = await search('journey', {
      query: { bool: { must: [query], filter: [{ ids: { values: ['1'] } }] } },
    });
    const { total, hits: objects } = hits.hits[0].inner_hits.parts.hits;
    expect(total.value).toBe(2);
    expect(objects).toMatchObject([
      {
        _id: '1',
        _nested: { field: 'parts', offset: 1 },
        _source: { n: 2 },
        sort: [2],
        highlight: { 'parts.says': ['<em>fox</em>, red'] },
      },
    ]);
  });

  it.each(['avg', 'max', 'min', 'sum', 'none'])('are explained: %s', async (score_mode) => {
    const query = nested('parts', { match: { 'parts.says': 'fox' } }, { score_mode });
    const [hit] = (await search('journey', { query: { bool: { must: [query], filter: { ids: { values: ['1'] } } } } }))
      .hits.hits;
    const { matched, explanation } = await done('POST', '/journey/_explain/1', { query });
    expect(matched).toBe(true);
    expect(explanation.value).toBeCloseTo(hit._score, 5);
  });
});
