import { type Endpoint, engine } from './types.js';

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
    params: [...CAT, 'expand_wildcards'],
  }),
  ...engine('cat_shards', 'indices:monitor/stats', ['GET /_cat/shards', 'GET /_cat/shards/{index}'], {
    reply: 'text',
    params: [...CAT, 'expand_wildcards'],
  }),
  ...engine('cat_segments', 'indices:monitor/stats', ['GET /_cat/segments', 'GET /_cat/segments/{index}'], {
    reply: 'text',
    params: [...CAT, 'expand_wildcards'],
  }),
  ...engine('cat_master', 'cluster:monitor/main', ['GET /_cat/master'], {
    reply: 'text',
    params: [...CAT],
  }),
  ...engine('cat_nodes', 'cluster:monitor/nodes/stats', ['GET /_cat/nodes'], {
    reply: 'text',
    params: [...CAT, 'full_id', 'include_unloaded_segments'],
  }),
  ...engine('cat_allocation', 'cluster:monitor/nodes/stats', ['GET /_cat/allocation'], {
    reply: 'text',
    params: [...CAT],
  }),
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
