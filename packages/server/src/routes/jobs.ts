import { type Endpoint, engine } from './types.js';

const WHICH_TASKS = ['actions', 'nodes', 'parent_task_id', 'group_by', 'detailed', 'timeout', 'wait_for_completion'];

const BY_QUERY = [
  ...['expand_wildcards', 'allow_no_indices', 'ignore_unavailable', 'q', 'df', 'default_operator', 'analyzer'],
  ...['analyze_wildcard', 'lenient', 'conflicts', 'max_docs', 'size', 'from', 'sort', 'terminate_after', 'scroll'],
  ...['scroll_size', 'search_type', 'search_timeout', 'slices', 'requests_per_second', 'refresh', 'timeout'],
  ...['wait_for_active_shards', 'wait_for_completion', 'routing', 'preference', 'request_cache', 'stats', 'version'],
];

/** Every prefix under which the index upgrade has been published. */
const MIGRATION_PREFIXES = ['/_ext/migration', '/_xpack/migration', '/_migration'];

/** Reindex, tasks, the index upgrade and the change of a field's model. */
export const JOB_ENDPOINTS: readonly Endpoint[] = [
  ...engine('reindex', 'indices:data/write/reindex', ['POST /_reindex'], {
    body: true,
    params: [
      ...['refresh', 'requests_per_second', 'scroll', 'slices', 'max_docs', 'timeout', 'wait_for_active_shards'],
      ...[
        'wait_for_completion',
        'require_alias',
        'dry_run',
        'ignore_unavailable',
        'allow_no_indices',
        'expand_wildcards',
      ],
    ],
  }),
  ...engine('update_by_query', 'indices:data/write/update/byquery', ['POST /{index}/_update_by_query'], {
    body: true,
    params: [...BY_QUERY, 'pipeline', 'version_type'],
  }),
  ...engine('delete_by_query', 'indices:data/write/delete/byquery', ['POST /{index}/_delete_by_query'], {
    body: true,
    params: BY_QUERY,
  }),
  ...engine(
    'rethrottle',
    'cluster:admin/reindex/rethrottle',
    ['_reindex', '_update_by_query', '_delete_by_query'].map((job) => `POST /${job}/{task}/_rethrottle`),
    { params: ['requests_per_second', 'group_by'] },
  ),
  ...engine('get_task', 'cluster:monitor/task/get', ['GET /_tasks/{task}'], {
    params: ['wait_for_completion', 'timeout', 'detailed'],
  }),
  ...engine('list_tasks', 'cluster:monitor/tasks/lists', ['GET /_tasks'], {
    params: [...WHICH_TASKS, 'master_timeout'],
  }),
  ...engine('cancel_tasks', 'cluster:admin/tasks/cancel', ['POST /_tasks/_cancel'], {
    cancellable: true,
    params: WHICH_TASKS,
  }),
  ...engine('cancel_task', 'cluster:admin/tasks/cancel', ['POST /_tasks/{task}/_cancel'], {
    cancellable: true,
    params: WHICH_TASKS,
  }),
  ...engine(
    'upgrade_index',
    'cluster:admin/xpack/upgrade',
    MIGRATION_PREFIXES.map((prefix) => `POST ${prefix}/upgrade/{index}`),
    { params: ['wait_for_completion'] },
  ),
  ...engine(
    'upgrade_assistance',
    'cluster:monitor/xpack/upgrade/info',
    MIGRATION_PREFIXES.flatMap((prefix) => [`GET ${prefix}/assistance`, `GET ${prefix}/assistance/{index}`]),
    { params: ['allow_no_indices', 'expand_wildcards', 'ignore_unavailable'] },
  ),
  ...engine('get_field_models', 'indices:admin/ext/model/get', ['GET /{index}/_ext/model'], {
    params: ['allow_no_indices', 'expand_wildcards', 'ignore_unavailable'],
  }),
  ...engine('change_model', 'indices:admin/ext/model/change', ['POST /{index}/_ext/model/_change'], {
    body: true,
    params: ['wait_for_completion', 'requests_per_second'],
  }),
  ...engine('switch_model', 'indices:admin/ext/model/change', ['POST /{index}/_ext/model/_switch']),
  ...engine('roll_back_model', 'indices:admin/ext/model/change', ['POST /{index}/_ext/model/_rollback']),
  ...engine('drop_model', 'indices:admin/ext/model/change', ['POST /{index}/_ext/model/_drop']),
];
