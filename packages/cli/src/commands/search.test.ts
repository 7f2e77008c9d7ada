import { expect, it } from 'vitest';

import { passageOf } from './search.js';

it('shows the passage with the words that were looked for, or else the first', () => {
  expect(passageOf({ meaning: ['a whole text'], body: ['a <em>text</em>'] })).toBe('a <em>text</em>');
  expect(passageOf({ meaning: ['a whole text'], body: ['another'] })).toBe('a whole text');
  // A category that the question names is nothing to read.
  expect(passageOf({ category: ['<em>kitchen</em>'], meaning: ['a whole text'] })).toBe('a whole text');
  expect(passageOf({ category: ['<em>kitchen</em>'] })).toBe('<em>kitchen</em>');
  expect(passageOf(undefined)).toBeUndefined();
});
