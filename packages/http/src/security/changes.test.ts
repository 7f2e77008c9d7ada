// Requests that change keys: what they take, what they are told, and when they are not carried out.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { InFlight } from '../exchange/in-flight.js';
import type { Answer } from '../exchange/respond.js';
import type { Asking } from './api.js';
import { createApiKey, invalidateApiKeys, updateApiKey, updateApiKeys } from './changes.js';
import { type ApiKey, KeyStore } from './key-store.js';

const MB = 1024 * 1024;
const NOW = 1_000;

let data: string;
let keys: KeyStore;
let owner: ApiKey;
let own: ApiKey;

beforeEach(async () => {
  data = await mkdtemp(join(tmpdir(), 'sparrow-key-changes-'));
  keys = await KeyStore.open(data);
  ({ key: owner } = await keys.createOwner(data, NOW));
  const roles = { r: { cluster: ['manage_own_api_key'], indices: [] } };
  ({ key: own } = await keys.create({ name: 'own', roles, roleDescriptors: {}, metadata: {} }, NOW));
});
afterEach(async () => {
  await rm(data, { recursive: true, force: true });
});

interface Client {
  readonly caller?: ApiKey;
  /** Bytes that all bodies and answers may have. */
  readonly room?: number;
  readonly onGone?: Asking['sender']['onGone'];
}

function asking({ caller = owner, room = 100 * MB, onGone = (): (() => void) => () => undefined }: Client = {}): {
  readonly asking: Asking;
  readonly inFlight: InFlight;
} {
  const inFlight = new InFlight(0, { memory: 10 * room });
  return { asking: { caller, sender: { caller: caller.id, onGone }, hold: inFlight.request() }, inFlight };
}

const bytes = (body: object): Buffer => Buffer.from(JSON.stringify(body));
const strangers = (count: number): string[] => Array.from({ length: count }, (_, at) => `nobody-${String(at)}`);
const shown = ({ body }: Answer): unknown => JSON.parse(Buffer.from(body ?? '').toString());

/** What each kind of request does to the key of {@link own}, with so many strangers beside it where it names several. */
const KINDS: readonly (readonly [string, (client: Client, others?: number) => Promise<Answer>])[] = [
  [
    'invalidates',
    (client, others = 0) =>
      invalidateApiKeys(keys, asking(client).asking, bytes({ ids: [own.id, ...strangers(others)], owner: true }), NOW),
  ],
  [
    'updates several',
    (client, others = 0) =>
      updateApiKeys(
        keys,
        asking(client).asking,
        bytes({ ids: [own.id, ...strangers(others)], metadata: { a: 1 } }),
        NOW,
      ),
  ],
  ['updates one', (client) => updateApiKey(keys, asking(client).asking, own.id, bytes({ metadata: { a: 1 } }), NOW)],
  ['creates', (client) => createApiKey(keys, asking(client).asking, bytes({ name: 'new' }), NOW)],
];

describe.each(KINDS)('a request that %s', (_, change) => {
  it('is not carried out when its client has left', async () => {
    const before = keys.all();
    const onGone: Asking['sender']['onGone'] = (callback) => {
      queueMicrotask(callback);
      return () => undefined;
    };
    await expect(change({ caller: own, onGone })).rejects.toMatchObject({ code: 'client_closed' });
    await keys.update([], {}, NOW);
    expect(keys.all()).toEqual(before);
  });
});

describe.each(KINDS.slice(0, 2))('an answer to a request that %s', (_, change) => {
  it('is refused before anything is changed where there is no room for it', async () => {
    await expect(change({ caller: own, room: 100_000 }, 9_999)).rejects.toMatchObject({ code: 'rejected' });
    expect(keys.get(own.id)).toBe(own);
  });

  it('is made in turns with others, and with those to other callers', async () => {
    const done: string[] = [];
    let [turns, isOver] = [0, false];
    const other = (): void => {
      turns += 1;
      if (!isOver) setImmediate(other);
    };
    setImmediate(other);
    // There is no room for them, and so they wait for no disk.
    const refused = async (caller: ApiKey): Promise<void> => {
      await expect(change({ caller, room: 100_000 }, 9_999)).rejects.toMatchObject({ code: 'rejected' });
      done.push(caller.id);
    };
    await Promise.all([...Array.from({ length: 20 }, () => refused(owner)), refused(own)]);
    isOver = true;
    expect(turns).toBeGreaterThan(5);
    expect(done.indexOf(own.id)).toBeLessThan(3);
  });

  it('holds no fewer bytes than it has', async () => {
    for (const caller of [own, owner]) {
      const { asking: all, inFlight } = asking({ caller });
      const ids = [own.id, ...strangers(9_999)];
      const { body, isHeld } = await (change === KINDS[0]?.[1]
        ? invalidateApiKeys(keys, all, bytes({ ids, owner: true }), NOW)
        : updateApiKeys(keys, all, bytes({ ids, metadata: { a: caller.id } }), NOW));
      expect(isHeld).toBe(true);
      expect(body?.length).toBeGreaterThan(500_000);
      expect(inFlight.held - (body?.length ?? 0)).toBeGreaterThanOrEqual(-100);
      expect(inFlight.held - (body?.length ?? 0)).toBeLessThan(1000);
    }
  });
});

describe('keys that a request names', () => {
  it('count once each', async () => {
    const ids = ['nobody', own.id, 'nobody', own.id];
    const updated = await updateApiKeys(keys, asking().asking, bytes({ ids, metadata: { a: 1 } }), NOW);
    expect(shown(updated)).toMatchObject({ updated: [own.id], noops: [], errors: { count: 1 } });
    const ended = shown(await invalidateApiKeys(keys, asking().asking, bytes({ ids }), NOW));
    expect(ended).toEqual({
      invalidated_api_keys: [own.id],
      previously_invalidated_api_keys: [],
      error_count: 1,
      error_details: [
        {
          type: 'resource_not_found_exception',
          reason: 'no API key owned by requesting user found for id [nobody]',
        },
      ],
    });
  });

  it('are refused once where none of them is the own one', async () => {
    const { asking: mine } = asking({ caller: own });
    for (const request of [
      updateApiKeys(keys, mine, bytes({ ids: strangers(9_999), metadata: { a: 1 } }), NOW),
      updateApiKey(keys, mine, owner.id, bytes({ metadata: { a: 1 } }), NOW),
      invalidateApiKeys(keys, mine, bytes({ ids: strangers(2) }), NOW),
      invalidateApiKeys(keys, mine, bytes({ ids: [own.id, owner.id] }), NOW),
    ]) {
      await expect(request).rejects.toMatchObject({ status: 403 });
    }
    const mixed = await updateApiKeys(keys, mine, bytes({ ids: [own.id, owner.id], metadata: { a: 1 } }), NOW);
    expect(shown(mixed)).toMatchObject({
      updated: [own.id],
      errors: { count: 1, details: { [owner.id]: { type: 'resource_not_found_exception' } } },
    });
    const ended = await invalidateApiKeys(
      keys,
      asking({ caller: keys.get(own.id) ?? own }).asking,
      bytes({ ids: [own.id] }),
      NOW,
    );
    expect(shown(ended)).toMatchObject({ invalidated_api_keys: [own.id] });
  });
});
