import { expect, it } from 'vitest';

import { passageOf } from './search.js';

it('shows the passage with the words that were looked for, or else the first', () => {
  expect(passageOf({ meaning: ['a whole text'], body: ['a <em>text</em>'] })).toBe('a <em>text</em>');
  expect(passageOf({ meaning: ['a whole text'], body: ['another'] })).toBe('a whole text');
  expect(passageOf(undefined)).toBeUndefined();
});
