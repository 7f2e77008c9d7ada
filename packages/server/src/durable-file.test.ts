import { mkdir, mkdtemp, open, readFile, readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, it, vi } from 'vitest';

import { replaceFile } from './durable-file.js';

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
