import { type Endpoint, engine } from './types.js';

const WHICH = ['expand_wildcards', 'allow_no_indices', 'ignore_unavailable'];

/** What every table takes. */
export const CAT = ['format', 'h', 'help', 'v', 's', 'bytes', 'time', 'local', 'master_timeout'];

/** Tables for people. Those of indices and aliases stand with what they show. */
export const CAT_ENDPOINTS: readonly Endpoint[] = [
  ...engine('cat_help', 'cluster:monitor/main', ['GET /_cat'], { reply: 'text', params: ['help', 's'] }),
  ...engine('cat_health', 'cluster:monitor/health', ['GET /_cat/health'], {
    reply: 'text',
    params: [...CAT, 'ts'],
  }),
  ...engine('cat_count', 'indices:data/read/search', ['GET /_cat/count', 'GET /_cat/count/{index}'], {
    reply: 'text',
    params: [...CAT, ...WHICH],
  }),
  ...engine('cat_shards', 'indices:monitor/stats', ['GET /_cat/shards', 'GET /_cat/shards/{index}'], {
    reply: 'text',
    params: [...CAT, ...WHICH],
  }),
  ...engine('cat_segments', 'indices:monitor/stats', ['GET /_cat/segments', 'GET /_cat/segments/{index}'], {
    reply: 'text',
    params: [...CAT, ...WHICH],
  }),
  ...engine('cat_master', 'cluster:monitor/main', ['GET /_cat/master'], {
    reply: 'text',
    params: [...CAT],
  }),
  ...engine('cat_nodes', 'cluster:monitor/nodes/stats', ['GET /_cat/nodes'], {
    reply: 'text',
    params: [...CAT, 'full_id', 'include_unloaded_segments'],
  }),
  ...engine(
    'cat_allocation',
    'cluster:monitor/nodes/stats',
    ['GET /_cat/allocation', 'GET /_cat/allocation/{node_id}'],
    {
      reply: 'text',
      params: [...CAT],
    },
  ),
  ...engine('cat_tasks', 'cluster:monitor/tasks/lists', ['GET /_cat/tasks'], {
    reply: 'text',
    params: [...CAT, 'actions', 'detailed', 'nodes', 'parent_task_id', 'timeout', 'wait_for_completion'],
  }),
  ...engine(
    'cat_thread_pool',
    'cluster:monitor/nodes/stats',
    ['GET /_cat/thread_pool', 'GET /_cat/thread_pool/{thread_pool_patterns}'],
    { reply: 'text', params: [...CAT, 'size'] },
  ),
  ...engine('cat_recovery', 'indices:monitor/recovery', ['GET /_cat/recovery', 'GET /_cat/recovery/{index}'], {
    reply: 'text',
    params: [...CAT, 'active_only', 'detailed', 'expand_wildcards', 'ignore_unavailable', 'allow_no_indices', 'index'],
  }),
  ...engine('cat_fielddata', 'cluster:monitor/nodes/stats', ['GET /_cat/fielddata', 'GET /_cat/fielddata/{fields}'], {
    reply: 'text',
    params: [...CAT, 'fields'],
  }),
  ...engine('cat_nodeattrs', 'cluster:monitor/nodes/stats', ['GET /_cat/nodeattrs'], {
    reply: 'text',
    params: [...CAT],
  }),
  ...engine('cat_repositories', 'cluster:admin/repository/get', ['GET /_cat/repositories'], {
    reply: 'text',
    params: [...CAT],
  }),
  ...engine(
    'cat_snapshots',
    'cluster:admin/snapshot/get',
    ['GET /_cat/snapshots', 'GET /_cat/snapshots/{repository}'],
    { reply: 'text', params: [...CAT, 'ignore_unavailable'] },
  ),
  ...engine(
    'cat_trained_models',
    'cluster:monitor/xpack/ml/inference/get',
    ['GET /_cat/ml/trained_models', 'GET /_cat/ml/trained_models/{model}'],
    { reply: 'text', params: [...CAT, 'allow_no_match', 'from', 'size'] },
  ),
  ...engine('cat_pending_tasks', 'cluster:monitor/main', ['GET /_cat/pending_tasks'], {
    reply: 'text',
    params: [...CAT],
  }),
  ...engine('cat_plugins', 'cluster:monitor/main', ['GET /_cat/plugins'], {
    reply: 'text',
    params: [...CAT, 'include_bootstrap'],
  }),
  ...engine('cat_templates', 'indices:admin/template/get', ['GET /_cat/templates', 'GET /_cat/templates/{name}'], {
    reply: 'text',
    params: [...CAT],
  }),
  ...engine(
    'cat_component_templates',
    'cluster:admin/component_template/get',
    ['GET /_cat/component_templates', 'GET /_cat/component_templates/{name}'],
    {
      reply: 'text',
      params: [...CAT],
    },
  ),
];
