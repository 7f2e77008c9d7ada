// Folders that a server or `sparrow check` and `sparrow repair` are given.
import { existsSync } from 'node:fs';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { expect, it } from 'vitest';

import { serve } from './served.js';
import { begin, sparrow } from './support.js';

const { server, folder } = await serve();

it('a path that cannot be used is told with its option', async () => {
  const file = join(folder, 'a-file');
  await writeFile(file, '');
  const data = join(folder, 'unused');
  for (const [option, path, args] of [
    ['--audit-log', '/nope/x', ['--data', data]],
    ['--data', join(file, 'sub'), []],
  ] as const) {
    const { code, stderr } = await sparrow(['--port', '0', option, path, ...args]);
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(
        /^sparrow: (--[\w-]+): .* cannot be used: (?:there is nothing of that name|a part of its path is not a folder)$/m,
      ),
    ]);
    expect(stderr).toContain(`sparrow: ${option}: ${path} cannot`);
  }
});

it('a file is told as what it is', async () => {
  const file = join(folder, 'plain');
  await writeFile(file, '');
  const { code, stderr } = await sparrow(['--port', '0', '--data', file]);
  expect([code, stderr]).toEqual([1, expect.stringMatching(/^sparrow: --data: .* is a file, not a folder$/m)]);
});

it('a folder of other files is not taken for a data directory, unless that is wanted', async () => {
  const own = join(folder, 'photos');
  await mkdir(own);
  await writeFile(join(own, 'summer.jpg'), '');
  const { code, stderr } = await sparrow(['--port', '0', '--data', own]);
  expect([code, await readdir(own)]).toEqual([1, ['summer.jpg']]);
  expect(stderr).toContain(`sparrow: --data: ${own} contains other files and is not a data directory of Sparrow`);
  expect(stderr).toContain(`create the folder ${join(own, 'indices')}`);
  await mkdir(join(own, 'indices'));
  const insisting = begin(['--port', '0', '--data', own]);
  await expect.poll(() => existsSync(join(own, 'owner.key'))).toBe(true);
  insisting.process.kill();
  expect((await insisting.ended).code).toBe(0);
});

it('check and repair want a directory that nobody has open', async () => {
  const busy = await sparrow(['check', server.data]);
  expect([busy.code, busy.stderr]).toEqual([
    1,
    expect.stringMatching(/in use by another process: stop the server that has it open, and run this again\.\n$/),
  ]);
  for (const args of [
    ['check', folder],
    ['repair', folder, '--into', join(folder, 'repaired')],
  ]) {
    const other = await sparrow(args);
    expect([other.code, other.stderr]).toEqual([1, `sparrow: ${folder} is not the data directory of a server\n`]);
  }
  const absent = join(folder, 'nothing');
  for (const args of [
    ['check', absent],
    ['check', '--repository', absent],
    ['repair', absent, '--into', join(folder, 'repaired')],
  ]) {
    const none = await sparrow(args);
    expect([none.code, none.stderr], args.join(' ')).toEqual([1, `sparrow: there is no folder ${absent}\n`]);
  }
  expect(existsSync(join(folder, 'repaired'))).toBe(false);
});
