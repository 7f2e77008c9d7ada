import type { EngineRequest } from '@sparrow-search/engine';

import type { Endpoint } from '../routes/types.js';
import { ACTIONS, type Action } from './actions.js';
import { denial, isUnrestricted, patterns, requireCluster, requireIndices } from './authorize.js';
import type { ApiKey } from './key-store.js';
import { lookedUpIndices, touchedIndices } from './touched-indices.js';

/** What the engine checks where indices are named by a body, and where a pipeline names them. */
const SEARCH: Action = 'indices:data/read/search';
const WRITE: Action = 'indices:data/write/index';

/** Operations that narrow the wildcards of their expressions to what the key may see. */
const NARROWED: ReadonlySet<string> = new Set([
  ...['search', 'count', 'field_caps', 'validate_query', 'open_point_in_time'],
  ...['get_index', 'exists_index', 'get_mapping', 'put_mapping', 'get_settings', 'put_settings', 'refresh', 'flush'],
  ...['close_index', 'open_index', 'add_block', 'force_merge', 'clear_cache', 'resolve_index', 'get_data_stream'],
  ...['cat_count', 'cat_shards', 'cat_segments'],
  ...['cat_indices', 'cat_aliases', 'get_alias', 'put_alias', 'delete_alias', 'update_aliases'],
]);

/** Operations whose pipelines may send a document to an index that the request does not name. */
const PIPED: ReadonlySet<string> = new Set([
  ...['index_doc', 'create_doc', 'update_doc', 'bulk', 'reindex', 'update_by_query'],
]);

/** Operations that open or use what lives between requests: it belongs to the restricted key that opened it. */
const OWNED: ReadonlySet<string> = new Set([
  'search',
  'msearch',
  'scroll',
  'clear_scroll',
  'open_point_in_time',
  'close_point_in_time',
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
  if (isUnrestricted(key, SEARCH) && (endpoint.indices === 'opened' || endpoint.indices === 'headers')) return request;
  for (const access of lookedUpIndices(action, body)) requireIndices(key, access, false);
  if (OWNED.has(request.op)) request = { ...request, path: { ...request.path, key: key.id } };
  if (endpoint.indices === 'opened') return request;
  if (endpoint.indices === 'headers') {
    return bounded(request, key, SEARCH);
  }
  if (holdsEverything(key)) return request;
  if (PIPED.has(request.op) && !isUnrestricted(key, WRITE)) {
    request = bounded(request, key, WRITE);
  }
  const narrowed = NARROWED.has(request.op);
  for (const access of touchedIndices(endpoint, action, request.path, body)) requireIndices(key, access, narrowed);
  return narrowed && !isUnrestricted(key, action) ? { ...request, visible: patterns(key, action) } : request;
}

/** The request with what the key may reach, for the engine to check. */
function bounded(request: EngineRequest, key: ApiKey, action: Action): EngineRequest {
  const path = {
    ...request.path,
    key_indices: patterns(key, action).join(','),
    key_denied: denial(key, action, ' on indices [{}]'),
  };
  return { ...request, path };
}

/** Whether some role grants everything on every index: then no name, and no body, has to be looked at. */
function holdsEverything(key: ApiKey): boolean {
  return Object.values(key.roles).some((role) =>
    role.indices.some(({ names, privileges }) => names.includes('*') && privileges.includes('all')),
  );
}
