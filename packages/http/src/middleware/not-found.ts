import { unhandled, unknownPath } from '../exchange/unknown-path.js';
import { authenticate } from './authentication.js';
import type { Call } from './call.js';

/**
 * Refuses a path that this server does not have, whatever index its route takes the first name for. Needs nothing, adds `caller`. What comes
 * back is waited for, and rejects.
 *
 * @throws {RoutingError | HttpError} 400, or what a caller without a key is told
 */
export function refuseUnknown(call: Call): Promise<never> | undefined {
  const unknown = unknownPath(call.exchange, call.route);
  return unknown === undefined ? undefined : refuse(call, unknown);
}

/**
 * What is answered to a path without a route. Needs nothing, adds `caller`. What comes back rejects.
 *
 * @throws {RoutingError | HttpError} always
 */
export function notFound(call: Call): Promise<never> {
  return refuse(call, unknownPath(call.exchange, undefined) ?? unhandled(call.exchange));
}

/** Unknown paths are as closed as known ones: a caller without a key learns that it has none. */
async function refuse(call: Call, refusal: Error): Promise<never> {
  if (call.exchange.method !== 'OPTIONS') await authenticate(call);
  throw refusal;
}
