import type { Operation } from '@sparrow-search/engine';

import type { LocalOperation } from '../routes/types.js';
import {
  type Schema,
  any,
  bool,
  either,
  int,
  list,
  map,
  nullable,
  num,
  object,
  open,
  preset,
  ref,
  several,
  text,
} from './schemas/schema.js';
import { OPENAI_OPERATIONS } from './schemas/openai.js';
import { SEARCH_REQUEST } from './schemas/search.js';

/** What the document says of an operation beside its paths and parameters. */
interface Described {
  /** One sentence. */
  readonly about: string;
  readonly request?: Schema;
  /** A line of a body of lines. */
  readonly line?: Schema;
  /** The answer in JSON; where it is left out, what a real server was seen to answer stands for it. */
  readonly answer?: Schema;
}

const acknowledged = ref('Acknowledged');
const byQuery = either(ref('ByQueryAnswer'), ref('DryRunAnswer'));
const broadcast = ref('BroadcastAnswer');
const document = open('A document: any object.');
const query = object({ query: ref('Query') });
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
const table = (about: string): Described => ({ about, answer: list(map({ type: ['string', 'null'] })) });

/** Operations that no route leads to: the server asks them itself. */
type Internal = 'cluster_figures' | 'instruments' | 'node_indices' | 'snapshot_keys';

/** What a route leads to. */
export type Named = Exclude<Operation, Internal> | LocalOperation;

/** Every operation of the table of routes; one without a row here does not compile. */
export const OPERATIONS: Readonly<Record<Named, Described>> = {
  info: { about: 'Says who answers. A browser is led to the console.', answer: ref('ServerInfo') },
  health: {
    about: 'Is the server ready? 200 if so, else 503.',
    answer: object({ status: text('`ready`, or why it is not') }, ['status']),
  },
  live: { about: 'Does the process answer at all?', answer: object({ status: text() }, ['status']) },
  metrics: { about: 'Figures for Prometheus.' },
  console: { about: 'The console, for a browser.' },
  documentation: { about: 'The documentation, for a browser.' },
  openapi: { about: 'This document.', answer: open() },
  mcp: {
    about: 'Takes a message of the Model Context Protocol: tools for agents, over streamable HTTP.',
    request: open('A message, JSON-RPC 2.0.'),
    answer: open('The answer to it.'),
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
    request: object({
      ...{
        query: open(),
        from: { type: 'integer' },
        size: { type: 'integer' },
        sort: any(),
        search_after: list(any()),
      },
      ...{ aggs: open(), aggregations: open() },
    }),
    answer: ref('FoundApiKeys'),
  },
  update_api_key: {
    about: 'Changes what a key may do, when it ends, or its metadata.',
    request: ref('ApiKeyRequest'),
    answer: object({ updated: { type: 'boolean' } }, ['updated']),
  },
  bulk_update_api_keys: {
    about: 'Changes several keys at once.',
    request: object(
      { ids: several(text()), expiration: text(), role_descriptors: map(ref('RoleDescriptor')), metadata: open() },
      ['ids'],
    ),
    answer: ref('BulkUpdatedApiKeys'),
  },
  invalidate_api_keys: {
    about: 'Ends keys.',
    request: ref('InvalidateApiKeysRequest'),
    answer: ref('InvalidatedApiKeys'),
  },

  create_index: {
    about: 'Makes an index.',
    request: ref('CreateIndexRequest'),
    answer: ref('ShardsAcknowledged'),
  },
  get_index: { about: 'Aliases, mapping and settings of indices.', answer: map(ref('IndexState')) },
  exists_index: { about: 'Is there such an index? 200 or 404.' },
  delete_index: { about: 'Deletes indices with all that is in them.', answer: acknowledged },
  get_mapping: { about: 'The fields of indices.', answer: map(ref('IndexMapping')) },
  get_field_mapping: {
    about: 'Some fields of indices.',
    answer: map(object({ mappings: map(object({ full_name: text(), mapping: map(ref('Property')) })) })),
  },
  put_mapping: { about: 'Adds fields to an index.', request: ref('Mapping'), answer: acknowledged },
  get_settings: { about: 'The settings of indices.', answer: map(ref('IndexSettings')) },
  put_settings: { about: 'Changes the settings of indices.', request: ref('Settings'), answer: acknowledged },
  analyze: {
    about: 'Shows what terms a text becomes.',
    request: ref('AnalyzeRequest'),
    answer: ref('AnalyzeAnswer'),
  },
  refresh: { about: 'Makes everything searchable that was written.', answer: broadcast },
  flush: { about: 'Puts everything on the disk that was written, and trims the log.', answer: broadcast },
  update_aliases: {
    about: 'Changes several aliases in one step.',
    request: ref('UpdateAliasesRequest'),
    answer: acknowledged,
  },
  put_alias: {
    about: 'Gives indices another name.',
    request: object({
      ...{ filter: ref('Query'), is_write_index: { type: 'boolean' }, is_hidden: { type: 'boolean' } },
      ...{ routing: text(), index_routing: text(), search_routing: text(), index: text(), alias: text() },
    }),
    answer: acknowledged,
  },
  get_alias: {
    about: 'Which aliases there are. 404 with what was found, and `error`, if one is missing.',
    answer: map(ref('IndexAliases')),
  },
  delete_alias: { about: 'Takes another name away.', answer: acknowledged },
  close_index: { about: 'Closes indices: they keep their data, and take no memory.', answer: ref('CloseAnswer') },
  open_index: { about: 'Opens closed indices.', answer: ref('ShardsAcknowledged') },
  add_block: { about: 'Blocks writes, reads or changes of metadata.', answer: ref('BlockAnswer') },
  remove_block: { about: 'Ends a block of writes, reads or changes of metadata.', answer: ref('UnblockAnswer') },
  force_merge: { about: 'Merges segments.', answer: either(broadcast, object({ task: text() }, ['task'])) },
  clear_cache: { about: 'Empties caches.', answer: broadcast },
  index_stats: { about: 'What indices hold, and what was done with them.' },
  index_segments: { about: 'The segments of indices.' },
  recovery: { about: 'How indices came up.' },
  resolve_index: { about: 'What names stand for.', answer: ref('ResolvedNames') },
  get_data_stream: {
    about: 'Lists data streams, of which there are none.',
    answer: object({ data_streams: list(open()) }, ['data_streams']),
  },
  delete_data_stream: { about: 'Deletes data streams, of which there are none.', answer: acknowledged },
  create_data_stream: { about: 'Refused: there are no data streams.' },
  rollover: {
    about: 'Lets an alias point to a new index, if conditions hold.',
    request: ref('RolloverRequest'),
    answer: ref('RolloverAnswer'),
  },
  clone_index: { about: 'Copies an index.', request: ref('CopyIndexRequest'), answer: ref('ShardsAcknowledged') },
  shrink_index: {
    about: 'Copies an index into one of fewer shards.',
    request: ref('CopyIndexRequest'),
    answer: ref('ShardsAcknowledged'),
  },
  split_index: {
    about: 'Copies an index into one of more shards.',
    request: ref('CopyIndexRequest'),
    answer: ref('ShardsAcknowledged'),
  },

  cluster_health: { about: 'Green, yellow or red; waits until it is so.', answer: ref('ClusterHealth') },
  cluster_state: { about: 'All metadata.' },
  get_cluster_settings: { about: 'Settings that can be changed while it runs.', answer: ref('ClusterSettings') },
  put_cluster_settings: {
    about: 'Changes settings while it runs.',
    request: object({ persistent: open(), transient: open() }),
    answer: ref('ClusterSettings'),
  },
  pending_tasks: {
    about: 'Changes of metadata that wait, of which there are none.',
    answer: object({ tasks: list(open()) }, ['tasks']),
  },
  remote_info: { about: 'Other clusters, of which there are none.', answer: open() },

  cat_help: { about: 'Names the tables.' },
  cat_aliases: table('A table of aliases.'),
  cat_allocation: table('A table of disk space.'),
  cat_component_templates: table('A table of component templates.'),
  cat_count: table('The number of documents.'),
  cat_fielddata: table('An empty table: there is no field data.'),
  cat_health: table('Health in one line.'),
  cat_indices: table('A table of indices.'),
  cat_master: table('The node, in one line.'),
  cat_nodeattrs: table('An empty table: the node has no attributes.'),
  cat_nodes: table('The node with its use of memory and processors.'),
  cat_pending_tasks: table('An empty table: changes of metadata do not wait.'),
  cat_plugins: table('An empty table: there are no plugins.'),
  cat_recovery: table('A table of how indices came up.'),
  cat_repositories: table('A table of snapshot repositories.'),
  cat_segments: table('A table of segments.'),
  cat_shards: table('A table of shards.'),
  cat_snapshots: table('A table of snapshots.'),
  cat_tasks: table('A table of tasks.'),
  cat_templates: table('A table of templates.'),
  cat_thread_pool: table('A table of the queues of threads.'),
  cat_trained_models: table('A table of models.'),

  put_index_template: {
    about: 'Says what new indices of some names get.',
    request: ref('IndexTemplate'),
    answer: acknowledged,
  },
  get_index_template: { about: 'Index templates.', answer: ref('IndexTemplates') },
  delete_index_template: { about: 'Deletes index templates.', answer: acknowledged },
  simulate_index_template: {
    about: 'Shows what a new index would get.',
    request: ref('IndexTemplate'),
    answer: ref('SimulatedTemplate'),
  },
  put_component_template: {
    about: 'A part that index templates are made of.',
    request: ref('ComponentTemplate'),
    answer: acknowledged,
  },
  get_component_template: { about: 'Component templates.', answer: ref('ComponentTemplates') },
  delete_component_template: { about: 'Deletes component templates.', answer: acknowledged },
  put_template: { about: 'The older form of an index template.', request: ref('OldTemplate'), answer: acknowledged },
  get_template: { about: 'Templates of the older form.', answer: map(ref('OldTemplate')) },
  delete_template: { about: 'Deletes templates of the older form.', answer: acknowledged },

  index_doc: {
    about: 'Writes a document, in place of the one of its id.',
    request: document,
    answer: ref('WriteAnswer'),
  },
  create_doc: {
    about: 'Writes a document, if there is none of its id.',
    request: document,
    answer: ref('WriteAnswer'),
  },
  get_doc: { about: 'A document, as it was written last.', answer: ref('GetAnswer') },
  exists_doc: { about: 'Is there such a document? 200 or 404.' },
  get_source: { about: 'A document without anything around it.', answer: document },
  delete_doc: { about: 'Deletes a document.', answer: ref('WriteAnswer') },
  update_doc: { about: 'Changes members of a document.', request: ref('UpdateRequest'), answer: ref('WriteAnswer') },
  mget: { about: 'Several documents.', request: ref('MultiGetRequest'), answer: ref('MultiGetAnswer') },
  term_vectors: {
    about: 'The terms of a document.',
    request: ref('TermVectorsRequest'),
    answer: ref('TermVectorsAnswer'),
  },
  multi_term_vectors: {
    about: 'The terms of several documents.',
    request: ref('MultiTermVectorsRequest'),
    answer: object({ docs: list(ref('TermVectorsAnswer')) }, ['docs']),
  },
  bulk: {
    about: 'Writes and deletes many documents: lines of actions, each with its document on the next line.',
    line: ref('BulkAction'),
    answer: ref('BulkAnswer'),
  },

  search: { about: 'Searches.', request: ref('SearchRequest'), answer: ref('SearchAnswer') },
  knn_search: {
    about: 'The older form of a search for neighbours.',
    request: object({
      ...{ knn: ref('Knn'), filter: several(ref('Query')), _source: ref('SourceSelection') },
      ...{ fields: several(any()), docvalue_fields: ref('FieldRequests'), stored_fields: several(text()) },
    }),
    answer: ref('SearchAnswer'),
  },
  explain: { about: 'Why a document has its score.', request: query, answer: ref('ExplainAnswer') },
  msearch: {
    about: 'Several searches: lines of headers, each with its search on the next line.',
    line: object({
      ...{ index: several(text()), search_type: text(), preference: text(), routing: text(), ...SEARCH_REQUEST },
      ...{ allow_no_indices: any(), expand_wildcards: any(), ignore_unavailable: any(), request_cache: any() },
      ...{ allow_partial_search_results: any(), ccs_minimize_roundtrips: any() },
    }),
    answer: ref('MultiSearchAnswer'),
  },
  rank_eval: {
    about: 'Measures ranked lists against ratings.',
    request: ref('RankEvalRequest'),
    answer: ref('RankEvalAnswer'),
  },
  scroll: { about: 'The next page of a scroll.', request: ref('ScrollRequest'), answer: ref('SearchAnswer') },
  clear_scroll: {
    about: 'Ends scrolls.',
    request: object({ scroll_id: several(text()) }),
    answer: ref('Freed'),
  },
  open_point_in_time: {
    about: 'Keeps what indices hold now, to be searched later.',
    request: object({ index_filter: ref('Query') }),
    answer: ref('PointInTime'),
  },
  close_point_in_time: { about: 'Ends a point in time.', request: object({ id: text() }), answer: ref('Freed') },
  field_caps: {
    about: 'Which fields there are, and what can be done with them.',
    request: object({ fields: several(text()), index_filter: ref('Query'), runtime_mappings: open() }),
    answer: ref('FieldCapabilities'),
  },
  terms_enum: {
    about: 'The terms of a keyword field that begin with a text.',
    request: object(
      {
        field: text(),
        string: nullable(text('what the terms begin with')),
        size: preset(int('at most 10,000'), 10),
        timeout: preset(text(), '1s'),
        case_insensitive: preset(bool(), false),
        index_filter: ref('Query'),
        search_after: text('the last term of the answer before'),
      },
      ['field'],
    ),
    answer: object({ _shards: ref('ShardStatistics'), terms: list(text()), complete: bool() }, [
      '_shards',
      'terms',
      'complete',
    ]),
  },
  validate_query: { about: 'Is it a query?', request: query, answer: ref('ValidateAnswer') },
  search_shards: { about: 'Where a search would run.' },
  count: { about: 'Counts documents.', request: query, answer: ref('CountAnswer') },

  put_pipeline: { about: 'Makes an ingest pipeline.', request: ref('Pipeline'), answer: acknowledged },
  get_pipeline: { about: 'Ingest pipelines.', answer: map(ref('Pipeline')) },
  delete_pipeline: { about: 'Deletes ingest pipelines.', answer: acknowledged },
  simulate_pipeline: {
    about: 'Shows what a pipeline makes of documents, and writes nothing.',
    request: ref('SimulateRequest'),
    answer: ref('SimulateAnswer'),
  },

  ml_info: { about: 'What models may use.' },
  get_trained_models: { about: 'Models.', answer: ref('TrainedModels') },
  put_trained_model: {
    about: 'Announces a model whose parts follow.',
    request: ref('TrainedModelRequest'),
    answer: ref('TrainedModel'),
  },
  delete_trained_model: { about: 'Deletes an uploaded model.', answer: acknowledged },
  put_trained_model_definition_part: {
    about: 'Uploads a part of a model.',
    request: object(
      { definition: text('in base64'), total_definition_length: { type: 'integer' }, total_parts: { type: 'integer' } },
      ['definition', 'total_definition_length', 'total_parts'],
    ),
    answer: acknowledged,
  },
  put_trained_model_vocabulary: {
    about: 'Uploads the words of a model.',
    request: object({ vocabulary: list(text()), merges: list(text()), scores: list({ type: 'number' }) }, [
      'vocabulary',
    ]),
    answer: acknowledged,
  },
  put_trained_model_alias: { about: 'Gives a model another name.', answer: acknowledged },
  delete_trained_model_alias: { about: 'Takes another name of a model away.', answer: acknowledged },
  trained_model_stats: { about: 'What models do: texts, queues, times.' },
  start_deployment: {
    about: 'Puts a model to work.',
    request: object({ adaptive_allocations: open() }),
    answer: ref('Deployment'),
  },
  stop_deployment: {
    about: 'Lets a model rest.',
    request: object({ allow_no_match: any(), force: any(), finish_pending_work: any(), id: text() }),
    answer: object({ stopped: { type: 'boolean' } }, ['stopped']),
  },
  update_deployment: {
    about: 'Changes how many texts a model reads at once.',
    request: object({ number_of_allocations: { type: 'integer' }, adaptive_allocations: open() }),
    answer: ref('Deployment'),
  },
  infer_trained_model: {
    about: 'Lets a model read texts.',
    request: ref('InferTrainedModelRequest'),
    answer: ref('InferTrainedModelAnswer'),
  },
  put_inference: {
    about: 'Makes an inference endpoint: a name for a model, a task, and how texts are cut.',
    request: ref('InferenceEndpointRequest'),
    answer: ref('InferenceEndpoint'),
  },
  get_inference: { about: 'Inference endpoints.', answer: ref('InferenceEndpoints') },
  delete_inference: { about: 'Deletes an inference endpoint.' },
  update_inference: {
    about: 'Changes an inference endpoint.',
    request: object({ service_settings: open(), task_settings: open(), service: text() }),
    answer: ref('InferenceEndpoint'),
  },
  infer: {
    about: 'Encodes texts, or scores them for a question.',
    request: ref('InferenceRequest'),
    answer: ref('InferenceAnswer'),
  },
  ...OPENAI_OPERATIONS,
  infer_stream: { about: 'Refused: no model here answers bit by bit.', request: ref('InferenceRequest') },

  reindex: {
    about: 'Copies documents from index to index, through a pipeline if one is named; as a task if nobody waits.',
    request: ref('ReindexRequest'),
    answer: byQuery,
  },
  update_by_query: {
    about: 'Writes the documents of a query again, through a pipeline if one is named.',
    request: ref('ByQueryRequest'),
    answer: byQuery,
  },
  delete_by_query: { about: 'Deletes the documents of a query.', request: ref('ByQueryRequest'), answer: byQuery },
  rethrottle: { about: 'Lets a running job go faster or slower.', answer: ref('TaskList') },
  get_task: { about: 'How far a task is; waits for its end if asked to.', answer: ref('TaskAnswer') },
  list_tasks: { about: 'What runs.', answer: ref('TaskList') },
  cancel_tasks: { about: 'Asks several tasks to stop.', answer: ref('TaskList') },
  cancel_task: { about: 'Asks a task to stop.', answer: ref('TaskList') },
  upgrade_index: { about: 'Rewrites an index of an older format.', answer: byQuery },
  upgrade_assistance: {
    about: 'Which indices are of an older format.',
    answer: object({ indices: map(object({ upgrade_required: text() })) }, ['indices']),
  },
  get_field_models: {
    about: 'Which models fill the fields of an index, and how far a change of one is.',
    answer: map(object({ fields: map(open('The model of a field, and its change.')) }, ['fields'])),
  },
  change_model: {
    about: 'Changes the model of a field while the index is searched and written; as a task if nobody waits.',
    request: object(
      {
        field: text(),
        inference_id: text(),
        model_id: text(),
        search_inference_id: text(),
        chunking_settings: open(),
        index_options: open(),
        switch: preset(text('`auto` or `manual`'), 'auto'),
        compare: object({ queries: list(text()), sample: int(), size: int() }),
      },
      ['field'],
    ),
    answer: either(object({ task: text() }, ['task']), modelChange),
  },
  switch_model: { about: 'Lets searches read the vectors of the new model.', answer: modelStep },
  roll_back_model: { about: 'Lets searches read the vectors of the old model again.', answer: modelStep },
  drop_model: { about: 'Ends a change: vectors that searches do not read are dropped.', answer: modelStep },

  get_repository: { about: 'Snapshot repositories.', answer: map(ref('Repository')) },
  put_repository: { about: 'Makes a snapshot repository.', request: ref('Repository'), answer: acknowledged },
  delete_repository: { about: 'Forgets a snapshot repository; its files stay.', answer: acknowledged },
  verify_repository: {
    about: 'Can the repository be written?',
    answer: object({ nodes: map(object({ name: text() })) }),
  },
  cleanup_repository: {
    about: 'Deletes files of a repository that no snapshot needs.',
    answer: object({ results: object({ deleted_bytes: { type: 'integer' }, deleted_blobs: { type: 'integer' } }) }, [
      'results',
    ]),
  },
  create_snapshot: { about: 'Backs up indices.', request: ref('SnapshotRequest'), answer: ref('CreatedSnapshot') },
  get_snapshot: { about: 'Snapshots.', answer: ref('Snapshots') },
  snapshot_status: { about: 'How far snapshots are, and how large.' },
  clone_snapshot: {
    about: 'Copies some indices of a snapshot into another one.',
    request: object({ indices: several(text()) }, ['indices']),
    answer: acknowledged,
  },
  delete_snapshot: { about: 'Deletes snapshots.', answer: acknowledged },
  restore_snapshot: {
    about: 'Brings indices of a snapshot back.',
    request: ref('RestoreRequest'),
    answer: ref('RestoredSnapshot'),
  },
};
