/** What a query parameter says, and what it is if nothing is said. */
interface Said {
  readonly about: string;
  readonly preset?: string | number | boolean;
  /** Where it is another one: by operation. */
  readonly presets?: Readonly<Record<string, string | number | boolean | undefined>>;
  /** Where it means something else: by operation. */
  readonly abouts?: Readonly<Record<string, string>>;
}

/** Taken because clients send it; one server has nothing to do with it. */
const TAKEN = 'Taken, without effect on one server.';

/** The end of the description of a parameter that takes several values. */
export const LIST_RULE = 'Separate several with commas: if the parameter is repeated, only the last one counts.';

const said = (about: string, preset?: Said['preset'], more: Partial<Said> = {}): Said => ({
  about,
  ...(preset === undefined ? {} : { preset }),
  ...more,
});

const REQUESTS: Readonly<Record<string, Said>> = {
  timeout: said('How long to wait.', '30s', {
    abouts: { search: 'After it the search ends with what it has.' },
    presets: { search: undefined, index_doc: '1m', create_doc: '1m', update_doc: '1m', delete_doc: '1m', bulk: '1m' },
  }),
  master_timeout: said(TAKEN),
  wait_for_active_shards: said(TAKEN),
  wait_for_completion: said('Whether the answer waits until the work is done; otherwise it names a task.', true, {
    presets: {
      create_snapshot: false,
      restore_snapshot: false,
      get_task: false,
      cancel_task: false,
      cancel_tasks: false,
      list_tasks: false,
      get_reindex: false,
    },
  }),
  local: said(TAKEN),
  preference: said(TAKEN),
  batched_reduce_size: said(TAKEN),
  max_concurrent_shard_requests: said(TAKEN),
  pre_filter_shard_size: said(TAKEN),
  ccs_minimize_roundtrips: said(TAKEN),
  source: said('The body, where a client cannot send one.'),
  source_content_type: said('Media type of `source`.'),
  dry_run: said('Says what would be done, and does nothing.', false),
  force: said('Does it although it is in use, or not needed.', false),
};

const NAMES: Readonly<Record<string, Said>> = {
  expand_wildcards: said('What patterns stand for: `open`, `closed`, `hidden`, `none`, `all`.', 'open'),
  allow_no_indices: said('A pattern that stands for nothing is no error.', true),
  ignore_unavailable: said('Indices that are missing or closed are left out.', false),
  ignore_throttled: said(TAKEN),
  accept_enterprise: said(TAKEN),
  ecs_compatibility: said(TAKEN),
  _source_exclude_vectors: said('Leaves the values of vector fields out of `_source`.', false),
  include_source_on_error: said('Errors show a wrong value, never the document.'),
  require_data_stream: said('Only `false`: there are no data streams.', false),
  categories: said('Which parts to show: `build`, `license`, `features`; all without this.'),
  allow_no_match: said('A pattern that stands for nothing is no error.', true),
  forbid_closed_indices: said('Closed indices are an error.', true),
  index: said('The indices.'),
  features: said('Which of `aliases`, `mappings`, `settings`.'),
  flat_settings: said('Settings by their full names instead of in objects.', false),
  include_defaults: said('Shows settings, or parameters, that nobody has set as well.', false),
  write_index_only: said('Only the index of an alias that is written to.', false),
  preserve_existing: said('Keeps settings that are set already.', false),
  copy_settings: said(TAKEN),
  lazy: said(TAKEN),
  create: said('An error, if there is one of that name.', false),
  cause: said(TAKEN),
  order: said('Which of several templates counts.', 0, {
    abouts: { get_snapshot: '`asc` or `desc`.' },
    presets: { get_snapshot: 'asc' },
  }),
};

const DOCUMENTS: Readonly<Record<string, Said>> = {
  refresh: said(
    'Makes the write searchable: `true` at once, `wait_for` with the next refresh, which the answer waits for.',
    'false',
    {
      abouts: {
        get_doc: 'Refreshes before it reads.',
        exists_doc: 'Refreshes before it reads.',
        get_source: 'Refreshes before it reads.',
        mget: 'Refreshes before it reads.',
      },
    },
  ),
  pipeline: said('Ingest pipeline that the documents run through; `_none` for none.'),
  routing: said('Kept with the document, and compared; there is one shard.'),
  op_type: said('`create` refuses to replace a document.', 'index'),
  if_seq_no: said('Writes only if this is the sequence number of what is there.'),
  if_primary_term: said('With `if_seq_no`: its primary term.'),
  version: said('Version of a document that is kept elsewhere.', undefined, {
    abouts: { search: 'Hits show their version.' },
  }),
  version_type: said('What `version` is compared with.', 'internal'),
  require_alias: said('The name has to be one of an alias.', false),
  retry_on_conflict: said('How often an update is tried again when somebody else has written.', 0),
  lang: said(TAKEN),
  list_executed_pipelines: said('Each item names the pipelines that its document ran through.', false),
  _source: said('Whether sources are shown, or which paths of them, with commas between them.', 'true'),
  _source_includes: said('Paths of sources to show.'),
  _source_excludes: said('Paths of sources to leave out.'),
  stored_fields: said('Stored fields to show.'),
  realtime: said('Sees writes that no search sees yet.', true),
  ids: said('Ids of documents.'),
  field_statistics: said('Shows sums over the field.', true),
  term_statistics: said('Shows sums over each term.', false),
  offsets: said('Shows where terms begin and end.', true, { abouts: {} }),
  positions: said('Shows the places of terms.', true),
  payloads: said('Taken; there are no payloads.', true),
};

const SEARCHES: Readonly<Record<string, Said>> = {
  q: said("A query in Lucene's syntax."),
  df: said('Field of the words of `q` that name none.'),
  default_operator: said('`and` or `or`, between the words of `q`.', 'or'),
  analyzer: said('Analyzer of the words of `q`.'),
  analyze_wildcard: said('Analyzes words with `*` in `q`.', false),
  lenient: said('Values of the wrong type in `q` match nothing.', false),
  from: said('Results that are passed over.', 0),
  size: said('Results that are answered.', undefined, {
    presets: { search: 10, get_trained_models: 100, trained_model_stats: 100 },
    abouts: { get_snapshot: 'Snapshots that are answered; 0 for all.' },
  }),
  min_score: said('Hits of less are left out.'),
  track_total_hits: said('How far hits are counted: `true`, `false`, or a number.', '10000'),
  track_scores: said('Scores are shown although hits are sorted by something else.', false),
  rest_total_hits_as_int: said('`hits.total` is a number.', false),
  typed_keys: said('Names of aggregations have their type in front.', false),
  search_type: said('Taken: an index has one shard.', 'query_then_fetch'),
  terminate_after: said('Documents of an index after which its search ends; 0 for no end.', 0),
  allow_partial_search_results: said('A search that ends early is answered with what it has.', true),
  request_cache: said('Taken: answers are not kept.'),
  seq_no_primary_term: said('Hits show sequence number and primary term.', false),
  sort: said('`field:asc` or `field:desc`.', undefined, {
    abouts: { get_snapshot: 'What snapshots are sorted by.' },
    presets: { get_snapshot: 'start_time' },
  }),
  explain: said('Hits say why they have their scores.', false, {
    abouts: { validate_query: 'Says what the query means.' },
  }),
  docvalue_fields: said('Fields that are shown from their columns.'),
  scroll: said('Keeps the search for a next page so long.'),
  scroll_id: said('The scroll.'),
  stats: said('Groups of statistics that count the search, with commas between them.'),
  include_named_queries_score: said('`matched_queries` has scores.', false),
  max_concurrent_searches: said(TAKEN),
  keep_alive: said('How long it is kept.', undefined, { presets: { async_search: '5d' } }),
  keep_on_completion: said('Keeps a search too that ended while its caller waited.', false),
  wait_for_completion_timeout: said('How long to wait for the result.', '1s', {
    presets: { get_async_search: undefined },
  }),
  rewrite: said('Shows the query in its final form.', false),
  all_shards: said(TAKEN),
  fields: said('Names or patterns of fields.'),
  include_unmapped: said('Names indices that lack a field.', false),
  include_empty_fields: said('Shows fields without values as well.', true),
  filters: said('Which fields: `-metadata`, `+metadata`, `-parent`, `-nested`, `-multifield`.'),
  types: said('Types of fields.', undefined, { abouts: { nodes_stats: TAKEN } }),
};

const TABLES: Readonly<Record<string, Said>> = {
  format: said('`json`, `yaml` or `text`; overrides the `Accept` header.', undefined),
  h: said('Columns.'),
  s: said('Columns to sort by, as `name:desc`.'),
  v: said('Shows the names of the columns.', false),
  help: said('Explains the columns.', false),
  bytes: said('Unit of sizes.'),
  time: said('Unit of times.'),
  health: said('Indices of this health alone.'),
  pri: said(TAKEN),
  ts: said('Shows the time.', true),
  full_id: said('Shows whole ids.', false),
  include_bootstrap: said(TAKEN),
  detailed: said('Shows more.', false),
  active_only: said('Only what is not done.', false, { abouts: { get_api_keys: 'Only keys that hold.' } }),
  include_unloaded_segments: said(TAKEN),
  level: said('How fine sums are.', undefined, { presets: { cluster_health: 'cluster', index_stats: 'indices' } }),
  groups: said('Groups of statistics of searches, or patterns of their names.'),
  completion_fields: said(TAKEN),
  fielddata_fields: said(TAKEN),
  include_segment_file_sizes: said('Shows files.', false),
  include_remotes: said(TAKEN),
  verbose: said('Shows more.', undefined, { presets: { get_snapshot: true, simulate_pipeline: false } }),
};

const UPKEEP: Readonly<Record<string, Said>> = {
  wait_for_status: said('Waits until it is at least so.'),
  wait_for_nodes: said('Waits for so many nodes; there is one.'),
  wait_for_events: said(TAKEN),
  wait_for_no_relocating_shards: said(TAKEN),
  wait_for_no_initializing_shards: said(TAKEN),
  return_200_for_cluster_health_timeout: said('200 instead of 408 when the time is over.', false),
  max_num_segments: said('Segments that may be left.'),
  only_expunge_deletes: said('Merges only what holds deleted documents.', false),
  flush: said('Puts the result on the disk.', true),
  wait_if_ongoing: said(TAKEN),
  fielddata: said(TAKEN),
  query: said('Empties the cache of filters.'),
  request: said(TAKEN),
  interval: said('How long threads are watched.', '500ms'),
  snapshots: said(TAKEN),
  threads: said('So many threads.', 3),
  type: said('`cpu`, `wait` or `block`.', 'cpu'),
  ignore_idle_threads: said('Leaves out threads that wait.', true),
};

const JOBS: Readonly<Record<string, Said>> = {
  requests_per_second: said('Documents a second; -1 for no limit.', '-1', { presets: { rethrottle: undefined } }),
  slices: said('Parts that are worked on side by side; `auto` chooses.', '1'),
  conflicts: said('What becomes of documents that somebody else has written meanwhile.', 'abort'),
  scroll_size: said('Documents of a batch.', 1000),
  search_timeout: said('After it the search of a batch ends.'),
  max_docs: said('Documents at most.'),
  group_by: said('How tasks are listed.', 'nodes'),
  actions: said('Patterns of actions.'),
  nodes: said('Ids of nodes; there is one.'),
  parent_task_id: said('Tasks of this one.'),
};

const REST: Readonly<Record<string, Said>> = {
  id: said('Id of a key.'),
  name: said('Name or pattern.'),
  owner: said("Only the caller's own.", false),
  realm_name: said('The realm of the owner.'),
  username: said('The name of the owner.'),
  with_limited_by: said('Shows the rights of the maker, which a key cannot exceed.', false),
  if_version: said('Writes only if this is the version of what is there.'),
  summary: said('Leaves the processors out.', false),
  decompress_definition: said(TAKEN),
  exclude_generated: said('Leaves out what the server fills in.', false),
  include: said('What to show beside.'),
  tags: said('Models with all of these tags.'),
  defer_definition_decompression: said(TAKEN),
  reassign: said('The name may be taken from another model.', false),
  number_of_allocations: said('Texts that are read at once.', 1, { presets: { update_deployment: undefined } }),
  threads_per_allocation: said('Threads of each.', 1),
  queue_capacity: said('Texts that may wait.', 1024),
  cache_size: said('Size of the cache of texts that were read before.'),
  priority: said('`normal` or `low`.', 'normal'),
  deployment_id: said('Name of the deployment; that of the model if nothing is said.'),
  wait_for: said('What the answer waits for.', 'started'),
  finish_pending_work: said('Texts that wait are read first.', false),
  verify: said('Tries whether the repository can be written.', true),
  after: said('`next` of the page before.'),
  from_sort_value: said('Begins at this value.'),
  context: said('What the script is for: `template`.', 'template'),
  include_repository: said('Names the repository.', true),
  index_details: said('Shows sizes of indices.', false),
  index_names: said('Shows names of indices.', true),
  offset: said('Snapshots that are passed over.', 0),
  slm_policy_filter: said(TAKEN),
};

const ALL: Readonly<Record<string, Said>> = {
  ...{ ...REQUESTS, ...NAMES, ...DOCUMENTS, ...SEARCHES },
  ...{ ...TABLES, ...UPKEEP, ...JOBS, ...REST },
};

/** The description of a query parameter at an operation, and its default. */
export function saidOf(name: string, operation: string): { readonly description: string; readonly preset?: unknown } {
  const found = ALL[name];
  if (found === undefined) throw new Error(`nothing is said of the parameter [${name}]`);
  const { about, abouts = {}, presets = {} } = found;
  const preset = operation in presets ? presets[operation] : operation in abouts ? undefined : found.preset;
  return { description: abouts[operation] ?? about, ...(preset === undefined ? {} : { preset }) };
}
