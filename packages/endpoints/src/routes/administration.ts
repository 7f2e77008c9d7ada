import { type Endpoint, engine } from './types.js';

/** Opening, closing, merging and blocking indices, and what their names stand for. */
export const ADMINISTRATION_ENDPOINTS: readonly Endpoint[] = [
  ...engine('close_index', ['POST /{index}/_close', 'POST /_close']),
  ...engine('open_index', ['POST /{index}/_open', 'POST /_open']),
  ...engine('add_block', ['PUT /{index}/_block/{block}']),
  ...engine('remove_block', ['DELETE /{index}/_block/{block}']),
  ...engine('force_merge', ['POST /{index}/_forcemerge', 'POST /_forcemerge']),
  ...engine('clear_cache', ['POST /{index}/_cache/clear', 'POST /_cache/clear']),
  ...engine('index_stats', [
    'GET /_stats',
    'GET /_stats/{metric}',
    'GET /{index}/_stats',
    'GET /{index}/_stats/{metric}',
  ]),
  ...engine('index_segments', ['GET /_segments', 'GET /{index}/_segments']),
  ...engine('recovery', ['GET /_recovery', 'GET /{index}/_recovery']),
  ...engine('resolve_index', ['GET /_resolve/index/{name}']),
  ...engine('get_data_stream', ['GET /_data_stream', 'GET /_data_stream/{name}']),
  ...engine('create_data_stream', ['PUT /_data_stream/{name}']),
  ...engine('delete_data_stream', ['DELETE /_data_stream/{name}']),
  ...engine('rollover', ['POST /{index}/_rollover', 'POST /{index}/_rollover/{target}']),
  ...engine('clone_index', ['PUT|POST /{index}/_clone/{target}']),
  ...engine('shrink_index', ['PUT|POST /{index}/_shrink/{target}']),
  ...engine('split_index', ['PUT|POST /{index}/_split/{target}']),
];
