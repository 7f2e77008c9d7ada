import { expect, it } from 'vitest';

import { type Index, keepUsual, usualIndex } from './indices';

const index = (name: string, created: number | undefined): Index => ({
  ...{ name, created, fields: [], properties: {} },
  ...{ documents: undefined, bytes: undefined, health: undefined },
});

it('begins with the index that was searched last, or else with the newest', () => {
  const kept = new Map<string, string>();
  const storage = {
    getItem: (name: string) => kept.get(name) ?? null,
    setItem: (name: string, value: string) => void kept.set(name, value),
  } as Storage;
  const indices = [index('a', 1), index('b', 3), index('c', 2)];
  expect(usualIndex(indices, storage)?.name).toBe('b');
  keepUsual('c', storage);
  expect(usualIndex(indices, storage)?.name).toBe('c');
  keepUsual('gone', storage);
  expect(usualIndex(indices, storage)?.name).toBe('b');
  // A key that may not see statistics.
  expect(usualIndex([index('a', undefined), index('b', undefined)], storage)?.name).toBe('a');
  expect(usualIndex([], storage)).toBeUndefined();
});
