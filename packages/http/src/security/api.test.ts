// Answers with many keys: how much they take, and when they are refused.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, expect, it } from 'vitest';

import { AsyncSearches } from '../async-search/async-searches.js';
import { InFlight } from '../exchange/in-flight.js';
import { seal } from '../sealed-file.js';
import { type Asking, getApiKeys, queryApiKeys } from './api.js';
import { createApiKey } from './changes.js';
import { type ApiKey, KeyStore, rootOf } from './key-store.js';
import { OWNER_ROLES } from './roles.js';

const MB = 1024 * 1024;

let data: string;
let keys: KeyStore;
let owner: ApiKey;

beforeAll(async () => {
  data = await mkdtemp(join(tmpdir(), 'sparrow-key-answers-'));
  owner = {
    ...{ id: 'owner', name: 'owner', hash: '0'.repeat(64), owner: true, username: 'owner', creation: 0 },
    ...{ invalidated: false, roles: OWNER_ROLES, roleDescriptors: {}, metadata: {} },
  };
  const others = Array.from({ length: 3000 }, (_, at) => ({
    ...owner,
    ...{ id: `id${String(at)}`, owner: false, metadata: { x: 'a'.repeat(1000), n: at } },
  }));
  await mkdir(join(data, 'security'));
  await writeFile(join(data, 'security', 'api_keys.json'), seal({ format: 1, keys: [owner, ...others] }));
  keys = await KeyStore.open(data);
});
afterAll(async () => {
  await rm(data, { recursive: true, force: true });
});

function asking(limit: number): { readonly asking: Asking; readonly inFlight: InFlight } {
  const inFlight = new InFlight(0, { memory: 10 * limit });
  const sender = { caller: 'owner', onGone: () => () => undefined };
  return { asking: { caller: owner, sender, hold: inFlight.request() }, inFlight };
}

const sorted = (size: number): Uint8Array =>
  Buffer.from(JSON.stringify({ size, sort: Array<string>(31).fill('metadata.x') }));

it('an answer with keys holds as many bytes as it has', async () => {
  const { asking: all, inFlight } = asking(100 * MB);
  const { body, isHeld } = await getApiKeys(keys, all, {}, 0);
  expect([isHeld, inFlight.held]).toEqual([true, body?.length]);
  const shown = JSON.parse(Buffer.from(body ?? '').toString()) as { readonly api_keys: readonly { id: string }[] };
  expect(shown.api_keys).toHaveLength(3001);
  const { asking: some } = asking(100 * MB);
  const { body: page } = await queryApiKeys(keys, some, {}, sorted(1000));
  expect(page?.length).toBeGreaterThan(31 * 1000 * 1000);
  expect(JSON.parse(Buffer.from(page ?? '').toString())).toMatchObject({ total: 3001, count: 1000 });
});

it('an answer with keys is refused before it is made where there is no room for it', async () => {
  const { asking: all, inFlight } = asking(MB);
  await expect(getApiKeys(keys, all, {}, 0)).rejects.toMatchObject({ code: 'rejected' });
  await expect(queryApiKeys(keys, all, {}, sorted(1000))).rejects.toMatchObject({ code: 'rejected' });
  expect(inFlight.held).toBe(0);
});

it('an answer with keys has a bound, whatever there is room for', async () => {
  const { asking: all } = asking(1000 * MB);
  await expect(queryApiKeys(keys, all, {}, sorted(3000))).rejects.toMatchObject({
    type: 'circuit_breaking_exception',
    reason: expect.stringContaining('ask for fewer keys') as string,
  });
});

it('keys that make each other have one share of everything', async () => {
  const folder = join(data, 'other');
  const own = await KeyStore.open(folder);
  const made = async (by: ApiKey): Promise<ApiKey> => {
    const { asking: maker } = asking(MB);
    const { body } = await createApiKey(own, { ...maker, caller: by }, Buffer.from('{"name":"made"}'), 1);
    const { id } = JSON.parse(Buffer.from(body ?? '').toString()) as { readonly id: string };
    return own.get(id) ?? by;
  };
  const { key: first } = await own.createOwner(folder, 1);
  const [one, other] = [await made(first), await made(first)];
  const child = await made(one);
  const grandchild = await made(child);
  expect([one, other, child, grandchild].map(rootOf)).toEqual([one.id, other.id, one.id, one.id]);

  const searches = new AsyncSearches();
  const inFlight = new InFlight(MB);
  const start = (key: ApiKey): void => {
    const holder = { key: key.id, root: rootOf(key), rights: 'some' };
    const run = (): Promise<never> => new Promise(() => undefined);
    searches.start({ holder, keepAlive: 60_000, hold: inFlight.request(), bodyBytes: 0, run });
  };
  for (let at = 0; at < 250; at += 1) [one, child].forEach(start);
  expect(() => {
    start(grandchild);
  }).toThrow('too many asynchronous searches');
  start(other);
});
