// Work stops soon after the client that asked for it has gone, so that others are answered.
import { readFileSync } from 'node:fs';
import { type Socket, connect } from 'node:net';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { Target } from '../fuzz/run.mjs';
import { STOPS, stopped } from '../load/long-requests.mjs';
import { byTier } from '../tiers.mjs';
import { WORLD } from '../load/memory-world.mjs';
import { type RunningServer, startServer } from '../support/server.js';

let server: RunningServer;

/** Sends a request on a connection of its own and does not wait for the answer. */
function send(method: string, path: string, body: string, type = 'application/json'): Promise<Socket> {
  const { hostname, port } = new URL(server.url);
  const head = [
    `${method} ${path} HTTP/1.1`,
    `Host: ${hostname}`,
    `Authorization: ApiKey ${server.apiKey}`,
    ...(body === '' ? [] : [`Content-Type: ${type}`, `Content-Length: ${String(Buffer.byteLength(body))}`]),
  ];
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname, () => {
      socket.write(`${head.join('\r\n')}\r\n\r\n${body}`, () => {
        resolve(socket);
      });
    });
    socket.on('error', () => undefined);
  });
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** How long an operation takes that others may have held up, in milliseconds. */
async function answered(method: string, path: string, body?: unknown): Promise<number> {
  const begun = performance.now();
  expect((await server.request(method, path, body)).status).toBeLessThan(300);
  return performance.now() - begun;
}

/** Begins so many requests, closes their connections, and says how long a search and a write take then. */
async function abandon(count: number, ms: number, begin: () => Promise<Socket>): Promise<[number, number]> {
  const sockets = await Promise.all(Array.from({ length: count }, begin));
  await pause(ms);
  for (const socket of sockets) socket.destroy();
  return Promise.all([answered('GET', '/docs/_search?size=1'), answered('PUT', '/other/_doc/1', { a: 1 })]);
}

/** A machine that others use too takes some times as long. What this is about took a minute and more. */
const SOON_MS = 15_000;

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
  const names = Array.from({ length: 60 }, (_, number) => `field_${String(number)}`);
  const properties = Object.fromEntries(names.map((name) => [name, { type: 'keyword' }]));
  await server.request('PUT', '/docs', { mappings: { properties } });
  const lines = Array.from({ length: 2000 }, (_, document) => {
    const source = Object.fromEntries(names.map((name) => [name, `${name} ${String(document)}`]));
    return `{"index":{}}\n${JSON.stringify(source)}\n`;
  });
  expect((await server.request('POST', '/docs/_bulk?refresh=true', lines.join(''))).body.errors).toBe(false);
  await server.request('PUT', '/other/_doc/0', { a: 0 });
});
afterAll(async () => {
  await server.stop();
});

describe('when the client goes away', () => {
  it.each([
    ['fields of many patterns', { size: 2000, fields: Array.from({ length: 500 }, (_, at) => '*'.repeat(at + 1)) }],
    [
      'a regular expression with many states',
      { query: { regexp: { field_1: { value: '(a|b)*a(a|b){17}', max_determinized_states: 10_000_000 } } } },
    ],
    [
      'clauses that stand for many terms',
      {
        query: {
          bool: {
            should: Array.from({ length: 900 }, (_, at) => ({
              wildcard: { [`field_${String(at % 60)}`]: { value: `*${'?*'.repeat(20)}${String(at)}x` } },
            })),
          },
        },
      },
    ],
    [
      'aggregations below aggregations',
      {
        size: 0,
        aggs: {
          a: {
            terms: { field: 'field_1', size: 2000 },
            aggs: Object.fromEntries(
              Array.from({ length: 20 }, (_, at) => [
                `b${String(at)}`,
                {
                  filters: {
                    filters: Object.fromEntries(
                      Array.from({ length: 100 }, (_, x) => [
                        `f${String(x)}`,
                        { wildcard: { field_2: `*${String(x)}*` } },
                      ]),
                    ),
                  },
                },
              ]),
            ),
          },
        },
      },
    ],
  ])('the search for %s stops', async (_, body) => {
    const text = JSON.stringify(body);
    const [search, write] = await abandon(32, 500, () => send('POST', '/docs/_search', text));
    expect(search).toBeLessThan(SOON_MS);
    expect(write).toBeLessThan(SOON_MS);
  });

  it('simulated pipelines stop', async () => {
    const processors = Array.from({ length: 400 }, () => ({
      gsub: { field: 'a', pattern: '(x+x+)+y', replacement: 'z', ignore_failure: true },
    }));
    const docs = Array.from({ length: 100 }, () => ({ _source: { a: 'x'.repeat(2000) } }));
    const body = JSON.stringify({ pipeline: { processors }, docs });
    const [search, write] = await abandon(16, 500, () => send('POST', '/_ingest/pipeline/_simulate', body));
    expect(search).toBeLessThan(SOON_MS);
    expect(write).toBeLessThan(SOON_MS);
  });

  it('simulated pipelines keep no write waiting while they run', async () => {
    const processors = Array.from({ length: 400 }, () => ({
      gsub: { field: 'a', pattern: '(x+x+)+y', replacement: 'z', ignore_failure: true },
    }));
    const docs = Array.from({ length: 100 }, () => ({ _source: { a: 'x'.repeat(2000) } }));
    const body = JSON.stringify({ pipeline: { processors }, docs });
    const sockets = await Promise.all(
      Array.from({ length: 16 }, () => send('POST', '/_ingest/pipeline/_simulate', body)),
    );
    await pause(500);
    expect(await answered('PUT', '/other/_doc/1', { a: 1 })).toBeLessThan(SOON_MS);
    expect(await answered('GET', '/other/_mapping')).toBeLessThan(SOON_MS);
    for (const socket of sockets) socket.destroy();
  });

  it('a bulk request of a great many documents stops', async () => {
    const body = '{"index":{}}\n{}\n'.repeat(200_000);
    const [search, write] = await abandon(8, 3000, () => send('POST', '/many/_bulk', body, 'application/x-ndjson'));
    expect(search).toBeLessThan(SOON_MS);
    expect(write).toBeLessThan(2 * SOON_MS);
    const count = async (): Promise<number> => {
      await server.request('POST', '/many/_refresh');
      // There is no index if not even the first part was begun.
      return ((await server.request('GET', '/many/_count')).body.count as number | undefined) ?? 0;
    };
    // On a busy machine a part that had begun may take a while to end.
    const written = async (): Promise<number> => {
      const before = await count();
      await pause(1000);
      return (await count()) - before;
    };
    await expect.poll(written).toBe(0);
    expect(await count()).toBeLessThan(1_600_000);
  });
});

describe.runIf(process.platform === 'linux')('what takes long', () => {
  const target = new Target({ world: WORLD, hangMs: 60_000 });
  beforeAll(() => target.start());
  afterAll(() => target.remove());

  /** How long the process may go on when nobody waits any more: it is seconds only where others use the machine. */
  const WORKS_ON_MS = 20_000;
  const some = STOPS.filter((_, place) => place % byTier(6, 1) === 0);

  it.each(some)('stops: %s (%s)', { timeout: 120_000 }, async (_, way, call) => {
    const { answered, refused, seen, wentOnMs } = await stopped(target, call(), way);
    expect(refused).toBe('');
    if (answered) return;
    expect(wentOnMs).toBeLessThan(WORKS_ON_MS);
    // A request that has run for a second must have been listed as a task.
    expect(seen ?? true).toBe(true);
    expect(await target.isWell()).toBe(true);
  });
});

describe('waiting for tasks', () => {
  it('ends with the connection, and leaves room for others', async () => {
    const source = { index: 'docs' };
    const dest = { index: 'slow-copy' };
    const path = '/_reindex?wait_for_completion=false&requests_per_second=10';
    const { task } = (await server.request('POST', path, { source: { ...source, size: 10 }, dest })).body;
    const each = `/_tasks/${String(task)}?wait_for_completion=true&timeout=1000d`;
    for (let round = 0; round < 4; round += 1) {
      const sockets = await Promise.all(Array.from({ length: 60 }, () => send('GET', each, '')));
      await pause(300);
      for (const socket of sockets) socket.destroy();
      await pause(300);
    }
    const one = '/_reindex?max_docs=1';
    expect((await server.request('POST', one, { source, dest: { index: 'one' } })).status).toBe(200);
    const listing = '/_tasks?wait_for_completion=true&timeout=2s';
    expect((await server.request('GET', listing)).body.node_failures).toHaveLength(1);
    await server.request('POST', `/_tasks/${String(task)}/_cancel?wait_for_completion=true`);
  });

  it('does not make two listings wait for each other', async () => {
    const listings = Array.from({ length: 20 }, () => answered('GET', '/_tasks?wait_for_completion=true&timeout=60s'));
    expect(Math.max(...(await Promise.all(listings)))).toBeLessThan(SOON_MS);
  });
});

describe('waiting for the cluster', () => {
  const threads = (): number =>
    Number(/^Threads:\s*(\d+)$/m.exec(readFileSync(`/proc/${String(server.process.pid)}/status`, 'utf8'))?.[1]);

  it('takes no thread for each request, and ends with the connection', async () => {
    const before = threads();
    const path = '/_cluster/health?wait_for_nodes=9&timeout=60s';
    const sockets = await Promise.all(Array.from({ length: 400 }, () => send('GET', path, '')));
    await pause(300);
    expect(threads()).toBeLessThan(before + 10);
    expect(await answered('GET', '/_cluster/health')).toBeLessThan(SOON_MS);
    expect(await answered('GET', '/docs/_search?size=1')).toBeLessThan(SOON_MS);
    for (const socket of sockets) socket.destroy();
  });

  it('is over when its time is', async () => {
    const begun = performance.now();
    const { status, body } = await server.request('GET', '/_cluster/health?wait_for_nodes=9&timeout=200ms');
    expect([status, body.timed_out]).toEqual([408, true]);
    expect(performance.now() - begun).toBeGreaterThanOrEqual(190);
    expect((await server.request('GET', '/_cluster/health?wait_for_nodes=1')).body.timed_out).toBe(false);
  });
});

describe('the limits of memory', () => {
  const limit = async (value: string | null): Promise<void> => {
    const { status } = await server.request('PUT', '/_cluster/settings', {
      transient: { 'indices.breaker.request.limit': value },
    });
    expect(status).toBe(200);
  };
  const breakers = async (): Promise<any> =>
    Object.values<any>((await server.request('GET', '/_nodes/stats/breaker')).body.nodes)[0].breakers;

  it('refuse what would take too much, with what it wanted, and give all back', async () => {
    await limit('1mb');
    const { tripped } = (await breakers()).request;
    const { status, headers, body } = await server.request('POST', '/docs/_search', { size: 2000 });
    // It would be too large later as well.
    expect([status, headers['retry-after']]).toEqual([429, undefined]);
    expect(body.status).toBe(429);
    const cause = body.error.root_cause[0];
    expect(cause).toMatchObject({
      type: 'circuit_breaking_exception',
      bytes_limit: 1024 * 1024,
      durability: 'PERMANENT',
    });
    expect(cause.bytes_wanted).toBeGreaterThan(1024 * 1024);
    expect(cause.reason).toMatch(
      /^\[request\] Data too large, data for \[<http_request>\] would be \[\d+\/1mb\], which is larger than the limit of \[1048576\/1mb\]; ask for less at once, or raise \[indices\.breaker\.request\.limit\]$/,
    );
    expect((await server.request('POST', '/docs/_search', { size: 20 })).status).toBe(200);
    const below = [2, 3, 4, 5, 6, 7, 8].map((at) => [`b${String(at)}`, { terms: { field: `field_${String(at)}` } }]);
    const aggs = { a: { terms: { field: 'field_1', size: 2000 }, aggs: Object.fromEntries(below) as object } };
    const bucketed = await server.request('POST', '/docs/_search', { size: 0, aggs });
    expect([bucketed.status, bucketed.body.error?.root_cause[0].type]).toEqual([429, 'circuit_breaking_exception']);
    const lines = '{"index":{}}\n{}\n'.repeat(20_000);
    expect((await server.request('POST', '/unwritten/_bulk', lines)).body.error.type).toBe(
      'circuit_breaking_exception',
    );
    expect((await server.request('GET', '/unwritten')).status).toBe(404);
    const after = (await breakers()).request;
    expect(after.tripped).toBe(tripped + 3);
    // The request for the statistics is still charged for its own memory.
    expect(after.estimated_size_in_bytes).toBeLessThan(1024 * 1024);
    await limit(null);
    expect((await server.request('POST', '/docs/_search', { size: 2000 })).status).toBe(200);
  });

  it('are settings with a form', async () => {
    const settings = { transient: { 'indices.breaker.total.limit': 'much' } };
    const { status, body } = await server.request('PUT', '/_cluster/settings', settings);
    expect(status).toBe(400);
    expect(body.error.reason).toContain('[indices.breaker.total.limit]');
  });
});
