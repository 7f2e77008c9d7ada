import { expect, it } from 'vitest';

import { shortest } from './shortest.js';

it.each([
  [0.1, '0.1'],
  [1 / 61, '0.016393442'],
  [12, '12.0'],
  [16777216, '16777216.0'],
])('writes the float nearest to %d shortest', (score, text) => {
  expect(shortest(Math.fround(score))).toBe(text);
});
