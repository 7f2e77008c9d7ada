import { type Endpoint, local } from './types.js';

const API_KEY = '/_security/api_key';

/** What the server answers without the engine: itself, its keys, its console, its documentation. */
export const SERVICE_ENDPOINTS: readonly Endpoint[] = [
  ...local('info', 'cluster:monitor/main', ['GET|HEAD /']),
  // Two names for one thing: the second is what orchestrators look for.
  ...local('health', 'public', ['GET|HEAD /_health', 'GET|HEAD /_ready']),
  ...local('live', 'public', ['GET|HEAD /_live']),
  ...local('metrics', 'cluster:monitor/nodes/stats', ['GET /metrics']),
  ...local('openapi', 'public', ['GET|HEAD /_openapi.json']),
  ...local('console', 'public', ['GET|HEAD /_console']),
  ...local('documentation', 'public', ['GET|HEAD /_docs', 'GET|HEAD /_docs/{page}', 'GET|HEAD /_docs/{folder}/{page}']),
  ...local('search_documentation', 'public', ['GET|HEAD /_docs/search'], { params: ['q'] }),
  ...local('mcp', null, ['POST /mcp'], { body: true, cancellable: true }),
  ...local('license', 'cluster:monitor/xpack/license/get', ['GET /_license'], {
    params: ['accept_enterprise', 'local'],
  }),
  ...local('xpack_info', 'cluster:monitor/xpack/info', ['GET /_xpack'], {
    params: ['accept_enterprise', 'categories', 'master_timeout'],
  }),
  ...local('health_report', 'cluster:monitor/health_api', ['GET /_health_report', 'GET /_health_report/{feature}'], {
    params: ['size', 'timeout', 'verbose'],
  }),
  ...local('authenticate', null, ['GET /_security/_authenticate']),
  ...local('create_api_key', 'cluster:admin/xpack/security/api_key/create', [`PUT|POST ${API_KEY}`], {
    body: true,
    params: ['refresh'],
    cancellable: true,
  }),
  ...local('get_api_keys', 'cluster:admin/xpack/security/api_key/get', [`GET ${API_KEY}`], {
    params: ['id', 'name', 'owner', 'realm_name', 'username', 'active_only', 'with_limited_by'],
  }),
  ...local('query_api_keys', 'cluster:admin/xpack/security/api_key/query', ['GET|POST /_security/_query/api_key'], {
    body: true,
    params: ['with_limited_by', 'typed_keys'],
    cancellable: true,
  }),
  ...local('update_api_key', 'cluster:admin/xpack/security/api_key/update', [`PUT ${API_KEY}/{id}`], {
    body: true,
    cancellable: true,
  }),
  ...local(
    'bulk_update_api_keys',
    'cluster:admin/xpack/security/api_key/bulk_update',
    [`POST ${API_KEY}/_bulk_update`],
    { body: true, cancellable: true },
  ),
  ...local('invalidate_api_keys', 'cluster:admin/xpack/security/api_key/invalidate', [`DELETE ${API_KEY}`], {
    body: true,
    cancellable: true,
  }),
];
