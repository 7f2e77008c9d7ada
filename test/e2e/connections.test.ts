// Hundreds of connections that are slow, say nothing, come and go, or ask for very much at once: others are answered meanwhile.
import { readFileSync, readdirSync } from 'node:fs';
import { type Socket, connect } from 'node:net';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';
import { byTier, isFirstTier } from '../tiers.mjs';

/** Connections of each kind. */
const EACH = byTier(40, 300);

let server: RunningServer;
const search = async (): Promise<number> =>
  (await server.request('POST', '/docs/_search', { query: { match: { text: 'fox' } }, size: 3 })).status;
const descriptors = (): number => readdirSync(`/proc/${String(server.process.pid)}/fd`).length;
const resident = (): number =>
  Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${String(server.process.pid)}/status`, 'utf8'))?.[1]) / 1024;

/** A connection, and what came over it. */
interface Connection {
  readonly socket: Socket;
  said: string;
  /** When it ended, in milliseconds after its beginning. */
  ended?: number;
}

/** Opens a connection that sends something at once, and something every second. */
function open(first: string, drip = '', localAddress = '127.0.0.1'): Connection {
  const socket = connect({ port: Number(new URL(server.url).port), host: '127.0.0.1', localAddress });
  const connection: Connection = { socket, said: '' };
  const begun = performance.now();
  const timer = setInterval(() => {
    if (drip !== '' && socket.writable) socket.write(drip);
  }, 1000);
  socket.on('data', (chunk) => (connection.said += chunk.toString('latin1')));
  socket.on('error', () => undefined);
  socket.on('close', () => {
    clearInterval(timer);
    connection.ended = performance.now() - begun;
  });
  socket.write(first);
  return connection;
}

const head = (length: string): string =>
  `POST /docs/_search HTTP/1.1\r\nHost: x\r\nAuthorization: ApiKey ${server.apiKey}\r\nContent-Type: application/json\r\n${length}`;
const request = (body: string): string => `${head(`Content-Length: ${String(body.length)}\r\n\r\n`)}${body}`;

async function until(happened: () => boolean, timeout: number): Promise<void> {
  await expect.poll(happened, { timeout, interval: 200 }).toBe(true);
}

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
  const lines = Array.from(
    { length: 500 },
    (_, n) => `{"index":{}}\n{"text":"red fox ${String(n)} ${'x'.repeat(2000)}"}\n`,
  );
  expect((await server.request('POST', '/docs/_bulk?refresh=true', lines.join(''))).body.errors).toBe(false);
});
afterAll(async () => {
  await server.stop();
});

describe.runIf(process.platform === 'linux')('hundreds of connections', { timeout: 240_000 }, () => {
  it('that are slow in every way keep nobody from a search, and are ended', async () => {
    const [before, memory] = [descriptors(), resident()];
    // Each kind has an address of its own: all of them together would be more than one address may have without a key, which none of
    // them has shown when it has just been accepted.
    let addresses = 1;
    const times = (first: string, drip?: string): Connection[] => {
      addresses += 1;
      return Array.from({ length: EACH }, () => open(first, drip, `127.0.0.${String(addresses)}`));
    };
    const headless = [...times(''), ...times(head('X-Slow: '), 'a')];
    const stopped = times(`${head('Content-Length: 100000000\r\n\r\n')}{"size":1`);
    const slow = [
      ...times(head('Content-Length: 100000000\r\n\r\n'), ' '),
      ...times(head('Transfer-Encoding: chunked\r\n\r\n'), '1\r\n \r\n'),
    ];
    const unread = times(request('{"size":500}'));
    for (const { socket } of unread) socket.pause();
    await until(() => descriptors() >= before + 5 * EACH, 20_000);
    for (let round = 0; round < 20; round += 1) expect([200, 429]).toContain(await search());
    // What they asked for is answered, or refused, by now.
    await expect.poll(search, { timeout: 20_000 }).toBe(200);
    // Each unread answer has a megabyte; what bodies announce is not there.
    expect(resident() - memory).toBeLessThan(150 + 3 * EACH);
    if (!isFirstTier) {
      await until(() => headless.every(({ ended }) => ended !== undefined), 40_000);
      for (const { said, ended } of headless) {
        expect(said).toMatch(/^HTTP\/1\.1 408 /);
        expect(ended).toBeGreaterThan(19_000);
      }
      // So many reads at once are refused in part before their bodies are waited for.
      await until(() => stopped.every(({ said }) => /^HTTP\/1\.1 4(?:08|29) /.test(said)), 60_000);
      expect(slow.filter(({ said, ended }) => ended !== undefined && !said.startsWith('HTTP/1.1 429 '))).toEqual([]);
      expect(await search()).toBe(200);
    }
    for (const { socket } of [...headless, ...stopped, ...slow, ...unread]) socket.destroy();
    await until(() => descriptors() <= before + 5, 20_000);
    expect(await search()).toBe(200);
  });

  it('that come and go leave nothing behind', async () => {
    const before = descriptors();
    for (const text of ['', 'GET / HT', request('{}')]) {
      const flood = Array.from({ length: byTier(300, 2000) }, () => open(text));
      for (const { socket } of flood) socket.once('connect', () => socket.destroy());
      await until(() => flood.every(({ ended }) => ended !== undefined), 60_000);
      await expect.poll(search, { timeout: 20_000 }).toBe(200);
    }
    await until(() => descriptors() <= before + 5, 20_000);
  });

  it('that stay without a request take little', async () => {
    const [before, memory] = [descriptors(), resident()];
    const count = byTier(500, 4000);
    // Of one address, the oldest connections without a key would be ended.
    const address = (at: number): string => `127.0.1.${String(1 + (at % 5))}`;
    const idle = Array.from({ length: count }, (_, at) =>
      open('GET /_live HTTP/1.1\r\nHost: x\r\n\r\n', '', address(at)),
    );
    await until(() => idle.every(({ said }) => said.startsWith('HTTP/1.1 200 ')), 60_000);
    expect(await search()).toBe(200);
    expect(resident() - memory).toBeLessThan(100 + count / 20);
    expect(idle.filter(({ ended }) => ended !== undefined)).toEqual([]);
    for (const { socket } of idle) socket.destroy();
    await until(() => descriptors() <= before + 5, 20_000);
  });

  it('are not needed to ask very often: one that does not wait for answers gets all, in turn', async () => {
    const count = byTier(200, 1000);
    const all = Array.from({ length: count }, (_, at) => request(`{"size":0,"from":${String(at)}}`)).join('');
    const { socket, said } = await (async () => {
      const piled = open(all);
      await until(() => piled.said.split('HTTP/1.1 ').length === count + 1, 60_000);
      return piled;
    })();
    const statuses = new Set(said.match(/HTTP\/1\.1 \d+/g));
    expect([...statuses].filter((status) => !/ (?:200|429)$/.test(status))).toEqual([]);
    socket.destroy();
    await expect.poll(search, { timeout: 20_000 }).toBe(200);
  });
});
