import { type Endpoint, engine } from './types.js';

const TIMEOUTS = ['timeout', 'master_timeout'];
const WHICH = ['expand_wildcards', 'allow_no_indices', 'ignore_unavailable'];
const RESIZE = [
  ...TIMEOUTS,
  'wait_for_active_shards',
  'wait_for_completion',
  'copy_settings',
  'max_docs',
  'dry_run',
  'lazy',
];

/** Opening, closing, merging and blocking indices, and what their names stand for. */
export const ADMINISTRATION_ENDPOINTS: readonly Endpoint[] = [
  ...engine('close_index', 'indices:admin/close', ['POST /{index}/_close', 'POST /_close'], {
    params: [...TIMEOUTS, ...WHICH, 'wait_for_active_shards'],
  }),
  ...engine('open_index', 'indices:admin/open', ['POST /{index}/_open', 'POST /_open'], {
    params: [...TIMEOUTS, ...WHICH, 'wait_for_active_shards'],
  }),
  ...engine('add_block', 'indices:admin/block/add', ['PUT /{index}/_block/{block}'], {
    params: [...TIMEOUTS, ...WHICH],
  }),
  ...engine('remove_block', 'indices:admin/block/remove', ['DELETE /{index}/_block/{block}'], {
    params: [...TIMEOUTS, ...WHICH],
  }),
  ...engine('force_merge', 'indices:admin/forcemerge', ['POST /{index}/_forcemerge', 'POST /_forcemerge'], {
    params: [...WHICH, 'max_num_segments', 'only_expunge_deletes', 'flush', 'wait_for_completion'],
  }),
  ...engine('clear_cache', 'indices:admin/cache/clear', ['POST /{index}/_cache/clear', 'POST /_cache/clear'], {
    params: [...WHICH, 'fielddata', 'fields', 'query', 'request', 'index'],
  }),
  ...engine(
    'index_stats',
    'indices:monitor/stats',
    ['GET /_stats', 'GET /_stats/{metric}', 'GET /{index}/_stats', 'GET /{index}/_stats/{metric}'],
    {
      params: [
        ...[...WHICH, 'completion_fields', 'fielddata_fields', 'fields', 'forbid_closed_indices', 'groups'],
        ...['include_segment_file_sizes', 'include_unloaded_segments', 'level'],
      ],
    },
  ),
  ...engine('index_segments', 'indices:monitor/segments', ['GET /_segments', 'GET /{index}/_segments'], {
    params: [...WHICH, 'verbose'],
  }),
  ...engine('recovery', 'indices:monitor/recovery', ['GET /_recovery', 'GET /{index}/_recovery'], {
    params: [...WHICH, 'active_only', 'detailed'],
  }),
  ...engine('resolve_index', 'indices:admin/resolve/index', ['GET /_resolve/index/{name}'], {
    params: WHICH,
  }),
  ...engine('get_data_stream', 'indices:admin/data_stream/get', ['GET /_data_stream', 'GET /_data_stream/{name}'], {
    params: ['expand_wildcards', 'include_defaults', 'master_timeout', 'verbose'],
  }),
  ...engine('create_data_stream', 'indices:admin/data_stream/create', ['PUT /_data_stream/{name}'], {
    params: TIMEOUTS,
  }),
  ...engine('delete_data_stream', 'indices:admin/data_stream/delete', ['DELETE /_data_stream/{name}'], {
    params: ['expand_wildcards', ...TIMEOUTS],
  }),
  ...engine('rollover', 'indices:admin/rollover', ['POST /{index}/_rollover', 'POST /{index}/_rollover/{target}'], {
    body: true,
    params: RESIZE,
  }),
  ...engine('clone_index', 'indices:admin/resize', ['PUT|POST /{index}/_clone/{target}'], {
    body: true,
    params: RESIZE,
  }),
  ...engine('shrink_index', 'indices:admin/resize', ['PUT|POST /{index}/_shrink/{target}'], {
    body: true,
    params: RESIZE,
  }),
  ...engine('split_index', 'indices:admin/resize', ['PUT|POST /{index}/_split/{target}'], {
    body: true,
    params: RESIZE,
  }),
];
