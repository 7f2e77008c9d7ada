// The short form of `npm run test:load`: the server under more clients than it can carry at once, beside a reindex, and under more
// requests than it can answer.
import { expect, it } from 'vitest';

import { runLoad } from './run.mjs';

interface Row {
  readonly name: string;
  readonly clients?: number;
  readonly ok: number;
  readonly refused: number;
  readonly cut: number;
  readonly reindexed?: number;
  readonly healthP99: number;
}

/** How long a look at the health may take, in milliseconds: what arrives at a fixed rate goes on arriving when the machine has little time. */
function healthLimit({ clients }: Row): number {
  return clients === undefined ? 15_000 : 2000;
}

/** The rows with which something is wrong that a machine which stands still for seconds explains. */
function doubtful(rows: Row[]): Row[] {
  return rows.filter(
    (row, at) =>
      row.healthP99 >= healthLimit(row) ||
      row.ok <= (row.clients ?? 1) ||
      row.cut > 0 ||
      // Four times as much as can be answered arrives.
      (at === 4 && row.refused <= row.ok),
  );
}

async function measured(): Promise<Row[]> {
  const options = { clients: [1, 300], ms: 2000, seed: 1, count: 20_000, patient: true, reindex: true, times: 4 };
  const rows = (await runLoad({ ...options, say: () => undefined })) as Row[];
  expect(rows).toHaveLength(5);
  for (const row of rows) {
    const figures = JSON.stringify(row);
    // A client that is refused is told when to come again.
    expect(row, figures).toMatchObject({ failed: 0, unwell: 0, untold: 0 });
    // What arrives at a fixed rate finds no free connection after a pause of the whole machine; clients that wait for answers do.
    if (row.clients !== undefined) expect(row.cut, figures).toBe(0);
  }
  expect(rows[2]?.reindexed).toBeGreaterThan(0);
  return rows;
}

it('answers or refuses every client, and stays well', { timeout: 240_000 }, async () => {
  // Once the machine may be the reason, not twice.
  if (doubtful(await measured()).length > 0) expect(doubtful(await measured())).toEqual([]);
});
