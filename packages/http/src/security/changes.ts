import { type ErrorCode, HttpError, KEY_REQUESTS, describeError } from '@sparrow-search/endpoints';
import { type Action, Turns } from '@sparrow-search/engine';

import type { BoundedWork } from '../bounded-work.js';
import { FairQueue } from '../exchange/fair-queue.js';
import { type Answer, json } from '../exchange/respond.js';
import { type Asking, REALM, boundedWork, matchesName, mayManageAll, onlyOwn } from './api.js';
import { type ApiKey, type KeyChange, type KeyStore, type NewKey, rootOf } from './key-store.js';
import { Pieces } from './pieces.js';
import { invalid, isObject, parseBody } from './request-body.js';
import { type Roles, parseRoles } from './roles.js';

/** How many keys in a row may be made by one another. */
const MAX_GENERATIONS = 8;

/** Most keys that one request names, and characters of the id of each: a client chooses the id of none, and they have 22. */
const MOST_IDS = 10_000;
const MOST_ID = 1_000;

/** Longest time that a key may have left: a thousand years. */
const LONGEST_LIFE_MS = 365_250 * 86_400_000;

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Most characters of a key's role descriptors, and of its metadata, as JSON: each request and each change of any key reads them. */
const MOST_ROLES = 32 * 1024;
const MOST_METADATA = 16 * 1024;

/**
 * Requests that change keys. To look at one takes milliseconds on the event loop, and so many may wait. What waits for the disk does not
 * stand in this queue: the store writes together what comes meanwhile.
 */
const changes = new FairQueue({
  what: 'requests that change API keys',
  advice: 'send it later',
  ofCaller: 1000,
  together: 4000,
});

/** Makes a change that was looked at, and tells of it. Room for the answer was taken before, so that the caller learns of the change. */
type Prepared = () => Promise<Answer>;

/**
 * Looks at a change when it is its turn among callers, and makes it. If its client leaves before the change is begun, it is not made at
 * all; once begun, it is made as a whole.
 *
 * @throws {HttpError} 429 when too many wait, 400 when the client left before it was begun; and what `prepare` throws
 */
async function changing(
  { sender }: Asking,
  prepare: (work: BoundedWork) => Prepared | Promise<Prepared>,
): Promise<Answer> {
  const work = boundedWork(sender);
  try {
    const make = await changes.run(sender, async () => prepare(work));
    return await make();
  } finally {
    work.end();
  }
}

/** An answer about one key, which is so short that it is given whether there is room for it or not. */
function told(body: object): Answer {
  return { ...json(200, body), isHeld: true };
}

/** `PUT /_security/api_key`: the answer holds the secret, for the only time. */
export function createApiKey(
  keys: KeyStore,
  asking: Asking,
  body: Uint8Array | undefined,
  now: number,
): Promise<Answer> {
  return changing(asking, (work) => {
    const key = parseNew(asking.caller, body, now);
    return async () => {
      const { key: made, secret, encoded } = await keys.create(key, now, asking.caller, work.check);
      const { id, name, expiration } = made;
      return told({ id, name, ...(expiration === undefined ? {} : { expiration }), api_key: secret, encoded });
    };
  });
}

function parseNew(caller: ApiKey, body: Uint8Array | undefined, now: number): NewKey {
  const request = parseBody(body, KEY_REQUESTS.ApiKeyRequest);
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
  return {
    name,
    // Without role descriptors a key has the rights of the one that made it.
    roles: Object.keys(given).length === 0 ? caller.roles : given,
    roleDescriptors: isObject(descriptors) ? descriptors : {},
    metadata,
    ...limits,
    ...(caller.owner ? {} : { root: rootOf(caller) }),
    ...(lifetime === undefined ? {} : { expiration: now + lifetime }),
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
export function updateApiKey(
  keys: KeyStore,
  asking: Asking,
  id: string,
  body: Uint8Array | undefined,
  now: number,
): Promise<Answer> {
  const { caller } = asking;
  return changing(asking, (work) => {
    const change = parseChange(
      caller,
      body === undefined ? {} : parseBody(body, KEY_REQUESTS.UpdateApiKeyRequest),
      now,
    );
    checkOwn(caller, 'cluster:admin/xpack/security/api_key/update', new Set([id]));
    const problem = unchangeable(keys, caller, id, change, now);
    if (problem !== undefined) throw new HttpError(...problem);
    return async () => {
      const updated = await keys.update([id], change, now, caller, work.check);
      return told({ updated: updated.length > 0 });
    };
  });
}

/** `POST /_security/api_key/_bulk_update`: keys that cannot be updated do not keep the others from it. */
export function updateApiKeys(
  keys: KeyStore,
  asking: Asking,
  body: Uint8Array | undefined,
  now: number,
): Promise<Answer> {
  const { caller } = asking;
  return changing(asking, async (work) => {
    const request = parseBody(body, KEY_REQUESTS.BulkUpdateApiKeysRequest);
    const ids = idsIn(request['ids'], 'ids');
    if (ids === undefined) throw invalid('Field [ids] cannot be empty');
    const change = parseChange(caller, request, now);
    const action: Action = 'cluster:admin/xpack/security/api_key/bulk_update';
    checkOwn(caller, action, ids);
    const all = mayManageAll(caller, action);
    const possible: string[] = [];
    const problems: (readonly [string, Problem])[] = [];
    for (const id of ids) {
      const problem = all || id === caller.id ? unchangeable(keys, caller, id, change, now) : unknown('ID', id);
      if (problem === undefined) possible.push(id);
      else problems.push([id, problem]);
      if (work.isOver) await work.next();
    }
    const errors = piecesFor(asking);
    if (problems.length > 0) {
      errors.add(`,"errors":{"count":${String(problems.length)},"details":{`);
      await errors.addAll(problems, ([id, problem]) => `${JSON.stringify(id)}:${described(problem)}`, work);
      errors.add('}}');
    }
    errors.add('}');
    const end = errors.end();
    takeRoomForIds(asking, possible);
    return async () => {
      const updated = await keys.update(possible, change, now, caller, work.check);
      const changed = new Set(updated);
      const noops = possible.filter((id) => !changed.has(id));
      return listed({ updated, noops }, end);
    };
  });
}

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

/** What is wrong with a key that a request names. */
type Problem = readonly [code: ErrorCode, reason: string];

function described(problem: Problem): string {
  return JSON.stringify(describeError(...problem));
}

/** @param name what the sentence calls an id, which differs between requests */
function unknown(name: 'ID' | 'id', id: string): Problem {
  return ['not_found', `no API key owned by requesting user found for ${name} [${id}]`];
}

/** Why a key cannot be updated so by a caller who may change it, if it cannot. */
function unchangeable(keys: KeyStore, caller: ApiKey, id: string, change: KeyChange, now: number): Problem | undefined {
  const key = keys.get(id);
  if (key === undefined) return unknown('ID', id);
  if (key.owner) return ['illegal_argument', `cannot update the owner key [${id}]`];
  if (key.invalidated) return ['illegal_argument', `cannot update invalidated API key [${id}]`];
  if (key.expiration !== undefined && key.expiration <= now) {
    return ['illegal_argument', `cannot update expired API key [${id}]`];
  }
  // The end that the owner gave it stays: a key that leaked could otherwise be prolonged by its finder.
  if (id === caller.id && (change.expiration ?? 0) > (key.expiration ?? Infinity)) {
    return ['illegal_argument', `API key [${id}] cannot extend its own expiration: another key has to`];
  }
  return undefined;
}

/** @throws {HttpError} 403 where the caller may change no key but itself, and is not one of those named */
function checkOwn(caller: ApiKey, action: Action, ids: ReadonlySet<string>): void {
  if (!mayManageAll(caller, action) && !ids.has(caller.id)) throw onlyOwn(caller, action);
}

/** `DELETE /_security/api_key`. */
export function invalidateApiKeys(
  keys: KeyStore,
  asking: Asking,
  body: Uint8Array | undefined,
  now: number,
): Promise<Answer> {
  const { caller } = asking;
  return changing(asking, async (work) => {
    const { ids, isWanted } = parseInvalidation(caller, body);
    const selected: string[] = [];
    const others: string[] = [];
    for (const given of ids ?? keys.all()) {
      const key = typeof given === 'string' ? keys.get(given) : given;
      if (key !== undefined && isWanted(key)) selected.push(key.id);
      else if (typeof given === 'string') others.push(given);
      work.spend(1);
      if (work.isOver) await work.next();
    }
    const errors = piecesFor(asking);
    errors.add(`,"error_count":${String(others.length)}`);
    if (others.length > 0) {
      errors.add(',"error_details":[');
      await errors.addAll(others, (id) => described(unknown('id', id)), work);
      errors.add(']');
    }
    errors.add('}');
    const end = errors.end();
    takeRoomForIds(asking, selected);
    return async () => {
      const invalidated = await keys.invalidate(selected, now, caller, work.check);
      const ended = new Set(invalidated);
      const previously = selected.filter((id) => !ended.has(id));
      return listed({ invalidated_api_keys: invalidated, previously_invalidated_api_keys: previously }, end);
    };
  });
}

/** The keys that a request invalidates. */
interface Invalidation {
  /** Absent: it names none by its id. */
  readonly ids: ReadonlySet<string> | undefined;
  /** Whether it means a key, among those with these ids, or among all. */
  readonly isWanted: (key: ApiKey) => boolean;
}

/**
 * Whatever is not understood is refused: a request without its condition would end more keys than it means.
 *
 * @throws {HttpError} 400 for what cannot be carried out as it stands, 403 where the caller may not invalidate others
 */
function parseInvalidation(caller: ApiKey, body: Uint8Array | undefined): Invalidation {
  const request = parseBody(body, KEY_REQUESTS.InvalidateApiKeysRequest);
  const [name, username, realm] = ['name', 'username', 'realm_name'].map((member) => textIn(request, member));
  const ids = idsIn(request['ids'], 'ids') ?? idsIn(textIn(request, 'id'), 'id');
  if (request['ids'] !== undefined && request['id'] !== undefined) {
    throw new HttpError('illegal_argument', 'Must use either [id] or [ids], not both at the same time');
  }
  const { owner = false } = request;
  if (typeof owner !== 'boolean') throw new HttpError('json', '[owner] must be [true] or [false]');
  if (ids === undefined && [name, username, realm].every((item) => item === undefined) && !owner) {
    throw invalid(
      'One of [api key id(s), api key name, username, realm name] must be specified if [owner] flag is false',
    );
  }
  if (ids !== undefined && [name, username, realm].some((item) => item !== undefined)) {
    throw invalid('username or realm name must not be specified when the api key id(s) or api key name are specified');
  }
  const action: Action = 'cluster:admin/xpack/security/api_key/invalidate';
  const all = mayManageAll(caller, action);
  const isOwn = owner || (ids?.size === 1 && ids.has(caller.id));
  if (!all && !isOwn) throw onlyOwn(caller, action);
  const isWanted = (key: ApiKey): boolean =>
    (all || key.id === caller.id) &&
    (name === undefined || matchesName(key.name, name)) &&
    (username === undefined || key.username === username) &&
    (realm === undefined || realm === REALM.name) &&
    // The owner key goes by its id alone, and only by itself: nobody else may lock its user out.
    (!key.owner || (ids !== undefined && caller.id === key.id));
  return { ids, isWanted };
}

/**
 * The ids that a request names, each once; undefined if it names none.
 *
 * @throws {HttpError} 400 for an id that is no text or is too long, and for a list that is empty or too long
 */
function idsIn(value: unknown, name: string): ReadonlySet<string> | undefined {
  if (value === undefined || value === null) return undefined;
  const ids: unknown[] = Array.isArray(value) ? value : [value];
  if (ids.length === 0) throw invalid(`Field [${name}] cannot be empty`);
  if (ids.length > MOST_IDS) {
    throw invalid(
      `Field [${name}] has [${String(ids.length)}] entries, it may have [${String(MOST_IDS)}]: send several requests`,
    );
  }
  const found = new Set<string>();
  for (const id of ids) {
    if (typeof id !== 'string') throw new HttpError('json', `[${name}] must be a list of strings`);
    if (id.length > MOST_ID) {
      throw invalid(
        `Field [${name}] has an id of [${String(id.length)}] characters, it may have [${String(MOST_ID)}]: use the [id] that was returned when the key was created`,
      );
    }
    found.add(id);
  }
  return found;
}

/** @throws {HttpError} 400 when a member is there and no text */
function textIn(request: Readonly<Record<string, unknown>>, name: string): string | undefined {
  const value = request[name] ?? undefined;
  if (value !== undefined && typeof value !== 'string') throw new HttpError('json', `[${name}] must be a string`);
  return value;
}

/** Pieces of an answer, for each of which room is taken before it is kept. */
function piecesFor({ hold, caller }: Asking): Pieces {
  return new Pieces((bytes) => {
    hold.takeAnswer(bytes, rootOf(caller));
  });
}

/** Takes room for ids that an answer lists once its change is made. */
function takeRoomForIds({ hold, caller }: Asking, ids: readonly string[]): void {
  const bytes = ids.reduce((sum, id) => sum + Buffer.byteLength(JSON.stringify(id)) + 1, 0);
  hold.takeAnswer(bytes, rootOf(caller));
}

/** An answer with lists of ids, for which room was taken before. `end` is what stands behind the lists. */
async function listed(lists: Readonly<Record<string, readonly string[]>>, end: Buffer): Promise<Answer> {
  const [pieces, turns] = [new Pieces(), new Turns()];
  let before = '{';
  for (const [name, ids] of Object.entries(lists)) {
    pieces.add(`${before}"${name}":[`);
    await pieces.addAll(ids, (id) => JSON.stringify(id), turns);
    pieces.add(']');
    before = ',';
  }
  return { status: 200, body: Buffer.concat([pieces.end(), end]), isHeld: true };
}

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
