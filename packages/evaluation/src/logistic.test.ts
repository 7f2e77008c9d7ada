import { expect, it } from 'vitest';

import { type Observation, logisticFit } from './logistic.js';

it('finds the line that observations were made from', () => {
  // Each number is observed with the share of relevant ones that the line says, as weights.
  const [slope, intercept] = [3, -1.5];
  const points = Array.from({ length: 21 }, (_, at) => at / 10).flatMap((x): Observation[] => {
    const p = 1 / (1 + Math.exp(-(slope * x + intercept)));
    return [
      [x, true, p],
      [x, false, 1 - p],
    ];
  });
  const found = logisticFit(points);
  expect(found.slope).toBeCloseTo(slope, 6);
  expect(found.intercept).toBeCloseTo(intercept, 6);
});

it('finds no slope where the number says nothing', () => {
  const points: Observation[] = [0, 1, 2].flatMap((x): Observation[] => [
    [x, true, 1],
    [x, false, 3],
  ]);
  const { slope, intercept } = logisticFit(points);
  expect(slope).toBeCloseTo(0, 6);
  expect(intercept).toBeCloseTo(Math.log(1 / 3), 6);
});
