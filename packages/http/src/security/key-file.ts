import { HttpError } from '@sparrow-search/endpoints';

import { StoredFileError, parseStored } from '../durable-file.js';
import type { KeyList } from './key-list.js';
import type { ApiKey } from './key-store.js';
import { isObject } from './request-body.js';
import { isRoles } from './roles.js';

/** Version of the file's layout; an unknown one is refused rather than guessed at. */
const FORMAT = 1;
/** What a server that starts without the file does not have. */
export const LOSS = 'with a new owner key and no others';

/** The JSON of a file with some keys, without its closing brace. */
export function* textsOf(keys: KeyList): Generator<string> {
  let before = `{"format":${String(FORMAT)},"keys":[`;
  for (const key of keys.values()) {
    yield before + JSON.stringify(key);
    before = ',';
  }
  yield keys.size === 0 ? `${before}]` : ']';
}

/**
 * The keys that a file holds.
 *
 * @throws {StoredFileError} when it is not what {@link textsOf} wrote
 */
export function parseFile(path: string, text: string): readonly ApiKey[] {
  const { keys } = parseStored(path, text, { format: FORMAT, members: ['format', 'keys'], loss: LOSS });
  if (!Array.isArray(keys) || !keys.every(isKey)) {
    throw StoredFileError.damaged(path, '[keys] is not a list of keys', LOSS);
  }
  return keys;
}

/**
 * The keys that the file of another server holds, as a snapshot has it.
 *
 * @throws {HttpError} 400 when it cannot be read
 */
export function parseSnapshot(text: string): readonly ApiKey[] {
  try {
    return parseFile('security/api_keys.json', text);
  } catch (error) {
    if (!(error instanceof StoredFileError)) throw error;
    throw new HttpError('illegal_argument', `the API keys of the snapshot cannot be read: ${error.message}`);
  }
}

/** Whether something has what decides about a caller. */
function isKey(key: unknown): key is ApiKey {
  if (typeof key !== 'object' || key === null) return false;
  const { id, name, hash, owner, invalidated, roles, limitedBy, root, expiration, roleDescriptors, metadata } =
    key as Partial<Record<keyof ApiKey, unknown>>;
  return (
    typeof id === 'string' &&
    typeof name === 'string' &&
    typeof hash === 'string' &&
    /^[0-9a-f]{64}$/.test(hash) &&
    typeof owner === 'boolean' &&
    typeof invalidated === 'boolean' &&
    isRoles(roles) &&
    (limitedBy === undefined || (Array.isArray(limitedBy) && limitedBy.every(isRoles))) &&
    (root === undefined || typeof root === 'string') &&
    isObject(roleDescriptors) &&
    isObject(metadata) &&
    (expiration === undefined || typeof expiration === 'number')
  );
}
