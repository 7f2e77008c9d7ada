import { afterAll, beforeAll, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

// What a short request may blow up on the way out.

let server: RunningServer;
beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
  await server.request('PUT', '/a/_doc/1?refresh=true', { n: 1 });
}, 60_000);
afterAll(() => server.stop());

it.each(['pretty', 'format=yaml'])('does not lay out what gets a hundred times as long: %s', async (how) => {
  const depth = 100;
  const deep = `${'['.repeat(depth)}${Array(2_000_000).fill('1').join(',')}${']'.repeat(depth)}`;
  await server.request('PUT', '/deep', { mappings: { properties: { m: { type: 'object', enabled: false } } } });
  expect((await server.request('PUT', '/deep/_doc/1', `{"m":${deep}}`)).status).toBeLessThan(300);
  const answer = await server.request('GET', `/deep/_doc/1?${how}`);
  expect(answer.status).toBe(400);
  expect(answer.text).toContain('too long to be laid out');
  expect((await server.request('GET', '/deep/_doc/1')).status).toBe(200);
});

/** Bytes that the process has in use, as its limit counts them. */
async function used(): Promise<number> {
  const { body } = await server.request('GET', '/_nodes/stats/breaker');
  const [node] = Object.values<{ breakers: { parent: { estimated_size_in_bytes: number } } }>(body.nodes);
  return node?.breakers.parent.estimated_size_in_bytes ?? NaN;
}

it.each(['pretty', 'format=yaml'])('does not lay out what there is no memory for: %s', async (how) => {
  await server.request('PUT', '/zeros', { mappings: { properties: { m: { type: 'object', enabled: false } } } });
  await server.request('PUT', '/zeros/_doc/1', { m: { l: Array(500_000).fill(0) } });
  const limit = (value: string | null): Promise<unknown> =>
    server.request('PUT', '/_cluster/settings', { persistent: { 'indices.breaker.total.limit': value } });
  const ask = () => server.request('POST', `/zeros/_mget?${how}`, { ids: Array(10).fill('1') });
  // The answer has 10 MB, laid out 50 or more.
  await limit(`${String((await used()) + 40 * 2 ** 20)}b`);
  const { status, text } = await ask();
  await limit(null);
  // What the tests before have left may be more than the process may have at so low a limit.
  const refusal = expect.stringMatching(/no memory left to lay out the answer|data for \[resident memory\]/u) as string;
  expect([status, text.slice(0, 1000)]).toEqual([429, refusal]);
  expect((await ask()).status).toBe(200);
});

it('gives the memory of an answer back once it is sent', async () => {
  await server.request('PUT', '/long', { mappings: { properties: { m: { type: 'object', enabled: false } } } });
  await server.request('PUT', '/long/_doc/1', { m: 'x'.repeat(8 << 20) });
  const before = await used();
  for (const shape of ['', '?filter_path=docs']) {
    const { status, text } = await server.request('POST', `/long/_mget${shape}`, { ids: Array(16).fill('1') });
    expect([status, text.length > 128 << 20]).toEqual([200, true]);
    // The connection's own end comes a moment later.
    await expect.poll(used, { timeout: 10_000 }).toBeLessThan(before + (64 << 20));
  }
});
