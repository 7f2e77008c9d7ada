import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';

import { type ApiKey, KeyStore, type NewKey } from './key-store.js';

const NOW = Date.now();

let data: string;

beforeEach(async () => {
  data = await mkdtemp(join(tmpdir(), 'sparrow-keys-'));
});

const named = (name: string, more: Partial<NewKey> = {}): NewKey => ({
  name,
  roles: {},
  roleDescriptors: {},
  metadata: {},
  ...more,
});

const names = (keys: readonly ApiKey[]): string[] => keys.map(({ name }) => name);

describe('a store that the disk does not take', () => {
  it('stays what it was, in memory and on the disk, and says so', async () => {
    const keys = await KeyStore.open(data);
    const { key, secret } = await keys.create(named('one'), NOW);
    const path = join(data, 'security', 'api_keys.json');
    const before = await readFile(path, 'utf8');
    // Where the new file would be written.
    const inTheWay = `${path}.tmp`;
    await mkdir(inTheWay);
    await expect(keys.create(named('two'), NOW)).rejects.toThrow('EISDIR');
    await expect(keys.invalidate([key.id], NOW)).rejects.toThrow('EISDIR');
    await expect(keys.update([key.id], { metadata: { team: 'b' } })).rejects.toThrow('EISDIR');
    await expect(keys.setOwner(data, 'mine', 'secret', NOW)).rejects.toThrow('EISDIR');
    expect(keys.all()).toEqual([key]);
    expect(keys.verify(key.id, secret, NOW)).toBe(key);
    expect(await readFile(path, 'utf8')).toBe(before);

    await rm(inTheWay, { recursive: true });
    expect(await keys.invalidate([key.id], NOW)).toEqual([key.id]);
    expect(keys.verify(key.id, secret, NOW)).toBeUndefined();
    expect((await KeyStore.open(data)).get(key.id)?.invalidated).toBe(true);
  });

  it('leaves no owner key in force that nobody knows', async () => {
    const keys = await KeyStore.open(data);
    await mkdir(`${KeyStore.ownerKeyFile(data)}.tmp`);
    await expect(keys.createOwner(data, NOW)).rejects.toThrow('EISDIR');
    expect((await KeyStore.open(data)).owner()).toBeUndefined();
  });

  it('takes changes that are asked for at once, one after the other', async () => {
    const keys = await KeyStore.open(data);
    const made = await Promise.all(['a', 'b', 'c'].map((name) => keys.create(named(name), NOW)));
    const [first] = made.map(({ key }) => key.id);
    expect(names(keys.all())).toEqual(['a', 'b', 'c']);
    const [ended, again] = await Promise.all([
      keys.invalidate([first ?? ''], NOW),
      keys.invalidate([first ?? ''], NOW),
    ]);
    expect([ended, again]).toEqual([[first], []]);
    expect(names((await KeyStore.open(data)).all())).toEqual(['a', 'b', 'c']);
  });
});
