import type { Endpoint } from '@sparrow-search/server';

import type { RunningServer } from './server.js';

/** What the parameters of paths stand for in generated requests: where it can be, something that is there. */
const PATH: Readonly<Record<string, string>> = {
  index: 'books',
  id: '1',
  name: 'thing',
  context: 'template',
  pipeline: 'pipe',
  block: 'write',
  fields: 'title',
  target: 'other',
  metric: '_all',
  node_id: '_local',
  task: 'nobody:1',
  task_type: 'sparse_embedding',
  inference_id: 'sparse',
  part: '0',
  model: '.sparse_encoder_model_2',
  scroll_id: 'gone',
  folder: 'guides',
  page: 'hybrid-search',
};

/** One body for each operation that takes one, which it accepts. A string is NDJSON. */
export const BODIES: Readonly<Record<string, object | string>> = {
  mcp: { jsonrpc: '2.0', id: 1, method: 'ping' },
  create_api_key: { name: 'a-key', expiration: '1d', role_descriptors: {}, metadata: {} },
  invalidate_api_keys: { ids: ['nobody'] },
  query_api_keys: { query: { match_all: {} }, from: 0, size: 1, sort: ['name'] },
  update_api_key: { metadata: { by: 'me' } },
  bulk_update_api_keys: { ids: ['nobody'], metadata: { by: 'me' } },
  put_repository: { type: 'fs', settings: { location: 'examples' } },
  create_snapshot: { indices: 'books', ignore_unavailable: false, include_global_state: false, metadata: { by: 'me' } },
  clone_snapshot: { indices: 'books' },
  restore_snapshot: { indices: 'books', include_aliases: false, index_settings: { 'index.hidden': true } },
  create_index: {
    settings: { number_of_replicas: 0 },
    mappings: { properties: { a: { type: 'keyword' } } },
    aliases: {},
  },
  put_mapping: { properties: { more: { type: 'keyword' } }, dynamic: 'true', _meta: {} },
  put_settings: { index: { refresh_interval: '1s' } },
  analyze: { text: 'some words', analyzer: 'standard' },
  update_aliases: { actions: [{ add: { index: 'books', alias: 'an-alias' } }] },
  put_alias: { filter: { term: { tag: 'a' } }, is_write_index: false },
  rollover: { conditions: { max_docs: 1 } },
  put_cluster_settings: { persistent: { 'search.max_buckets': 65536 }, transient: {} },
  clone_index: { settings: {}, aliases: {} },
  change_model: { field: 'title', inference_id: '.hybrid', switch: 'manual', compare: { sample: 5, size: 10 } },
  shrink_index: { settings: {}, aliases: {} },
  split_index: { settings: {}, aliases: {} },
  index_doc: { title: 'one' },
  create_doc: { title: 'one' },
  update_doc: { doc: { title: 'two' }, doc_as_upsert: true },
  mget: { docs: [{ _index: 'books', _id: '1' }] },
  term_vectors: { fields: ['title'], offsets: true },
  multi_term_vectors: { docs: [{ _index: 'books', _id: '1' }] },
  bulk: '{"index":{"_index":"books","_id":"2"}}\n{"title":"two"}\n',
  search: { query: { match: { title: 'one' } }, size: 1, from: 0, sort: ['_score'], _source: true, aggs: {} },
  knn_search: { knn: { field: 'point', query_vector: [1, 2], k: 1, num_candidates: 2 }, fields: ['title'] },
  explain: { query: { match: { title: 'one' } } },
  msearch: '{"index":"books"}\n{"query":{"match_all":{}}}\n',
  search_template: { source: { query: { match: { title: '{{words}}' } } }, params: { words: 'one' }, explain: true },
  msearch_template: '{"index":"books"}\n{"source":"{\\"size\\":{{size}}}","params":{"size":1}}\n',
  render_template: { id: '1', params: { size: 1 } },
  put_script: { script: { lang: 'mustache', source: '{"size":{{size}}}' } },
  async_search: { query: { match: { title: 'one' } }, size: 1 },
  rank_eval: {
    requests: [
      { id: 'one', request: { query: { match_all: {} } }, ratings: [{ _index: 'books', _id: '1', rating: 1 }] },
    ],
    metric: { precision: { k: 5 } },
  },
  scroll: { scroll_id: 'gone', scroll: '1m' },
  clear_scroll: { scroll_id: ['gone'] },
  open_point_in_time: { index_filter: { match_all: {} } },
  close_point_in_time: { id: 'gone' },
  field_caps: { fields: ['title'], index_filter: { match_all: {} } },
  terms_enum: {
    field: 'tag',
    string: 'a',
    size: 5,
    timeout: '1s',
    case_insensitive: true,
    index_filter: { match_all: {} },
  },
  validate_query: { query: { match_all: {} } },
  count: { query: { match_all: {} } },
  put_pipeline: { description: 'd', processors: [{ set: { field: 'a', value: 1 } }], on_failure: [], _meta: {} },
  simulate_pipeline: { docs: [{ _source: { a: 1 } }], pipeline: { processors: [] } },
  put_index_template: { index_patterns: ['t-*'], template: { settings: {} }, priority: 7, version: 1, _meta: {} },
  simulate_index_template: { index_patterns: ['u-*'], template: {} },
  put_component_template: { template: { settings: {} }, version: 1, _meta: {} },
  put_template: { index_patterns: ['l-*'], settings: {}, mappings: {}, aliases: {}, order: 1 },
  put_trained_model: { input: { field_names: ['text_field'] } },
  put_trained_model_definition_part: { total_definition_length: 4, total_parts: 1, definition: 'AAAAAA==' },
  put_trained_model_vocabulary: { vocabulary: ['[UNK]', '[CLS]', '[SEP]', 'word'] },
  start_deployment: {},
  stop_deployment: {},
  update_deployment: { number_of_allocations: 1 },
  put_inference: {
    service: 'elser',
    service_settings: { num_allocations: 1, num_threads: 1 },
    chunking_settings: { strategy: 'sentence', max_chunk_size: 40, sentence_overlap: 0 },
    task_settings: {},
  },
  update_inference: { service_settings: { num_allocations: 1 } },
  infer: { input: ['some words'] },
  openai_embeddings: {
    ...{ input: ['some words'], model: '.all-minilm-l6-v2-elasticsearch', encoding_format: 'float' },
    ...{ dimensions: 384, user: 'somebody' },
  },
  cohere_rerank: { model: 'reranker', query: 'words', documents: ['some words'], top_n: 1, return_documents: true },
  infer_stream: { input: ['some words'] },
  // Examples before it have deleted the sparse model.
  embed_sparse: { inputs: ['some words'], truncate: true, model: '.all-minilm-l6-v2-elasticsearch' },
  infer_trained_model: { docs: [{ text_field: 'some words' }] },
  reindex: { source: { index: 'books' }, dest: { index: 'copy' }, max_docs: 1, conflicts: 'proceed' },
  update_by_query: { query: { match_all: {} }, max_docs: 1, conflicts: 'proceed' },
  delete_by_query: { query: { term: { tag: 'nobody' } }, conflicts: 'proceed' },
};

export function operationOf({ handler }: Endpoint): string {
  return 'engine' in handler ? handler.engine : handler.local;
}

/** The path of an endpoint with something in place of each parameter. */
export function pathOf({ path }: Pick<Endpoint, 'path'>): string {
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(PATH[name] ?? 'thing'));
}

/** Makes what the paths speak of. */
export async function populate(server: RunningServer): Promise<void> {
  const { request } = server;
  await request('PUT', '/books', {
    mappings: {
      properties: { title: { type: 'text' }, tag: { type: 'keyword' }, point: { type: 'dense_vector', dims: 2 } },
    },
    settings: { number_of_replicas: 0 },
  });
  await request('PUT', '/books/_settings', { 'index.blocks.write': false });
  await request('POST', '/books/_open');
  await request('PUT', '/books/_doc/1?refresh=true', { title: 'one', tag: 'a' });
  await request('PUT', '/_ingest/pipeline/pipe', { processors: [{ set: { field: 'tag', value: 'set' } }] });
  await request('PUT', '/_component_template/thing', { template: {} });
  await request('PUT', '/_scripts/1', BODIES['put_script']);
}
