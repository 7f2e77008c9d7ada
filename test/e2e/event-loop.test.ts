// No request holds the event loop: what takes time in proportion to a body or an answer happens on other threads.
import { gzipSync } from 'node:zlib';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

const MONITOR = new URL('../support/loop-delay.mjs', import.meta.url).href;

/** On a machine that does nothing else it is under 20 ms; tests share theirs. What this is about took seconds to minutes. */
const MAX_MS = 150;

/** What a request holds the loop for, it does each time; what other processes take from it, it does not. */
const TRIES = 5;

let server: RunningServer;

/** Longest time that the event loop was held since the last call, in milliseconds. */
async function longest(): Promise<number> {
  const lines = (): string[] =>
    server
      .output()
      .split('\n')
      .filter((line) => line.includes('"msg":"loop"'));
  const before = lines().length;
  server.process.kill('SIGUSR2');
  while (lines().length === before) await new Promise((resolve) => setTimeout(resolve, 5));
  return (JSON.parse(lines().at(-1) ?? '{}') as { max_ms: number }).max_ms;
}

/** Shortest time that `ask` held the event loop, in milliseconds, over as many tries as it takes to be short enough. */
async function held(ask: () => Promise<void>): Promise<number> {
  let least = Infinity;
  for (let attempt = 0; attempt < TRIES && least >= MAX_MS; attempt += 1) {
    await longest();
    await ask();
    least = Math.min(least, await longest());
  }
  return least;
}

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'], env: { NODE_OPTIONS: `--import=${MONITOR}` } });
  const names = Array.from({ length: 100 }, (_, number) => `field_${String(number)}`);
  const source = JSON.stringify(Object.fromEntries(names.map((name) => [name, { a: { b: { c: 'x'.repeat(20) } } }])));
  expect((await server.request('PUT', '/docs', { mappings: { dynamic: false } })).status).toBe(200);
  const lines = Array.from({ length: 2000 }, () => `{"index":{}}\n${source}\n`).join('');
  expect((await server.request('POST', '/docs/_bulk?refresh=true', lines)).body.errors).toBe(false);
  await longest();
});
afterAll(async () => {
  await server.stop();
});

describe('the event loop', () => {
  it.each([
    ['many paths', `filter_path=${encodeURIComponent(`${'**.'.repeat(2000)}zzz`)}`],
    ['paths with many stars', `filter_path=${encodeURIComponent(`hits.hits._source.${'*_'.repeat(3000)}`)}`],
    ['one path', 'filter_path=hits.hits._source.field_7.a.b'],
    ['pretty', 'pretty'],
    ['YAML', 'format=yaml'],
  ])('is free while an answer of 10 MB gets the shape of %s', async (_, parameter) => {
    const time = await held(async () => {
      const { status, text } = await server.request('GET', `/docs/_search?size=2000&${parameter}`);
      expect([200, 400], text.slice(0, 300)).toContain(status);
    });
    expect(time).toBeLessThan(MAX_MS);
  });

  it('is free while a long body in YAML is read', async () => {
    const body = Buffer.from(`query:\n  bool:\n    should:\n${'    - term: {a: "b"}\n'.repeat(30_000)}`);
    const time = await held(async () => {
      const { status } = await server.request('POST', '/docs/_search', body, {
        headers: { 'content-type': 'application/yaml' },
      });
      expect(status).toBe(400);
    });
    expect(time).toBeLessThan(MAX_MS);
  });

  it('is free while bodies of 60 MB come, whole, in pieces and zipped', async () => {
    const body = Buffer.from(`{"query":{"match_all":{}},"_source":["${'x'.repeat(60_000_000)}"]}`);
    const json = { 'content-type': 'application/json' };
    const zipped = gzipSync(body, { level: 1 });
    const time = await held(async () => {
      await server.request('POST', '/docs/_search', body);
      await server.request('POST', '/docs/_search', zipped, { headers: { ...json, 'content-encoding': 'gzip' } });
    });
    expect(time).toBeLessThan(MAX_MS);
  });

  it.each([
    ['a text with many signs', { query_string: { query: 'a-'.repeat(31_000), fields: ['kw'] } }],
    ['fields with many signs', { multi_match: { query: 'a', fields: [`${'^'.repeat(50_000)}\n`, 'kw'] } }],
    ['a field with many dots', { term: { [`${'a.'.repeat(32_000)}a`]: 1 } }],
    [
      'many fields with dots',
      {
        bool: { must: Array.from({ length: 300 }, (_, at) => ({ term: { [`${'a.'.repeat(80)}${String(at)}`]: 1 } })) },
      },
    ],
  ])('is free while a search that finds nothing is looked through for its fields, %s', async (_, query) => {
    const time = await held(async () => {
      const [{ status, text }, ...others] = await Promise.all([
        server.request('POST', '/docs/_search', { query }),
        ...Array.from({ length: 20 }, () => server.request('GET', '/_live')),
      ]);
      expect([200, 400], text.slice(0, 300)).toContain(status);
      for (const other of others) expect(other.status).toBe(200);
    });
    expect(time).toBeLessThan(MAX_MS);
  });

  it.each([
    ['of many values', { params: { _meta: Array(60_000).fill({}) } }],
    ['in batches', undefined],
  ])('is free while many messages for agents come, %s', async (_, more) => {
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    // The list of tools can be asked for only once in a batch.
    const batch = Array.from({ length: 20 }, (_, id) => ({ ...list, id, method: id === 0 ? list.method : 'ping' }));
    const body = more === undefined ? batch : { ...list, ...more };
    const time = await held(async () => {
      const answers = await Promise.all(Array.from({ length: 40 }, () => server.request('POST', '/mcp', body)));
      for (const { status } of answers) expect(status).toBe(more === undefined ? 200 : 400);
    });
    expect(time).toBeLessThan(MAX_MS);
  });

  it('is free while a key with a long body is asked for', async () => {
    // It is refused before it is read to its end, which a client that still writes may take for a broken connection.
    const time = await held(async () => {
      const refused = await server
        .request('POST', '/_security/api_key', { name: 'x'.repeat(5_000_000) })
        .then(({ status }) => status === 413)
        .catch((error: NodeJS.ErrnoException) => error.code === 'EPIPE' || error.code === 'ECONNRESET');
      expect(refused).toBe(true);
    });
    expect(time).toBeLessThan(MAX_MS);
  });
});
