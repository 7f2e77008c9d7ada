import type { Endpoint } from '@sparrow-search/endpoints';

import { authenticate as verify, claimedKey, stillHolding } from '../security/authenticate.js';
import { admit } from '../security/authorize.js';
import { type ApiKey, rootOf } from '../security/key-store.js';
import { type Call, starting } from './call.js';

/**
 * Finds out whose key a request has. Needs nothing, adds `caller`. What comes back is waited for: a key that another server has just
 * made is looked for before it is turned away.
 *
 * @throws {HttpError} 401 for a key that does not exist, 429 after too many of them, 503 as long as the engine is opening
 */
export function authenticate(call: Call): Promise<void> | undefined {
  const { services, exchange, application } = call;
  if (services === undefined) throw starting();
  const { keys } = services;
  const id = keys.isShared ? claimedKey(exchange.header('authorization')) : undefined;
  // Who is refused for now, whatever the key, does not make the server ask the others.
  const isHeard = application.attempts.wait(exchange.from, Date.now()) === 0;
  if (id !== undefined && isHeard && keys.get(id) === undefined) {
    return keys.refresh().then(() => {
      call.caller = callerOf(call);
    });
  }
  call.caller = callerOf(call);
  return undefined;
}

/**
 * The key of a request.
 *
 * @throws {HttpError} as {@link authenticate} does
 */
function callerOf(call: Call): ApiKey {
  const { services, exchange, application } = call;
  if (services === undefined) throw starting();
  const { keys } = services;
  const { attempts, log, trusting = false } = application;
  const owner = trusting && exchange.header('authorization') === undefined ? keys.owner() : undefined;
  const caller = owner ?? verify(keys, attempts, log, call, Date.now());
  exchange.recognize?.(rootOf(caller));
  return caller;
}

/**
 * Refuses what the caller may not do anywhere. Needs `caller` and `query`, adds nothing. It comes before the body is read: who may do
 * nothing with it does not make the server take it.
 *
 * @throws {HttpError} 403
 */
export function authorize({ caller, path, query }: Call, endpoint: Endpoint): void {
  if (caller === undefined) throw starting();
  admit(caller, endpoint, path, query);
}

/**
 * Looks at the key again, after the body came: that took as long as its sender liked. Needs `caller`, and replaces it by the key as it is now.
 *
 * @throws {HttpError} 401 if it was ended meanwhile, 403 if it lost what it needs
 */
export function authenticateAgain(call: Call, endpoint: Endpoint): void {
  const { services, caller } = call;
  if (services === undefined || caller === undefined) throw starting();
  const now = stillHolding(services.keys, caller, Date.now());
  if (now === caller) return;
  call.caller = now;
  authorize(call, endpoint);
}
