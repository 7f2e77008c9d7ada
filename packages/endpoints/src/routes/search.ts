import { type Endpoint, engine } from './types.js';

export const SEARCH_ENDPOINTS: readonly Endpoint[] = [
  ...engine('search', ['GET|POST /{index}/_search', 'GET|POST /_search']),
  ...engine('knn_search', ['GET|POST /{index}/_knn_search']),
  ...engine('explain', ['GET|POST /{index}/_explain/{id}']),
  ...engine('msearch', ['GET|POST /_msearch', 'GET|POST /{index}/_msearch']),
  ...engine('rank_eval', ['GET|POST /_rank_eval', 'GET|POST /{index}/_rank_eval']),
  ...engine('scroll', ['GET|POST /_search/scroll', 'GET|POST /_search/scroll/{scroll_id}']),
  ...engine('clear_scroll', ['DELETE /_search/scroll', 'DELETE /_search/scroll/{scroll_id}']),
  ...engine('open_point_in_time', ['POST /{index}/_pit']),
  // The second path is elasticdump's.
  ...engine('close_point_in_time', ['DELETE /_pit', 'DELETE /{index}/_pit']),
  ...engine('field_caps', ['GET|POST /{index}/_field_caps', 'GET|POST /_field_caps']),
  ...engine('terms_enum', ['GET|POST /{index}/_terms_enum']),
  ...engine('validate_query', ['GET|POST /{index}/_validate/query', 'GET|POST /_validate/query']),
  ...engine('search_shards', ['GET|POST /{index}/_search_shards', 'GET|POST /_search_shards']),
  ...engine('count', ['GET|POST /{index}/_count', 'GET|POST /_count']),
];
