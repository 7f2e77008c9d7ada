import { expect, it } from 'vitest';

import { Turns } from './turns.js';

it('others have a turn for each millisecond that a piece of work took', async () => {
  let [others, isOver] = [0, false];
  const other = (): void => {
    others += 1;
    if (!isOver) setImmediate(other);
  };
  const turns = new Turns();
  const begun = performance.now();
  while (performance.now() - begun < 20);
  setImmediate(other);
  await turns.next();
  expect(others).toBeGreaterThanOrEqual(19);
  const before = others;
  await turns.next();
  expect(others).toBe(before);
  isOver = true;
});
