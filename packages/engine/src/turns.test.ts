import { expect, it, vi } from 'vitest';

import { Turns } from './turns.js';

it('others have a turn for each millisecond that a piece of work took', async () => {
  // A clock of its own: on a busy machine each turn takes milliseconds, too.
  let now = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => now);
  let [others, isOver] = [0, false];
  const other = (): void => {
    others += 1;
    if (!isOver) setImmediate(other);
  };
  const turns = new Turns();
  now = 20;
  setImmediate(other);
  await turns.next();
  expect(others).toBeGreaterThanOrEqual(19);
  const before = others;
  await turns.next();
  expect(others).toBe(before);
  isOver = true;
  vi.restoreAllMocks();
});
