import { ACTIONS, type Action } from '@sparrow-search/engine';

import { BoundedWork } from '../bounded-work.js';
import { HttpError } from '../errors.js';
import { FairQueue, type Sender } from '../http/fair-queue.js';
import type { Hold } from '../http/in-flight.js';
import type { Answer } from '../http/respond.js';
import { holdsOnCluster } from './authorize.js';
import { type ApiKey, type KeyChange, type KeyStore, OWNER, rootOf } from './key-store.js';
import { type FoundKey, queryKeys } from './query.js';
import { invalid, isObject, parseBody } from './request-body.js';
import { type Roles, parseRoles } from './roles.js';

const REALM = { name: '_es_api_key', type: '_es_api_key' };

/** How many keys in a row may be made by one another. */
const MAX_GENERATIONS = 8;

/** Most steps that it may take to find keys and to write them: each key and value that is looked at, and each character that is compared. */
const MOST_STEPS = 50_000_000;

/** Most bytes of an answer with keys: all that there may be, and half as much again of what they are sorted by. */
const MOST_ANSWER = 64 * 1024 * 1024;

/** Characters that are written before they become bytes. */
const PIECE = 64 * 1024;

/** Requests that look through all keys: many at once would hold the event loop together, though each lets others have turns. */
const reads = new FairQueue({
  what: 'requests for API keys',
  advice: 'send it later',
  ofCaller: 20,
  together: 500,
});

/** Most keys that one request updates. */
const MAX_UPDATES = 10_000;

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

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

/** `PUT /_security/api_key`: the answer holds the secret, for the only time. */
export async function createApiKey(
  keys: KeyStore,
  caller: ApiKey,
  body: Uint8Array | undefined,
  now: number,
): Promise<object> {
  const request = parseBody(body, ['name', 'expiration', 'role_descriptors', 'metadata']);
  const { name, expiration, role_descriptors: descriptors, metadata = {} } = request;
  if (typeof name !== 'string' || name === '') {
    throw invalid(name === '' ? 'api key name must not be empty' : 'api key name is required');
  }
  if (name.length > 256) throw invalid('api key name may not be more than 256 characters long');
  if (name !== name.trim()) throw invalid('api key name may not begin or end with whitespace');
  if (name.startsWith('_')) throw invalid('api key name may not begin with an underscore');
  if (!isObject(metadata)) throw new HttpError('parse', 'expected [metadata] to be an object');
  checkSize(descriptors, metadata);
  const given = parseRoles(descriptors);
  const limits = limitsOf(caller);
  const lifetime = expiration === undefined || expiration === null ? undefined : duration(expiration);
  const issued = await keys.create(
    {
      name,
      // Without role descriptors a key has the rights of the one that made it.
      roles: Object.keys(given).length === 0 ? caller.roles : given,
      roleDescriptors: isObject(descriptors) ? descriptors : {},
      metadata,
      ...limits,
      ...(caller.owner ? {} : { root: rootOf(caller) }),
      ...(lifetime === undefined ? {} : { expiration: now + lifetime }),
    },
    now,
    caller,
  );
  const { key } = issued;
  return {
    id: key.id,
    name: key.name,
    ...(key.expiration === undefined ? {} : { expiration: key.expiration }),
    api_key: issued.secret,
    encoded: issued.encoded,
  };
}

/** What a key that `caller` makes or changes may not go beyond: what `caller` may do at that time. */
function limitsOf(caller: ApiKey): { readonly limitedBy?: readonly Roles[] } {
  if (caller.owner) return {};
  const limitedBy = [caller.roles, ...(caller.limitedBy ?? [])];
  const different = limitedBy.filter(
    (roles, at) => limitedBy.findIndex((one) => JSON.stringify(one) === JSON.stringify(roles)) === at,
  );
  if (different.length > MAX_GENERATIONS) {
    throw new HttpError(
      'illegal_argument',
      `a key may be derived from at most [${String(MAX_GENERATIONS)}] others that were derived from each other`,
    );
  }
  return { limitedBy: different };
}

/** `PUT /_security/api_key/{id}` */
export async function updateApiKey(
  keys: KeyStore,
  caller: ApiKey,
  id: string,
  body: Uint8Array | undefined,
  now: number,
): Promise<object> {
  const change = parseChange(caller, body === undefined ? {} : parseBody(body, CHANGEABLE), now);
  const action: Action = 'cluster:admin/xpack/security/api_key/update';
  const problem = unchangeable(keys, caller, action, id, change, now);
  if (problem !== undefined) throw problem;
  return { updated: (await keys.update([id], change, now, caller)).length > 0 };
}

/** `POST /_security/api_key/_bulk_update`: keys that cannot be updated do not keep the others from it. */
export async function updateApiKeys(
  keys: KeyStore,
  caller: ApiKey,
  body: Uint8Array | undefined,
  now: number,
): Promise<object> {
  const request = parseBody(body, ['ids', ...CHANGEABLE]);
  const { ids } = request;
  if (!Array.isArray(ids) || !ids.every((id) => typeof id === 'string')) {
    throw new HttpError('json', '[ids] must be a list of strings');
  }
  if (ids.length === 0) throw invalid('Field [ids] cannot be empty');
  if (ids.length > MAX_UPDATES) throw invalid(`Field [ids] cannot have more than [${String(MAX_UPDATES)}] entries`);
  const change = parseChange(caller, request, now);
  const action: Action = 'cluster:admin/xpack/security/api_key/bulk_update';
  // Without a prototype: an id may be any text.
  const details = Object.create(null) as Record<string, object>;
  for (const id of new Set(ids)) {
    const problem = unchangeable(keys, caller, action, id, change, now);
    if (problem !== undefined) details[id] = problem.describe();
  }
  const possible = [...new Set(ids)].filter((id) => details[id] === undefined);
  const updated = await keys.update(possible, change, now, caller);
  const changed = new Set(updated);
  const count = Object.keys(details).length;
  return {
    updated,
    noops: possible.filter((id) => !changed.has(id)),
    ...(count === 0 ? {} : { errors: { count, details } }),
  };
}

const CHANGEABLE = ['role_descriptors', 'metadata', 'expiration'];

/** What an update changes. New roles reach no further than what the one who gives them may do. */
function parseChange(caller: ApiKey, request: Readonly<Record<string, unknown>>, now: number): KeyChange {
  const { role_descriptors: descriptors, metadata, expiration } = request;
  if (metadata !== undefined && !isObject(metadata)) {
    throw new HttpError('parse', 'expected [metadata] to be an object');
  }
  checkSize(descriptors, metadata);
  const given = parseRoles(descriptors);
  return {
    ...(isObject(descriptors)
      ? {
          roles: Object.keys(given).length === 0 ? caller.roles : given,
          roleDescriptors: descriptors,
          limitedBy: limitsOf(caller).limitedBy,
        }
      : {}),
    ...(metadata === undefined ? {} : { metadata }),
    ...(expiration === undefined || expiration === null ? {} : { expiration: now + duration(expiration) }),
  };
}

/** Why a key cannot be updated so by the caller, if it cannot. */
function unchangeable(
  keys: KeyStore,
  caller: ApiKey,
  action: Action,
  id: string,
  change: KeyChange,
  now: number,
): HttpError | undefined {
  if (!mayManageAll(caller, action) && id !== caller.id) return onlyOwn(caller, action);
  const key = keys.get(id);
  if (key === undefined) return new HttpError('not_found', `no API key owned by requesting user found for ID [${id}]`);
  if (key.owner) return new HttpError('illegal_argument', `cannot update the owner key [${id}]`);
  if (key.invalidated) return new HttpError('illegal_argument', `cannot update invalidated API key [${id}]`);
  if (key.expiration !== undefined && key.expiration <= now) {
    return new HttpError('illegal_argument', `cannot update expired API key [${id}]`);
  }
  // Whoever gave it an end meant it: a key that leaked would otherwise last as long as who found it likes.
  if (id === caller.id && (change.expiration ?? 0) > (key.expiration ?? Infinity)) {
    return new HttpError('illegal_argument', `API key [${id}] cannot extend its own expiration: another key has to`);
  }
  return undefined;
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
 * @throws {HttpError} 400 for a query that is none or takes too much, 429 when there is no room for the answer
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
    const work = new BoundedWork(MOST_STEPS, TOO_MUCH_WORK, sender);
    try {
      return await read(work);
    } finally {
      work.end();
    }
  });
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
 * The bytes of an answer with keys. Room is taken for each piece before it is kept, and there is no text that could become too long.
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
  const pieces: Buffer[] = [];
  let [length, text] = [0, `${head}"api_keys":[`];
  const keep = (): void => {
    const piece = Buffer.from(text);
    text = '';
    length += piece.length;
    if (length > MOST_ANSWER) throw tooLong(length);
    hold.takeAnswer(piece.length, rootOf(caller));
    pieces.push(piece);
  };
  for (const [at, { key, sort }] of found.entries()) {
    const shown = { ...describeKey(key, withLimits), ...(sort === undefined ? {} : { _sort: sort }) };
    text += (at === 0 ? '' : ',') + JSON.stringify(shown);
    if (text.length >= PIECE) keep();
    if (work.isOver) await work.next();
  }
  text += ']}';
  keep();
  return Buffer.concat(pieces);
}

function tooLong(bytes: number): HttpError {
  return new HttpError(
    'circuit_breaking',
    `an answer with API keys may have [${String(MOST_ANSWER)}] bytes: ask for fewer keys with [size], or sort by fewer fields`,
    { metadata: { bytes_wanted: bytes, bytes_limit: MOST_ANSWER, durability: 'PERMANENT' } },
  );
}

/** `DELETE /_security/api_key`. */
export async function invalidateApiKeys(
  keys: KeyStore,
  caller: ApiKey,
  body: Uint8Array | undefined,
  now: number,
): Promise<object> {
  const request = parseBody(body, ['id', 'ids', 'name', 'owner', 'username', 'realm_name']);
  const { id, ids, name, owner = false, username, realm_name: realm } = request;
  const wanted: unknown[] = Array.isArray(ids) ? ids : id === undefined ? [] : [id];
  if (wanted.length === 0 && [name, username, realm].every((item) => item === undefined) && owner !== true) {
    throw invalid(
      'One of [api key id(s), api key name, username, realm name] must be specified if [owner] flag is false',
    );
  }
  if (wanted.length > 0 && [name, username, realm].some((item) => item !== undefined)) {
    throw invalid('username or realm name must not be specified when the api key id(s) or api key name are specified');
  }
  const action: Action = 'cluster:admin/xpack/security/api_key/invalidate';
  const all = mayManageAll(caller, action);
  if (!all && owner !== true) throw onlyOwn(caller, action);
  // Both may be long: a list of ten thousands is not gone through for each of ten thousand keys.
  const ofIds = new Set(wanted);
  const selected = keys
    .all()
    .filter((key) => all || key.id === caller.id)
    .filter((key) => wanted.length === 0 || ofIds.has(key.id))
    .filter((key) => typeof name !== 'string' || matchesName(key.name, name))
    .filter((key) => username === undefined || key.username === username)
    .filter(() => realm === undefined || realm === REALM.name)
    // The owner key goes by its id alone, and only by itself: nobody else may lock its user out.
    .filter((key) => !key.owner || (ofIds.has(key.id) && caller.id === key.id));
  const invalidated = await keys.invalidate(
    selected.map((key) => key.id),
    now,
    caller,
  );
  const known = new Set(selected.map((key) => key.id));
  const ended = new Set(invalidated);
  const unknown = wanted.filter((key) => typeof key !== 'string' || !known.has(key));
  return {
    invalidated_api_keys: invalidated,
    previously_invalidated_api_keys: [...known].filter((key) => !ended.has(key)),
    error_count: unknown.length,
    ...(unknown.length === 0
      ? {}
      : {
          error_details: unknown.map((key) => ({
            type: 'resource_not_found_exception',
            reason: `no API key owned by requesting user found for id [${String(key)}]`,
          })),
        }),
  };
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
function mayManageAll(caller: ApiKey, action: Action): boolean {
  const enough = ACTIONS[action].privileges.filter((privilege) => privilege !== 'manage_own_api_key');
  return holdsOnCluster(caller, (held) => held.some((privilege) => enough.includes(privilege)));
}

function onlyOwn(caller: ApiKey, action: Action): HttpError {
  const enough = ACTIONS[action].privileges.filter((privilege) => privilege !== 'manage_own_api_key');
  return new HttpError(
    'forbidden',
    `action [${action}] is unauthorized for API key id [${caller.id}] of user [${caller.username}], ` +
      `this action is granted by the cluster privileges [${enough.join(',')}]`,
  );
}

/** Longest time that a key may have left: a thousand years. */
const LONGEST_LIFE_MS = 365_250 * 86_400_000;

/** Most characters of a key's role descriptors, and of its metadata, as JSON: each request and each change of any key reads them. */
const MOST_ROLES = 32 * 1024;
const MOST_METADATA = 16 * 1024;

/** @throws {HttpError} 400 when what a key is given to keep is too large */
function checkSize(descriptors: unknown, metadata: unknown): void {
  for (const [name, value, most] of [
    ['role_descriptors', descriptors, MOST_ROLES],
    ['metadata', metadata, MOST_METADATA],
  ] as const) {
    const length = value === undefined ? 0 : JSON.stringify(value).length;
    if (length > most) {
      throw new HttpError(
        'illegal_argument',
        `[${name}] has [${String(length)}] characters, an API key may have [${String(most)}]`,
      );
    }
  }
}

function duration(value: unknown): number {
  const match = typeof value === 'string' ? /^(\d+)(ms|s|m|h|d)$/.exec(value) : null;
  const unit = UNITS[match?.[2] ?? ''];
  const milliseconds = Number(match?.[1]) * (unit ?? NaN);
  // Also of what is written down it has to be a moment.
  if (match === null || unit === undefined || !(milliseconds <= LONGEST_LIFE_MS)) {
    throw new HttpError(
      'illegal_argument',
      `failed to parse setting [expiration] with value [${String(value)}] as a time value: unit is missing or unrecognized; a whole number and one of [ms, s, m, h, d] is expected, such as [90d]`,
    );
  }
  if (milliseconds === 0) throw invalid('API key expiration must be in the future');
  return milliseconds;
}

function matchesName(name: string, pattern: string): boolean {
  return pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
}

function flag(query: Readonly<Record<string, string>>, name: string): boolean {
  const value = query[name];
  if (value === undefined || value === 'false') return false;
  if (value === 'true' || value === '') return true;
  throw new HttpError('illegal_argument', `Failed to parse value [${value}] as only [true] or [false] are allowed.`);
}
