import { afterAll, beforeAll, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

// What a short request may blow up on the way out.

let server: RunningServer;
beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
  await server.request('PUT', '/a/_doc/1?refresh=true', { n: 1 });
}, 60_000);
afterAll(() => server.stop());

it.each(['pretty', 'format=yaml'])('does not lay out what gets a thousand times as long: %s', async (how) => {
  const depth = 450;
  const meta = `${'['.repeat(depth)}${Array(800_000).fill('1').join(',')}${']'.repeat(depth)}`;
  const body = `{"size":0,"aggs":{"x":{"value_count":{"field":"n"},"meta":{"m":${meta}}}}}`;
  const answer = await server.request('POST', `/a/_search?${how}`, body);
  expect(answer.status).toBe(400);
  expect(answer.text).toContain('too long to be laid out');
  expect((await server.request('POST', '/a/_search', body)).status).toBe(200);
});
