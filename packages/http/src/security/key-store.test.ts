import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';

import { createLogger } from '../log.js';
import { seal, sealPieces } from '../sealed-file.js';
import { type ApiKey, KeyStore, type NewKey, newKeyId } from './key-store.js';
import { LOSS } from './key-file.js';
import { type StoredText, textInFile } from '../stored-text.js';
import { inCommon } from '../../../../test/support/text-in-common.js';

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

describe('the id of a new key', () => {
  it('never begins with what the command line would take as an option', () => {
    const drawn = ['-u82fyfhv_gugdCQgL_Aig', '_u82fyfhv-gugdCQgL_Aig', 'u-82fyfhv_gugdCQgL_Aig'];
    expect(newKeyId(() => drawn.shift() ?? '')).toBe('u-82fyfhv_gugdCQgL_Aig');
    expect(newKeyId()).toMatch(/^[a-zA-Z0-9][\w-]{21}$/);
  });
});

describe('a key that asks for a change', () => {
  it('has to hold, and to be what it was, when its turn comes', async () => {
    const keys = await KeyStore.open(data);
    const { key: first } = await keys.create(named('first'), NOW);
    const { key: other } = await keys.create(named('other'), NOW);
    const ended = keys.invalidate([first.id], NOW);
    const asked = [
      keys.create(named('successor'), NOW, first),
      keys.update([first.id], { metadata: { a: 1 } }, NOW, first),
      keys.invalidate([other.id], NOW, first),
    ];
    await ended;
    for (const change of asked) await expect(change).rejects.toMatchObject({ status: 401 });
    expect(names(keys.all())).toEqual(['first', 'other']);
    expect(keys.current(other, NOW)).toBe(other);
    await keys.update([other.id], { metadata: { a: 1 } }, NOW, other);
    await expect(keys.create(named('of what it was'), NOW, other)).rejects.toMatchObject({ status: 401 });
    expect(keys.current(other, NOW)).toMatchObject({ metadata: { a: 1 } });
    expect(keys.current(first, NOW)).toBeUndefined();
  });
});

describe('a change that nobody waits for any more', () => {
  it('is not begun', async () => {
    const keys = await KeyStore.open(data);
    const { key: first } = await keys.create(named('first'), NOW);
    const left = (): void => {
      throw new Error('left');
    };
    const asked = [
      keys.create(named('second'), NOW, first, left),
      keys.update([first.id], { metadata: { a: 1 } }, NOW, first, left),
      keys.invalidate([first.id], NOW, first, left),
    ];
    for (const change of asked) await expect(change).rejects.toThrow('left');
    expect(keys.all()).toEqual([first]);
  });
});

describe('changes that wait together', () => {
  it('are written together, but for those that fail', async () => {
    let writes = 0;
    const file = textInFile(join(data, 'security', 'api_keys.json'), LOSS);
    const counted: StoredText = {
      ...file,
      replace: (pieces) => {
        writes += 1;
        return file.replace(pieces);
      },
    };
    const keys = await KeyStore.open(data, { keys: 50 }, counted);
    const { key: first } = await keys.create(named('first'), NOW);
    const asked = Array.from({ length: 60 }, (_, at) => keys.create(named(`key ${String(at)}`), NOW));
    const ended = keys.invalidate([first.id], NOW);
    const late = keys.create(named('late'), NOW, first);
    const made = await Promise.allSettled(asked);
    expect(made.map(({ status }) => status)).toEqual([
      ...Array<string>(49).fill('fulfilled'),
      ...Array<string>(11).fill('rejected'),
    ]);
    expect(await ended).toEqual([first.id]);
    await expect(late).rejects.toMatchObject({ status: 401 });
    // One for the first key, one for what came before the others could wait, and one for all of these.
    expect(writes).toBeLessThanOrEqual(3);
    const expected = ['first', ...Array.from({ length: 49 }, (_, at) => `key ${String(at)}`)];
    expect(names((await KeyStore.open(data)).all())).toEqual(expected);
    expect(names(keys.all())).toEqual(expected);
  });
});

describe('keys that several servers have in common', () => {
  it('have an owner key that stays what it is when another server is started with the same', async () => {
    const common = inCommon();
    const one = await KeyStore.open(data, {}, common.server());
    // It looks when nobody has set a key, and sets its own when the other is already in use.
    const two = await KeyStore.open(data, {}, common.server());
    await one.setOwner(data, 'mine', 'secret', NOW, false);
    const caller = one.verify('mine', 'secret', NOW);
    expect(await two.setOwner(data, 'mine', 'secret', NOW + 1, false)).toBe(true);
    await expect(one.create(named('k'), NOW, caller)).resolves.toMatchObject({ key: { name: 'k' } });
    await one.refresh();
    await two.refresh();
    expect(one.owner()).toBe(caller);
    expect(two.owner()).toEqual(caller);
  });

  it('have the owner key that was set first, unless one is told to replace it', async () => {
    const common = inCommon();
    const one = await KeyStore.open(data, {}, common.server());
    const two = await KeyStore.open(data, {}, common.server());
    expect(await one.setOwner(data, 'mine', 'secret', NOW, false)).toBe(true);
    for (const [id, secret] of [
      ['theirs', 'another'],
      ['mine', 'another'],
    ] as const)
      expect(await two.setOwner(data, id, secret, NOW, false)).toBe(false);
    expect(two.verify('mine', 'secret', NOW)).toBeDefined();
    expect(await two.setOwner(data, 'theirs', 'another', NOW, true)).toBe(true);
    await one.refresh();
    for (const store of [one, two]) {
      expect(store.all()).toMatchObject([{ id: 'theirs', owner: true }]);
      expect(store.verify('mine', 'secret', NOW)).toBeUndefined();
      expect(store.verify('theirs', 'another', NOW)).toBeDefined();
    }
  });
});

describe('keys from elsewhere', () => {
  const sound = { cluster: ['all'], indices: [{ names: ['*'], privileges: ['read'] }] };
  const malformed: readonly unknown[] = [
    null,
    'all',
    [],
    {},
    { ...sound, cluster: 'all' },
    { ...sound, cluster: [1] },
    { cluster: ['all'] },
    { ...sound, indices: {} },
    { ...sound, indices: [null] },
    { ...sound, indices: [{ names: ['*'] }] },
    { ...sound, indices: [{ names: '*', privileges: ['read'] }] },
    { ...sound, indices: [{ names: ['*'], privileges: [null] }] },
  ];

  /** The file of a store with one key, changed. */
  async function fileWith(change: object): Promise<string> {
    const { key } = await (await KeyStore.open(data)).create(named('k', { roles: { r: sound } }), NOW);
    return seal({ format: 1, keys: [{ ...key, id: 'another', ...change }] });
  }

  it('are taken when their roles are sound', async () => {
    const text = await fileWith({ limitedBy: [{ r: sound }, {}] });
    expect(await (await KeyStore.open(data)).adopt(text, NOW)).toEqual(['another']);
  });

  it.each(malformed.map((role) => [role]))(
    'are refused with a role that no request could have made: %j',
    async (role) => {
      const changes = [
        { roles: { r: role } },
        { roles: { sound, r: role } },
        { limitedBy: [{ r: sound }, { r: role }] },
      ];
      for (const change of changes) {
        const text = await fileWith(change);
        const keys = await KeyStore.open(data);
        const before = keys.all();
        await expect(keys.adopt(text, NOW)).rejects.toThrow('the API keys of the snapshot cannot be read');
        expect(keys.all()).toEqual(before);
      }
    },
  );

  it('are refused with roles, descriptors or metadata that are no object', async () => {
    const changes = [{ roles: [] }, { roles: 1 }, { limitedBy: {} }, { roleDescriptors: null }, { metadata: 'x' }];
    for (const change of changes) {
      const text = await fileWith(change);
      await expect((await KeyStore.open(data)).adopt(text, NOW), JSON.stringify(change)).rejects.toThrow(
        'cannot be read',
      );
    }
  });
});

describe('a store that the disk does not take', () => {
  /** Keys whose file is in place when the disk refuses: only its folder is not synced. */
  async function uncertain(): Promise<{ file: StoredText; disk: { isRefusing: boolean }; keys: KeyStore }> {
    const file = textInFile(join(data, 'security', 'api_keys.json'), LOSS);
    const disk = { isRefusing: false };
    const replace: StoredText['replace'] = async (pieces) => {
      const isNew = await file.replace(pieces);
      if (disk.isRefusing) throw new Error('the disk refuses');
      return isNew;
    };
    return { file, disk, keys: await KeyStore.open(data, {}, { ...file, replace }) };
  }

  it('says that there is no space in the shape of a blocked write', async () => {
    const full = (): Promise<boolean> => Promise.reject(Object.assign(new Error('no space'), { code: 'ENOSPC' }));
    const file = textInFile(join(data, 'security', 'api_keys.json'), LOSS);
    const keys = await KeyStore.open(data, {}, { ...file, replace: full });
    const refused = keys.create(named('refused'), NOW);
    await expect(refused).rejects.toMatchObject({ status: 429, type: 'cluster_block_exception' });
    const nothing = keys.invalidate(['nobody'], NOW);
    await expect(nothing).rejects.toMatchObject({ status: 429, type: 'cluster_block_exception' });
  });

  it('is tried once at a time, however many changes it has refused', async () => {
    let writes = 0;
    const file = textInFile(join(data, 'security', 'api_keys.json'), LOSS);
    const replace = (): Promise<boolean> => {
      writes += 1;
      return Promise.reject(new Error('the disk refuses'));
    };
    const keys = await KeyStore.open(data, {}, { ...file, replace });
    await Promise.allSettled(Array.from({ length: 100 }, (_, n) => keys.create(named(String(n)), NOW)));
    const before = writes;
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    expect(writes - before).toBeGreaterThan(0);
    expect(writes - before).toBeLessThan(5);
  });

  it('writes what is in force over a refused change that may be in place all the same, as soon as it can', async () => {
    const { file, disk, keys } = await uncertain();
    await keys.create(named('kept'), NOW);
    disk.isRefusing = true;
    await expect(keys.create(named('refused'), NOW)).rejects.toThrow('the disk refuses');
    expect(names(keys.all())).toEqual(['kept']);
    await file.replace(sealPieces(['{"format":1,"keys":[', ']']));
    expect(names((await KeyStore.open(data)).all())).toEqual([]);
    disk.isRefusing = false;
    await expect.poll(async () => names((await KeyStore.open(data)).all()), { timeout: 5_000 }).toEqual(['kept']);
  });

  it('writes what is in force once more when the server ends', async () => {
    const { file, disk, keys } = await uncertain();
    await keys.create(named('kept'), NOW);
    disk.isRefusing = true;
    await expect(keys.create(named('refused'), NOW)).rejects.toThrow('the disk refuses');
    await file.replace(sealPieces(['{"format":1,"keys":[', ']']));
    disk.isRefusing = false;
    await keys.close(createLogger('error', () => undefined));
    expect(names((await KeyStore.open(data)).all())).toEqual(['kept']);
  });

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
    await expect(keys.update([key.id], { metadata: { team: 'b' } }, NOW)).rejects.toThrow('EISDIR');
    await expect(keys.setOwner(data, 'mine', 'secret', NOW, true)).rejects.toThrow('EISDIR');
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

describe('the room for keys', () => {
  const DAY = 86_400_000;
  const others = (name: string, more: Partial<NewKey> = {}): NewKey => named(name, { limitedBy: [{}], ...more });

  it('is for so many, of which the owner key can always make the last', async () => {
    const keys = await KeyStore.open(data, { keys: 10 });
    for (let n = 1; n <= 9; n += 1) await keys.create(others(`o${String(n)}`), NOW);
    await expect(keys.create(others('x'), NOW)).rejects.toMatchObject({
      status: 400,
      reason: 'this server would have [10] API keys, it may have [9]: invalidate some that nobody needs',
    });
    await keys.create(named('last'), NOW);
    await expect(keys.create(named('x'), NOW)).rejects.toMatchObject({
      reason: expect.stringContaining('have [11] API keys'),
    });
    expect((await KeyStore.open(data)).all()).toHaveLength(10);
    // One that is over makes room.
    const [first, second] = keys.all();
    await keys.invalidate([second?.id ?? ''], NOW + 1);
    await keys.create(named('new'), NOW + 2);
    expect(names(keys.all())).not.toContain(second?.name);
    expect(names(keys.all())).toEqual(expect.arrayContaining([first?.name, 'last', 'new']));
  });

  it('is for so many bytes, and what fills it can be ended all the same', async () => {
    const long = { metadata: { x: 'ä'.repeat(500) } };
    const keys = await KeyStore.open(data, { bytes: 5000 });
    const { key } = await keys.create(named('a', long), NOW);
    await keys.create(named('b', long), NOW);
    const reason: unknown = expect.stringMatching(
      /^this server would have \[\d+\] bytes of API keys, it may have \[4500\]/,
    );
    await keys.create(others('c', long), NOW);
    await expect(keys.create(others('d', long), NOW)).rejects.toMatchObject({ status: 400, reason });
    await expect(keys.update([key.id], { metadata: { x: 'ä'.repeat(2000) } }, NOW, key)).rejects.toMatchObject({
      reason,
    });
    expect(keys.get(key.id)).toBe(key);
    const full = await KeyStore.open(data, { bytes: 100 });
    await expect(full.create(named('d'), NOW)).rejects.toMatchObject({ status: 400 });
    expect(await full.update([key.id], { metadata: {} }, NOW)).toEqual([key.id]);
    expect(await full.invalidate([key.id], NOW)).toEqual([key.id]);
  });

  it('holds keys that ended for seven days', async () => {
    const keys = await KeyStore.open(data);
    await keys.create(named('expires', { expiration: NOW + DAY }), NOW);
    const { key } = await keys.create(named('invalidated'), NOW);
    await keys.create(named('stays'), NOW);
    await keys.invalidate([key.id], NOW);
    await keys.create(named('new'), NOW + 7 * DAY - 1);
    expect(names(keys.all())).toEqual(['expires', 'invalidated', 'stays', 'new']);
    await keys.create(named('newer'), NOW + 7 * DAY);
    expect(names(keys.all())).toEqual(['expires', 'stays', 'new', 'newer']);
    await keys.create(named('newest'), NOW + 8 * DAY);
    expect(names((await KeyStore.open(data)).all())).toEqual(['stays', 'new', 'newer', 'newest']);
  });
});
