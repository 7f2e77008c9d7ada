import { HttpError } from '@sparrow-search/endpoints';
import { type Action, ACTIONS } from '@sparrow-search/engine';

import { BoundedWork } from '../bounded-work.js';
import { FairQueue, type Sender } from '../exchange/fair-queue.js';
import type { Hold } from '../exchange/in-flight.js';
import type { Answer } from '../exchange/respond.js';
import { holdsOnCluster } from './authorize.js';
import { type ApiKey, type KeyStore, OWNER, rootOf } from './key-store.js';
import { Pieces } from './pieces.js';
import { type FoundKey, queryKeys } from './query.js';

export const REALM = { name: '_es_api_key', type: '_es_api_key' };

/** Most steps that it may take to find keys and to write them: each key and value that is looked at, and each character that is compared. */
const MOST_STEPS = 50_000_000;

/** Most bytes of an answer with keys: all that there may be, and half as much again of what they are sorted by. */
const MOST_ANSWER = 64 * 1024 * 1024;

/** Requests that look through all keys: many at once would hold the event loop together, though each lets others have turns. */
const reads = new FairQueue({
  what: 'requests for API keys',
  advice: 'send it later',
  ofCaller: 20,
  together: 500,
});

/** Body of `GET /_security/_authenticate`. */
export function describeCaller(key: ApiKey): object {
  return {
    username: key.username,
    roles: [],
    full_name: null,
    email: null,
    metadata: {},
    enabled: true,
    authentication_realm: REALM,
    lookup_realm: REALM,
    authentication_type: 'api_key',
    api_key: { id: key.id, name: key.name },
  };
}

/** Who asks for keys. */
export interface Asking {
  readonly caller: ApiKey;
  readonly sender: Sender;
  /** Takes room for the answer as it is written. */
  readonly hold: Hold;
}

/**
 * `GET|POST /_security/_query/api_key`: over all keys, or over the caller alone where it may not see others.
 *
 * @throws {HttpError} 400 for a query that is malformed or takes too much, 429 when there is no room for the answer
 */
export function queryApiKeys(
  keys: KeyStore,
  asking: Asking,
  query: Readonly<Record<string, string>>,
  body: Uint8Array | undefined,
): Promise<Answer> {
  const all = mayManageAll(asking.caller, 'cluster:admin/xpack/security/api_key/query');
  const limits = flag(query, 'with_limited_by');
  return reading(asking, async (work) => {
    const { total, page } = await queryKeys(seenBy(keys, asking.caller, all), body, work);
    const head = `{"total":${String(total)},"count":${String(page.length)},`;
    return { status: 200, body: await written(head, page, limits, work, asking), isHeld: true };
  });
}

/**
 * `GET /_security/api_key`. Nobody with that id is a 404; nothing found in another way is not.
 *
 * @throws {HttpError} 403 for the keys of others, 429 when there is no room for the answer
 */
export async function getApiKeys(
  keys: KeyStore,
  asking: Asking,
  query: Readonly<Record<string, string>>,
  now: number,
): Promise<Answer> {
  const { caller } = asking;
  const { id, name, username, realm_name: realm } = query;
  const all = mayManageAll(caller, 'cluster:admin/xpack/security/api_key/get');
  const own = flag(query, 'owner');
  if (!all && !own && id !== caller.id) throw onlyOwn(caller, 'cluster:admin/xpack/security/api_key/get');
  const active = flag(query, 'active_only');
  const limits = flag(query, 'with_limited_by');
  const isWanted = (key: ApiKey): boolean =>
    (name === undefined || matchesName(key.name, name)) &&
    (username === undefined || key.username === username) &&
    (realm === undefined || realm === REALM.name) &&
    (!active || (!key.invalidated && (key.expiration === undefined || key.expiration > now)));
  return reading(asking, async (work) => {
    const found: FoundKey[] = [];
    for (const key of seenBy(keys, caller, all, id)) {
      if (isWanted(key)) found.push({ key });
      if (work.isOver) await work.next();
    }
    const status = id !== undefined && found.length === 0 ? 404 : 200;
    return { status, body: await written('{', found, limits, work, asking), isHeld: true };
  });
}

/** Does what looks through keys when it is its turn. */
function reading<T>({ sender }: Asking, read: (work: BoundedWork) => Promise<T>): Promise<T> {
  return reads.run(sender, async () => {
    const work = boundedWork(sender);
    try {
      return await read(work);
    } finally {
      work.end();
    }
  });
}

/** What one request about keys may do on the event loop. */
export function boundedWork(sender: Sender): BoundedWork {
  return new BoundedWork(MOST_STEPS, TOO_MUCH_WORK, sender);
}

const TOO_MUCH_WORK =
  'the query for API keys takes too long on the keys that there are: use fewer clauses and sorts, or patterns with fewer wildcards';

/** The keys that a caller may see: all of them or itself, or the one among these that has the id. */
function seenBy(keys: KeyStore, caller: ApiKey, all: boolean, id?: string): readonly ApiKey[] {
  const wanted = all ? id : caller.id;
  if (wanted === undefined) return keys.all();
  const key = id === undefined || id === wanted ? keys.get(wanted) : undefined;
  return key === undefined ? [] : [key];
}

/**
 * The bytes of an answer with keys. Room is taken for each piece before it is kept.
 *
 * @param head what stands before the keys
 * @throws {HttpError} 429 when there is no room, or it would be too long
 */
async function written(
  head: string,
  found: readonly FoundKey[],
  withLimits: boolean,
  work: BoundedWork,
  { hold, caller }: Pick<Asking, 'hold' | 'caller'>,
): Promise<Buffer> {
  const pieces = new Pieces((bytes, all) => {
    if (all > MOST_ANSWER) throw tooLong(all);
    hold.takeAnswer(bytes, rootOf(caller));
  });
  pieces.add(`${head}"api_keys":[`);
  const write = ({ key, sort }: FoundKey): string =>
    JSON.stringify({ ...describeKey(key, withLimits), ...(sort === undefined ? {} : { _sort: sort }) });
  await pieces.addAll(found, write, work);
  pieces.add(']}');
  return pieces.end();
}

function tooLong(bytes: number): HttpError {
  return new HttpError(
    'circuit_breaking',
    `an answer with API keys may have [${String(MOST_ANSWER)}] bytes: ask for fewer keys with [size], or sort by fewer fields`,
    { metadata: { bytes_wanted: bytes, bytes_limit: MOST_ANSWER, durability: 'PERMANENT' } },
  );
}

function describeKey(key: ApiKey, withLimits: boolean): object {
  return {
    id: key.id,
    name: key.name,
    type: 'rest',
    creation: key.creation,
    ...(key.expiration === undefined ? {} : { expiration: key.expiration }),
    invalidated: key.invalidated,
    ...(key.invalidation === undefined ? {} : { invalidation: key.invalidation }),
    username: OWNER,
    realm: REALM.name,
    realm_type: REALM.type,
    metadata: key.metadata,
    role_descriptors: key.roleDescriptors,
    ...(withLimits && key.limitedBy !== undefined ? { limited_by: key.limitedBy } : {}),
  };
}

/** Whether the caller may see and end keys other than itself: with more than `manage_own_api_key`. */
export function mayManageAll(caller: ApiKey, action: Action): boolean {
  const enough = ACTIONS[action].privileges.filter((privilege) => privilege !== 'manage_own_api_key');
  return holdsOnCluster(caller, (held) => held.some((privilege) => enough.includes(privilege)));
}

export function onlyOwn(caller: ApiKey, action: Action): HttpError {
  const enough = ACTIONS[action].privileges.filter((privilege) => privilege !== 'manage_own_api_key');
  return new HttpError(
    'forbidden',
    `action [${action}] is unauthorized for API key id [${caller.id}] of user [${caller.username}], ` +
      `this action is granted by the cluster privileges [${enough.join(',')}]`,
  );
}

export function matchesName(name: string, pattern: string): boolean {
  return pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
}

function flag(query: Readonly<Record<string, string>>, name: string): boolean {
  const value = query[name];
  if (value === undefined || value === 'false') return false;
  if (value === 'true' || value === '') return true;
  throw new HttpError('illegal_argument', `Failed to parse value [${value}] as only [true] or [false] are allowed.`);
}
