import { type Endpoint, engine, local } from './types.js';

/** Every prefix under which the index upgrade has been published. */
const MIGRATION_PREFIXES = ['/_ext/migration', '/_xpack/migration', '/_migration'];

/** Reindex, tasks, the index upgrade and the change of a field's model. */
export const JOB_ENDPOINTS: readonly Endpoint[] = [
  ...engine('reindex', ['POST /_reindex']),
  ...engine('list_reindex', ['GET /_reindex']),
  ...engine('get_reindex', ['GET /_reindex/{task}']),
  ...engine('cancel_reindex', ['POST /_reindex/{task}/_cancel']),
  ...engine('update_by_query', ['POST /{index}/_update_by_query']),
  ...engine('delete_by_query', ['POST /{index}/_delete_by_query']),
  ...engine(
    'rethrottle',
    ['_reindex', '_update_by_query', '_delete_by_query'].map((job) => `POST /${job}/{task}/_rethrottle`),
  ),
  ...engine('get_task', ['GET /_tasks/{task}']),
  ...engine('list_tasks', ['GET /_tasks']),
  ...local('ended_tasks', 'cluster:monitor/tasks/lists', ['GET /_ext/tasks']),
  ...engine('cancel_tasks', ['POST /_tasks/_cancel']),
  ...engine('cancel_task', ['POST /_tasks/{task}/_cancel']),
  ...engine(
    'upgrade_index',
    MIGRATION_PREFIXES.map((prefix) => `POST ${prefix}/upgrade/{index}`),
  ),
  ...engine(
    'upgrade_assistance',
    MIGRATION_PREFIXES.flatMap((prefix) => [`GET ${prefix}/assistance`, `GET ${prefix}/assistance/{index}`]),
  ),
  ...engine('get_field_models', ['GET /{index}/_ext/model']),
  ...engine('change_model', ['POST /{index}/_ext/model/_change']),
  ...engine('switch_model', ['POST /{index}/_ext/model/_switch']),
  ...engine('roll_back_model', ['POST /{index}/_ext/model/_rollback']),
  ...engine('drop_model', ['POST /{index}/_ext/model/_drop']),
];
