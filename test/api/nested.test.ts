// Nested fields: passages as teams index them for learned sparse search, objects apart from each other, and what is refused.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

let server: RunningServer;
const search = async (body: object, index = 'books'): Promise<any> => {
  const { status, body: answer } = await server.request('POST', `/${index}/_search`, body);
  expect(status, JSON.stringify(answer)).toBe(200);
  return answer;
};
const ids = async (query: object, index?: string): Promise<string[]> =>
  (await search({ query }, index)).hits.hits.map((hit: { _id: string }) => hit._id);
const reason = async (method: string, path: string, body: object): Promise<string> => {
  const { status, body: answer } = await server.request(method, path, body);
  return `${String(status)} ${String(answer.error?.type)}: ${String(answer.error?.reason)}`;
};
/** The reason of the first shard that fails. */
const cause = async (index: string, body: object): Promise<string> => {
  const { body: answer } = await server.request('POST', `${index}/_search`, body);
  return String(answer.error?.root_cause?.[0]?.reason);
};
const nested = (path: string, query: object, more: object = {}) => ({ nested: { path, query, ...more } });

const VECTOR = 'passages.vector.predicted_value';
const MODEL = '.elser-2-elasticsearch';
const PASSAGES = {
  cooking: ['Knead the dough and let it rise.', 'Bake the loaf in a hot oven until the crust is brown.'],
  sailing: [
    'Reef the mainsail before the storm.',
    'Drop the anchor in a sheltered bay.',
    'A loaf keeps for a week at sea.',
  ],
  astronomy: ['The telescope shows the rings of the planet.'],
};

beforeAll(async () => {
  server = await startServer({});
  await server.request('PUT', '/_ingest/pipeline/passages', {
    processors: [
      {
        foreach: {
          field: 'passages',
          processor: {
            inference: {
              model_id: MODEL,
              target_field: '_ingest._value.vector',
              field_map: { '_ingest._value.text': 'text_field' },
            },
          },
        },
      },
    ],
  });
  const properties = {
    shelf: { type: 'keyword' },
    passages: {
      type: 'nested',
      properties: {
        page: { type: 'integer' },
        text: { type: 'text' },
        place: { type: 'dense_vector', dims: 2, similarity: 'l2_norm' },
        vector: { properties: { predicted_value: { type: 'sparse_vector' } } },
      },
    },
  };
  const created = await server.request('PUT', '/books', { mappings: { properties } });
  expect(created.status, JSON.stringify(created.body)).toBe(200);
  for (const [at, [id, texts]] of Object.entries(PASSAGES).entries()) {
    const passages = texts.map((text, page) => ({ text, page, place: [at, page] }));
    const { status, body } = await server.request('PUT', `/books/_doc/${id}?pipeline=passages`, {
      shelf: id.slice(0, 1),
      passages,
    });
    expect(status, JSON.stringify(body)).toBe(201);
  }
  await server.request('POST', '/books/_refresh');
});
afterAll(() => server.stop());

const about = (text: string) => ({ sparse_vector: { field: VECTOR, inference_id: MODEL, query: text } });

describe('passages with vectors of a model', () => {
  it('finds documents by their best passage, and shows it', async () => {
    const question = nested('passages', about('how long to bake bread'), {
      score_mode: 'max',
      inner_hits: { size: 1, _source: ['passages.text', 'passages.page'] },
    });
    const answer = await search({ query: question, _source: false });
    const [first, second] = answer.hits.hits;
    expect([first._id, second._id]).toEqual(['cooking', 'sailing']);
    const { hits } = first.inner_hits.passages;
    expect(hits.hits[0]._source).toEqual({ text: PASSAGES.cooking[1], page: 1 });
    expect(hits.hits[0]._nested).toEqual({ field: 'passages', offset: 1 });
    expect(hits.hits[0]._score).toBe(first._score);
    expect(second.inner_hits.passages.hits.hits[0]._source.page).toBe(2);
  });

  it('takes text_expansion, in a bool beside words and filters of the document', async () => {
    const expansion = { text_expansion: { [VECTOR]: { model_id: MODEL, model_text: 'bread' } } };
    const filtered = {
      bool: { must: [nested('passages', expansion, { score_mode: 'max' })], filter: [{ term: { shelf: 's' } }] },
    };
    expect(await ids(filtered)).toEqual(['sailing']);
    const words = {
      bool: { should: [nested('passages', { match: { 'passages.text': 'anchor' } }), { term: { shelf: 'a' } }] },
    };
    expect(new Set(await ids(words))).toEqual(new Set(['sailing', 'astronomy']));
  });

  it('finds the nearest passage of each of k documents', async () => {
    const near = { field: 'passages.place', query_vector: [1, 0], k: 2, num_candidates: 10 };
    expect(await ids(nested('passages', { knn: near }, { score_mode: 'max' }))).toEqual(['sailing', 'cooking']);
    const own = nested('passages', { term: { 'passages.page': 2 } });
    const having = await search({ knn: { ...near, k: 3, filter: own } });
    expect(having.hits.hits.map((hit: any) => hit._id)).toEqual(['sailing']);
    const { hits } = await search({ knn: near });
    expect(hits.hits.map((hit: any) => [hit._id, hit._score])).toEqual([
      ['sailing', 1],
      ['cooking', 0.5],
    ]);
    const shown = await search({ knn: { ...near, inner_hits: { size: 2, _source: 'passages.page' } } });
    const inside = shown.hits.hits[0].inner_hits.passages.hits;
    expect([inside.total.value, inside.hits.map((hit: any) => [hit._source.page, hit._score])]).toEqual([
      3,
      [
        [0, 1],
        [1, 0.5],
      ],
    ]);
    const filtered = await search({ knn: { ...near, filter: { term: { shelf: 'a' } } } });
    expect(filtered.hits.hits.map((hit: any) => hit._id)).toEqual(['astronomy']);
    const ofObject = await search({ knn: { ...near, k: 3, filter: { range: { 'passages.page': { gte: 1 } } } } });
    expect(new Set(ofObject.hits.hits.map((hit: any) => hit._id))).toEqual(new Set(['sailing', 'cooking']));
  });
});

describe('objects', () => {
  it('match one at a time, and are no documents', async () => {
    const both = (text: string, page: number) => ({
      bool: { must: [{ match: { 'passages.text': text } }, { term: { 'passages.page': page } }] },
    });
    expect(await ids(nested('passages', both('dough', 0)))).toEqual(['cooking']);
    expect(await ids(nested('passages', both('dough', 1)))).toEqual([]);
    expect(await ids({ match: { 'passages.text': 'dough' } })).toEqual([]);
    expect((await search({ query: { match_all: {} } })).hits.total.value).toBe(3);
    expect((await server.request('GET', '/books/_count')).body.count).toBe(3);
    expect((await server.request('GET', '/_cat/indices/books?h=docs.count&format=json')).body).toEqual([
      { 'docs.count': '3' },
    ]);
  });

  it('follow updates and deletions, a reindex and a restart', async () => {
    const copied = await server.request('POST', '/_reindex?refresh=true', {
      source: { index: 'books' },
      dest: { index: 'copy' },
    });
    expect(copied.body.failures).toEqual([]);
    const properties = {
      shelf: { type: 'keyword' },
      notes: { type: 'nested', include_in_root: true, properties: { n: { type: 'long' } } },
    };
    await server.request('PUT', '/notes', { mappings: { properties } });
    for (const [id, list] of Object.entries({ a: [1, 2], b: [2], c: [3] })) {
      await server.request('PUT', `/notes/_doc/${id}`, { notes: list.map((n) => ({ n })) });
    }
    await server.request('POST', '/notes/_update/b', { doc: { notes: [{ n: 7 }, { n: 8 }] } });
    await server.request('DELETE', '/notes/_doc/c?refresh=true');
    const having = (n: number) => ids(nested('notes', { term: { 'notes.n': n } }), 'notes');
    const all = async () => ({ two: await having(2), three: await having(3), seven: await having(7) });
    const expected = { two: ['a'], three: [], seven: ['b'] };
    expect(await all()).toEqual(expected);
    // The document has the values of its objects as well.
    expect(await ids({ term: { 'notes.n': 8 } }, 'notes')).toEqual(['b']);
    await server.request('POST', '/notes/_forcemerge?max_num_segments=1');
    expect(await all()).toEqual(expected);
    // Only the log has these objects when the server is killed.
    await server.request('PUT', '/notes/_doc/late', { notes: [{ n: 40 }, { n: 41 }] });
    await server.kill();
    server = await startServer({ data: server.data });
    await server.request('POST', '/notes/_refresh');
    expect(await having(41)).toEqual(['late']);
    expect(await all()).toEqual(expected);
    expect((await server.request('GET', '/notes/_count')).body.count).toBe(3);
    const mapping = (await server.request('GET', '/notes/_mapping')).body.notes.mappings.properties.notes;
    expect(mapping).toEqual({ type: 'nested', include_in_root: true, properties: { n: { type: 'long' } } });
  });

  it('are shown with objects inside them', async () => {
    const properties = {
      a: {
        type: 'nested',
        properties: { n: { type: 'long' }, b: { type: 'nested', properties: { n: { type: 'long' } } } },
      },
    };
    await server.request('PUT', '/deep', { mappings: { properties } });
    const doc = {
      a: [
        { n: 0, b: [{ n: 1 }] },
        { n: 1, b: [{ n: 2 }, { n: 1 }] },
      ],
    };
    await server.request('PUT', '/deep/_doc/1?refresh=true', doc);
    const inside = nested('a.b', { term: { 'a.b.n': 1 } }, { inner_hits: {} });
    const answer = await search(
      {
        query: nested(
          'a',
          { bool: { must: [inside], filter: [{ term: { 'a.n': 1 } }] } },
          { inner_hits: { name: 'outer' } },
        ),
      },
      'deep',
    );
    const [outer] = answer.hits.hits[0].inner_hits.outer.hits.hits;
    expect(outer._nested).toEqual({ field: 'a', offset: 1 });
    expect(outer._source).toEqual(doc.a[1]);
    const [inner] = outer.inner_hits['a.b'].hits.hits;
    expect(inner._nested).toEqual({ field: 'a', offset: 1, _nested: { field: 'b', offset: 1 } });
    expect(inner._source).toEqual({ n: 1 });
  });

  it('that match alike follow each other as in their document', async () => {
    const list = Array.from({ length: 30 }, (_, n) => ({ n, even: n % 2 === 0 }));
    const o = { type: 'nested', properties: { n: { type: 'long' }, even: { type: 'boolean' } } };
    await server.request('PUT', '/rows', { mappings: { properties: { o } } });
    await server.request('PUT', '/rows/_doc/1?refresh=true', { o: list });
    const query = (inner: object) => nested('o', { match_all: {} }, { inner_hits: inner });
    const shown = async (inner: object): Promise<number[]> =>
      (await search({ query: query(inner) }, 'rows')).hits.hits[0].inner_hits.o.hits.hits.map(
        (hit: { _source: { n: number } }) => hit._source.n,
      );
    expect(await shown({ size: 7 })).toEqual([0, 1, 2, 3, 4, 5, 6]);
    expect(await shown({ size: 3, from: 10 })).toEqual([10, 11, 12]);
    expect(await shown({ size: 4, sort: [{ 'o.even': 'desc' }] })).toEqual([0, 2, 4, 6]);
  });
});

describe('inner hits for which there is no time', () => {
  const DOCUMENTS = 2000;
  // Each inner search makes an automaton of the pattern.
  const slow = nested('o', { regexp: { 'o.k': { value: '(a|b)*a(a|b){11}|x[0-9]+' } } }, { inner_hits: {} });

  beforeAll(async () => {
    const properties = { o: { type: 'nested', properties: { k: { type: 'keyword' } } } };
    await server.request('PUT', '/slow', { mappings: { properties } });
    const lines = Array.from(
      { length: DOCUMENTS },
      (_, at) => `{"index":{}}\n{"o":[{"k":"x${String(at)}"},{"k":"y"}]}\n`,
    );
    const { body } = await server.request('POST', '/slow/_bulk?refresh=true', lines.join(''));
    expect(body.errors).toBe(false);
  });

  it('leave their hits out, and those that are shown have all of theirs', async () => {
    const { body: answer } = await server.request('POST', '/slow/_search?timeout=300ms', {
      size: DOCUMENTS,
      query: slow,
    });
    expect(answer.timed_out).toBe(true);
    const { hits } = answer.hits;
    expect(hits.length).toBeLessThan(DOCUMENTS);
    for (const { _source: source, inner_hits: inner } of hits) {
      expect(inner.o.hits.hits.map((hit: { _source: object }) => hit._source)).toEqual([source.o[0]]);
    }
  });

  it('are an error where a part is not wanted', async () => {
    const path = '/slow/_search?timeout=300ms&allow_partial_search_results=false';
    const { status, body } = await server.request('POST', path, { size: DOCUMENTS, query: slow });
    expect([status, body.error?.type]).toEqual([504, 'timeout_exception']);
  });
});

describe('aggregations and sorts', () => {
  const OFFERS = {
    a: [
      { price: 5, shop: 'x' },
      { price: 20, shop: 'y' },
    ],
    b: [{ price: 7, shop: 'y' }],
    c: [],
    d: [
      { price: 1, shop: 'y' },
      { price: 9, shop: 'x' },
      { price: 30, shop: 'x' },
    ],
  };

  beforeAll(async () => {
    const properties = {
      kind: { type: 'keyword' },
      offers: { type: 'nested', properties: { price: { type: 'integer' }, shop: { type: 'keyword' } } },
    };
    await server.request('PUT', '/shop', { mappings: { properties } });
    for (const [id, offers] of Object.entries(OFFERS)) {
      await server.request('PUT', `/shop/_doc/${id}`, { kind: id < 'c' ? 'early' : 'late', offers });
    }
    await server.request('POST', '/shop/_refresh');
  });

  it('count and measure the objects in the documents of a bucket', async () => {
    const ofShop = {
      terms: { field: 'offers.shop' },
      aggs: { price: { sum: { field: 'offers.price' } }, docs: { reverse_nested: {} } },
    };
    const cheap = { filter: { range: { 'offers.price': { lte: 7 } } } };
    const inside = { nested: { path: 'offers' }, aggs: { shops: ofShop, cheap } };
    const answer = await search(
      { size: 0, aggs: { kinds: { terms: { field: 'kind' }, aggs: { inside } }, inside } },
      'shop',
    );
    const { kinds, inside: all } = answer.aggregations;
    const shops = (found: any) =>
      found.shops.buckets.map((b: any) => [b.key, b.doc_count, b.price.value, b.docs.doc_count]);
    expect([all.doc_count, all.cheap.doc_count]).toEqual([6, 3]);
    expect(shops(all)).toEqual([
      ['x', 3, 44, 2],
      ['y', 3, 28, 3],
    ]);
    const [early, late] = kinds.buckets;
    expect([early.inside.doc_count, late.inside.doc_count]).toEqual([3, 3]);
    expect(shops(early.inside)).toEqual([
      ['y', 2, 27, 2],
      ['x', 1, 5, 1],
    ]);
    const limited = await search({ size: 0, query: { term: { kind: 'late' } }, aggs: { inside } }, 'shop');
    expect(limited.aggregations.inside.doc_count).toBe(3);
  });

  it('show the best objects of a bucket', async () => {
    const top = { top_hits: { size: 1, sort: [{ 'offers.price': 'desc' }] } };
    const answer = await search({ size: 0, aggs: { inside: { nested: { path: 'offers' }, aggs: { top } } } }, 'shop');
    const [hit] = answer.aggregations.inside.top.hits.hits;
    expect([hit._id, hit._nested, hit._source]).toEqual([
      'd',
      { field: 'offers', offset: 2 },
      { price: 30, shop: 'x' },
    ]);
  });

  it('refuse what has no objects', async () => {
    const asked = (aggs: object) => reason('POST', '/shop/_search', { size: 0, aggs });
    expect(await cause('/shop', { size: 0, aggs: { a: { reverse_nested: {} } } })).toContain(
      'can only be used inside a [nested] aggregation',
    );
    expect(await asked({ a: { nested: {} } })).toContain('Missing [path] field for nested aggregation [a]');
    const { aggregations } = await search({ size: 0, aggs: { a: { nested: { path: 'nowhere' } } } }, 'shop');
    expect(aggregations.a).toEqual({ doc_count: 0 });
  });

  it('order documents by the values of their objects', async () => {
    const by = async (key: object) => {
      const { hits } = await search({ sort: [{ 'offers.price': key }, { _seq_no: 'asc' }] }, 'shop');
      return hits.hits.map((hit: any) => [hit._id, hit.sort[0]]);
    };
    const last = 2_147_483_647;
    expect(await by({ order: 'asc', nested: { path: 'offers' } })).toEqual([
      ['d', 1],
      ['a', 5],
      ['b', 7],
      ['c', last],
    ]);
    expect(await by({ order: 'desc', mode: 'sum', nested: { path: 'offers' } })).toEqual([
      ['d', 40],
      ['a', 25],
      ['b', 7],
      ['c', -last - 1],
    ]);
    const ofShop = { path: 'offers', filter: { term: { 'offers.shop': 'x' } } };
    expect(await by({ order: 'asc', nested: ofShop })).toEqual([
      ['a', 5],
      ['d', 9],
      ['b', last],
      ['c', last],
    ]);
    const sorted = nested('offers', { match_all: {} }, { inner_hits: { sort: [{ 'offers.price': 'desc' }], size: 1 } });
    const inner = await search({ query: sorted, sort: [{ _seq_no: 'asc' }] }, 'shop');
    expect(inner.hits.hits.map((hit: any) => hit.inner_hits.offers.hits.hits[0].sort)).toEqual([[20], [7], [30]]);
    const shops = await search(
      { sort: [{ 'offers.shop': { nested: { path: 'offers' } } }, { _seq_no: 'asc' }] },
      'shop',
    );
    expect(shops.hits.hits.map((hit: any) => hit._id)).toEqual(['a', 'd', 'b', 'c']);
    expect(await cause('/shop', { sort: ['offers.price'] })).toContain('it is mandatory to set the [nested] context');
  });
});

describe('what is shown of objects', () => {
  it('keeps values apart by object, in fields and capabilities', async () => {
    const { hits } = await search(
      { query: { ids: { values: ['d'] } }, fields: ['offers.*', 'kind'], _source: false },
      'shop',
    );
    expect(hits.hits[0].fields).toEqual({
      kind: ['late'],
      offers: [1, 9, 30].map((price, n) => ({ price: [price], shop: [n === 0 ? 'y' : 'x'] })),
    });
    const { body } = await server.request('GET', '/shop/_field_caps?fields=offers*&include_empty_fields=false');
    expect(body.fields.offers.nested.type).toBe('nested');
    expect(body.fields['offers.price'].integer.aggregatable).toBe(true);
  });

  it('is shown to a key that sees some documents only of these', async () => {
    const alias = { index: 'shop', alias: 'early', filter: { term: { kind: 'early' } } };
    expect((await server.request('POST', '/_aliases', { actions: [{ add: alias }] })).status).toBe(200);
    expect(await ids(nested('offers', { term: { 'offers.shop': 'x' } }), 'early')).toEqual(['a']);
    const inside = {
      nested: { path: 'offers' },
      aggs: { shops: { terms: { field: 'offers.price', min_doc_count: 0 } } },
    };
    const { aggregations } = await search(
      { size: 0, aggs: { inside, all: { global: {}, aggs: { inside } } } },
      'early',
    );
    for (const found of [aggregations.inside, aggregations.all.inside]) {
      expect(found.doc_count).toBe(3);
      expect(found.shops.buckets.map((bucket: any) => bucket.key).sort()).toEqual([20, 5, 7]);
    }
  });

  it('is nothing of a hidden document, through a field beside the one that is searched', async () => {
    const list = { type: 'nested', properties: { s: { type: 'keyword' } } };
    await server.request('PUT', '/secrets', { mappings: { properties: { h: { type: 'long' }, a: list, b: list } } });
    await server.request('PUT', '/secrets/_doc/1', { h: 1, a: [{ s: 'secret' }] });
    await server.request('PUT', '/secrets/_doc/2?refresh=true', { h: 0, b: [{ s: 'shown' }] });
    const alias = { index: 'secrets', alias: 'open', filter: { term: { h: 0 } } };
    await server.request('POST', '/_aliases', { actions: [{ add: alias }] });
    const a = { nested: { path: 'a' }, aggs: { s: { terms: { field: 'a.s' } } } };
    const b = { nested: { path: 'b' }, aggs: { a, s: { terms: { field: 'b.s' } } } };
    const aggs = { b, back: { nested: { path: 'b' }, aggs: { up: { reverse_nested: {}, aggs: { a } } } } };
    const sibling = nested('a', { match_all: {} }, { inner_hits: {} });
    const query = nested('b', { bool: { should: [{ match_all: {} }, sibling] } }, { inner_hits: {} });
    const answer = JSON.stringify(await search({ query, aggs }, 'open'));
    expect(answer).toContain('"shown"');
    expect(answer).not.toContain('"secret"');
    const roles = { r: { indices: [{ names: ['open'], privileges: ['read'] }] } };
    const key = await server.request('POST', '/_security/api_key', { name: 'x', role_descriptors: roles });
    const apiKey = String(key.body.encoded);
    const { body } = await server.request('POST', '/open/_search', { query, aggs }, { apiKey });
    expect([body.hits.total.value, JSON.stringify(body).includes('"secret"')]).toEqual([1, false]);
  });
});

describe('what is very large, or asks across fields', () => {
  it('takes as many objects in a document as the limit says, and writes go on', async () => {
    const properties = { a: { type: 'nested', properties: { n: { type: 'long' } } } };
    await server.request('PUT', '/large', { mappings: { properties } });
    const objects = Array.from({ length: 10_000 }, (_, n) => (n % 2 === 0 ? {} : { n }));
    expect((await server.request('PUT', '/large/_doc/1', { a: objects })).status).toBe(201);
    expect((await server.request('PUT', '/large/_doc/2?refresh=true', { a: objects.slice(0, 3) })).status).toBe(201);
    expect(await ids(nested('a', { term: { 'a.n': 9999 } }), 'large')).toEqual(['1']);
    const { aggregations } = await search({ size: 0, aggs: { a: { nested: { path: 'a' } } } }, 'large');
    expect(aggregations.a.doc_count).toBe(10_003);
  });

  it('restricts kNN two levels deep by what is around, and refuses what lies elsewhere', async () => {
    const vector = { type: 'dense_vector', dims: 2 };
    const keyword = { type: 'keyword' };
    const properties = {
      a: { type: 'nested', properties: { k: keyword, b: { type: 'nested', properties: { v: vector } } } },
      z: { type: 'nested', properties: { k: keyword } },
      g: keyword,
    };
    await server.request('PUT', '/levels', { mappings: { properties } });
    await server.request('PUT', '/levels/_doc/1', { g: 'x', a: [{ k: 'p', b: [{ v: [1, 2] }] }], z: [{ k: 'q' }] });
    await server.request('PUT', '/levels/_doc/2?refresh=true', {
      g: 'y',
      a: [{ k: 'r', b: [{ v: [1, 2] }, { v: [1, 1] }] }],
    });
    const knn = (filter: object) => ({ field: 'a.b.v', query_vector: [1, 1], k: 5, num_candidates: 5, filter });
    const found = async (filter: object) =>
      (await search({ knn: knn(filter) }, 'levels')).hits.hits.map((hit: { _id: string }) => hit._id);
    expect(await found({ match_all: {} })).toEqual(['2', '1']);
    expect(await found({ term: { 'a.k': 'p' } })).toEqual(['1']);
    expect(await found({ bool: { must_not: { term: { 'a.k': 'p' } } } })).toEqual(['2']);
    expect(await found({ term: { g: 'x' } })).toEqual(['1']);
    const other = { bool: { must_not: nested('z', { term: { 'z.k': 'q' } }) } };
    expect(await cause('/levels', { knn: knn(other) })).toContain(
      '[nested] on [z] in the filter of [knn] on objects of [a.b]',
    );
  });
});

describe('what is refused', () => {
  it('is refused in the words of Elasticsearch', async () => {
    const over = await server.request('PUT', '/few', {
      settings: { 'index.mapping.nested_objects.limit': 2 },
      mappings: { properties: { o: { type: 'nested' } } },
    });
    expect(over.status).toBe(200);
    expect(await reason('PUT', '/few/_doc/1', { o: [{ n: 1 }, { n: 2 }, { n: 3 }] })).toContain(
      'The number of nested documents has exceeded the allowed limit of [2]',
    );
    expect(
      await reason('PUT', '/few/_mapping', { properties: { o: { properties: { n: { type: 'long' } } } } }),
    ).toContain("can't merge a nested mapping [o] with a non nested mapping");
    const semantic = {
      mappings: { properties: { o: { type: 'nested', properties: { s: { type: 'semantic_text' } } } } },
    };
    expect(await reason('PUT', '/s', semantic)).toContain('semantic_text field [s] cannot be nested');
    expect(await cause('/books', { query: nested('shelf', { match_all: {} }) })).toContain(
      'nested object under path [shelf] is not of nested type',
    );
    expect(
      await reason('POST', '/books/_search', {
        query: nested('passages', { match_all: {} }, { inner_hits: { sise: 1 } }),
      }),
    ).toContain('[inner_hits] unknown field [sise] did you mean [size]?');
    const twice = { bool: { should: [1, 2].map(() => nested('passages', { match_all: {} }, { inner_hits: {} })) } };
    expect(await reason('POST', '/books/_search', { query: twice })).toContain(
      '[inner_hits] already contains an entry for key [passages]',
    );
  });
});
