import { type Endpoint, engine } from './types.js';

const WHICH = ['expand_wildcards', 'allow_no_indices', 'ignore_unavailable', 'ignore_throttled'];
const URI_QUERY = ['q', 'df', 'default_operator', 'analyzer', 'analyze_wildcard', 'lenient'];

export const SEARCH_ENDPOINTS: readonly Endpoint[] = [
  ...engine('search', 'indices:data/read/search', ['GET|POST /{index}/_search', 'GET|POST /_search'], {
    body: true,
    cancellable: true,
    params: [
      ...[...WHICH, ...URI_QUERY, '_source', '_source_includes', '_source_excludes', 'from', 'size', 'min_score'],
      ...['track_total_hits', 'track_scores', 'rest_total_hits_as_int', 'typed_keys', 'preference', 'routing'],
      ...['search_type', 'timeout', 'terminate_after', 'allow_partial_search_results', 'batched_reduce_size'],
      ...['max_concurrent_shard_requests', 'pre_filter_shard_size', 'request_cache', 'ccs_minimize_roundtrips'],
      ...['version', 'seq_no_primary_term', 'sort', 'explain', 'stored_fields', 'docvalue_fields'],
    ],
  }),
  ...engine('explain', 'indices:data/read/explain', ['GET|POST /{index}/_explain/{id}'], {
    body: true,
    cancellable: true,
    params: [...URI_QUERY, '_source', '_source_includes', '_source_excludes', 'stored_fields', 'preference', 'routing'],
  }),
  ...engine('count', 'indices:data/read/search', ['GET|POST /{index}/_count', 'GET|POST /_count'], {
    body: true,
    cancellable: true,
    params: [...WHICH, ...URI_QUERY, 'min_score', 'preference', 'routing', 'terminate_after'],
  }),
];
