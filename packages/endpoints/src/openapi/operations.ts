import type { Operation } from '@sparrow-search/engine';

import type { LocalOperation } from '../routes/types.js';
import { type Schema, bool, either, int, list, map, num, object, open, ref, several, text } from './schemas/schema.js';
import { DECLARED } from './schemas/declared.generated.js';
import { OPENAI_OPERATIONS } from './schemas/openai.js';
import { ASYNC_SEARCH_OPERATIONS } from './schemas/async-search.js';
import { SEARCH_TEMPLATE_OPERATIONS } from './schemas/search-templates.js';

/** What the document says of the bodies of an operation. */
export interface Bodies {
  /** What the body holds, or each of its lines. */
  readonly request?: Schema;
  /** The answer in JSON; where it is left out, what a real server was seen to answer stands for it. */
  readonly answer?: Schema;
}

const acknowledged = ref('Acknowledged');
const byQuery = either(ref('ByQueryAnswer'), ref('DryRunAnswer'));
const broadcast = ref('BroadcastAnswer');
const modelStep = object({ acknowledged: bool(), field: text(), state: text() }, ['acknowledged', 'field', 'state']);
const modelChange = object(
  {
    took: int(),
    field: text(),
    state: text(),
    total: int(),
    filled: int(),
    version_conflicts: int(),
    throttled_millis: int(),
    requests_per_second: num(),
    compared: open(),
  },
  ['took', 'field', 'state', 'total', 'filled'],
);

/** What a route leads to. */
export type Named = Operation | LocalOperation;

/** The bodies of operations; those of the HTTP layer also have the sentence that the engine's declare in Rust. */
type Described = Readonly<Record<LocalOperation, Bodies & { about: string }> & Partial<Record<Operation, Bodies>>>;

/** What requests and answers hold, for the operations where more is known than what a real server was seen to answer. */
export const BODIES: Described = {
  info: { about: 'Says who answers. A browser is led to the console.', answer: ref('ServerInfo') },
  health: {
    about: 'Is the server ready? 200 if so, else 503.',
    answer: object({ status: text('`ready`, or why it is not') }, ['status']),
  },
  live: { about: 'Does the process answer at all?', answer: object({ status: text() }, ['status']) },
  metrics: { about: 'Figures for Prometheus.' },
  console: { about: 'The console, for a browser.' },
  documentation: { about: 'The documentation, for a browser.' },
  search_documentation: { about: 'What the documentation says about a question, for a browser.' },
  openapi: { about: 'This document.', answer: open() },
  mcp: {
    about: 'Takes a message of the Model Context Protocol: tools for agents, over streamable HTTP.',
    request: several(open('A message, JSON-RPC 2.0; with revisions of the protocol before 2025-06-18 also several.')),
    answer: several(open('The answer to it.')),
  },
  license: {
    about: 'The license, as clients ask for it: basic, and active.',
    answer: object({ license: open() }, ['license']),
  },
  xpack_info: {
    about: 'Which of Elasticsearch’s features are here.',
    answer: object({ build: open(), license: open(), features: open(), tagline: text() }),
  },
  health_report: {
    about: 'How the server is, by what can be wrong with it.',
    answer: object({ status: text(), cluster_name: text(), indicators: open() }, ['cluster_name', 'indicators']),
  },
  list_none: {
    about: 'A list of what only Elasticsearch has: it is empty.',
    answer: open(),
  },
  nodes_info: { about: 'What the process is, and how it is set.' },
  nodes_stats: { about: 'What the process uses: memory, files, threads, caches.' },
  hot_threads: { about: 'Which threads are busy.' },
  cluster_stats: { about: 'Sums over all indices, and over the process.' },
  authenticate: { about: 'Whose key is it?' },
  create_api_key: {
    about: 'Makes a key; its secret is shown this once.',
    request: ref('ApiKeyRequest'),
    answer: ref('CreatedApiKey'),
  },
  get_api_keys: { about: 'Lists keys, without secrets.', answer: ref('ApiKeys') },
  query_api_keys: {
    about: 'Searches keys.',
    request: ref('QueryApiKeysRequest'),
    answer: ref('FoundApiKeys'),
  },
  update_api_key: {
    about: 'Changes what a key may do, when it ends, or its metadata.',
    request: ref('UpdateApiKeyRequest'),
    answer: object({ updated: { type: 'boolean' } }, ['updated']),
  },
  bulk_update_api_keys: {
    about: 'Changes several keys at once.',
    request: ref('BulkUpdateApiKeysRequest'),
    answer: ref('BulkUpdatedApiKeys'),
  },
  invalidate_api_keys: {
    about: 'Ends keys.',
    request: ref('InvalidateApiKeysRequest'),
    answer: ref('InvalidatedApiKeys'),
  },

  create_index: {
    answer: ref('ShardsAcknowledged'),
  },
  get_index: { answer: map(ref('IndexState')) },
  delete_index: { answer: acknowledged },
  get_mapping: { answer: map(ref('IndexMapping')) },
  get_field_mapping: {
    answer: map(object({ mappings: map(object({ full_name: text(), mapping: map(ref('Property')) })) })),
  },
  put_mapping: { answer: acknowledged },
  get_settings: { answer: map(ref('IndexSettings')) },
  put_settings: { answer: acknowledged },
  analyze: {
    answer: ref('AnalyzeAnswer'),
  },
  refresh: { answer: broadcast },
  flush: { answer: broadcast },
  update_aliases: {
    answer: acknowledged,
  },
  put_alias: {
    answer: acknowledged,
  },
  get_alias: {
    answer: map(ref('IndexAliases')),
  },
  delete_alias: { answer: acknowledged },
  close_index: { answer: ref('CloseAnswer') },
  open_index: { answer: ref('ShardsAcknowledged') },
  add_block: { answer: ref('BlockAnswer') },
  remove_block: { answer: ref('UnblockAnswer') },
  force_merge: { answer: either(broadcast, object({ task: text() }, ['task'])) },
  clear_cache: { answer: broadcast },
  resolve_index: { answer: ref('ResolvedNames') },
  get_data_stream: {
    answer: object({ data_streams: list(open()) }, ['data_streams']),
  },
  delete_data_stream: { answer: acknowledged },
  rollover: {
    answer: ref('RolloverAnswer'),
  },
  clone_index: { answer: ref('ShardsAcknowledged') },
  shrink_index: {
    answer: ref('ShardsAcknowledged'),
  },
  split_index: {
    answer: ref('ShardsAcknowledged'),
  },

  cluster_health: { answer: ref('ClusterHealth') },
  get_cluster_settings: { answer: ref('ClusterSettings') },
  put_cluster_settings: {
    answer: ref('ClusterSettings'),
  },
  pending_tasks: {
    answer: object({ tasks: list(open()) }, ['tasks']),
  },
  remote_info: { answer: open() },

  put_index_template: {
    answer: acknowledged,
  },
  get_index_template: { answer: ref('IndexTemplates') },
  delete_index_template: { answer: acknowledged },
  simulate_index_template: {
    answer: ref('SimulatedTemplate'),
  },
  put_component_template: {
    answer: acknowledged,
  },
  get_component_template: { answer: ref('ComponentTemplates') },
  delete_component_template: { answer: acknowledged },
  put_template: { answer: acknowledged },
  get_template: { answer: map(ref('OldTemplate')) },
  delete_template: { answer: acknowledged },

  index_doc: {
    answer: ref('WriteAnswer'),
  },
  create_doc: {
    answer: ref('WriteAnswer'),
  },
  get_doc: { answer: ref('GetAnswer') },
  get_source: { answer: ref('Document') },
  delete_doc: { answer: ref('WriteAnswer') },
  update_doc: { answer: ref('WriteAnswer') },
  mget: { answer: ref('MultiGetAnswer') },
  term_vectors: {
    answer: ref('TermVectorsAnswer'),
  },
  multi_term_vectors: {
    answer: object({ docs: list(ref('TermVectorsAnswer')) }, ['docs']),
  },
  bulk: {
    answer: ref('BulkAnswer'),
  },

  search: { answer: ref('SearchAnswer') },
  knn_search: {
    answer: ref('SearchAnswer'),
  },
  explain: { answer: ref('ExplainAnswer') },
  msearch: {
    answer: ref('MultiSearchAnswer'),
  },
  rank_eval: {
    answer: ref('RankEvalAnswer'),
  },
  scroll: { answer: ref('SearchAnswer') },
  clear_scroll: {
    answer: ref('Freed'),
  },
  open_point_in_time: {
    answer: ref('PointInTime'),
  },
  close_point_in_time: { answer: ref('Freed') },
  field_caps: {
    answer: ref('FieldCapabilities'),
  },
  terms_enum: {
    answer: object({ _shards: ref('ShardStatistics'), terms: list(text()), complete: bool() }, [
      '_shards',
      'terms',
      'complete',
    ]),
  },
  validate_query: { answer: ref('ValidateAnswer') },
  count: { answer: ref('CountAnswer') },

  put_pipeline: { answer: acknowledged },
  get_pipeline: { answer: map(object(DECLARED.Pipeline.properties)) },
  delete_pipeline: { answer: acknowledged },
  simulate_pipeline: {
    answer: ref('SimulateAnswer'),
  },

  get_trained_models: { answer: ref('TrainedModels') },
  put_trained_model: {
    answer: ref('TrainedModel'),
  },
  delete_trained_model: { answer: acknowledged },
  put_trained_model_definition_part: {
    answer: acknowledged,
  },
  put_trained_model_vocabulary: {
    answer: acknowledged,
  },
  put_trained_model_alias: { answer: acknowledged },
  delete_trained_model_alias: { answer: acknowledged },
  start_deployment: {
    answer: ref('Deployment'),
  },
  stop_deployment: {
    answer: object({ stopped: { type: 'boolean' } }, ['stopped']),
  },
  update_deployment: {
    answer: ref('Deployment'),
  },
  infer_trained_model: {
    answer: ref('InferTrainedModelAnswer'),
  },
  put_inference: {
    answer: ref('InferenceEndpoint'),
  },
  get_inference: { answer: ref('InferenceEndpoints') },
  update_inference: {
    answer: ref('InferenceEndpoint'),
  },
  infer: {
    answer: ref('InferenceAnswer'),
  },
  ...OPENAI_OPERATIONS,
  ...SEARCH_TEMPLATE_OPERATIONS,
  ...ASYNC_SEARCH_OPERATIONS,

  reindex: {
    answer: byQuery,
  },
  update_by_query: {
    answer: byQuery,
  },
  delete_by_query: { answer: byQuery },
  rethrottle: { answer: ref('TaskList') },
  get_task: { answer: ref('TaskAnswer') },
  list_reindex: { answer: object({ reindex: list(ref('ReindexTask')) }, ['reindex']) },
  get_reindex: { answer: ref('ReindexTask') },
  cancel_reindex: { answer: ref('ReindexTask') },
  list_tasks: { answer: ref('TaskList') },
  ended_tasks: {
    about: 'The last tasks that were started with `wait_for_completion=false` and have ended, with what they did.',
    answer: object({ tasks: list(ref('TaskAnswer')) }, ['tasks']),
  },
  cancel_tasks: { answer: ref('TaskList') },
  cancel_task: { answer: ref('TaskList') },
  upgrade_index: { answer: byQuery },
  upgrade_assistance: {
    answer: object({ indices: map(object({ upgrade_required: text() })) }, ['indices']),
  },
  get_field_models: {
    answer: map(object({ fields: map(open('The model of a field, and its change.')) }, ['fields'])),
  },
  change_model: {
    answer: either(object({ task: text() }, ['task']), modelChange),
  },
  switch_model: { answer: modelStep },
  roll_back_model: { answer: modelStep },
  drop_model: { answer: modelStep },

  get_repository: { answer: map(ref('Repository')) },
  put_repository: { answer: acknowledged },
  delete_repository: { answer: acknowledged },
  verify_repository: {
    answer: object({ nodes: map(object({ name: text() })) }),
  },
  cleanup_repository: {
    answer: object({ results: object({ deleted_bytes: { type: 'integer' }, deleted_blobs: { type: 'integer' } }) }, [
      'results',
    ]),
  },
  create_snapshot: { answer: ref('CreatedSnapshot') },
  get_snapshot: { answer: ref('Snapshots') },
  clone_snapshot: {
    answer: acknowledged,
  },
  delete_snapshot: { answer: acknowledged },
  restore_snapshot: {
    answer: ref('RestoredSnapshot'),
  },
};
