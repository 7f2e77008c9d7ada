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

describe('index.highlight.max_analyzed_offset', () => {
  it('is no bound of the unified highlighter where offsets are kept, and one of the plain one', async () => {
    const properties = { text: { type: 'text', index_options: 'offsets' } };
    const settings = { 'index.highlight.max_analyzed_offset': 10 };
    await call('PUT', '/long', { settings, mappings: { properties } });
    await call('PUT', '/long/_doc/1?refresh=true', { text: 'a text that is longer than ten letters' });
    const search = (type: string): Promise<Answer> =>
      call('POST', '/long/_search', {
        query: { match: { text: 'letters' } },
        highlight: { type, fields: { text: {} } },
      });
    expect((await search('unified')).body.hits.hits[0].highlight.text).toHaveLength(1);
    expect((await search('plain')).status).toBe(400);
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

describe('values that are left out of the index', () => {
  beforeAll(async () => {
    const properties = {
      day: { type: 'date', ignore_malformed: true },
      n: { type: 'integer', ignore_malformed: true },
      tag: { type: 'keyword', ignore_above: 3 },
    };
    await call('PUT', '/sloppy', { mappings: { properties } });
    await call('PUT', '/sloppy/_doc/1', { day: '2018-05-11', n: 1, tag: 'abc' });
    await call('PUT', '/sloppy/_doc/2', { day: 'soon', n: 2, tag: ['abc', 'abcd'] });
    await call('PUT', '/sloppy/_doc/3?refresh=true', { day: ['soon', 'later'], n: 'many', tag: 'a' });
  });

  it('are named by the hits, and searched by their fields', async () => {
    const { hits } = (await call('POST', '/sloppy/_search', { sort: ['_doc'], _source: false })).body.hits;
    expect(hits.map((hit: { _ignored?: string[] }) => hit._ignored)).toEqual([undefined, ['day', 'tag'], ['day', 'n']]);
    const found = async (query: object): Promise<string[]> =>
      ids(await call('POST', '/sloppy/_search', { query })).sort();
    expect(await found({ exists: { field: '_ignored' } })).toEqual(['2', '3']);
    expect(await found({ term: { _ignored: 'tag' } })).toEqual(['2']);
    expect(await found({ terms: { _ignored: ['tag', 'n'] } })).toEqual(['2', '3']);
    expect(await found({ bool: { must_not: { exists: { field: '_ignored' } } } })).toEqual(['1']);
    const fields = await call('POST', '/sloppy/_search', { query: { ids: { values: ['3'] } }, fields: ['_ignored'] });
    expect(fields.body.hits.hits[0].fields._ignored).toEqual(['day', 'n']);
    const none = await call('POST', '/sloppy/_search', { stored_fields: '_none_' });
    expect(none.body.hits.hits[1]).not.toHaveProperty('_ignored');
  });
});

describe('aggregations', () => {
  beforeAll(async () => {
    const properties = { k: { type: 'keyword' }, v: { type: 'integer' }, ip: { type: 'ip' } };
    await call('PUT', '/sums', { mappings: { properties } });
    for (const [k, v] of [
      ['a', 1],
      ['a', 2],
      ['b', 6],
    ] as const)
      await call('POST', '/sums/_doc', { k, v, ip: '127.0.0.1' });
    await call('POST', '/sums/_refresh');
  });

  it('are read by a path with a dot as by one with an arrow', async () => {
    const aggs = {
      ks: { terms: { field: 'k' }, aggs: { sum: { sum: { field: 'v' } } } },
      dot: { avg_bucket: { buckets_path: 'ks.sum' } },
      arrow: { avg_bucket: { buckets_path: 'ks>sum' } },
      count: { avg_bucket: { buckets_path: 'ks._count' } },
    };
    const { aggregations } = (await call('POST', '/sums/_search', { size: 0, aggs })).body;
    const value = (name: string): number => aggregations[name].value;
    expect([value('dot'), value('arrow'), value('count')]).toEqual([4.5, 4.5, 1.5]);
    const wrong = { ...aggs, dot: { avg_bucket: { buckets_path: 'ks.nothing' } } };
    expect((await call('POST', '/sums/_search', { aggs: wrong })).status).toBe(400);
  });

  it.each(['terms', 'rare_terms'])('%s takes no patterns of addresses', async (kind) => {
    const answer = await call('POST', '/sums/_search', { aggs: { a: { [kind]: { field: 'ip', exclude: '127.*' } } } });
    expect([answer.status, answer.text]).toEqual([
      400,
      expect.stringContaining('Aggregation [a] cannot support regular expression style include/exclude settings'),
    ]);
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

describe('metadata fields', () => {
  it('are in every document, except for _source, which is no field', async () => {
    await call('PUT', '/metadata/_doc/1?refresh=true', { a: 1 });
    const found = (field: string): Promise<Answer> =>
      call('POST', '/metadata/_search', { query: { exists: { field } } });
    for (const field of ['_id', '_index', '_seq_no', '_version']) expect(ids(await found(field))).toEqual(['1']);
    const { status, body } = await found('_source');
    expect([status, body.error.root_cause[0]]).toEqual([
      400,
      expect.objectContaining({
        type: 'query_shard_exception',
        reason: 'failed to create query: Cannot search on field [_source] of type [_source] since it is not searchable',
      }),
    ]);
  });

  it('are shown by docvalue_fields, those of nested objects as those of their document', async () => {
    await call('PUT', '/parts', { mappings: { properties: { part: { type: 'nested' } } } });
    await call('PUT', '/parts/_doc/1', { part: [{ a: 1 }] });
    await call('PUT', '/parts/_doc/1?refresh=true', { part: [{ a: 2 }] });
    const shown = { docvalue_fields: ['_seq_no', '_version'] };
    const nested = { path: 'part', query: { match_all: {} }, inner_hits: shown };
    const { body } = await call('POST', '/parts/_search', { query: { nested }, ...shown });
    const [hit] = body.hits.hits;
    const fields = { _seq_no: [1], _version: [2] };
    expect([hit.fields, hit.inner_hits.part.hits.hits[0].fields]).toEqual([fields, fields]);
  });
});

describe('docvalue_fields', () => {
  it('show a field in each format that is asked for', async () => {
    await call('PUT', '/moments', { mappings: { properties: { at: { type: 'date' } } } });
    await call('PUT', '/moments/_doc/1?refresh=true', { at: '2018-10-29T12:12:12.987Z' });
    const docvalue_fields = [
      { field: 'at', format: 'epoch_millis' },
      { field: 'at', format: 'yyyy-MM-dd' },
    ];
    const { body } = await call('POST', '/moments/_search', { docvalue_fields });
    expect(body.hits.hits[0].fields).toEqual({ at: ['1540815132987', '2018-10-29'] });
  });
});

describe('settings of an index', () => {
  it('bound its script fields', async () => {
    await call('PUT', '/scripted', { settings: { 'index.max_script_fields': 1 } });
    const field = { script: '1' };
    const search = (script_fields: object): Promise<Answer> => call('POST', '/scripted/_search', { script_fields });
    expect((await search({ a: field })).status).toBe(200);
    const { status, body } = await search({ a: field, b: field });
    expect([status, body.error.root_cause[0].reason]).toEqual([
      400,
      'Trying to retrieve too many script_fields. Must be less than or equal to: [1] but was [2]. This limit can be set by ' +
        'changing the [index.max_script_fields] index level setting.',
    ]);
    expect((await call('PUT', '/scripted/_settings', { 'index.max_script_fields': 33 })).status).toBe(400);
  });

  it('name its version on request', async () => {
    await call('PUT', '/versioned');
    const { version } = (await call('GET', '/versioned?human')).body.versioned.settings.index;
    expect(version.created_string).toMatch(/^8\.\d+\.\d+$/);
    expect((await call('GET', '/versioned')).body.versioned.settings.index.version.created_string).toBeUndefined();
  });

  it('say how it is merged, and are copied', async () => {
    const settings = { 'index.merge.scheduler.max_merge_count': 4, 'index.blocks.write': true };
    await call('PUT', '/merged', { settings });
    await call('POST', '/merged/_clone/merged-copy', { settings: { 'index.merge.scheduler.max_thread_count': 2 } });
    const { scheduler } = (await call('GET', '/merged-copy/_settings')).body['merged-copy'].settings.index.merge;
    expect(scheduler).toEqual({ max_merge_count: '4', max_thread_count: '2' });
  });

  it('give a split no other way to distribute documents than its source has', async () => {
    await call('PUT', '/two', { settings: { 'index.number_of_shards': 2, 'index.blocks.write': true } });
    await call('PUT', '/one', { settings: { 'index.number_of_shards': 1, 'index.blocks.write': true } });
    const settings = { 'index.number_of_shards': 4, 'index.number_of_routing_shards': 8 };
    const { status, body } = await call('POST', '/two/_split/four', { settings });
    expect([status, body.error.root_cause[0].reason]).toEqual([
      400,
      'cannot provide index.number_of_routing_shards on resize',
    ]);
    expect((await call('POST', '/one/_split/four', { settings })).status).toBe(200);
  });
});

describe('_rollover', () => {
  it('takes an index without documents for one without a size', async () => {
    await call('PUT', '/rolled-1', { aliases: { rolled: {} } });
    const roll = async () => (await call('POST', '/rolled/_rollover', { conditions: { max_size: '1b' } })).body;
    expect(await roll()).toMatchObject({ conditions: { '[max_size: 1b]': false }, rolled_over: false });
    await call('PUT', '/rolled/_doc/1?refresh=true', { a: 1 });
    expect(await roll()).toMatchObject({ conditions: { '[max_size: 1b]': true }, rolled_over: true });
  });
});

describe('_mapping/field', () => {
  it('shows the defaults of a definition on request', async () => {
    const properties = { t: { type: 'text', norms: false }, n: { type: 'long' }, v: { type: 'sparse_vector' } };
    await call('PUT', '/defaults', { mappings: { properties } });
    const shown = async (query: string) =>
      (await call('GET', `/defaults/_mapping/field/*${query}`)).body.defaults.mappings;
    const all = await shown('?include_defaults=true');
    expect(all.t.mapping.t).toMatchObject({ type: 'text', analyzer: 'default', norms: false, index: true });
    expect(all.n.mapping.n).toMatchObject({ type: 'long', doc_values: true, coerce: true, null_value: null });
    expect((await shown('')).n.mapping.n).toEqual({ type: 'long' });
    expect(all.v.mapping.v.type).toBe('sparse_vector');
  });
});
