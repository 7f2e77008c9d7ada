import { type Endpoint, engine } from './types.js';

const PUT_ALIAS = [
  ...['PUT|POST /{index}/_alias/{name}', 'PUT|POST /{index}/_aliases/{name}'],
  ...['PUT|POST /_alias/{name}', 'PUT|POST /_aliases/{name}'],
  ...['PUT /{index}/_alias', 'PUT /{index}/_aliases', 'PUT /_alias'],
];
const GET_ALIAS = [
  ...['GET|HEAD /_alias', 'GET /_aliases', 'GET|HEAD /_alias/{name}'],
  ...['GET|HEAD /{index}/_alias', 'GET|HEAD /{index}/_alias/{name}'],
];

const GET_SETTINGS = [
  ...['GET /{index}/_settings', 'GET /_settings'],
  ...['GET /{index}/_settings/{name}', 'GET /_settings/{name}'],
];

/** Indices, their mappings and settings, and the state of the whole. */
export const INDEX_ENDPOINTS: readonly Endpoint[] = [
  ...engine('create_index', ['PUT /{index}']),
  ...engine('get_index', ['GET /{index}']),
  ...engine('exists_index', ['HEAD /{index}']),
  ...engine('delete_index', ['DELETE /{index}']),
  ...engine('get_mapping', ['GET /{index}/_mapping', 'GET /_mapping', 'GET /{index}/_mappings', 'GET /_mappings']),
  ...engine('get_field_mapping', ['GET /{index}/_mapping/field/{fields}', 'GET /_mapping/field/{fields}']),
  ...engine('put_mapping', ['PUT|POST /{index}/_mapping', 'PUT|POST /{index}/_mappings']),
  ...engine('get_settings', GET_SETTINGS),
  ...engine('put_settings', ['PUT /{index}/_settings', 'PUT /_settings']),
  ...engine('analyze', ['GET|POST /_analyze', 'GET|POST /{index}/_analyze']),
  ...engine('refresh', ['GET|POST /{index}/_refresh', 'GET|POST /_refresh']),
  ...engine('flush', ['GET|POST /{index}/_flush', 'GET|POST /_flush']),
  ...engine('cat_indices', ['GET /_cat/indices', 'GET /_cat/indices/{index}']),
  ...engine('update_aliases', ['POST /_aliases']),
  ...engine('put_alias', PUT_ALIAS),
  ...engine('get_alias', GET_ALIAS),
  ...engine('delete_alias', ['DELETE /{index}/_alias/{name}', 'DELETE /{index}/_aliases/{name}']),
  ...engine('cat_aliases', ['GET /_cat/aliases', 'GET /_cat/aliases/{name}']),
  ...engine('cluster_health', ['GET /_cluster/health', 'GET /_cluster/health/{index}']),
];
