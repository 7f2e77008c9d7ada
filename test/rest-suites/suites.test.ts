import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';
import { loadApi } from './api-spec.mjs';
import { createSender } from './client.mjs';
import { loadExpected } from './expected.mjs';
import { loadTests, suiteFolders } from './load.mjs';
import { runTest } from './runner.mjs';

const directory = process.env['SPARROW_REST_SUITES'];

/** The public suites are no part of the repository: CONTRIBUTING.md says how to get them. */
describe.skipIf(directory === undefined)('the public REST suite (skipped without SPARROW_REST_SUITES=DIR)', () => {
  if (directory === undefined) {
    it('runs where a suite is given', () => {});
    return;
  }
  const folders = suiteFolders(directory);
  const spec = loadApi(folders.api);
  const expected = loadExpected();
  let server: RunningServer;
  let send: ReturnType<typeof createSender>;
  beforeAll(async () => {
    server = await startServer();
    send = createSender(server);
  });
  afterAll(async () => {
    await server.stop();
  });

  const applicable = loadTests(folders.tests).filter((test) => expected.removed(test) === undefined);
  it.each(applicable.map((test) => [`${test.file}: ${test.name}`, test] as const))('%s', async (_, test) => {
    const reason = expected.failing(test);
    const { state, why } = await runTest(test, { spec, send });
    if (state === 'skipped') return;
    if (reason === undefined) expect(why).toBeUndefined();
    else expect(state, `passes, but is expected to fail: ${reason}`).toBe('failed');
  });
});
