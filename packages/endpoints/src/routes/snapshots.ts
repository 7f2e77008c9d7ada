import { type Endpoint, engine } from './types.js';

/** Repositories and the snapshots in them. */
export const SNAPSHOT_ENDPOINTS: readonly Endpoint[] = [
  ...engine('get_repository', ['GET /_snapshot', 'GET /_snapshot/_all', 'GET /_snapshot/{repository}']),
  ...engine('put_repository', ['PUT|POST /_snapshot/{repository}']),
  ...engine('delete_repository', ['DELETE /_snapshot/{repository}']),
  ...engine('verify_repository', ['POST /_snapshot/{repository}/_verify']),
  ...engine('cleanup_repository', ['POST /_snapshot/{repository}/_cleanup']),
  ...engine('create_snapshot', ['PUT|POST /_snapshot/{repository}/{snapshot}']),
  ...engine('get_snapshot', ['GET /_snapshot/{repository}/{snapshot}']),
  ...engine('snapshot_status', [
    'GET /_snapshot/_status',
    'GET /_snapshot/{repository}/_status',
    'GET /_snapshot/{repository}/{snapshot}/_status',
  ]),
  ...engine('clone_snapshot', ['PUT /_snapshot/{repository}/{snapshot}/_clone/{target_snapshot}']),
  ...engine('delete_snapshot', ['DELETE /_snapshot/{repository}/{snapshot}']),
  ...engine('restore_snapshot', ['POST /_snapshot/{repository}/{snapshot}/_restore']),
];
