import { type Endpoint, engine, local } from './types.js';

const NODES_STATS = [
  ...['GET /_nodes/stats', 'GET /_nodes/stats/{metric}', 'GET /_nodes/stats/{metric}/{index_metric}'],
  ...['GET /_nodes/{node_id}/stats', 'GET /_nodes/{node_id}/stats/{metric}'],
  'GET /_nodes/{node_id}/stats/{metric}/{index_metric}',
];

/** The one node as a cluster: its state, its settings, its figures. Health stands with the indices. */
export const CLUSTER_ENDPOINTS: readonly Endpoint[] = [
  ...engine('cluster_state', [
    'GET /_cluster/state',
    'GET /_cluster/state/{metric}',
    'GET /_cluster/state/{metric}/{index}',
  ]),
  ...engine('get_cluster_settings', ['GET /_cluster/settings']),
  ...engine('put_cluster_settings', ['PUT /_cluster/settings']),
  ...engine('pending_tasks', ['GET /_cluster/pending_tasks']),
  ...engine('remote_info', ['GET /_remote/info']),
  ...local('cluster_stats', 'cluster:monitor/stats', ['GET /_cluster/stats', 'GET /_cluster/stats/nodes/{node_id}'], {
    params: ['flat_settings', 'include_remotes', 'timeout'],
  }),
  ...local(
    'nodes_info',
    'cluster:monitor/nodes/info',
    ['GET /_nodes', 'GET /_nodes/{node_or_metric}', 'GET /_nodes/{node_id}/{metric}'],
    { params: ['flat_settings', 'timeout'] },
  ),
  ...local('nodes_stats', 'cluster:monitor/nodes/stats', NODES_STATS, {
    params: [
      ...['completion_fields', 'fielddata_fields', 'fields', 'groups', 'include_segment_file_sizes'],
      ...['include_unloaded_segments', 'level', 'timeout', 'types'],
    ],
  }),
  ...local(
    'hot_threads',
    'cluster:monitor/nodes/hot_threads',
    ['GET /_nodes/hot_threads', 'GET /_nodes/{node_id}/hot_threads'],
    {
      reply: 'text',
      params: ['ignore_idle_threads', 'interval', 'snapshots', 'threads', 'timeout', 'type'],
    },
  ),
];
