import { HttpError } from '../errors.js';
import { type ApiKey, type KeyStore, decodeKey } from './key-store.js';

const CHALLENGES = ['Basic realm="security" charset="UTF-8"', 'Bearer realm="security"', 'ApiKey'];

/**
 * The key of a request.
 *
 * @param authorization the `Authorization` header
 * @param path as it is shown in the error, with its query string
 * @throws {HttpError} 401 with the documented body
 */
export function authenticate(keys: KeyStore, authorization: string | undefined, path: string, now: number): ApiKey {
  if (authorization === undefined || authorization.trim() === '') {
    throw unauthenticated(`missing authentication credentials for REST request [${path}]`);
  }
  const [scheme = '', encoded = ''] = authorization.trim().split(/\s+/, 2);
  // Only this scheme: a bearer token is not a key, whatever it decodes to.
  const parts = scheme.toLowerCase() === 'apikey' ? decodeKey(encoded) : undefined;
  const key = parts === undefined ? undefined : keys.verify(parts.id, parts.secret, now);
  if (key === undefined) {
    throw unauthenticated(
      'unable to authenticate with provided credentials and anonymous access is not allowed for this request',
    );
  }
  return key;
}

function unauthenticated(reason: string): HttpError {
  return new HttpError('unauthenticated', reason, {
    metadata: { header: { 'WWW-Authenticate': CHALLENGES } },
    headers: CHALLENGES.map((challenge) => ['WWW-Authenticate', challenge] as const),
  });
}
