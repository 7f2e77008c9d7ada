// The disk fails through links to /dev/full and by folders that are away; no test of it waits for a real full disk.
import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { createLogger } from '../log.js';
import { AuditLog } from './audit.js';

let folder: string;
let path: string;
let logged: string[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sparrow-audit-'));
  path = join(folder, 'audit.jsonl');
  logged = [];
});

afterEach(() => rm(folder, { recursive: true }));

const opened = (): Promise<AuditLog> =>
  AuditLog.open(
    path,
    createLogger('info', (line) => logged.push(line)),
  );

const event = (number: number, padding = ''): Parameters<AuditLog['write']>[0] => ({
  method: 'GET',
  path: `/${String(number)}${padding}`,
  from: '127.0.0.1',
  status: 200,
  allowed: true,
  requestId: `r${String(number)}`,
});

/** Each line of a file, which must be whole. */
async function lines(file = path): Promise<{ request_id: string; lost?: number }[]> {
  const text = await readFile(file, 'utf8');
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as { request_id: string; lost?: number });
}

const ids = async (file = path): Promise<string[]> => (await lines(file)).map(({ request_id: id }) => id);

describe('the audit log', () => {
  it('is for its user alone, and goes on with what is there', async () => {
    for (const number of [1, 2]) {
      const audit = await opened();
      audit.write(event(number));
      await audit.close();
    }
    expect(await ids()).toEqual(['r1', 'r2']);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
  });

  it('begins a line of its own after one that a killed process left torn, in a file that comes instead as well', async () => {
    await writeFile(path, '{"torn":"he');
    const audit = await opened();
    for (const number of [1, 2]) audit.write(event(number));
    const ends = async (): Promise<string[]> => (await readFile(path, 'utf8')).split('\n').slice(1, -1);
    await expect.poll(async () => (await ends()).length).toBe(2);
    expect((await readFile(path, 'utf8')).split('\n')[0]).toBe('{"torn":"he');
    await rm(path);
    await writeFile(path, 'more torn');
    audit.write(event(3));
    await audit.close();
    expect((await readFile(path, 'utf8')).split('\n').map((line) => line.slice(0, 9))).toEqual([
      'more torn',
      '{"time":"',
      '',
    ]);
    // What is whole, empty or not there gets no empty line.
    for (const before of ['{}\n', '']) {
      await writeFile(path, before);
      const again = await opened();
      again.write(event(4));
      await again.close();
      expect((await readFile(path, 'utf8')).startsWith(`${before}{"time":"`)).toBe(true);
    }
  });

  it('shows what strangers send without what a terminal would obey or nobody would see', async () => {
    const audit = await opened();
    const strange = 'a\u009b31m\u202egnp\u2066\u200b\u007f\u0085\u{e0041}';
    audit.write({ ...event(1, strange), claimed: strange, opaqueId: strange, named: [strange], action: 'a' });
    await audit.close();
    const text = await readFile(path, 'utf8');
    expect(text).toMatch(/^[ -~]*\n$/);
    expect(JSON.parse(text)).toMatchObject({
      path: `/1${strange}`,
      claimed: strange,
      opaque_id: strange,
      named: [strange],
    });
  });

  it.skipIf(process.platform === 'win32')('does not wait for somebody who reads a pipe', async () => {
    execFileSync('mkfifo', [path]);
    await expect(opened()).rejects.toThrow('ENXIO');
  });

  it('is made anew when it was moved away', async () => {
    const audit = await opened();
    audit.write(event(1));
    await expect.poll(ids).toEqual(['r1']);
    await rename(path, `${path}.1`);
    audit.write(event(2));
    await audit.close();
    expect([await ids(`${path}.1`), await ids()]).toEqual([['r1'], ['r2']]);
  });

  it.skipIf(process.platform !== 'linux')(
    'keeps lines for a disk that is full, and writes them when there is room',
    async () => {
      await symlink('/dev/full', path);
      const audit = await opened();
      audit.write(event(1));
      await expect.poll(() => logged.join('')).toContain('ENOSPC');
      audit.write(event(2));
      await rm(path);
      await expect.poll(() => ids().catch(() => []), { timeout: 5000 }).toEqual(['r1', 'r2']);
      expect(audit.lost).toBe(0);
      expect(logged.join('')).toContain('the audit log is written again');
      await audit.close();
    },
  );

  it.skipIf(process.platform !== 'linux')(
    'counts the lines that it has no room for, and says how many are missing',
    async () => {
      await symlink('/dev/full', path);
      const audit = await opened();
      const padding = 'x'.repeat(1 << 20);
      for (let number = 0; number < 20; number += 1) audit.write(event(number, padding));
      const { lost } = audit;
      expect(lost).toBeGreaterThan(5);
      await rm(path);
      await expect
        .poll(
          () =>
            ids().then(
              (all) => all.length,
              () => 0,
            ),
          { timeout: 5000 },
        )
        .toBe(20 - lost);
      audit.write(event(20));
      await audit.close();
      expect((await lines()).at(-1)).toMatchObject({ request_id: 'r20', lost });
      expect(logged.filter((line) => line.includes('are being lost'))).toHaveLength(1);
    },
  );

  it.skipIf(process.platform !== 'linux')('does not keep the server from stopping', async () => {
    await symlink('/dev/full', path);
    const audit = await opened();
    audit.write(event(1));
    await audit.close();
    expect(logged.join('')).toContain('cannot be written');
  });
});
