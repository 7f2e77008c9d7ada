// A server whose log cannot be written goes on serving.
import { afterEach, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

let server: RunningServer | undefined;

afterEach(async () => {
  await server?.kill();
});

describe('a server whose log nobody reads any more', () => {
  it('goes on, and ends when it is told to', async () => {
    server = await startServer({ args: ['--deploy-at-start', 'false'] });
    // A process that writes to a pipe without a reader gets an error.
    server.process.stderr?.destroy();
    server.process.stdout?.destroy();
    for (let n = 0; n < 5; n += 1) {
      // Each is logged.
      const refused = await server.request('GET', '/_cluster/health', undefined, { apiKey: 'bm9ib2R5Ondyb25n' });
      expect(refused.status).toBe(401);
    }
    expect((await server.request('GET', '/_cluster/health')).status).toBe(200);
    expect(server.process.exitCode).toBeNull();
    expect(await server.stop()).toBe(0);
  });
});
