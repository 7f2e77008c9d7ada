import { describe, expect, it } from 'vitest';

import { BoundedWork } from '../bounded-work.js';
import type { ApiKey } from './key-store.js';
import { queryKeys } from './query.js';

/** As many keys, with whatever `metadata` says of each. */
function keysWith(count: number, metadata: (at: number) => ApiKey['metadata']): readonly ApiKey[] {
  return Array.from({ length: count }, (_, at) => ({
    ...{ id: `id${String(at)}`, name: `key ${String(at)}`, hash: '', owner: false, username: 'owner', creation: at },
    ...{ invalidated: false, roles: {}, roleDescriptors: {}, metadata: metadata(at) },
  }));
}

const STEPS = 10_000_000;

/** A client that leaves when `leave` is called. */
function client(steps = STEPS) {
  let leave = (): void => undefined;
  const onGone = (callback: () => void): (() => void) => {
    leave = callback;
    return () => (leave = () => undefined);
  };
  const work = new BoundedWork(steps, 'takes too long', { onGone });
  return {
    work,
    leave: () => {
      leave();
    },
  };
}

const asked = (body: object): Uint8Array => Buffer.from(JSON.stringify(body));
const wildcard = (pattern: string): object => ({ wildcard: { 'metadata.x': pattern } });

describe('a query for keys', () => {
  it('sorts as Array.sort does, and goes on after any of them', async () => {
    const keys = keysWith(1000, (at) => (at % 7 === 0 ? {} : { x: (at * 7919) % 101 }));
    const all = await queryKeys(keys, asked({ sort: ['metadata.x', 'creation'], size: 1000 }), client().work);
    const x = ({ metadata }: ApiKey): number => (metadata['x'] as number | undefined) ?? Infinity;
    const expected = [...keys].sort((a, b) => (x(a) === x(b) ? a.creation - b.creation : x(a) - x(b)));
    expect(all.page.map(({ key }) => key.id)).toEqual(expected.map(({ id }) => id));
    const after = all.page[499]?.sort;
    const rest = await queryKeys(
      keys,
      asked({ sort: ['metadata.x', 'creation'], search_after: after, size: 3 }),
      client().work,
    );
    expect(rest.page.map(({ key }) => key.id)).toEqual(expected.slice(500, 503).map(({ id }) => id));
  });

  it('neither finds nor shows values that are too long to be compared', async () => {
    const keys = keysWith(3, (at) => ({ x: 'a'.repeat(1023 + at) }));
    const sorted = await queryKeys(keys, asked({ sort: ['metadata.x'] }), client().work);
    expect(sorted.page.map(({ sort }) => sort?.map((value) => (value === null ? 0 : String(value).length)))).toEqual([
      [1023],
      [1024],
      [0],
    ]);
    for (const query of [{ exists: { field: 'metadata.x' } }, wildcard('a*'), { prefix: { 'metadata.x': 'a' } }]) {
      expect((await queryKeys(keys, asked({ query }), client().work)).total).toBe(2);
    }
  });

  it.each([
    ['patterns', { query: wildcard(`*${'a'.repeat(200)}b`) }, 1000],
    ['clauses', { query: { bool: { should: Array<object>(120).fill(wildcard('*b')) } } }, 120],
    ['sorts', { sort: Array<string>(31).fill('metadata.x') }, 31],
    ['lists', { query: { exists: { field: 'metadata.list' } } }, 500],
  ])('ends when its %s take more steps than it may', async (_, body, factor) => {
    const keys = keysWith(200, () => ({ x: 'a'.repeat(1000), list: Array<number>(1000).fill(1) }));
    const { work } = client(200 * factor);
    await expect(queryKeys(keys, asked(body), work)).rejects.toThrow('takes too long');
  });

  it('lets others have turns', async () => {
    let turns = 0;
    let isOver = false;
    const other = (): void => {
      turns += 1;
      if (!isOver) setImmediate(other);
    };
    setImmediate(other);
    const keys = keysWith(20_000, (at) => ({ x: `${'a'.repeat(100)}${String(at)}` }));
    const { work } = client(Infinity);
    await queryKeys(keys, asked({ query: wildcard('*a*a*b'), sort: ['name'] }), work);
    await queryKeys(keys, asked({ sort: ['metadata.x', 'name'] }), work);
    isOver = true;
    expect(turns).toBeGreaterThan(2);
  });

  it('stops when its client has left', async () => {
    const keys = keysWith(2_000, () => ({ x: 'a'.repeat(1000) }));
    const { work, leave } = client(1e9);
    const found = queryKeys(keys, asked({ query: wildcard(`*${'a'.repeat(100)}b`) }), work);
    leave();
    await expect(found).rejects.toMatchObject({ code: 'client_closed' });
    // All keys would be two hundred million.
    expect(1e9 - work.left).toBeLessThan(1e8);
  });

  it('compares with plain values only', async () => {
    const body = asked({ sort: ['name'], search_after: [Array<number>(1000).fill(1)] });
    await expect(
      queryKeys(
        keysWith(1, () => ({})),
        body,
        client().work,
      ),
    ).rejects.toThrow('malformed');
  });
});
