// What meets a text or a number of the client with many buckets, hits or documents stays below the ceiling of memory, seen from outside.
// `npm run test:memory` makes more of them.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { Random } from '../crash/random.mjs';
import { byTier } from '../tiers.mjs';
import { trialOf } from './memory-requests.mjs';
import { rowTrials } from './memory-rows.mjs';
import { Ceiling, ROW_PATIENCE_MS, generated, shown, tryAll } from './memory.mjs';

/** `npm run test:memory` sends 2,000. */
const REQUESTS = byTier(20, 300);
/** Every so many rows. */
const ROWS = byTier(8, 1);
/** When the client of a request by chance leaves, in milliseconds: 60 of them are not to take long. */
const PATIENCE_MS = 3000;

describe('requests by chance', () => {
  it('are the same for the same seed', () => {
    const made = (seed: number): string[] =>
      Array.from({ length: 10 }, (_, number) => JSON.stringify(trialOf(Random.of(seed, number))));
    expect(made(1)).toEqual(made(1));
    expect(made(1)).not.toEqual(made(2));
  });
});

describe.runIf(process.platform === 'linux')('with a ceiling of memory', () => {
  const target = new Ceiling();
  beforeAll(() => target.start());
  afterAll(() => target.remove());

  /** What went wrong with each of these, as one can read and repeat it. */
  async function mistakes(trials: Iterable<[number, any]>, patienceMs: number): Promise<string[]> {
    const found: string[] = [];
    await tryAll(
      target,
      trials,
      ({ number, trial, wrong }) => {
        if (wrong.length > 0) found.push(`number ${String(number)}: ${wrong.join(', ')}: ${shown(trial)}`);
      },
      { patienceMs },
    );
    return found;
  }

  it.each(
    rowTrials()
      .filter((_, place) => place % ROWS === 0)
      .map((trial) => [trial.name, trial] as const),
  )('%s', { timeout: 300_000 }, async (_, trial) => {
    expect(await mistakes([[0, trial]], ROW_PATIENCE_MS)).toEqual([]);
  });

  it('requests by chance take no more', { timeout: 1_800_000 }, async () => {
    expect(await mistakes(generated(1, 0, REQUESTS), PATIENCE_MS)).toEqual([]);
  });
});
