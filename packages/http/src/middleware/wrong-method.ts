import { type Method, type Route, RoutingError } from '@sparrow-search/endpoints';

import type { Answer } from '../exchange/respond.js';
import type { Call } from './call.js';

/** Order of methods in the sentence of a 405 and in its `Allow` header, as the original writes them. */
const SENTENCE_ORDER: readonly Method[] = ['GET', 'POST', 'PUT', 'DELETE', 'HEAD'];
const ALLOW_ORDER: readonly Method[] = ['PUT', 'GET', 'POST', 'DELETE', 'HEAD'];

/** What is answered to `OPTIONS`. Needs nothing, adds nothing. */
export function showMethods(route: Route): Answer {
  return { status: 200, body: null, type: 'text', headers: [['Allow', allow(route)]] };
}

/**
 * Refuses a method that the path does not have. Needs `caller`, so that nobody learns of paths without a key; adds nothing.
 *
 * @throws {RoutingError} 405
 */
export function refuseMethod({ exchange: { uri, method } }: Call, route: Route): never {
  const allowed = SENTENCE_ORDER.filter((known) => route.methods.has(known)).join(', ');
  throw new RoutingError(
    405,
    `Incorrect HTTP method for uri [${uri}] and method [${method}], allowed: [${allowed}]`,
    true,
    [['Allow', allow(route)]],
  );
}

function allow({ methods }: Route): string {
  return ALLOW_ORDER.filter((method) => methods.has(method)).join(',');
}
