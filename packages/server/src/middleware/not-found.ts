import { unhandled, unknownPath } from '../http/unknown-path.js';
import { callerOf } from './authentication.js';
import type { Call } from './call.js';

/**
 * Refuses a path that is none of this server's, whatever index its route takes the first name for. Needs nothing, adds nothing.
 *
 * @throws {RoutingError | HttpError} 400, or what a caller without a key is told
 */
export function refuseUnknown(call: Call): void {
  const unknown = unknownPath(call.exchange, call.route);
  if (unknown !== undefined) refuse(call, unknown);
}

/**
 * What is answered to a path without a route. Needs nothing, adds nothing.
 *
 * @throws {RoutingError | HttpError} always
 */
export function notFound(call: Call): never {
  return refuse(call, unknownPath(call.exchange, undefined) ?? unhandled(call.exchange));
}

/** Unknown paths are as closed as known ones: a caller without a key learns that it has none. */
function refuse(call: Call, refusal: Error): never {
  if (call.exchange.method !== 'OPTIONS') callerOf(call);
  throw refusal;
}
