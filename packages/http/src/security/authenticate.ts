import { HttpError } from '@sparrow-search/endpoints';

import type { Exchange } from '../exchange/exchange.js';
import type { Logger } from '../log.js';
import { type Attempts, MOST_FAILURES } from './attempts.js';
import { type ApiKey, type KeyStore, decodeKey } from './key-store.js';
import { unauthenticated } from './unauthenticated.js';

/**
 * The key of a request. Failed attempts are counted by address and logged; after too many, further ones are refused and logged no
 * more until a minute is over.
 *
 * @throws {HttpError} 401 with the documented body, 429 after too many failures
 */
export function authenticate(
  keys: KeyStore,
  attempts: Attempts,
  log: Logger,
  { exchange, requestId }: { exchange: Pick<Exchange, 'header' | 'from' | 'uri'>; requestId: string },
  now: number,
): ApiKey {
  const authorization = exchange.header('authorization');
  if (authorization === undefined || authorization.trim() === '') {
    throw unauthenticated(`missing authentication credentials for REST request [${exchange.uri}]: ${WHERE}`);
  }
  const isSentByItself = isBasic(authorization) && isFromAnotherPage(exchange);
  const parts = isSentByItself ? undefined : credentials(authorization);
  // A right key is let in whatever else comes from that address: secrets have too many bits to be guessed at any rate.
  const key = parts === undefined ? undefined : keys.check(parts.id, parts.secret, now);
  if (typeof key === 'object') return key;
  const { from } = exchange;
  const wait = attempts.wait(from, now);
  if (wait > 0) {
    throw new HttpError('too_many_attempts', `too many failed attempts to authenticate from [${from}]`, {
      headers: [['Retry-After', String(wait)]],
    });
  }
  const failures = attempts.failed(from, now);
  log.warn('authentication failed', {
    request_id: requestId,
    from,
    failures,
    reason: isSentByItself ? 'sent from the page of another site' : (key ?? 'no key in the header'),
    ...(parts === undefined ? {} : { key_id: claimed(parts.id) }),
  });
  if (failures === MOST_FAILURES)
    log.warn('too many failed attempts to authenticate: further ones from this address are refused for a while', {
      from,
    });
  if (isSentByItself) throw unknownKey(`: ${BY_ITSELF}`);
  if (parts === undefined) throw unknownKey(`: ${EXPECTED}`);
  throw isBasic(authorization) ? unknownKey(`: ${NO_USERS}`) : unknownKey();
}

/**
 * The same key as it is now: its request took as long to come as its sender liked.
 *
 * @throws {HttpError} 401 if it was ended meanwhile
 */
export function stillHolding(keys: KeyStore, caller: ApiKey, now: number): ApiKey {
  const key = keys.current(caller, now);
  if (key === undefined) throw unknownKey();
  return key;
}

function unknownKey(more = ''): HttpError {
  return unauthenticated(
    `unable to authenticate with provided credentials and anonymous access is not allowed for this request${more}`,
  );
}

/** What a header should have been that cannot be of any key. Nothing of it is repeated: it may hold a secret. */
const EXPECTED =
  '[ApiKey <key>], [Bearer <key>] or [Basic <key>] is expected in the header [Authorization], with base64 of [id:api_key] as the key';

/** What somebody needs who sends the user and password that another server had. It does not depend on whether there is such a key. */
const NO_USERS =
  'there are no users and passwords here; as [Basic], send the id of an API key as the user and its secret as the password';

/** Where a newcomer finds a key. It is the same for every server, so that it tells strangers nothing of this one. */
const WHERE =
  'send [Authorization: ApiKey <key>]; the first key of a server is in the file [owner.key] of its data directory, [data] unless told otherwise';

const BY_ITSELF = '[Basic <key>] is not taken from the page of another site, for which a browser sends it by itself';

/** The id of the key that a header claims to be of, if it is one. */
export function claimedKey(authorization: string | undefined): string | undefined {
  const parts = authorization === undefined ? undefined : credentials(authorization);
  return parts === undefined ? undefined : claimed(parts.id);
}

/** Ids come from strangers: as much of one as is needed to know it again. */
function claimed(id: string): string {
  return id.slice(0, 64);
}

/** The ways to send a key: clients that know neither keys nor each other's ways have a user with a password, or a token. */
const SCHEMES: ReadonlySet<string> = new Set(['apikey', 'basic', 'bearer']);

function credentials(authorization: string): { readonly id: string; readonly secret: string } | undefined {
  const [scheme = '', encoded = ''] = authorization.trim().split(/\s+/, 2);
  return SCHEMES.has(scheme.toLowerCase()) ? decodeKey(encoded) : undefined;
}

function isBasic(authorization: string): boolean {
  return /^\s*basic\s/i.test(authorization);
}

/**
 * Whether the page of another site sent a request. What somebody has entered when a browser asked for a user and a password, it sends
 * with every request from then on, also with those that the form of another page makes.
 */
function isFromAnotherPage(exchange: Pick<Exchange, 'header'>): boolean {
  const site = exchange.header('sec-fetch-site');
  if (site !== undefined) return site !== 'same-origin' && site !== 'none';
  const origin = exchange.header('origin');
  return origin !== undefined && origin.replace(/^\w+:\/\//, '') !== exchange.header('host');
}
