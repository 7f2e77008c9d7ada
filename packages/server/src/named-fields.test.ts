import { expect, it } from 'vitest';

import { fieldsOfFilter, fieldsOfSearch, unknownAmong, withParents } from './named-fields.js';

it('finds the fields that a filter names', () => {
  expect(fieldsOfFilter('topic:a AND (year:[2020 TO *] OR -meta.n:"x:y") AND topic:b')).toEqual([
    'topic',
    'year',
    'meta.n',
  ]);
  expect(fieldsOfFilter('_exists_:a AND "quoted:x" AND plain')).toEqual([]);
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
  // A field may have the name of a query, and the values of fields are none.
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
  expect(fieldsOfSearch({ sort: { match: { a: 1 } }, aggs: { term: { terms: { field: 'a' } } } })).toEqual([]);
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
