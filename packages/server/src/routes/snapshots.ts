import { type Endpoint, engine } from './types.js';

const WAITS = ['master_timeout', 'timeout'];

const LISTING = [
  ...['after', 'from_sort_value', 'ignore_unavailable', 'include_repository', 'index_details', 'index_names'],
  ...['master_timeout', 'offset', 'order', 'size', 'slm_policy_filter', 'sort', 'verbose'],
];

/** Repositories and the snapshots in them. */
export const SNAPSHOT_ENDPOINTS: readonly Endpoint[] = [
  ...engine(
    'get_repository',
    'cluster:admin/repository/get',
    ['GET /_snapshot', 'GET /_snapshot/_all', 'GET /_snapshot/{repository}'],
    { params: ['local', 'master_timeout'] },
  ),
  ...engine('put_repository', 'cluster:admin/repository/put', ['PUT|POST /_snapshot/{repository}'], {
    body: true,
    params: [...WAITS, 'verify'],
  }),
  ...engine('delete_repository', 'cluster:admin/repository/delete', ['DELETE /_snapshot/{repository}'], {
    params: WAITS,
  }),
  ...engine('verify_repository', 'cluster:admin/repository/verify', ['POST /_snapshot/{repository}/_verify'], {
    params: WAITS,
  }),
  ...engine('cleanup_repository', 'cluster:admin/repository/_cleanup', ['POST /_snapshot/{repository}/_cleanup'], {
    params: WAITS,
  }),
  ...engine('create_snapshot', 'cluster:admin/snapshot/create', ['PUT|POST /_snapshot/{repository}/{snapshot}'], {
    body: true,
    params: ['master_timeout', 'wait_for_completion'],
  }),
  ...engine('get_snapshot', 'cluster:admin/snapshot/get', ['GET /_snapshot/{repository}/{snapshot}'], {
    params: LISTING,
  }),
  ...engine(
    'snapshot_status',
    'cluster:admin/snapshot/status',
    ['GET /_snapshot/_status', 'GET /_snapshot/{repository}/_status', 'GET /_snapshot/{repository}/{snapshot}/_status'],
    { params: ['ignore_unavailable', 'master_timeout'] },
  ),
  ...engine(
    'clone_snapshot',
    'cluster:admin/snapshot/clone',
    ['PUT /_snapshot/{repository}/{snapshot}/_clone/{target_snapshot}'],
    { body: true, params: WAITS },
  ),
  ...engine('delete_snapshot', 'cluster:admin/snapshot/delete', ['DELETE /_snapshot/{repository}/{snapshot}'], {
    params: ['master_timeout', 'wait_for_completion'],
  }),
  ...engine(
    'restore_snapshot',
    'cluster:admin/snapshot/restore',
    ['POST /_snapshot/{repository}/{snapshot}/_restore'],
    { body: true, params: ['master_timeout', 'wait_for_completion'] },
  ),
];
