import { expect, it } from 'vitest';

import { duration } from './format';

it('durations are told in units that fit', () => {
  const told = [0, 0.04, 0.5, 12.3, 4200, 90_000, 3_720_000].map(duration);
  expect(told).toEqual(['0 ms', '< 0.1 ms', '0.5 ms', '12 ms', '4.2 s', '1 min 30 s', '1 h 2 min']);
});
