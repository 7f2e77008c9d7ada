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

/** How long a look at the health may take, in milliseconds: what arrives at a fixed rate goes on arriving when the machine has little time. */
function healthLimit({ clients }: Row): number {
  return clients === undefined ? 15_000 : 2000;
}

async function measured(): Promise<Row[]> {
  const options = { clients: [1, 300], ms: 2000, seed: 1, count: 20_000, patient: true, reindex: true, times: 4 };
  const rows = (await runLoad({ ...options, say: () => undefined })) as Row[];
  expect(rows).toHaveLength(5);
  for (const row of rows) {
    const figures = JSON.stringify(row);
    // Whoever is refused is told when to come again.
    expect(row, figures).toMatchObject({ failed: 0, cut: 0, unwell: 0, untold: 0 });
    expect(row.ok, figures).toBeGreaterThan(row.clients ?? 1);
  }
  expect(rows[2]?.reindexed).toBeGreaterThan(0);
  // Four times as much as can be answered arrives.
  expect(rows[4]?.refused).toBeGreaterThan(rows[4]?.ok ?? 0);
  return rows;
}

it('answers or refuses every client, and stays well', { timeout: 240_000 }, async () => {
  const tooSlow = (rows: Row[]) => rows.filter((row) => row.healthP99 >= healthLimit(row));
  // The limit is for the slowest of about 70 looks. The machine may stand still once; if it does in both measurements, the server is slow.
  if (tooSlow(await measured()).length > 0) expect(tooSlow(await measured())).toEqual([]);
});
