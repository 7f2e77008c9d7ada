import process from 'node:process';

import { expect, it } from 'vitest';

it('counts from when the server was started, not its process', async () => {
  const before = process.uptime() * 1000;
  const { measure } = await import('./machine.js');
  const { uptime_millis: uptime } = await measure('.', undefined);
  expect(uptime).toBeLessThanOrEqual(process.uptime() * 1000 - before + 1);
});
