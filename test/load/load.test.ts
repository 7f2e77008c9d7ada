// The short form of `npm run test:load`: the server under more clients than it can carry at once, beside a reindex, and under more
// requests than it can answer.
import { expect, it } from 'vitest';

import { runLoad } from './run.mjs';

interface Row {
  readonly name: string;
  readonly clients?: number;
  readonly ok: number;
  readonly refused: number;
  readonly reindexed?: number;
  readonly healthP99: number;
}

it('answers or refuses every client, and stays well', { timeout: 120_000 }, async () => {
  const rows = (await runLoad({
    clients: [1, 300],
    ms: 2000,
    seed: 1,
    count: 20_000,
    patient: true,
    reindex: true,
    times: 4,
    say: () => undefined,
  })) as Row[];
  expect(rows).toHaveLength(5);
  for (const row of rows) {
    // Whoever is refused is told when to come again.
    const measured = JSON.stringify(row);
    expect(row, measured).toMatchObject({ failed: 0, cut: 0, unwell: 0, untold: 0 });
    expect(row.ok, measured).toBeGreaterThan(row.clients ?? 1);
    // What arrives at a fixed rate goes on arriving when the machine has little time for the server.
    expect(row.healthP99, measured).toBeLessThan(row.clients === undefined ? 15_000 : 2000);
  }
  expect(rows[2]?.reindexed).toBeGreaterThan(0);
  // Four times as much as can be answered arrives.
  expect(rows[4]?.refused).toBeGreaterThan(rows[4]?.ok ?? 0);
});
