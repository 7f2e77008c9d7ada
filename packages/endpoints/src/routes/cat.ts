import { type Endpoint, engine } from './types.js';

/** Tables for people. Those of indices and aliases stand with what they show. */
export const CAT_ENDPOINTS: readonly Endpoint[] = [
  ...engine('cat_help', ['GET /_cat']),
  ...engine('cat_health', ['GET /_cat/health']),
  ...engine('cat_count', ['GET /_cat/count', 'GET /_cat/count/{index}']),
  ...engine('cat_shards', ['GET /_cat/shards', 'GET /_cat/shards/{index}']),
  ...engine('cat_segments', ['GET /_cat/segments', 'GET /_cat/segments/{index}']),
  ...engine('cat_master', ['GET /_cat/master']),
  ...engine('cat_nodes', ['GET /_cat/nodes']),
  ...engine('cat_allocation', ['GET /_cat/allocation', 'GET /_cat/allocation/{node_id}']),
  ...engine('cat_tasks', ['GET /_cat/tasks']),
  ...engine('cat_thread_pool', ['GET /_cat/thread_pool', 'GET /_cat/thread_pool/{thread_pool_patterns}']),
  ...engine('cat_recovery', ['GET /_cat/recovery', 'GET /_cat/recovery/{index}']),
  ...engine('cat_fielddata', ['GET /_cat/fielddata', 'GET /_cat/fielddata/{fields}']),
  ...engine('cat_nodeattrs', ['GET /_cat/nodeattrs']),
  ...engine('cat_repositories', ['GET /_cat/repositories']),
  ...engine('cat_snapshots', ['GET /_cat/snapshots', 'GET /_cat/snapshots/{repository}']),
  ...engine('cat_trained_models', ['GET /_cat/ml/trained_models', 'GET /_cat/ml/trained_models/{model}']),
  ...engine('cat_pending_tasks', ['GET /_cat/pending_tasks']),
  ...engine('cat_plugins', ['GET /_cat/plugins']),
  ...engine('cat_templates', ['GET /_cat/templates', 'GET /_cat/templates/{name}']),
  ...engine('cat_component_templates', ['GET /_cat/component_templates', 'GET /_cat/component_templates/{name}']),
];
