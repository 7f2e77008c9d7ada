import { setImmediate } from 'node:timers/promises';

import { expect, it } from 'vitest';

import { FairQueue } from './fair-queue.js';

const sender = { caller: 'one', onGone: () => () => undefined };

/** Holds the event loop, as reading a body does. */
function hold(ms: number): Promise<void> {
  const begun = performance.now();
  while (performance.now() - begun < ms);
  return Promise.resolve();
}

it.each(['at once', 'one after the other'])('others have turns between jobs that come %s', async (how) => {
  const queue = new FairQueue({ what: 'jobs', advice: 'wait', ofCaller: 10, together: 10 });
  let [turns, isOver] = [0, false];
  const others = (async () => {
    while (!isOver) {
      await setImmediate();
      turns += 1;
    }
  })();
  const between: number[] = [];
  const run = (): Promise<void> =>
    queue.run(sender, () => {
      between.push(turns);
      return hold(10);
    });
  if (how === 'at once') await Promise.all([run(), run(), run()]);
  // Each finds an empty queue, as does a request whose body was read in the same turn as that of another.
  else for (let at = 0; at < 3; at += 1) await run();
  isOver = true;
  await others;
  const [first = 0, second = 0, third = 0] = between;
  expect([second - first, third - second].every((count) => count >= 9)).toBe(true);
});
