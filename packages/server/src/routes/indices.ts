import { CAT } from './cat.js';
import { type Endpoint, engine } from './types.js';

const TIMEOUTS = ['timeout', 'master_timeout'];
const WHICH = ['expand_wildcards', 'allow_no_indices', 'ignore_unavailable'];
const READ = [...WHICH, 'flat_settings', 'include_defaults', 'local', 'master_timeout', 'features'];

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
  ...engine('create_index', 'indices:admin/create', ['PUT /{index}'], {
    body: true,
    params: [...TIMEOUTS, 'wait_for_active_shards'],
  }),
  ...engine('get_index', 'indices:admin/get', ['GET /{index}'], { params: READ }),
  ...engine('exists_index', 'indices:admin/get', ['HEAD /{index}'], { params: READ }),
  ...engine('delete_index', 'indices:admin/delete', ['DELETE /{index}'], { params: [...TIMEOUTS, ...WHICH] }),
  ...engine(
    'get_mapping',
    'indices:admin/mappings/get',
    ['GET /{index}/_mapping', 'GET /_mapping', 'GET /{index}/_mappings', 'GET /_mappings'],
    {
      params: READ,
    },
  ),
  ...engine(
    'get_field_mapping',
    'indices:admin/mappings/fields/get',
    ['GET /{index}/_mapping/field/{fields}', 'GET /_mapping/field/{fields}'],
    { params: READ },
  ),
  ...engine('put_mapping', 'indices:admin/mapping/put', ['PUT|POST /{index}/_mapping', 'PUT|POST /{index}/_mappings'], {
    body: true,
    params: [...TIMEOUTS, ...WHICH, 'write_index_only'],
  }),
  ...engine('get_settings', 'indices:monitor/settings/get', GET_SETTINGS, { params: READ }),
  ...engine('put_settings', 'indices:admin/settings/update', ['PUT /{index}/_settings', 'PUT /_settings'], {
    body: true,
    params: [...TIMEOUTS, ...WHICH, 'flat_settings', 'preserve_existing'],
  }),
  ...engine('analyze', 'indices:admin/analyze', ['GET|POST /_analyze', 'GET|POST /{index}/_analyze'], {
    body: true,
    cancellable: true,
  }),
  ...engine('refresh', 'indices:admin/refresh', ['GET|POST /{index}/_refresh', 'GET|POST /_refresh'], {
    params: WHICH,
  }),
  ...engine('flush', 'indices:admin/flush', ['GET|POST /{index}/_flush', 'GET|POST /_flush'], {
    params: [...WHICH, 'force', 'wait_if_ongoing'],
  }),
  ...engine('cat_indices', 'indices:monitor/stats', ['GET /_cat/indices', 'GET /_cat/indices/{index}'], {
    reply: 'text',
    params: [...CAT, ...WHICH, 'health', 'pri', 'include_unloaded_segments'],
  }),
  ...engine('update_aliases', 'indices:admin/aliases', ['POST /_aliases'], {
    body: true,
    params: TIMEOUTS,
  }),
  ...engine('put_alias', 'indices:admin/aliases', PUT_ALIAS, { body: true, params: TIMEOUTS }),
  ...engine('get_alias', 'indices:admin/aliases/get', GET_ALIAS, {
    params: [...WHICH, 'local', 'master_timeout'],
  }),
  ...engine(
    'delete_alias',
    'indices:admin/aliases',
    ['DELETE /{index}/_alias/{name}', 'DELETE /{index}/_aliases/{name}'],
    { params: TIMEOUTS },
  ),
  ...engine('cat_aliases', 'indices:admin/aliases/get', ['GET /_cat/aliases', 'GET /_cat/aliases/{name}'], {
    reply: 'text',
    params: [...CAT, ...WHICH],
  }),
  ...engine('cluster_health', 'cluster:monitor/health', ['GET /_cluster/health', 'GET /_cluster/health/{index}'], {
    params: [
      ...[...TIMEOUTS, ...WHICH, 'level', 'local', 'wait_for_status', 'wait_for_nodes', 'wait_for_events'],
      ...['wait_for_active_shards', 'wait_for_no_relocating_shards', 'wait_for_no_initializing_shards'],
      'return_200_for_cluster_health_timeout',
    ],
  }),
];
