// Requests of a few kilobytes that ask for gigabytes or hours: each has a bound, and the server stays small and goes on.
// The table of docs/reliability.md ("Expensive requests") has the same rows.
import { readFileSync, writeFileSync } from 'node:fs';
import process from 'node:process';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { LIMIT, LIMITED_ROWS, ROWS, prepare } from '../load/expensive-requests.mjs';
import { type RunningServer, startServer } from '../support/server.js';

let server: RunningServer;

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
  await prepare((method: string, path: string, body: unknown) => server.request(method, path, body));
});
afterAll(async () => {
  await server.stop();
});

type Row = (typeof ROWS)[number];

/** Megabytes of a line of the process's status. */
function megabytes(line: string): number {
  const status = readFileSync(`/proc/${String(server.process.pid)}/status`, 'utf8');
  return Number(new RegExp(`${line}:\\s+(\\d+)`, 'u').exec(status)?.[1] ?? 0) / 1024;
}

async function holds([, call, answer, seconds, most]: Row): Promise<void> {
  const [path, body] = call();
  // The highest resident size counts from here on.
  writeFileSync(`/proc/${String(server.process.pid)}/clear_refs`, '5');
  const [before, start] = [megabytes('VmRSS'), performance.now()];
  const { status, text } = await server.request('POST', path, body);
  expect(status).toBeLessThan(500);
  // In a list of answers it is the last ones that are refused.
  expect(text.slice(0, 100_000) + text.slice(-10_000)).toMatch(answer);
  const took = (performance.now() - start) / 1000;
  const more = megabytes('VmHWM') - before;
  expect(took).toBeLessThan(seconds);
  expect(more).toBeLessThan(most);
}

describe.runIf(process.platform === 'linux')('an expensive request', () => {
  it.each(ROWS)('%s', async (...row) => holds(row), 90_000);

  describe('where a request may take little', () => {
    const limit = (value: string | null): Promise<unknown> =>
      server.request('PUT', '/_cluster/settings', { persistent: { 'indices.breaker.request.limit': value } });
    beforeAll(() => limit(LIMIT));
    afterAll(() => limit(null));

    it.each(LIMITED_ROWS)('%s', async (...row) => holds(row), 90_000);

    it.each([
      ['_search', '3mb'],
      ['_update_by_query', '3mb'],
      ['_delete_by_query', '3mb'],
    ])('16,000 sets of documents: %s', async (operation, most) => {
      // Values of a body count with more than a clause; a text has few.
      const query = Array.from({ length: 16_000 }, (_, at) => `v${String(at)}*`).join(' ');
      await limit(most);
      const body = { query: { query_string: { default_field: 'k', query } } };
      const { status, text } = await server.request('POST', `/base/${operation}`, body);
      expect([status, text]).toEqual([
        429,
        expect.stringMatching(/circuit_breaking_exception.*<(?:http_request|by_query)>/u),
      ]);
    });
  });
});
