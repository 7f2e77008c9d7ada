import { type Endpoint, engine } from './types.js';

const WHICH = ['expand_wildcards', 'allow_no_indices', 'ignore_unavailable', 'ignore_throttled'];
const URI_QUERY = ['q', 'df', 'default_operator', 'analyzer', 'analyze_wildcard', 'lenient'];

export const SEARCH_ENDPOINTS: readonly Endpoint[] = [
  ...engine('search', 'indices:data/read/search', ['GET|POST /{index}/_search', 'GET|POST /_search'], {
    body: true,
    cancellable: true,
    params: [
      ...[...WHICH, ...URI_QUERY, '_source', '_source_includes', '_source_excludes', '_source_exclude_vectors'],
      ...['from', 'size', 'min_score'],
      ...['track_total_hits', 'track_scores', 'rest_total_hits_as_int', 'typed_keys', 'preference', 'routing'],
      ...['search_type', 'timeout', 'terminate_after', 'allow_partial_search_results', 'batched_reduce_size'],
      ...['max_concurrent_shard_requests', 'pre_filter_shard_size', 'request_cache', 'ccs_minimize_roundtrips'],
      ...['version', 'seq_no_primary_term', 'sort', 'explain', 'stored_fields', 'docvalue_fields', 'scroll', 'stats'],
      'include_named_queries_score',
    ],
  }),
  ...engine('knn_search', 'indices:data/read/search', ['GET|POST /{index}/_knn_search'], {
    body: true,
    cancellable: true,
    params: ['routing'],
  }),
  ...engine('explain', 'indices:data/read/explain', ['GET|POST /{index}/_explain/{id}'], {
    body: true,
    cancellable: true,
    params: [...URI_QUERY, '_source', '_source_includes', '_source_excludes', 'stored_fields', 'preference', 'routing'],
  }),
  ...engine('msearch', 'indices:data/read/msearch', ['GET|POST /_msearch', 'GET|POST /{index}/_msearch'], {
    body: true,
    ndjson: true,
    cancellable: true,
    params: [
      ...[...WHICH, 'max_concurrent_searches', 'max_concurrent_shard_requests', 'pre_filter_shard_size', 'routing'],
      ...['search_type', 'typed_keys', 'rest_total_hits_as_int', 'ccs_minimize_roundtrips'],
      'include_named_queries_score',
    ],
  }),
  ...engine('rank_eval', 'indices:data/read/rank_eval', ['GET|POST /_rank_eval', 'GET|POST /{index}/_rank_eval'], {
    body: true,
    cancellable: true,
    params: [...WHICH, 'search_type'],
  }),
  ...engine(
    'scroll',
    'indices:data/read/scroll',
    ['GET|POST /_search/scroll', 'GET|POST /_search/scroll/{scroll_id}'],
    { body: true, cancellable: true, params: ['scroll', 'scroll_id', 'rest_total_hits_as_int'] },
  ),
  ...engine(
    'clear_scroll',
    'indices:data/read/scroll/clear',
    ['DELETE /_search/scroll', 'DELETE /_search/scroll/{scroll_id}'],
    { body: true, params: ['scroll_id'] },
  ),
  ...engine('open_point_in_time', 'indices:data/read/open_point_in_time', ['POST /{index}/_pit'], {
    body: true,
    params: [
      ...[...WHICH, 'keep_alive', 'preference', 'routing', 'allow_partial_search_results'],
      'max_concurrent_shard_requests',
    ],
  }),
  ...engine('close_point_in_time', 'indices:data/read/close_point_in_time', ['DELETE /_pit'], {
    body: true,
  }),
  ...engine('field_caps', 'indices:data/read/field_caps', ['GET|POST /{index}/_field_caps', 'GET|POST /_field_caps'], {
    body: true,
    cancellable: true,
    params: [...WHICH, 'fields', 'include_unmapped', 'include_empty_fields', 'filters', 'types'],
  }),
  ...engine('terms_enum', 'indices:data/read/xpack/termsenum/list', ['GET|POST /{index}/_terms_enum'], {
    body: true,
    cancellable: true,
    params: WHICH,
  }),
  ...engine(
    'validate_query',
    'indices:admin/validate/query',
    ['GET|POST /{index}/_validate/query', 'GET|POST /_validate/query'],
    { body: true, cancellable: true, params: [...WHICH, ...URI_QUERY, 'explain', 'rewrite', 'all_shards'] },
  ),
  ...engine(
    'search_shards',
    'indices:admin/shards/search_shards',
    ['GET|POST /{index}/_search_shards', 'GET|POST /_search_shards'],
    { params: [...WHICH, 'local', 'preference', 'routing', 'master_timeout'] },
  ),
  ...engine('count', 'indices:data/read/search', ['GET|POST /{index}/_count', 'GET|POST /_count'], {
    body: true,
    cancellable: true,
    params: [...WHICH, ...URI_QUERY, 'min_score', 'preference', 'routing', 'terminate_after'],
  }),
];
