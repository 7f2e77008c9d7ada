import { afterEach, expect, it, vi } from 'vitest';

import { type Index, keepUsual, loadIndices, usualIndex } from './indices';

afterEach(() => {
  vi.unstubAllGlobals();
});

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
  const empty = { ...index('d', 9), documents: 0 };
  expect(usualIndex([...indices, empty], storage)?.name).toBe('b');
  expect(usualIndex([empty], storage)?.name).toBe('d');
  // A key that may not see statistics.
  expect(usualIndex([index('a', undefined), index('b', undefined)], storage)?.name).toBe('a');
  expect(usualIndex([], storage)).toBeUndefined();
});

it('names the indices of a key that may search, and may not see fields', async () => {
  const refused = {
    error: { type: 'security_exception', reason: 'action [indices:admin/mappings/get] is unauthorized' },
  };
  const resolved = { indices: [{ name: '.own' }, { name: 'places' }] };
  vi.stubGlobal('localStorage', { getItem: () => null });
  vi.stubGlobal('sessionStorage', { getItem: () => 'key' });
  vi.stubGlobal('fetch', (path: unknown) =>
    Promise.resolve(
      String(path).includes('/_resolve/')
        ? new Response(JSON.stringify(resolved))
        : new Response(JSON.stringify(refused), { status: 403 }),
    ),
  );
  const { indices, hidden } = await loadIndices();
  expect([indices, hidden]).toEqual([[], ['places']]);
});
