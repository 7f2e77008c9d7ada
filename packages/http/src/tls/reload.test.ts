// Files that are put in the place of a certificate while a server runs.
import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import type { Server } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SecureContextOptions } from 'node:tls';

import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { type Issued, issue } from '../../../../test/support/certificates.js';
import type { Logger } from '../log.js';
import { readMaterial, versionOf } from './material.js';
import { reloadOnChange } from './reload.js';

const folder = await mkdtemp(join(tmpdir(), 'sparrow-reload-'));
const files = { tlsCert: join(folder, 'cert'), tlsKey: join(folder, 'key'), tlsClientCa: undefined };
const [first, second] = [issue('first'), issue('second')];
const ended = issue('ended', { days: -0.01 });

/** Puts something in the place of a file, whatever is there. */
async function put(path: string, content: string | Buffer): Promise<void> {
  await rm(path, { recursive: true, force: true });
  await writeFile(`${path}.new`, content);
  await rename(`${path}.new`, path);
}

async function putPair({ cert, key }: Pick<Issued, 'cert' | 'key'>): Promise<void> {
  await put(files.tlsCert, cert);
  await put(files.tlsKey, key);
}

/** A server that has the first pair, what is in force, and the errors of the log. */
async function started(): Promise<{ inForce: () => unknown; errors: string[]; looked: () => Promise<void> }> {
  await putPair(first);
  const material = await readMaterial(files);
  let inForce: unknown = material.options.cert;
  const setSecureContext = ({ cert }: SecureContextOptions): void => void (inForce = cert);
  const errors: string[] = [];
  let looks = 0;
  const log = {
    info: () => (looks += 1),
    warn: () => undefined,
    error: (_: string, { error }: { error: string }) => {
      looks += 1;
      errors.push(error);
    },
  };
  const version = await versionOf(files);
  stop = reloadOnChange({ setSecureContext } as unknown as Server, files, version, material, log as unknown as Logger);
  const looked = async (): Promise<void> => {
    const before = looks;
    await expect
      .poll(() => {
        vi.advanceTimersByTime(2000);
        return looks;
      })
      .toBeGreaterThan(before);
  };
  return { inForce: () => inForce, errors, looked };
}

let stop = (): void => undefined;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
});
afterEach(() => {
  stop();
  vi.restoreAllMocks();
  vi.useRealTimers();
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

describe('the pair before stays in force, and the next good one comes after', () => {
  const { tlsCert, tlsKey } = files;
  const without = (path: string) => rm(path, { recursive: true, force: true });
  it.each<[string, () => Promise<unknown>, RegExp]>([
    ['a certificate that is cut off', () => put(tlsCert, second.cert.slice(0, 300)), /holds no certificate in PEM/],
    ['a chain that no client reads', () => put(tlsCert, second.cert.repeat(11)), /holds 11 certificates/],
    ['an empty file', () => put(tlsCert, ''), /holds no certificate in PEM/],
    ['bytes', () => put(tlsCert, Buffer.alloc(5000, 200)), /holds no certificate in PEM/],
    ['a certificate of another key', () => put(tlsCert, second.cert), /is not that of the first certificate/],
    ['no key', () => put(tlsKey, second.key.slice(0, 60)), /it is not a private key in PEM/],
    [
      'a chain whose second certificate is no certificate',
      () => put(tlsCert, `${first.cert}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n`),
      /TLS cannot be set up with/,
    ],
    ['nothing', () => without(tlsCert), /there is nothing of that name/],
    ['a folder', () => without(tlsKey).then(() => mkdir(tlsKey)), /it is not a regular file/],
    [
      'a pipe',
      () => without(tlsKey).then(() => execFileSync('mkfifo', [tlsKey])),
      // It would be waited for without an end, and nothing looked at ever after.
      /it is not a regular file/,
    ],
    ['a device', () => without(tlsCert).then(() => symlink('/dev/zero', tlsCert)), /it is not a regular file/],
    ['a large file', () => put(tlsCert, first.cert + '\n'.repeat(5_000_000)), /it has more than 4194304 bytes/],
    ['a certificate that has ended', () => putPair(ended), /holds from .* until /],
  ])('where there is %s', async (_, spoil, reason) => {
    const { inForce, errors, looked } = await started();
    await spoil();
    await looked();
    expect(errors.at(-1)).toMatch(reason);
    expect(inForce()).toBe(first.cert);
    await putPair(second);
    await expect
      .poll(() => {
        vi.advanceTimersByTime(2000);
        return inForce();
      })
      .toBe(second.cert);
  });
});

it('takes a certificate that has ended after another that has', async () => {
  const { inForce, looked } = await started();
  const later = Date.now() + 60 * 86_400_000;
  vi.spyOn(Date, 'now').mockReturnValue(later);
  await putPair(second);
  await looked();
  expect(inForce()).toBe(second.cert);
});
