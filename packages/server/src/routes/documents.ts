import { type Endpoint, engine } from './types.js';

const SOURCE = ['_source', '_source_includes', '_source_excludes'];
/** Errors show a value that is wrong, and never the document, whatever is asked for. */
const ON_ERROR = 'include_source_on_error';
const WRITE = [
  ...['pipeline', 'refresh', 'routing', 'op_type', 'if_seq_no', 'if_primary_term', 'version', 'version_type'],
  ...['timeout', 'require_alias', 'require_data_stream', 'wait_for_active_shards', ON_ERROR],
];
const READ = [
  ...SOURCE,
  '_source_exclude_vectors',
  'realtime',
  'refresh',
  'routing',
  'preference',
  'version',
  'version_type',
  'stored_fields',
];

const VECTORS = [
  ...['fields', 'field_statistics', 'term_statistics', 'offsets', 'positions', 'payloads', 'realtime', 'routing'],
  ...['preference', 'version', 'version_type'],
];

/** Single documents, several at once, and bulk loads. */
export const DOCUMENT_ENDPOINTS: readonly Endpoint[] = [
  ...engine('index_doc', 'indices:data/write/index', ['PUT|POST /{index}/_doc/{id}', 'POST /{index}/_doc'], {
    body: true,
    params: WRITE,
  }),
  ...engine('create_doc', 'indices:data/write/index', ['PUT|POST /{index}/_create/{id}'], {
    body: true,
    params: WRITE,
  }),
  ...engine('get_doc', 'indices:data/read/get', ['GET /{index}/_doc/{id}'], { params: READ }),
  ...engine('exists_doc', 'indices:data/read/get', ['HEAD /{index}/_doc/{id}'], { params: READ }),
  ...engine('get_source', 'indices:data/read/get', ['GET|HEAD /{index}/_source/{id}'], { params: READ }),
  ...engine('delete_doc', 'indices:data/write/delete', ['DELETE /{index}/_doc/{id}'], {
    params: [
      ...['refresh', 'routing', 'if_seq_no', 'if_primary_term', 'version', 'version_type', 'timeout'],
      'wait_for_active_shards',
    ],
  }),
  ...engine('update_doc', 'indices:data/write/update', ['POST /{index}/_update/{id}'], {
    body: true,
    params: [
      ...[...SOURCE, 'refresh', 'routing', 'if_seq_no', 'if_primary_term', 'retry_on_conflict', 'timeout', 'lang'],
      ...['require_alias', 'wait_for_active_shards', ON_ERROR],
    ],
  }),
  ...engine('mget', 'indices:data/read/mget', ['GET|POST /_mget', 'GET|POST /{index}/_mget'], {
    body: true,
    cancellable: true,
    params: [...SOURCE, 'realtime', 'refresh', 'routing', 'preference', 'stored_fields'],
  }),
  ...engine(
    'term_vectors',
    'indices:data/read/tv',
    ['GET|POST /{index}/_termvectors/{id}', 'GET|POST /{index}/_termvectors'],
    {
      body: true,
      cancellable: true,
      params: VECTORS,
    },
  ),
  ...engine(
    'multi_term_vectors',
    'indices:data/read/mtv',
    ['GET|POST /_mtermvectors', 'GET|POST /{index}/_mtermvectors'],
    {
      body: true,
      cancellable: true,
      params: ['ids', ...VECTORS],
    },
  ),
  ...engine('bulk', 'indices:data/write/bulk', ['POST|PUT /_bulk', 'POST|PUT /{index}/_bulk'], {
    body: true,
    ndjson: true,
    cancellable: true,
    params: [
      ...[...SOURCE, 'pipeline', 'refresh', 'routing', 'timeout', 'require_alias', 'wait_for_active_shards'],
      ...['list_executed_pipelines', 'require_data_stream', ON_ERROR],
    ],
  }),
];
