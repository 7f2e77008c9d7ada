// What the machine may run out of while the server runs: places to write, file descriptors, memory. Whatever becomes of requests,
// acknowledged writes stay. Needs Linux; a mount that cannot be written also needs the right to make mounts of one's own.
import { spawnSync } from 'node:child_process';
import { mkdtemp, readFile, readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

const ARGS = ['--deploy-at-start', 'false'];
const succeeds = (program: string, ...args: string[]): boolean => spawnSync(program, args).status === 0;
const CAN_LIMIT = succeeds('prlimit', '--nofile');
const CAN_MOUNT = succeeds('unshare', '-m', 'true');

let server: RunningServer | undefined;

afterEach(async () => {
  await server?.kill();
});

const pause = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** A line of `/proc/PID/status`, in bytes. */
async function memoryOf(running: RunningServer, name: string): Promise<number> {
  const status = await readFile(`/proc/${String(running.process.pid)}/status`, 'utf8');
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) * 1024;
}

function limit(running: RunningServer, what: string, soft: number | 'unlimited'): void {
  const set = spawnSync('prlimit', ['--pid', String(running.process.pid), `--${what}=${String(soft)}:`]);
  expect(set.status, set.stderr.toString()).toBe(0);
}

/** Those of the ids that an index has no document of. */
async function missing(running: RunningServer, index: string, ids: readonly string[]): Promise<string[]> {
  const absent: string[] = [];
  for (let from = 0; from < ids.length; from += 1000) {
    const part = { ids: ids.slice(from, from + 1000) };
    const { body } = await running.request('POST', `/${index}/_mget?_source=false`, part);
    for (const { _id, found } of body.docs as { _id: string; found: boolean }[]) if (!found) absent.push(_id);
  }
  return absent;
}

/** Writes single documents, each into an index of its own or all into one, and says which were acknowledged and what else came. */
async function write(
  running: RunningServer,
  ids: readonly string[],
  document: object,
): Promise<{ acknowledged: string[]; refused: { status: number; type: string; reason: string }[] }> {
  const acknowledged: string[] = [];
  const refused: { status: number; type: string; reason: string }[] = [];
  for (const id of ids) {
    const answer = await running.request('PUT', `/${id}/_doc/1`, document).catch(() => undefined);
    if (answer !== undefined && answer.status < 300) acknowledged.push(id);
    else if (answer !== undefined) {
      const { type, reason } = answer.body.error ?? {};
      refused.push({ status: answer.status, type, reason });
    }
  }
  return { acknowledged, refused };
}

describe('a data directory on a file system that cannot be written', () => {
  it.skipIf(!CAN_MOUNT)('ends the start with one sentence, and is as it was', async () => {
    server = await startServer({ args: ARGS });
    await server.request('PUT', '/a/_doc/1', { x: 1 });
    await server.stop();
    const { data } = server;
    for (const folder of [data, await mkdtemp(join(tmpdir(), 'sparrow-empty-'))]) {
      const mount = `mount --bind ${folder} ${folder} && mount -o remount,ro,bind ${folder} && exec "$@"`;
      const under = ['unshare', '-m', 'sh', '-c', mount, 'sh'];
      const failed = await startServer({ data: folder, args: ARGS, under }).catch((error: unknown) => String(error));
      expect(failed).toContain('the server ended with 1:');
      const told = String(failed)
        .split('\n')
        .filter((line) => line.startsWith('sparrow: '));
      expect(told).toEqual([
        `sparrow: the data directory ${folder} cannot be written: Read-only file system (os error 30)`,
      ]);
    }
    server = await startServer({ data, args: ARGS });
    expect((await server.request('GET', '/a/_doc/1')).body._source).toEqual({ x: 1 });
    expect((await server.request('PUT', '/a/_doc/2', { x: 2 })).status).toBe(201);
  });
});

describe('few file descriptors', () => {
  it.skipIf(!CAN_LIMIT)('refuse what needs more, lose nothing, and are forgotten when there are more', async () => {
    server = await startServer({ args: ARGS });
    await server.request('PUT', '/there/_doc/1?refresh=true', { x: 1 });
    const used = (await readdir(`/proc/${String(server.process.pid)}/fd`)).length;
    limit(server, 'nofile', used + 12);
    const names = Array.from({ length: 40 }, (_, number) => `few-${String(number)}`);
    const during = await write(server, names, { x: 1 });
    expect(during.refused.length).toBeGreaterThan(10);
    for (const { status, type, reason } of during.refused) {
      expect([429, 500, 503], reason).toContain(status);
      expect(`${type}: ${reason}`).toMatch(/Too many open files/);
      expect(reason).not.toContain(server.data);
    }
    // What is there already is read and searched.
    expect((await server.request('GET', '/there/_doc/1')).status).toBe(200);
    expect((await server.request('POST', '/there/_search', { query: { match_all: {} } })).body.hits.total.value).toBe(
      1,
    );
    limit(server, 'nofile', 4096);
    const after = await write(server, names, { x: 2 });
    expect(after.refused).toEqual([]);
    await server.kill();
    server = await startServer({ data: server.data, args: ARGS });
    expect((await server.request('GET', '/_cluster/health')).body.status).not.toBe('red');
    for (const name of ['there', ...during.acknowledged, ...after.acknowledged]) {
      expect((await server.request('GET', `/${name}/_doc/1`)).status, name).toBe(200);
    }
  });
});

describe('a limit of memory', () => {
  it.skipIf(!CAN_LIMIT)('refuses a request or ends the process; what was acknowledged is there', async () => {
    server = await startServer({ args: ARGS });
    const properties = { text: { type: 'text' }, kept: { type: 'object', enabled: false } };
    await server.request('PUT', '/m', { mappings: { properties } });
    const acknowledged: string[] = [];
    let [ended, told] = [false, 0];
    server.process.on('exit', () => (ended = true));
    const text = Array.from({ length: 4000 }, (_, word) => `word${String(word * 7919)}`).join(' ');
    const load = async (running: RunningServer, worker: number, milliseconds: number): Promise<void> => {
      const until = Date.now() + milliseconds;
      for (let batch = 0; !ended && told === 0 && Date.now() < until; batch += 1) {
        const ids = Array.from({ length: 10 }, (_, one) => [worker, batch, one].map(String).join('-'));
        const lines = ids.map((id) => `{"index":{"_id":"${id}"}}\n${JSON.stringify({ text: `${id} ${text}` })}\n`);
        const answer = await running.request('POST', '/m/_bulk', lines.join('')).catch(() => undefined);
        if (answer?.status !== 200) told += 1;
        else for (const { index } of answer.body.items) if (index.status < 300) acknowledged.push(index._id);
      }
    };
    do {
      await load(server, 0, 1500);
    } while (acknowledged.length <= 10 && !ended && told === 0);
    expect(acknowledged.length).toBeGreaterThan(10);
    const running = server;
    const loads = Promise.all([1, 2, 3, 4].map((worker) => load(running, worker, 25_000)));
    // What has been freed can be used again, so that a limit above what there is may never be felt: it comes down.
    for (let allowed = 4_000_000; !ended && told === 0 && allowed > -100_000_000; allowed -= 4_000_000) {
      try {
        limit(running, 'data', (await memoryOf(running, 'VmData')) + allowed);
      } catch {
        // The process has ended just now, or else no limit will be felt.
        break;
      }
      await pause(1000);
    }
    await loads;
    // An allocator that keeps what was freed may serve all of that without asking for more. Long bodies it has to ask for.
    const long = JSON.stringify({ kept: { long: 'x'.repeat(90_000_000) } });
    for (let round = 0; !ended && told === 0 && round < 5; round += 1) {
      const ids = [0, 1, 2].map((one) => `long-${String(round)}-${String(one)}`);
      const write = async (id: string): Promise<void> => {
        const answer = await running.request('PUT', `/m/_doc/${id}`, long).catch(() => undefined);
        if (answer?.status === 201) acknowledged.push(id);
        else told += 1;
      };
      await Promise.all(ids.map(write));
    }
    await pause(100);
    expect(ended || told > 0, 'the limit is felt').toBe(true);
    const said = server.output();
    await server.kill();
    server = await startServer({ data: server.data, args: ARGS });
    expect(await missing(server, 'm', acknowledged), said.slice(-2000)).toEqual([]);
    expect((await server.request('PUT', '/m/_doc/later', { text: 'later' })).status).toBe(201);
  });
});
