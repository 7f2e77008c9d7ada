import { expect, it } from 'vitest';

import {
  comparesLetters,
  fieldsOfAggregations,
  fieldsOfFilter,
  fieldsOfSearch,
  textsCompared,
  unknownAmong,
  withParents,
} from './named-fields.js';

it('finds the fields that a filter names', () => {
  expect(fieldsOfFilter('topic:a AND (year:[2020 TO *] OR -meta.n:"x:y") AND topic:b')).toEqual([
    'topic',
    'year',
    'meta.n',
  ]);
  expect(fieldsOfFilter('_exists_:a AND "quoted:x" AND plain')).toEqual([]);
});

it('takes as a field only what Lucene does', () => {
  for (const [filter, ...names] of [
    ['-a:x --b:y +c:z !d:w', 'a', 'b', 'c', 'd'],
    ['(a:x)(b-c:y)', 'a', 'b-c'],
    ['größe:1 naïve:2', 'größe', 'naïve'],
    ['a:/re:x/ b:/\\/c:/ d:1', 'a', 'b', 'd'],
    ['u\\:v:1 \\"a:x'],
    ['a:"x:\\"y:" b:\'c', 'a', 'b'],
    ['a:[t:1 TO "u:]"] b:{now/d TO v:1}', 'a', 'b'],
    ['foo*:1 f?o:2 a*b:3 1a:4 :5 "a":6'],
    ['a:x^2 b:y~1 c:z', 'a', 'b', 'c'],
    ['a:"x:1 OR b:2', 'a'],
  ] as const) {
    expect([filter, fieldsOfFilter(filter)]).toEqual([filter, names]);
  }
});

it('reads texts of any kind in one go', () => {
  // A regular expression that tries again from each letter takes minutes for these.
  for (const part of ['a-', 'a.', 'a\\', '\\', '"', '"\\', '/', '[', '["', '-', 'a:', '^', ':', '\u2028']) {
    const filter = part.repeat(60_000);
    const end = ['a-', 'a.', '-', '^', '\u2028'].includes(part) ? ' b:1' : '';
    expect([part, fieldsOfFilter(filter + end)]).toEqual([part, part === 'a:' ? ['a'] : end === '' ? [] : ['b']]);
  }
  const fields = [`${'^'.repeat(60_000)}\n`, 'a^2\n'];
  expect(fieldsOfSearch({ query: { multi_match: { fields } } })).toEqual(['a']);
});

it('leaves out names that nobody writes', () => {
  const name = 'a'.repeat(200);
  const deep = 'a.'.repeat(20);
  const query = (field: string): object => ({ query: { term: { [field]: 1 } } });
  expect([fieldsOfSearch(query(name)), fieldsOfFilter(`${name}:1`)]).toEqual([[name], [name]]);
  expect([fieldsOfSearch(query(`${name}a`)), fieldsOfFilter(`${name}a:1`)]).toEqual([[], []]);
  expect([fieldsOfSearch(query(`${deep}a`)), fieldsOfFilter(`${deep}a:1`)]).toEqual([[`${deep}a`], [`${deep}a`]]);
  expect([fieldsOfSearch(query(`${deep}a.a`)), fieldsOfFilter(`${deep}a.a:1`)]).toEqual([[], []]);
  // What has to be asked for stays in proportion to what was named.
  expect(withParents(fieldsOfSearch(query('a.'.repeat(30_000))))).toEqual([]);
  const many = Array.from({ length: 10_000 }, (_, at) => `f${String(at)}`);
  expect(fieldsOfSearch({ query: { multi_match: { fields: many } } })).toEqual(many.slice(0, 200));
});

it('finds the fields that the queries of a search name', () => {
  const all = (query: object): string[] => fieldsOfSearch({ query });
  expect(all({ match: { a: 'x' } })).toEqual(['a']);
  expect(all({ term: { 'a.b': { value: 1, boost: 2 } } })).toEqual(['a.b']);
  expect(all({ terms: { a: ['x'], boost: 2, _name: 'n' } })).toEqual(['a']);
  expect(all({ multi_match: { query: 'a:b', fields: ['a^3', 'b*', 'c'] } })).toEqual(['a', 'c']);
  expect(all({ query_string: { query: 'a:x AND b:y', fields: ['c'] } })).toEqual(['c', 'a', 'b']);
  expect(all({ semantic: { field: 'a', query: 'x' } })).toEqual(['a']);
  const clauses = { must: [{ match: { a: 'x' } }, { exists: { field: 'b' } }], filter: { range: { c: { gte: 1 } } } };
  expect(all({ nested: { path: 'n', query: { bool: clauses } } })).toEqual(['a', 'b', 'c']);
  // A field may be called like a query, and the values that a query gives for a field name no fields.
  expect(all({ match: { term: { query: 'x' } } })).toEqual(['term']);
  // What every index has, and what is no query.
  expect(all({ term: { _id: 'a' } })).toEqual([]);
  expect(all({ script_score: { query: { match_all: {} }, script: { params: { match: { a: 1 } } } } })).toEqual([]);
  expect(all({ nested: { path: 'n', query: { match_all: {} }, inner_hits: { sort: { term: { a: 1 } } } } })).toEqual(
    [],
  );

  const retrievers = [
    { standard: { query: { match: { a: 1 } } } },
    { knn: { field: 'b', filter: { term: { c: 1 } } } },
  ];
  expect(fieldsOfSearch({ retriever: { linear: { query: 'x', fields: ['d'], retrievers } } })).toEqual([
    ...['d', 'a', 'b', 'c'],
  ]);
  expect(fieldsOfSearch({ knn: [{ field: 'a', query_vector: [1, 2] }], post_filter: { term: { b: 1 } } })).toEqual([
    ...['a', 'b'],
  ]);
  expect(fieldsOfSearch({ sort: { match: { a: 1 } } })).toEqual([]);
});

it('finds the fields that aggregations name', () => {
  const all = (aggs: object): string[] => fieldsOfAggregations({ aggs });
  expect(fieldsOfSearch({ query: { term: { b: 1 } }, aggregations: { term: { terms: { field: 'a' } } } })).toEqual([
    ...['b', 'a'],
  ]);
  const inner = { inner: { avg: { field: 'b' } }, field: { filter: { term: { c: 1 } } } };
  expect(all({ outer: { terms: { field: 'a', script: { params: { field: 'x' } } }, aggs: inner } })).toEqual([
    ...['a', 'b', 'c'],
  ]);
  const sources = [{ one: { terms: { field: 'a' } } }, { two: { histogram: { field: 'b', interval: 1 } } }];
  expect(all({ pages: { composite: { sources } } })).toEqual(['a', 'b']);
  const without = { none: { missing: { field: 'a' } }, some: { terms: { field: 'b', missing: 'x' } } };
  expect(all({ ...without, c: { terms: { field: 'c' } } })).toEqual(['c']);
  expect(all({ none: { value_count: { field: '_id' }, meta: { field: 'x' } } })).toEqual([]);
  expect([all(['x']), all({ a: null, b: { terms: null } })]).toEqual([[], []]);
});

it('takes what is below a field as a part of it, and not what is below an object', () => {
  const known = { topics: { rank_features: {} }, person: { object: {} }, 'person.name': { text: {} } };
  expect(withParents(['topics.art', 'person.name.raw'])).toEqual([
    ...['topics.art', 'topics', 'person.name.raw', 'person', 'person.name'],
  ]);
  expect(unknownAmong(['topics.art', 'person.name', 'person.nmae', 'toString'], known)).toEqual([
    ...['person.nmae', 'toString'],
  ]);
});

it('knows which texts a filter compares as if they were numbers', () => {
  const known = { price: { text: {} }, code: { keyword: {} }, n: { long: {} }, both: { text: {}, long: {} } };
  const names = (filter: string): string[] => textsCompared(filter, known).map(({ name }) => name);
  for (const range of ['<50', '>=-1', '[10 TO 50]', '{* TO 5}', '["2020-01-01" TO *]', '(>1 AND <5)'])
    expect([range, names(`price:${range}`)]).toEqual([range, ['price']]);
  expect(names('n:<5 AND code:>3 AND both:<5')).toEqual(['code']);
  // Letters may be meant.
  expect(names('price:[a TO m] AND price:5 AND other:<5')).toEqual([]);
  expect(textsCompared('code:<5', known).map(comparesLetters)).toEqual([
    '[code] is a keyword, so < and > compare letters, and 9 comes after 50: a field of numbers or dates compares values',
  ]);
});
