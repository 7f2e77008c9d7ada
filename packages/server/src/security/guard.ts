import type { EngineRequest } from '@sparrow-search/engine';

import type { Endpoint } from '../routes/types.js';
import { ACTIONS, type Action } from './actions.js';
import { asksForAll, denial, isUnrestricted, patterns, requireCluster, requireIndices } from './authorize.js';
import type { ApiKey } from './key-store.js';
import { touchedIndices } from './touched-indices.js';

/** What the engine checks where indices are named by a body. */
const SEARCH: Action = 'indices:data/read/search';

/** Operations that take a list of index expressions and, asked for all, answer for those that the key may read. */
const NARROWED: ReadonlySet<string> = new Set(['search', 'count', 'field_caps', 'validate_query']);

/** Operations that open or use what lives between requests: it belongs to the restricted key that opened it. */
const OWNED: ReadonlySet<string> = new Set(['search', 'msearch', 'scroll', 'clear_scroll', 'open_point_in_time', 'close_point_in_time']);

/**
 * Checks that the key may make the request. Asked to search everything, a restricted key searches everything it may: the
 * request comes back with its own patterns as the index expression.
 *
 * @throws {HttpError} 403
 */
export function authorize(
  key: ApiKey,
  endpoint: Endpoint,
  request: EngineRequest,
  body: Uint8Array | undefined,
): EngineRequest {
  const { action } = endpoint;
  if (action === null || action === 'public') return request;
  if (ACTIONS[action].scope === 'cluster') {
    requireCluster(key, action);
    return request;
  }
  if (isUnrestricted(key, action) && (endpoint.indices ?? 'path') === 'path') return request;
  if (isUnrestricted(key, SEARCH) && (endpoint.indices === 'opened' || endpoint.indices === 'headers')) return request;
  const index = request.path['index'];
  if (OWNED.has(request.op)) request = { ...request, path: { ...request.path, key: key.id } };
  if (endpoint.indices === 'opened') return request;
  if (endpoint.indices === 'headers') {
    const allowed = patterns(key, SEARCH);
    const sentence = denial(key, SEARCH, ' on indices [{}]');
    return { ...request, path: { ...request.path, key_indices: allowed.join(','), key_denied: sentence } };
  }
  if (NARROWED.has(request.op) && !isUnrestricted(key, action) && asksForAll(index?.split(',') ?? [])) {
    const allowed = patterns(key, action);
    if (allowed.length > 0) {
      return {
        ...request,
        path: { ...request.path, index: allowed.join(','), key_narrowed: 'true' },
        query: { ...request.query, ignore_unavailable: 'true' },
      };
    }
  }
  if (holdsEverything(key)) return request;
  for (const access of touchedIndices(endpoint, action, index, body)) requireIndices(key, access);
  return request;
}

/** Whether some role grants everything on every index: then no name, and no body, has to be looked at. */
function holdsEverything(key: ApiKey): boolean {
  return Object.values(key.roles).some((role) =>
    role.indices.some(({ names, privileges }) => names.includes('*') && privileges.includes('all')),
  );
}
