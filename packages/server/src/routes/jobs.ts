import { type Endpoint, engine } from './types.js';

const WHICH_TASKS = ['actions', 'nodes', 'parent_task_id', 'group_by', 'detailed', 'timeout', 'wait_for_completion'];

/** Every prefix under which the index upgrade has been published. */
const MIGRATION_PREFIXES = ['/_ext/migration', '/_xpack/migration', '/_migration'];

/** Reindex, tasks and the index upgrade. */
export const JOB_ENDPOINTS: readonly Endpoint[] = [
  ...engine('reindex', 'indices:data/write/reindex', ['POST /_reindex'], {
    body: true,
    indices: 'reindex',
    params: [
      ...['refresh', 'requests_per_second', 'scroll', 'slices', 'max_docs', 'timeout', 'wait_for_active_shards'],
      ...['wait_for_completion', 'require_alias'],
    ],
  }),
  ...engine('rethrottle', 'cluster:admin/reindex/rethrottle', ['POST /_reindex/{task}/_rethrottle'], {
    params: ['requests_per_second', 'group_by'],
  }),
  ...engine('get_task', 'cluster:monitor/task/get', ['GET /_tasks/{task}'], {
    params: ['wait_for_completion', 'timeout', 'detailed'],
  }),
  ...engine('list_tasks', 'cluster:monitor/tasks/lists', ['GET /_tasks'], {
    params: [...WHICH_TASKS, 'master_timeout'],
  }),
  ...engine('cancel_tasks', 'cluster:admin/tasks/cancel', ['POST /_tasks/_cancel'], { params: WHICH_TASKS }),
  ...engine('cancel_task', 'cluster:admin/tasks/cancel', ['POST /_tasks/{task}/_cancel'], { params: WHICH_TASKS }),
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
];
