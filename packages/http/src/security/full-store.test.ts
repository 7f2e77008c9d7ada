// A store of keys that is as full as it may be: no change of it holds the event loop.
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { seal } from '../sealed-file.js';
import { KeyStore, type NewKey } from './key-store.js';

const NOW = Date.now();

let data: string;

beforeEach(async () => {
  data = await mkdtemp(join(tmpdir(), 'sparrow-keys-'));
});
afterEach(async () => {
  await rm(data, { recursive: true, force: true });
});

const named = (name: string): NewKey => ({ name, roles: {}, roleDescriptors: {}, metadata: {} });

describe.runIf(process.platform === 'linux')('a full store', () => {
  /** How long this thread has had a processor, in milliseconds. */
  const worked = (): number => Number(readFileSync('/proc/thread-self/schedstat', 'utf8').split(' ')[0]) / 1e6;

  /** The longest turn of the event loop while `work` is done, in processor time: what else the machine does is not counted. */
  async function longestTurn(work: () => Promise<unknown>): Promise<number> {
    let [longest, isOver] = [0, false];
    let last = worked();
    const look = (): void => {
      const now = worked();
      longest = Math.max(longest, now - last);
      last = now;
      if (!isOver) setImmediate(look);
    };
    setImmediate(look);
    await work();
    isOver = true;
    await new Promise((resolve) => setImmediate(resolve));
    return longest;
  }

  it.each([
    [10_000, 3_100],
    [100_000, 90],
    [120, 250_000],
  ])(
    'of %i keys with %i bytes more each is changed without holding the event loop',
    async (count, bytes) => {
      const first = await (await KeyStore.open(data)).create(named('first'), NOW);
      const all = Array.from({ length: count }, (_, at) => ({
        ...first.key,
        id: `id${String(at)}`,
        metadata: { m: 'x'.repeat(bytes) },
      }));
      await writeFile(join(data, 'security', 'api_keys.json'), seal({ format: 1, keys: all }));
      const keys = await KeyStore.open(data, { keys: Infinity });
      const turns: number[] = [];
      for (let n = 0; n < 3; n += 1) {
        turns.push(await longestTurn(() => keys.create(named('new'), NOW)));
        turns.push(await longestTurn(() => keys.update([`id${String(n)}`], { metadata: {} }, NOW)));
      }
      // Others' garbage may be collected in one of them.
      expect(Math.min(...turns), turns.join(', ')).toBeLessThan(20);
      expect(turns.toSorted((a, b) => a - b)[3], turns.join(', ')).toBeLessThan(40);
      expect((await KeyStore.open(data)).all()).toHaveLength(count + 3);
    },
    60_000,
  );
});
