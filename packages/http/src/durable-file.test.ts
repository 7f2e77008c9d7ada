import { constants } from 'node:buffer';
import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, open, readFile, readdir, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, it, vi } from 'vitest';

import { readIfPresent, replaceFile } from './durable-file.js';

vi.mock(import('node:fs/promises'), async (original) => {
  const actual = await original();
  return { ...actual, open: vi.fn(actual.open) };
});

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sparrow-files-'));
  vi.mocked(open).mockClear();
});

describe('replacing a file', () => {
  it('leaves nothing behind when it fails', async () => {
    await mkdir(join(folder, 'file', 'full'), { recursive: true });
    await expect(replaceFile(join(folder, 'file'), 'new')).rejects.toThrow();
    expect(await readdir(folder)).toEqual(['file']);
  });

  it.skipIf(process.platform === 'win32')('makes the names of new folders durable too', async () => {
    const path = join(folder, 'a', 'b', 'file');
    await replaceFile(path, 'new');
    expect(await readFile(path, 'utf8')).toBe('new');
    const synced = vi.mocked(open).mock.calls.filter(([, flags]) => flags === 'r');
    expect(synced.map(([opened]) => opened)).toEqual([dirname(path), join(folder, 'a'), folder]);
    vi.mocked(open).mockClear();
    await replaceFile(path, 'newer');
    expect(vi.mocked(open).mock.calls.filter(([, flags]) => flags === 'r')).toHaveLength(1);
  });
});

describe.skipIf(process.platform === 'win32')('what is no regular file of a bounded size', () => {
  const refused = (path: string, words: string): Promise<void> =>
    expect(readIfPresent(path, 'without it')).rejects.toThrow(
      `${path} is damaged: ${words}. Nothing was changed. Put the file back from a backup, or move it away to start without it.`,
    );

  it('is named, and nobody waits for it', async () => {
    const path = join(folder, 'identity.json');
    expect(await readIfPresent(path, 'without it')).toBeUndefined();
    await symlink('/dev/zero', path);
    await refused(path, 'it is not a regular file');
    await rm(path);
    execFileSync('mkfifo', [path]);
    await refused(path, 'it is not a regular file');
    await rm(path);
    await writeFile(path, '');
    await truncate(path, 20 * 2 ** 30);
    await refused(path, `it has more than ${String(constants.MAX_STRING_LENGTH)} bytes`);
  });

  it('is no place to write a new one beside', async () => {
    const path = join(folder, 'identity.json');
    execFileSync('mkfifo', [`${path}.tmp`]);
    await replaceFile(path, 'new');
    expect(await readFile(path, 'utf8')).toBe('new');
    expect(await readdir(folder)).toEqual(['identity.json']);
  });
});
