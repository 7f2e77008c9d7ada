import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';

import { expect, it, onTestFinished } from 'vitest';

import { makePrivateFolder } from './foreign-files.js';

const codeOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => 'made',
    (error: unknown) => (error as NodeJS.ErrnoException).code,
  );

it('makes a folder and those above it, for one user, and leaves one that is there', async () => {
  const home = await mkdtemp(join(tmpdir(), 'sparrow-folder-'));
  onTestFinished(() => rm(home, { recursive: true }));
  const folder = join(home, 'a', 'b', 'c');
  // Several at once, as when two processes begin.
  await Promise.all([makePrivateFolder(folder), makePrivateFolder(folder), makePrivateFolder(folder)]);
  await makePrivateFolder(folder);
  const { mode } = await stat(join(home, 'a'));
  if (process.platform !== 'win32') expect(mode & 0o777).toBe(0o700);
  await writeFile(join(home, 'file'), '');
  expect(await codeOf(makePrivateFolder(join(home, 'file')))).toBe('EEXIST');
  expect(await codeOf(makePrivateFolder(join(home, 'file', 'in')))).toBe('ENOTDIR');
});

it.runIf(process.platform === 'linux')('says at once that there is no place for a folder', async () => {
  expect(await codeOf(makePrivateFolder('/proc/sparrow/data'))).toBe('ENOENT');
});
