import { expect, it } from 'vitest';

import { ndcg, recall } from './ranking-metrics.js';

it('a document that comes twice, from two indices, counts once, at its first rank', () => {
  const grades = new Map([['x', 1]]);
  expect(ndcg(['x', 'x'], grades)).toBe(1);
  expect(ndcg(['a', 'x', 'x'], grades)).toBeCloseTo(1 / Math.log2(3), 12);
  expect(recall(['x', 'x'], grades)).toBe(1);
});

it('what stands in a place takes it from those behind, also where it comes again', () => {
  const grades = new Map([
    ['x', 1],
    ['y', 1],
  ]);
  const ideal = 1 + 1 / Math.log2(3);
  expect(ndcg(['x', 'x', 'y'], grades)).toBeCloseTo((1 + 1 / Math.log2(4)) / ideal, 12);
});
