// `alias`: a second name of a field, which requests use like the field and documents do not.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

let server: RunningServer;

const alias = (path: string) => ({ type: 'alias', path });

const PROPERTIES = {
  distance: { type: 'long' },
  miles: alias('distance'),
  mode: { type: 'keyword' },
  transport: alias('mode'),
  title: { type: 'text', fields: { raw: { type: 'keyword' } } },
  name: alias('title'),
  exact: alias('title.raw'),
  when: { type: 'date' },
  day: alias('when'),
  place: { type: 'geo_point' },
  where: alias('place'),
  vector: { type: 'dense_vector', dims: 2, similarity: 'dot_product' },
  direction: alias('vector'),
  tokens: { type: 'sparse_vector' },
  weights: alias('tokens'),
  rank: { type: 'rank_feature' },
  popularity: alias('rank'),
  labels: { type: 'flattened' },
  tags: alias('labels'),
  address: { type: 'ip' },
  host: alias('address'),
  route: { properties: { length: alias('distance') } },
  steps: { type: 'nested', properties: { word: { type: 'text' }, term: alias('steps.word') } },
};

const TRIPS = [
  {
    distance: 10,
    mode: 'train',
    title: 'slow train to the sea',
    when: '2024-01-01',
    place: { lat: 48, lon: 16 },
    vector: [1, 0],
    tokens: { sea: 2 },
    rank: 3,
    labels: { color: 'red' },
    address: '10.0.0.1',
    steps: [{ word: 'board' }, { word: 'leave' }],
  },
  {
    distance: 20,
    mode: 'bus',
    title: 'fast bus',
    when: '2024-02-01',
    place: { lat: 50, lon: 14 },
    vector: [0, 1],
    tokens: { city: 1 },
    rank: 9,
    labels: { color: 'blue' },
    address: '10.0.0.2',
    steps: [{ word: 'wait' }],
  },
  { mode: 'bus' },
];

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
  const mappings = { dynamic: 'strict', properties: PROPERTIES };
  const made = await server.request('PUT', '/trips', { mappings });
  expect(made.status, JSON.stringify(made.body)).toBe(200);
  const lines = TRIPS.map((trip, at) => `{"index":{"_id":"${String(at + 1)}"}}\n${JSON.stringify(trip)}\n`);
  const { body } = await server.request('POST', '/trips/_bulk?refresh=true', lines.join(''));
  expect(body.errors, JSON.stringify(body)).toBe(false);
});

afterAll(() => server.stop());

const search = async (body: object, index = 'trips'): Promise<any> => {
  const answer = await server.request('POST', `/${index}/_search`, body);
  expect(answer.status, JSON.stringify(answer.body)).toBe(200);
  return answer.body;
};
const ids = async (query: object): Promise<string[]> =>
  (await search({ query })).hits.hits.map((hit: { _id: string }) => hit._id).sort();

/** A query on a field, for each kind of query that takes one; and the alias of the field. */
const QUERIES: readonly [name: string, field: string, alias: string, query: (field: string) => object][] = [
  ['term of a number', 'distance', 'miles', (field) => ({ term: { [field]: 10 } })],
  ['terms', 'mode', 'transport', (field) => ({ terms: { [field]: ['train', 'boat'] } })],
  ['term', 'title.raw', 'exact', (field) => ({ term: { [field]: 'fast bus' } })],
  ['range', 'distance', 'miles', (field) => ({ range: { [field]: { gt: 10 } } })],
  ['range of dates', 'when', 'day', (field) => ({ range: { [field]: { gte: '2024-01-15' } } })],
  ['term of an address', 'address', 'host', (field) => ({ term: { [field]: '10.0.0.0/31' } })],
  ['range of addresses', 'address', 'host', (field) => ({ range: { [field]: { lt: '10.0.0.2' } } })],
  ['exists', 'distance', 'miles', (field) => ({ exists: { field } })],
  ['exists in an object', 'distance', 'route', (field) => ({ exists: { field } })],
  ['prefix', 'mode', 'transport', (field) => ({ prefix: { [field]: 'tr' } })],
  ['wildcard', 'mode', 'transport', (field) => ({ wildcard: { [field]: 't*n' } })],
  ['regexp', 'mode', 'transport', (field) => ({ regexp: { [field]: 'tr.*' } })],
  ['fuzzy', 'mode', 'transport', (field) => ({ fuzzy: { [field]: 'trian' } })],
  ['match', 'title', 'name', (field) => ({ match: { [field]: 'train' } })],
  ['match_phrase', 'title', 'name', (field) => ({ match_phrase: { [field]: 'slow train' } })],
  ['match_phrase_prefix', 'title', 'name', (field) => ({ match_phrase_prefix: { [field]: 'slow tr' } })],
  ['match_bool_prefix', 'title', 'name', (field) => ({ match_bool_prefix: { [field]: 'slow tr' } })],
  ['multi_match', 'title', 'name', (field) => ({ multi_match: { query: 'sea bus', fields: [`${field}^2`] } })],
  ['combined_fields', 'title', 'name', (field) => ({ combined_fields: { query: 'sea', fields: [field] } })],
  ['query_string', 'title', 'name', (field) => ({ query_string: { query: `${field}:(slow AND sea)` } })],
  ['simple_query_string', 'title', 'name', (field) => ({ simple_query_string: { query: 'sea', fields: [field] } })],
  ['intervals', 'title', 'name', (field) => ({ intervals: { [field]: { match: { query: 'slow sea' } } } })],
  [
    'more_like_this',
    'title',
    'name',
    (field) => ({
      more_like_this: { fields: [field], like: [{ _id: '1' }], min_term_freq: 1, min_doc_freq: 1, include: true },
    }),
  ],
  ['geo_distance', 'place', 'where', (field) => ({ geo_distance: { distance: '10km', [field]: '48,16' } })],
  ['distance_feature', 'place', 'where', (field) => ({ distance_feature: { field, origin: '48,16', pivot: '1km' } })],
  [
    'distance_feature of dates',
    'when',
    'day',
    (field) => ({ distance_feature: { field, origin: '2024-01-01', pivot: '1d' } }),
  ],
  ['rank_feature', 'rank', 'popularity', (field) => ({ rank_feature: { field } })],
  ['knn', 'vector', 'direction', (field) => ({ knn: { field, query_vector: [1, 0], k: 1 } })],
  ['sparse_vector', 'tokens', 'weights', (field) => ({ sparse_vector: { field, query_vector: { sea: 1 } } })],
  ['feature of tokens', 'tokens.sea', 'weights.sea', (field) => ({ rank_feature: { field } })],
  ['flattened', 'labels', 'tags', (field) => ({ term: { [field]: 'red' } })],
  ['key of a flattened', 'labels.color', 'tags.color', (field) => ({ term: { [field]: 'red' } })],
  ['exists of such a key', 'labels.color', 'tags.color', (field) => ({ exists: { field } })],
  [
    'field_value_factor',
    'distance',
    'miles',
    (field) => ({ function_score: { query: { exists: { field } }, field_value_factor: { field } } }),
  ],
  [
    'decay',
    'distance',
    'miles',
    (field) => ({ function_score: { query: { exists: { field } }, gauss: { [field]: { origin: 10, scale: 5 } } } }),
  ],
  ['random_score', 'mode', 'transport', (field) => ({ function_score: { random_score: { seed: 7, field } } })],
  [
    'script_score',
    'distance',
    'miles',
    (field) => ({ script_score: { query: { exists: { field } }, script: `doc['${field}'].value` } }),
  ],
  [
    'terms_set',
    'mode',
    'transport',
    (field) => ({ terms_set: { [field]: { terms: ['train'], minimum_should_match_script: { source: '1' } } } }),
  ],
  [
    'nested',
    'steps.word',
    'steps.term',
    (field) => ({ nested: { path: 'steps', query: { match: { [field]: 'wait' } } } }),
  ],
];

describe('an alias of a field', () => {
  it.each(QUERIES)('is searched as the field is: %s', async (_, field, other, query) => {
    const [expected, found] = [await search({ query: query(field) }), await search({ query: query(other) })];
    expect(expected.hits.hits.length).toBeGreaterThan(0);
    const shown = (answer: any) => answer.hits.hits.map((hit: any) => [hit._id, hit._score]);
    expect(shown(found)).toEqual(shown(expected));
  });

  it('is searched where a pattern names it, once with its field', async () => {
    expect(await ids({ query_string: { query: 'sea', fields: ['na*'] } })).toEqual(['1']);
    const score = async (fields: string[]): Promise<number> =>
      (await search({ query: { multi_match: { query: 'sea', fields, type: 'most_fields' } } })).hits.max_score;
    // Both have an e: the title counts once.
    expect(await score(['*e'])).toBe(await score(['title']));
    expect(await ids({ exists: { field: 'mil*' } })).toEqual(['1', '2']);
  });

  it('may be a default field', async () => {
    await server.request('PUT', '/by-default', {
      settings: { 'index.query.default_field': ['name'] },
      mappings: { properties: { title: { type: 'text' }, name: alias('title'), other: { type: 'text' } } },
    });
    await server.request('PUT', '/by-default/_doc/1?refresh=true', { title: 'sea', other: 'land' });
    const count = async (query: string): Promise<number> =>
      (await search({ query: { query_string: { query } } }, 'by-default')).hits.total.value;
    expect([await count('sea'), await count('land')]).toEqual([1, 0]);
  });

  it('is sorted, collapsed and paged by', async () => {
    const sorted = async (body: object): Promise<unknown> =>
      (await search(body)).hits.hits.map((hit: any) => [hit._id, ...(hit.sort ?? [])]);
    const query = { exists: { field: 'miles' } };
    expect(await sorted({ query, sort: [{ miles: 'desc' }] })).toEqual([
      ['2', 20],
      ['1', 10],
    ]);
    expect(await sorted({ query, sort: [{ miles: 'desc' }], search_after: [20] })).toEqual([['1', 10]]);
    expect(await sorted({ sort: [{ transport: 'asc' }, { day: 'desc' }], size: 1 })).toEqual([
      ['2', 'bus', 1706745600000],
    ]);
    const near = await search({ sort: [{ _geo_distance: { where: '50,14', unit: 'km' } }] });
    expect(near.hits.hits.map((hit: any) => hit._id)).toEqual(['2', '1', '3']);
    const collapsed = await search({ collapse: { field: 'transport' }, sort: [{ miles: 'asc' }] });
    expect(collapsed.hits.hits.map((hit: any) => hit.fields)).toEqual([
      { transport: ['train'] },
      { transport: ['bus'] },
    ]);
  });

  it('is aggregated', async () => {
    const aggs = {
      modes: { terms: { field: 'transport' } },
      most: { max: { field: 'miles' } },
      months: { date_histogram: { field: 'day', calendar_interval: 'month' } },
      far: { filter: { range: { miles: { gte: 20 } } } },
      hosts: { terms: { field: 'host' } },
      colors: { terms: { field: 'tags.color' } },
      none: { missing: { field: 'miles' } },
      pairs: { composite: { sources: [{ mode: { terms: { field: 'transport' } } }] } },
      rings: { geo_distance: { field: 'where', origin: '48,16', ranges: [{ to: 1000 }] } },
      steps: { nested: { path: 'steps' }, aggs: { words: { value_count: { field: 'miles' } } } },
    };
    const { aggregations: of } = await search({ size: 0, aggs });
    expect(of.modes.buckets).toEqual([
      { key: 'bus', doc_count: 2 },
      { key: 'train', doc_count: 1 },
    ]);
    expect(of.most.value).toBe(20);
    expect(of.months.buckets.map((bucket: any) => bucket.key_as_string)).toEqual([
      '2024-01-01T00:00:00.000Z',
      '2024-02-01T00:00:00.000Z',
    ]);
    expect(of.far.doc_count).toBe(1);
    expect(of.hosts.buckets[0].key).toBe('10.0.0.1');
    expect(of.colors.buckets.map((bucket: any) => bucket.key)).toEqual(['blue', 'red']);
    expect(of.none.doc_count).toBe(1);
    expect(of.pairs.buckets.map((bucket: any) => bucket.doc_count)).toEqual([2, 1]);
    expect(of.rings.buckets[0].doc_count).toBe(1);
  });

  it('is shown under its own name, and never in the source', async () => {
    const { hits } = await search({
      query: {
        bool: {
          must: { match: { name: 'train' } },
          filter: { nested: { path: 'steps', query: { match: { 'steps.term': 'board' } } } },
        },
      },
      fields: ['miles', 'na*', 'exact', 'day', 'where', 'tags.color', 'steps.term', 'route.length'],
      docvalue_fields: ['miles', 'transport', { field: 'day', format: 'yyyy' }],
      _source: true,
      script_fields: { twice: { script: "doc['miles'].value * 2" } },
      highlight: { fields: { name: {}, 'exac*': {} }, require_field_match: false },
    });
    expect(hits.hits).toHaveLength(1);
    expect(hits.hits[0]._source).toEqual(TRIPS[0]);
    expect(hits.hits[0].fields).toEqual({
      miles: [10],
      name: ['slow train to the sea'],
      exact: ['slow train to the sea'],
      transport: ['train'],
      day: ['2024-01-01T00:00:00.000Z'],
      where: [{ type: 'Point', coordinates: [16, 48] }],
      'tags.color': ['red'],
      'route.length': [10],
      steps: [{ term: ['board'] }, { term: ['leave'] }],
      twice: [20],
    });
    expect(hits.hits[0].highlight.name).toEqual(['slow <em>train</em> to the sea']);
    const field = await search({ query: { match: { title: 'sea' } }, highlight: { fields: { name: {} } } });
    expect(field.hits.hits[0].highlight).toEqual({ name: ['slow train to the <em>sea</em>'] });
    const other = await search({ query: { match: { name: 'sea' } }, highlight: { fields: { title: {} } } });
    expect(other.hits.hits[0].highlight).toEqual({ title: ['slow train to the <em>sea</em>'] });
  });

  it('is explained, validated and suggested from', async () => {
    const explained = await server.request('POST', '/trips/_explain/1', { query: { match: { name: 'sea' } } });
    expect(explained.body.matched).toBe(true);
    expect(JSON.stringify(explained.body.explanation)).toContain('title:sea');
    const valid = await server.request('POST', '/trips/_validate/query', { query: { term: { miles: 'ten' } } });
    expect(valid.body.valid).toBe(false);
    const terms = await server.request('POST', '/trips/_terms_enum', { field: 'transport', string: 't' });
    expect(terms.body.terms).toEqual(['train']);
    const { suggest } = await search({ size: 0, suggest: { near: { text: 'trian', term: { field: 'name' } } } });
    expect(suggest.near[0].options.map((option: any) => option.text)).toEqual(['train']);
    const vectors = await server.request('GET', '/trips/_termvectors/2?fields=name');
    expect(Object.keys(vectors.body.term_vectors.name.terms)).toEqual(['bus', 'fast']);
    const tokens = await server.request('POST', '/trips/_analyze', { field: 'exact', text: 'Fast Bus' });
    expect(tokens.body.tokens.map((token: any) => token.token)).toEqual(['Fast Bus']);
  });

  it('is in the mapping, and in _field_caps with the type of its field', async () => {
    const { body } = await server.request('GET', '/trips/_mapping');
    expect(body.trips.mappings.properties.miles).toEqual(alias('distance'));
    expect(body.trips.mappings.properties.route).toEqual({ properties: { length: alias('distance') } });
    const field = await server.request('GET', '/trips/_mapping/field/mi*');
    expect(field.body.trips.mappings).toEqual({ miles: { full_name: 'miles', mapping: { miles: alias('distance') } } });
    const caps = await server.request('GET', '/trips/_field_caps?fields=miles,exact,route*');
    const capable = (type: string) => ({
      [type]: { type, metadata_field: false, searchable: true, aggregatable: true },
    });
    expect(caps.body.fields).toMatchObject({
      miles: capable('long'),
      exact: capable('keyword'),
      'route.length': capable('long'),
      route: { object: { type: 'object' } },
    });
    const plain = await server.request(
      'GET',
      '/trips/_field_caps?fields=exact,miles&filters=-multifield&include_empty_fields=false',
    );
    expect(Object.keys(plain.body.fields)).toEqual(['miles']);
  });

  it('cannot be written', async () => {
    const refused = async (source: object): Promise<any> => {
      const { status, body } = await server.request('PUT', '/trips/_doc/9', source);
      expect(status).toBe(400);
      return body.error;
    };
    const written = await refused({ miles: 3 });
    expect(written.type).toBe('document_parsing_exception');
    expect(written.reason).toBe('[1:10] Cannot write to a field alias [miles].');
    expect((await refused({ miles: null })).reason).toMatch(/Cannot write to a field alias \[miles\]\.$/);
    expect((await refused({ route: { length: [3] } })).reason).toMatch(
      /Cannot write to a field alias \[route\.length\]\.$/,
    );
    expect((await refused({ 'name.raw': 'x' })).caused_by.reason).toBe(
      'Could not dynamically add mapping for field [name.raw]. Existing mapping for [name] must be of type object but found [alias].',
    );
    await server.request('PUT', '/copies', {
      mappings: { properties: { a: { type: 'keyword', copy_to: 'b' }, b: alias('c'), c: { type: 'keyword' } } },
    });
    const copied = await server.request('PUT', '/copies/_doc/1', { a: 'x' });
    expect(copied.body.error.reason).toMatch(/Cannot copy to a field alias \[b\]\.$/);
    const template = { aliased: { match: 'also_*', mapping: alias('c') } };
    await server.request('PUT', '/copies/_mapping', { dynamic_templates: [template] });
    const dynamic = await server.request('PUT', '/copies/_doc/1', { also_c: 'x' });
    expect(dynamic.body.error.reason).toMatch(/Cannot write to a field alias \[also_c\]\.$/);
  });

  it('has to stand for a field with values', async () => {
    const refused = async (properties: object): Promise<string> => {
      const { status, body } = await server.request('PUT', '/refused', { mappings: { properties } });
      expect(status).toBe(400);
      expect(body.error.type).toBe('mapper_parsing_exception');
      return body.error.root_cause[0].reason;
    };
    const invalid = (path: string, problem: string) => `Invalid [path] value [${path}] for field alias [a]: ${problem}`;
    const field = { type: 'keyword' };
    expect(await refused({ a: alias('a') })).toBe(invalid('a', 'an alias cannot refer to itself.'));
    const missing = 'an alias must refer to an existing field in the mappings.';
    expect(await refused({ a: alias('b') })).toBe(invalid('b', missing));
    expect(await refused({ a: alias('o'), o: { properties: { b: field } } })).toBe(invalid('o', missing));
    expect(await refused({ a: alias('b'), b: alias('c'), c: field })).toBe(
      invalid('b', 'an alias cannot refer to another alias.'),
    );
    expect(await refused({ a: alias('n.b'), n: { type: 'nested', properties: { b: field } } })).toContain(
      invalid(
        'n.b',
        "an alias must have the same nested scope as its target. The alias is not nested, but the target's nested scope is [n].",
      ),
    );
    expect(await refused({ a: { type: 'alias' } })).toBe('The [path] property must be specified for field [a].');
    expect(await refused({ a: { ...alias('b'), boost: 2 }, b: field })).toBe(
      'Mapping definition for [a] has unsupported parameters:  [boost : 2]',
    );
    expect(await refused({ b: { ...field, fields: { a: alias('b') } } })).toBe(
      'Type [alias] cannot be used in multi field',
    );
  });

  it('may be added, and turned to another field, but not into a field', async () => {
    await server.request('PUT', '/changing', {
      mappings: { properties: { a: { type: 'keyword' }, b: { type: 'long' } } },
    });
    await server.request('PUT', '/changing/_doc/1?refresh=true', { a: 'x', b: 3 });
    const put = (properties: object) => server.request('PUT', '/changing/_mapping', { properties });
    const query = { term: { either: 'x' } };
    expect((await put({ either: alias('a') })).status).toBe(200);
    expect((await search({ query }, 'changing')).hits.total.value).toBe(1);
    expect((await put({ either: alias('b') })).status).toBe(200);
    expect((await search({ query: { term: { either: 3 } } }, 'changing')).hits.total.value).toBe(1);
    const [field, back] = [await put({ either: { type: 'keyword' } }), await put({ a: alias('b') })];
    expect(field.body.error).toMatchObject({
      type: 'illegal_argument_exception',
      reason: 'Cannot merge a field alias mapping [either] with a mapping that is not for a field alias.',
    });
    expect(back.body.error.reason).toBe('mapper [a] cannot be changed from type [keyword] to [alias]');
  });

  it('may stand for a field of another template', async () => {
    const component = { template: { mappings: { properties: { mode: { type: 'keyword' } } } } };
    await server.request('PUT', '/_component_template/modes', component);
    const whole = (path: string) => ({
      index_patterns: ['planned-*'],
      composed_of: ['modes'],
      template: { mappings: { properties: { transport: alias(path) } } },
    });
    expect((await server.request('PUT', '/_index_template/planned', whole('mode'))).status).toBe(200);
    const refused = await server.request('PUT', '/_index_template/planned', whole('nothing'));
    expect(refused.status).toBe(400);
    expect(JSON.stringify(refused.body)).toContain('an alias must refer to an existing field');
    await server.request('PUT', '/planned-1/_doc/1?refresh=true', { mode: 'bus' });
    expect((await search({ query: { term: { transport: 'bus' } } }, 'planned-1')).hits.total.value).toBe(1);
  });

  it('stands for a field whose name is no longer than others can bear', async () => {
    const settings = { 'index.mapping.field_name_length.limit': 1_000_000 };
    const put = (name: string) =>
      server.request('PUT', '/long-names', {
        settings,
        mappings: { properties: { [name]: { type: 'keyword' }, short: alias(name) } },
      });
    const refused = await put('n'.repeat(4097));
    expect([refused.status, refused.body.error.reason]).toEqual([400, expect.stringContaining('[4096] characters')]);
    expect((await put('n'.repeat(4096))).status).toBe(200);
    const document = await server.request('PUT', '/long-names/_doc/1', { ['m'.repeat(4097)]: 1 });
    expect([document.status, document.body.error.reason]).toEqual([400, expect.stringContaining('[4096] characters')]);
  });

  it('finds the documents of by-query jobs, and of keys and aliases with a filter', async () => {
    const copy = {
      source: { index: 'trips', query: { term: { transport: 'bus' } }, _source: ['mode'] },
      dest: { index: 'buses' },
    };
    expect((await server.request('POST', '/_reindex?refresh=true', copy)).body.created).toBe(2);
    await server.request('POST', '/_aliases', {
      actions: [{ add: { index: 'trips', alias: 'by-bus', filter: { term: { transport: 'bus' } } } }],
    });
    expect((await search({}, 'by-bus')).hits.total.value).toBe(2);
    const fields = await server.request('GET', '/by-bus/_field_caps?fields=transport,miles&include_empty_fields=false');
    expect(Object.keys(fields.body.fields).sort()).toEqual(['miles', 'transport']);
    await server.request('PUT', '/buses/_mapping', { properties: { transport: alias('mode') } });
    const query = { term: { transport: 'bus' } };
    // The dynamic mapping made a text of the mode.
    expect((await server.request('POST', '/buses/_delete_by_query?refresh=true', { query })).body.deleted).toBe(2);
  });
});
