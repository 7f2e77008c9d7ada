import { HttpError } from '../errors.js';
import { type Json, parseJson } from '../http/json-text.js';
import { ACTIONS, type Action } from './actions.js';
import { type ApiKey, type KeyStore, OWNER } from './key-store.js';
import { isEmpty, parseRoles } from './roles.js';

const REALM = { name: '_es_api_key', type: '_es_api_key' };

/** Deepest nesting of a body. */
const MAX_DEPTH = 20;

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
  const given = parseRoles(descriptors);
  if (!caller.owner && !(Object.keys(given).length > 0 && isEmpty(given))) {
    throw new HttpError(
      'illegal_argument',
      'creating derived api keys requires an explicit role descriptor that is empty (has no privileges)',
    );
  }
  const lifetime = expiration === undefined || expiration === null ? undefined : duration(expiration);
  const issued = await keys.create(
    {
      name,
      // Without role descriptors a key has the rights of the one that made it.
      roles: Object.keys(given).length === 0 ? caller.roles : given,
      roleDescriptors: isObject(descriptors) ? descriptors : {},
      metadata,
      ...(lifetime === undefined ? {} : { expiration: now + lifetime }),
    },
    now,
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

/** `GET /_security/api_key`. Nobody with that id is a 404; nothing found in another way is not. */
export function getApiKeys(
  keys: KeyStore,
  caller: ApiKey,
  query: Readonly<Record<string, string>>,
  now: number,
): { status: number; body: object } {
  const { id, name, username, realm_name: realm } = query;
  const all = mayManageAll(caller, 'cluster:admin/xpack/security/api_key/get');
  const own = flag(query, 'owner');
  if (!all && !own && id !== caller.id) throw onlyOwn(caller, 'cluster:admin/xpack/security/api_key/get');
  const active = flag(query, 'active_only');
  const found = keys
    .all()
    .filter((key) => all || key.id === caller.id)
    .filter((key) => id === undefined || key.id === id)
    .filter((key) => name === undefined || matchesName(key.name, name))
    .filter((key) => username === undefined || key.username === username)
    .filter(() => realm === undefined || realm === REALM.name)
    .filter((key) => !active || (!key.invalidated && (key.expiration === undefined || key.expiration > now)));
  return { status: id !== undefined && found.length === 0 ? 404 : 200, body: { api_keys: found.map(describeKey) } };
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
  if (!mayManageAll(caller, action) && owner !== true) throw onlyOwn(caller, action);
  const selected = keys
    .all()
    .filter((key) => mayManageAll(caller, action) || key.id === caller.id)
    .filter((key) => wanted.length === 0 || wanted.includes(key.id))
    .filter((key) => typeof name !== 'string' || matchesName(key.name, name))
    .filter((key) => username === undefined || key.username === username)
    .filter(() => realm === undefined || realm === REALM.name)
    // The owner key goes by its id alone: a broad selection must not lock its user out.
    .filter((key) => !key.owner || wanted.includes(key.id));
  const invalidated = await keys.invalidate(
    selected.map((key) => key.id),
    now,
  );
  const known = new Set(selected.map((key) => key.id));
  const unknown = wanted.filter((key) => typeof key !== 'string' || !known.has(key));
  return {
    invalidated_api_keys: invalidated,
    previously_invalidated_api_keys: [...known].filter((key) => !invalidated.includes(key)),
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

function describeKey(key: ApiKey): object {
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
  };
}

/** Whether the caller may see and end keys other than itself: with more than `manage_own_api_key`. */
function mayManageAll(caller: ApiKey, action: Action): boolean {
  const enough = ACTIONS[action].privileges.filter((privilege) => privilege !== 'manage_own_api_key') as string[];
  return Object.values(caller.roles).some((role) => role.cluster.some((privilege) => enough.includes(privilege)));
}

function onlyOwn(caller: ApiKey, action: Action): HttpError {
  const enough = ACTIONS[action].privileges.filter((privilege) => privilege !== 'manage_own_api_key');
  return new HttpError(
    'forbidden',
    `action [${action}] is unauthorized for API key id [${caller.id}] of user [${caller.username}], ` +
      `this action is granted by the cluster privileges [${enough.join(',')}]`,
  );
}

function parseBody(body: Uint8Array | undefined, known: readonly string[]): Record<string, unknown> {
  if (body === undefined) throw new HttpError('parse', 'request body is required');
  let parsed: unknown;
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(body);
    parsed = JSON.parse(text);
    checkMembers(parseJson(text), 0);
  } catch (error) {
    throw new HttpError('json', `the body is not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (!isObject(parsed)) throw new HttpError('json', 'the body must be a JSON object');
  const unknown = Object.keys(parsed).find((key) => !known.includes(key));
  if (unknown !== undefined) throw new HttpError('json', `[1:1] [api_key_request] unknown field [${unknown}]`);
  return parsed;
}

/** What is kept for ever is bounded in depth, and no name in it is ambiguous. */
function checkMembers(json: Json, depth: number): void {
  if (depth > MAX_DEPTH) throw new SyntaxError(`nested deeper than [${String(MAX_DEPTH)}] levels`);
  if (json.kind === 'array')
    json.items.forEach((item) => {
      checkMembers(item, depth + 1);
    });
  if (json.kind !== 'object') return;
  const names = new Set<unknown>();
  for (const [key, value] of json.entries) {
    const name: unknown = JSON.parse(key);
    if (names.has(name)) throw new SyntaxError(`Duplicate field '${String(name)}'`);
    names.add(name);
    checkMembers(value, depth + 1);
  }
}

function duration(value: unknown): number {
  const match = typeof value === 'string' ? /^(\d+)(ms|s|m|h|d)$/.exec(value) : null;
  const unit = UNITS[match?.[2] ?? ''];
  if (match === null || unit === undefined) {
    throw new HttpError(
      'illegal_argument',
      `failed to parse setting [expiration] with value [${String(value)}] as a time value: unit is missing or unrecognized`,
    );
  }
  const milliseconds = Number(match[1]) * unit;
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

function invalid(problem: string): HttpError {
  return new HttpError('validation', `Validation Failed: 1: ${problem};`);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
