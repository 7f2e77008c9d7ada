import { expect, it } from 'vitest';

import { countedFields, facetsOf, toggled } from './facets';
import { leaves } from './fields';

it('counts what has exact values', () => {
  const fields = leaves({
    topic: { type: 'keyword', fields: { text: { type: 'text' } } },
    about: {
      properties: { isOpen: { type: 'boolean' }, place: { type: 'text', fields: { raw: { type: 'keyword' } } } },
    },
    text: { type: 'text' },
    n: { type: 'long' },
  });
  expect(countedFields(fields)).toEqual(['topic', 'about.isOpen', 'about.place.raw']);
});

it.each([
  ['', 'topic:"a"'],
  ['year:2020', 'year:2020 AND topic:"a"'],
  ['x:1 OR y:2', '(x:1 OR y:2) AND topic:"a"'],
  ['(x:1) OR y:2', '((x:1) OR y:2) AND topic:"a"'],
  ['(x:1 OR y:2) AND z:" OR "', '(x:1 OR y:2) AND z:" OR " AND topic:"a"'],
  ['topic:"ab"', 'topic:"ab" AND topic:"a"'],
])('adds a value to the filter “%s”, and takes it away', (before, after) => {
  expect(toggled(before, 'topic', 'a', true)).toBe(after);
  expect(toggled(after, 'topic', 'a', false)).toBe(after.slice(0, -' AND topic:"a"'.length));
  expect(toggled(before, 'topic', 'a', false)).toBe(before);
});

it('takes away a value from between others', () => {
  expect(toggled('a:"1" AND topic:"x" AND b:"2"', 'topic', 'x', false)).toBe('a:"1" AND b:"2"');
  expect(toggled('topic:"x" AND b:"2"', 'topic', 'x', false)).toBe('b:"2"');
});

it('shows values that several documents have, and those that are filtered by', () => {
  const bucket = (key: string, doc_count: number, key_as_string?: string) => ({
    key,
    doc_count,
    ...(key_as_string === undefined ? {} : { key_as_string }),
  });
  const counted = {
    sku: { buckets: [bucket('1', 1), bucket('2', 1)] },
    topic: { buckets: [bucket('a "b" \\ c', 2), bucket('d', 1)] },
    open: { buckets: [bucket('1', 5, 'true')] },
  };
  const names = (filter: string) =>
    facetsOf(counted, filter).map(({ field, values }) => [
      field,
      ...values.map(({ text, count, isChosen }) => `${text} ${count ?? '-'}${isChosen ? ' chosen' : ''}`),
    ]);
  expect(names('')).toEqual([
    ['open', 'true 5'],
    ['topic', 'a "b" \\ c 2'],
  ]);
  const filter = toggled(toggled('', 'topic', 'a "b" \\ c', true), 'sku', 'gone', true);
  expect(names(filter)).toEqual([
    ['open', 'true 5'],
    ['topic', 'a "b" \\ c 2 chosen'],
    ['sku', 'gone - chosen'],
  ]);
  // Where nothing is found, what is filtered by can still be taken away.
  expect(facetsOf({}, toggled('', 'my field', 'x', true))).toEqual([
    { field: 'my field', values: [{ text: 'x', count: undefined, isChosen: true }] },
  ]);
});
