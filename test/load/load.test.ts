// The short form of `npm run test:load`: the server under more clients than it can carry at once.
import { expect, it } from 'vitest';

import { runLoad } from './run.mjs';

interface Row {
  readonly clients: number;
  readonly ok: number;
  readonly refused: number;
  readonly failed: number;
  readonly cut: number;
  readonly unwell: number;
  readonly healthP99: number;
  readonly p99: number;
}

it('answers or refuses every client, and stays well', async () => {
  const rows = (await runLoad({
    clients: [1, 300],
    ms: 2000,
    seed: 1,
    count: 5000,
    patient: true,
    say: () => undefined,
  })) as Row[];
  for (const row of rows) {
    expect(row).toMatchObject({ failed: 0, cut: 0, unwell: 0 });
    expect(row.ok).toBeGreaterThan(row.clients);
    expect(row.healthP99).toBeLessThan(2000);
  }
});
