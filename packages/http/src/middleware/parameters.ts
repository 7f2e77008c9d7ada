import { type Endpoint, COMMON_PARAMS, checkParameter, isReadLate } from '@sparrow-search/endpoints';

import { parametersOf } from '../exchange/uri.js';
import { unrecognized } from '../exchange/unrecognized.js';
import { parametersIn, spokenBy } from '../exchange/versions.js';
import type { Call } from './call.js';

/**
 * Reads the query string. Needs nothing, adds `query`.
 *
 * @throws {HttpError} 400 for an escape that is malformed
 */
export function readParameters(call: Call): void {
  call.query = parametersOf(call.exchange.uri);
}

/**
 * Checks the parameters of the query string. Needs `query`, adds nothing.
 *
 * @throws {HttpError} 400 for a parameter that the endpoint does not have, or of another type than it has
 */
export function checkParameters({ exchange, query }: Call, endpoint: Endpoint): void {
  const names = Object.keys(query);
  if (names.length === 0) return;
  const params = parametersIn(spokenBy(exchange), endpoint);
  const unknown = names.filter(
    (name) =>
      !COMMON_PARAMS.has(name) &&
      !params.includes(name) &&
      !(endpoint.body && (name === 'source' || name === 'source_content_type')),
  );
  if (unknown.length > 0) {
    const candidates = params.filter((name) => !isReadLate(endpoint, name));
    throw unrecognized(exchange.path, unknown, new Set([...candidates, ...COMMON_PARAMS]));
  }
  for (const name of names) checkParameter(name, query[name] ?? '', endpoint);
}
