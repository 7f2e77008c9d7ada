import { expect, it } from 'vitest';

import { type Item, itemOf } from './items.js';

const LONG = '1790000000000000001';

function itemFrom(text: string, idField?: string): Item | string {
  const record = { n: 1, line: 1, document: JSON.parse(text) as Record<string, unknown>, text, problem: undefined };
  return itemOf(record, { idField, key: 'a', columns: [] });
}

it('keeps all digits of numbers, in ids and where the id is taken out', () => {
  expect(itemFrom(`{"id": ${LONG}, "t": "x"}`, 'id')).toMatchObject({ id: LONG, json: `{"id": ${LONG}, "t": "x"}` });
  expect(itemFrom(`{"_id": ${LONG}, "of": [${LONG}, {"a": 1.10}]}`)).toMatchObject({
    id: LONG,
    json: `{"of":[${LONG},{"a":1.10}]}`,
  });
  expect(itemFrom('{"_id": "x", "n": 1}')).toMatchObject({ id: 'x', json: '{"n":1}' });
});
