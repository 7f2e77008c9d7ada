// What the public REST suites found missing or different, each in our own words.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type Answer, type RunningServer, startServer } from '../support/server.js';

let server: RunningServer;
const call = (method: string, path: string, body?: unknown): Promise<Answer> => server.request(method, path, body);
const ids = (answer: Answer): string[] => answer.body.hits.hits.map((hit: { _id: string }) => hit._id);

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
});

afterAll(async () => {
  await server.stop();
});

describe('nearest neighbours', () => {
  const vector = [1, 1];
  const search = (body: object): Promise<Answer> => call('POST', '/points/_search', body);

  beforeAll(async () => {
    const properties = { v: { type: 'dense_vector', dims: 2, similarity: 'l2_norm' }, tag: { type: 'keyword' } };
    await call('PUT', '/points', { mappings: { properties } });
    for (let n = 1; n <= 20; n += 1)
      await call('PUT', `/points/_doc/${String(n)}`, { v: [1, n], tag: `t${String(n % 2)}` });
    await call('POST', '/points/_refresh');
  });

  it.each([
    [{ num_candidates: 5 }, 3, 5],
    [{ num_candidates: 20 }, 3, 20],
    [{ k: 2 }, 3, 2],
    [{ k: 2, num_candidates: 7 }, 3, 2],
    [{}, 4, 6],
    [{}, 10, 15],
  ])('the query %j finds with size %i as many as candidates, or k: %i', async (options, size, total) => {
    const answer = await search({ size, query: { knn: { field: 'v', query_vector: vector, ...options } } });
    expect([answer.body.hits.total.value, ids(answer).length]).toEqual([total, Math.min(size, total)]);
  });

  it('_knn_search is a search with a knn section', async () => {
    const knn = { field: 'v', query_vector: vector, k: 3, num_candidates: 10 };
    const answer = await call('POST', '/points/_knn_search', { knn, _source: false, fields: ['tag'] });
    expect([answer.status, ids(answer)]).toEqual([200, ['1', '2', '3']]);
    expect(answer.body.hits.hits[0]).toEqual({ _index: 'points', _id: '1', _score: 1, fields: { tag: ['t1'] } });
    expect(answer.headers['warning']).toContain('The kNN search API has been replaced by the `knn` option');
    const filtered = await call('GET', '/points/_knn_search?routing=a', { knn, filter: [{ term: { tag: 't0' } }] });
    expect(ids(filtered)).toEqual(['2', '4', '6']);
    for (const [body, reason] of [
      [{}, 'missing required [knn] section in search body'],
      [{ knn: { field: 'v', query_vector: vector, k: 3 } }, 'Required [num_candidates]'],
      [{ knn, size: 3 }, '[knn-search] unknown field [size]'],
      [{ knn: { ...knn, boost: 1 } }, '[knn] unknown field [boost]'],
      [{ knn: { ...knn, k: 11 } }, '[num_candidates] cannot be less than [k]'],
    ] as const) {
      const { status, text } = await call('POST', '/points/_knn_search', body);
      expect([status, text]).toEqual([400, expect.stringContaining(reason)]);
    }
    expect((await call('POST', '/nowhere/_knn_search', { knn })).status).toBe(404);
  });
});

describe('matched fields of the unified highlighter', () => {
  beforeAll(async () => {
    const title = { type: 'text', fields: { english: { type: 'text', analyzer: 'english' } } };
    await call('PUT', '/shows', { mappings: { properties: { title } } });
    await call('PUT', '/shows/_doc/1?refresh=true', { title: 'dancing with the stars' });
  });

  it('add to the matches of the field itself', async () => {
    const query = { multi_match: { query: 'dance with', fields: ['title', 'title.english'] } };
    const highlight = { fields: { title: { matched_fields: ['title.english'] } } };
    const { body } = await call('POST', '/shows/_search', { query, highlight });
    expect(body.hits.hits[0].highlight.title).toEqual(['<em>dancing</em> <em>with</em> the stars']);
  });

  it('need the matches of their own fields', async () => {
    const fields = { title: { matched_fields: ['title.english'] } };
    const answer = await call('POST', '/shows/_search', { highlight: { require_field_match: false, fields } });
    expect([answer.status, answer.body.error.root_cause[0]]).toEqual([
      400,
      {
        type: 'illegal_argument_exception',
        reason: 'Matched fields are not supported when [require_field_match] is set to [false]',
      },
    ]);
  });
});

describe('a match_only_text field', () => {
  beforeAll(async () => {
    const body = { type: 'match_only_text', fields: { raw: { type: 'keyword' } } };
    await call('PUT', '/lines', { mappings: { properties: { body } } });
    await call('PUT', '/lines/_doc/1', { body: 'connection refused by peer' });
    await call('PUT', '/lines/_doc/2?refresh=true', { body: 'peer refused' });
  });

  it('is searched by words, phrases and their beginnings', async () => {
    const found = async (query: object): Promise<string[]> =>
      ids(await call('POST', '/lines/_search', { query })).sort();
    expect(await found({ match: { body: 'peer' } })).toEqual(['1', '2']);
    expect(await found({ match_phrase: { body: 'connection refused' } })).toEqual(['1']);
    expect(await found({ match_phrase_prefix: { body: 'peer ref' } })).toEqual(['2']);
    expect(await found({ match_bool_prefix: { body: 'conn' } })).toEqual(['1']);
    expect(await found({ query_string: { query: 'body:"refused by"' } })).toEqual(['1']);
    expect(await found({ exists: { field: 'body' } })).toEqual(['1', '2']);
    expect(await found({ term: { 'body.raw': 'peer refused' } })).toEqual(['2']);
  });

  it('is shown as what it is, behaves like text, and takes no parameters', async () => {
    const shown = (await call('GET', '/lines/_mapping')).body.lines.mappings.properties.body;
    expect(shown).toEqual({ type: 'match_only_text', fields: { raw: { type: 'keyword' } } });
    const caps = (await call('GET', '/lines/_field_caps?fields=body')).body.fields.body;
    expect(caps.text).toMatchObject({ type: 'text', searchable: true, aggregatable: false });
    const properties = { body: { type: 'match_only_text', analyzer: 'english' } };
    const refused = await call('PUT', '/bad', { mappings: { properties } });
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('unknown parameter [analyzer]')]);
    const changed = await call('PUT', '/lines/_mapping', { properties: { body: { type: 'text' } } });
    expect([changed.status, changed.text]).toEqual([
      400,
      expect.stringContaining('cannot be changed from type [match_only_text] to [text]'),
    ]);
    const sorted = await call('POST', '/lines/_search', { sort: ['body'] });
    expect(sorted.status).toBe(400);
  });
});

describe('aliases', () => {
  it('_search_shards names the aliases that lead to an index', async () => {
    const filter = { term: { tag: 'a' } };
    await call('PUT', '/shelf', { aliases: { all: {}, some: { filter }, other: { filter } } });
    const shards = async (names: string) => (await call('GET', `/${names}/_search_shards`)).body.indices;
    expect(await shards('shelf')).toEqual({ shelf: {} });
    expect(await shards('all')).toEqual({ shelf: { aliases: ['all'] } });
    expect(await shards('some')).toEqual({ shelf: { aliases: ['some'], filter } });
    expect(await shards('some,other')).toEqual({
      shelf: { aliases: ['other', 'some'], filter: { bool: { should: [filter, filter] } } },
    });
    expect(await shards('some,all')).toEqual({ shelf: { aliases: ['all', 'some'] } });
  });

  it.each([
    { more_like_this: { like: { _id: '1' } } },
    { bool: { filter: { terms: { tag: { index: 'shelf', id: '1', path: 'tag' } } } } },
  ])('have no filter like %j, which would read other documents', async (filter) => {
    await call('PUT', '/shelf');
    const answer = await call('PUT', '/shelf/_alias/looking', { filter });
    expect([answer.status, answer.text]).toEqual([400, expect.stringContaining('cannot look up other documents')]);
    expect((await call('HEAD', '/_alias/looking')).status).toBe(404);
  });
});

describe('a bulk that lists the pipelines that ran', () => {
  it('names them in order, for each document that was written', async () => {
    const set = (value: string) => ({ set: { field: value, value } });
    await call('PUT', '/_ingest/pipeline/inner', { processors: [set('inner')] });
    await call('PUT', '/_ingest/pipeline/outer', { processors: [set('outer'), { pipeline: { name: 'inner' } }] });
    await call('PUT', '/_ingest/pipeline/last', { processors: [set('last')] });
    await call('PUT', '/piped', { settings: { 'index.final_pipeline': 'last' } });
    const lines = [
      { index: { _index: 'piped', pipeline: 'outer' } },
      { a: 1 },
      { create: { _index: 'plain' } },
      { a: 2 },
      { index: { _index: 'plain', pipeline: 'nowhere' } },
      { a: 3 },
      { index: { _index: 'plain', pipeline: 'inner' } },
      { a: 4 },
    ];
    const body = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
    const items = async (query: string) =>
      (await call('POST', `/_bulk${query}`, body)).body.items.map(
        (item: Record<string, { executed_pipelines?: string[] }>) => Object.values(item)[0]?.executed_pipelines,
      );
    expect(await items('?list_executed_pipelines=true')).toEqual([
      ['outer', 'inner', 'last'],
      [],
      undefined,
      ['inner'],
    ]);
    expect(await items('')).toEqual([undefined, undefined, undefined, undefined]);
    expect((await call('POST', '/_bulk?list_executed_pipelines=perhaps', body)).status).toBe(400);
  });
});

describe('keys', () => {
  it('of some indices find nothing like the documents of others', async () => {
    for (const index of ['open', 'secret'])
      await call('PUT', `/${index}/_doc/1?refresh=true`, { body: 'a hidden word' });
    const read = { cluster: [], indices: [{ names: ['open'], privileges: ['read'] }] };
    const { encoded } = (await call('POST', '/_security/api_key', { name: 'k', role_descriptors: { read } })).body;
    const like = async (example: object, key: string): Promise<number> => {
      const query = { more_like_this: { like: [example], min_term_freq: 1, min_doc_freq: 1 } };
      return (await server.request('POST', '/open/_search', { query }, { apiKey: key })).status;
    };
    expect(await like({ _index: 'secret', _id: '1' }, encoded)).toBe(403);
    expect(await like({ _index: 'open', _id: '1' }, encoded)).toBe(200);
    expect(await like({ _id: '1' }, encoded)).toBe(200);
    expect(await like({ _index: 'secret', _id: '1' }, server.apiKey)).toBe(200);
  });
});
