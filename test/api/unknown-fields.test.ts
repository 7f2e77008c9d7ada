// A search by a field that no index has finds nothing, as in Elasticsearch, and is warned of.
import { afterAll, beforeAll, expect, it } from 'vitest';

import { type RequestOptions, type RunningServer, startServer } from '../support/server.js';

let server: RunningServer;

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
  const name = { type: 'text', fields: { raw: { type: 'keyword' } } };
  const parts = { type: 'nested', properties: { land: { type: 'keyword' } } };
  for (const [index, properties] of [
    ['people', { name, topics: { type: 'rank_features' }, person: { properties: { age: { type: 'long' } } } }],
    ['places', { town: { type: 'keyword' }, parts }],
  ] as const) {
    expect((await server.request('PUT', `/${index}`, { mappings: { properties } })).status).toBe(200);
  }
  await server.request('PUT', '/people/_doc/1?refresh=true', { name: 'Ada' });
  await server.request('POST', '/_aliases', { actions: [{ add: { index: 'people', alias: 'folk' } }] });
});
afterAll(async () => {
  await server.stop();
});

async function warned(path: string, body?: object | string, options?: RequestOptions): Promise<string[]> {
  const { status, headers, text } = await server.request(body === undefined ? 'GET' : 'POST', path, body, options);
  expect(status, text).toBe(200);
  const said = [headers['warning'] ?? ''].flat().join(', ');
  // Letters that a header cannot hold are escaped as in a URL.
  return [...said.matchAll(/299 \S+ "([^"]*)"/g)].map(([, sentence = '']) => decodeURIComponent(sentence));
}
const says = (field: string, hint = ''): string =>
  `no index that was searched has a field [${field}], so nothing is found by it${hint}`;
const MEANT = says('names', '; did you mean [name]?');

it('is warned of, by whatever query', async () => {
  for (const query of [
    { match: { names: 'ada' } },
    { multi_match: { query: 'ada', fields: ['names^2', 'person.*'] } },
    { term: { names: 'ada' } },
    { bool: { must: { match: { name: 'ada' } }, filter: { exists: { field: 'names' } } } },
    { query_string: { query: 'names:ada' } },
    { constant_score: { filter: { range: { names: { gte: 1 } } } } },
  ]) {
    const label = JSON.stringify(query);
    expect(await warned('/people/_search', { query }), label).toEqual([MEANT]);
    expect(await warned('/people/_count', { query }), label).toEqual([MEANT]);
  }
  const match = { query: { match: { names: 'ada' } } };
  expect(await warned('/people/_search', { retriever: { standard: match } })).toEqual([MEANT]);
  expect(await warned('/people/_search', { ...match, track_total_hits: false })).toEqual([MEANT]);
  expect(await warned('/people/_search?rest_total_hits_as_int=true', match)).toEqual([MEANT]);
  expect(await warned('/folk,places/_search?filter_path=took', match)).toEqual([MEANT]);
  expect(await warned('/_search', match)).toEqual([MEANT]);
  expect(await warned('/people/_search?q=names:ada')).toEqual([MEANT]);
  const both = { query: { bool: { must: [{ term: { größe: 1 } }, { term: { 'person.x': 1 } }] } } };
  expect(await warned('/people/_search', both)).toEqual([
    says('größe'),
    says('person.x', '; did you mean [person.age]?'),
  ]);
});

it('is warned of in each of several searches that found nothing', async () => {
  const search = (header: object, field: string): string =>
    `${JSON.stringify(header)}\n${JSON.stringify({ query: { match: { [field]: 'ada' } } })}\n`;
  const lines = [
    search({ index: 'people' }, 'names'),
    search({ index: 'people' }, 'name'),
    search({ index: ['places', 'people'], ignore_unavailable: true }, 'towns'),
    search({}, 'name'),
    search({ index: 'nobody*' }, 'names'),
    search({ index: 'nobody' }, 'names'),
  ].join('');
  const said = [`responses[0]: ${MEANT}`, `responses[2]: ${says('towns', '; did you mean [town]?')}`];
  const headers = { 'content-type': 'application/x-ndjson' };
  expect(await warned('/places/_msearch', lines, { headers })).toEqual([...said, `responses[3]: ${says('name')}`]);
  expect(await warned('/people/_msearch', lines, { headers })).toEqual(said);
  expect(await warned('/people/_msearch', search({}, 'name'), { headers })).toEqual([]);
});

it('is warned of where documents were to be changed', async () => {
  const query = { match: { names: 'ada' } };
  expect(await warned('/people/_delete_by_query', { query })).toEqual([MEANT]);
  expect(await warned('/people/_update_by_query', { query })).toEqual([MEANT]);
  expect(await warned('/people/_delete_by_query', { query: { match: { name: 'nobody' } } })).toEqual([]);
  expect(await warned('/people/_update_by_query', { query: { match_all: {} } })).toEqual([]);
});

it('is warned of in an aggregation, whatever the search finds', async () => {
  const should = [{ match: { name: 'ada' } }, { match: { names: 'ada' } }];
  const query = { bool: { should } };
  const aged = says('person.agee', '; did you mean [person.age]?');
  for (const [kind, options] of Object.entries({ terms: {}, histogram: { interval: 1 }, avg: {}, percentiles: {} })) {
    const aggs = { ages: { [kind]: { field: 'person.agee', ...options } } };
    expect(await warned('/people/_search', { aggs }), kind).toEqual([aged]);
    expect(await warned('/people/_search', { aggs, query, size: 0, track_total_hits: false }), kind).toEqual([aged]);
    const none = { aggs, query: { match: { names: 'ada' } } };
    expect(await warned('/people/_search', none), kind).toEqual([MEANT, aged]);
  }
  const aggs = { ages: { terms: { field: 'person.age' } } };
  expect(await warned('/people/_search', { aggs, query })).toEqual([]);
});

it('is not warned of where there is such a field, or the search finds something', async () => {
  for (const query of [
    { match: { name: 'nobody' } },
    { term: { 'name.raw': 'nobody' } },
    { term: { town: 'x' } },
    { exists: { field: 'person' } },
    { rank_feature: { field: 'topics.art' } },
    { nested: { path: 'parts', query: { term: { 'parts.land': 'x' } } } },
    { multi_match: { query: 'x', fields: ['nothing*', 'name'] } },
    { term: { _id: 'x' } },
    { bool: { must: [{ match_all: {} }, { term: { _index: 'x' } }] } },
  ]) {
    expect(await warned('/people,places/_search', { query }), JSON.stringify(query)).toEqual([]);
  }
  expect(await warned('/people/_search', { query: { match: { town: 'x' } } })).toEqual([says('town')]);
  const should = [{ match: { name: 'ada' } }, { match: { names: 'ada' } }];
  expect(await warned('/people/_search', { query: { bool: { should } } })).toEqual([]);
  expect(await warned('/nobody*/_search', { query: { match: { names: 'ada' } } })).toEqual([]);
});

it('tells a key nothing about fields that it may not see', async () => {
  const descriptors = { r: { indices: [{ names: ['places'], privileges: ['read'] }] } };
  const made = await server.request('POST', '/_security/api_key', { name: 'k', role_descriptors: descriptors });
  const apiKey = (made.body as { encoded: string }).encoded;
  // `name` is a field of the other index, which an owner is not warned of and this key is, without a hint at others like it.
  const query = { match: { name: 'ada' } };
  expect(await warned('/p*/_search', { query: { bool: { must: [query, { match_none: {} }] } } })).toEqual([]);
  expect(await warned('/p*/_search', { query }, { apiKey })).toEqual([says('name')]);
  expect(await warned('/_search', { query: { match: { names: 'ada' } } }, { apiKey })).toEqual([says('names')]);
});

it('is not warned of where the answer does not tell whether something was found', async () => {
  const should = [{ match: { name: 'ada' } }, { match: { names: 'ada' } }];
  const query = { bool: { should } };
  const untold = { query, track_total_hits: false };
  expect(await warned('/people/_search', { ...untold, size: 0 })).toEqual([]);
  expect(await warned('/people/_search?size=0&track_total_hits=false', { query })).toEqual([]);
  expect(await warned('/people/_search?size=0&track_total_hits=false&q=name:ada%20names:ada')).toEqual([]);
  expect(await warned('/people/_search', { ...untold, from: 1 })).toEqual([]);
  expect(await warned('/people/_search', { ...untold, sort: '_doc', search_after: [1000] })).toEqual([]);
  const nothing = { query: { match: { names: 'ada' } } };
  expect(await warned('/people/_search', { ...nothing, size: 0 })).toEqual([MEANT]);
  expect(await warned('/people/_search', { ...nothing, from: 0, track_total_hits: false })).toEqual([MEANT]);
});

it('is warned of in headers that clients take', async () => {
  const sizeOf = async (query: object): Promise<[sentences: number, bytes: number]> => {
    const { status, headers } = await server.request('POST', '/people/_search', { query });
    expect(status).toBe(200);
    const said = [headers['warning'] ?? ''].flat().join(', ');
    return [said.match(/299 /g)?.length ?? 0, said.length];
  };
  const names = (length: number): object => ({
    bool: { must: Array.from({ length: 20 }, (_, at) => ({ term: { [`${'ä'.repeat(length)}${String(at)}`]: 1 } })) },
  });
  expect((await sizeOf(names(1)))[0]).toBe(8);
  const [sentences, bytes] = await sizeOf(names(150));
  expect(sentences).toBeGreaterThan(0);
  expect(bytes).toBeLessThan(2100);
});

it('is told what may have been meant only among as many fields as are compared in no time', async () => {
  const fill = 'x'.repeat(150);
  const fields = Array.from({ length: 900 }, (_, at) => [`${fill}${String(at)}`, { type: 'keyword' }] as const);
  const mappings = { properties: Object.fromEntries([...fields, ['colour', { type: 'keyword' }]]) };
  expect((await server.request('PUT', '/long', { mappings })).status).toBe(200);
  const must = (names: string[]): object => ({ bool: { must: names.map((name) => ({ term: { [name]: 1 } })) } });
  const hinted = async (names: string[]): Promise<number> => {
    const said = await warned('/long/_search', { query: must(names) });
    expect(said).not.toEqual([]);
    return said.filter((sentence) => sentence.includes('did you mean')).length;
  };
  expect(await hinted(['color'])).toBe(1);
  expect(await hinted(Array.from({ length: 8 }, (_, at) => `${fill}y${String(at)}`))).toBe(0);
});
