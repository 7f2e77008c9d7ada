import type { EngineRequest } from '@sparrow-search/engine';

import type { Endpoint } from '../routes/types.js';
import { ACTIONS } from './actions.js';
import { isUnrestricted, patterns, requireCluster, requireIndices } from './authorize.js';
import type { ApiKey } from './key-store.js';
import { touchedIndices } from './touched-indices.js';

/** Operations that narrow the wildcards of their expressions to what the key may see. */
const NARROWED: ReadonlySet<string> = new Set([
  ...['search', 'count', 'get_index', 'exists_index', 'get_mapping', 'put_mapping', 'get_settings', 'put_settings'],
  ...['close_index', 'open_index', 'add_block', 'force_merge', 'clear_cache', 'resolve_index', 'get_data_stream'],
  ...['refresh', 'flush', 'cat_indices', 'cat_aliases', 'get_alias', 'put_alias', 'delete_alias', 'update_aliases'],
]);

/**
 * Checks that the key may make the request. Wildcards of a restricted key stand for what it may see: the request comes back
 * with the key's patterns, and the engine resolves by them.
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
  if (holdsEverything(key)) return request;
  const narrowed = NARROWED.has(request.op);
  for (const access of touchedIndices(endpoint, action, request.path, body)) requireIndices(key, access, narrowed);
  return narrowed && !isUnrestricted(key, action) ? { ...request, visible: patterns(key, action) } : request;
}

/** Whether some role grants everything on every index: then no name, and no body, has to be looked at. */
function holdsEverything(key: ApiKey): boolean {
  return Object.values(key.roles).some((role) =>
    role.indices.some(({ names, privileges }) => names.includes('*') && privileges.includes('all')),
  );
}
