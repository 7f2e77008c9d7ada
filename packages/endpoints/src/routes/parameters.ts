import { HttpError } from '../errors.js';
import type { Endpoint } from './types.js';

/** A type of query parameter: what values it has, and how a value of another kind is refused. */
type Type = 'boolean' | 'integer' | 'long' | 'float' | 'time' | 'list' | 'text';

/** One parameter: its type, its values where they are few, and what it says. */
export interface Parameter {
  readonly type: Type;
  readonly values?: readonly string[];
}

const BOOLEANS = [
  ...[
    '_source_exclude_vectors',
    'accept_enterprise',
    'keep_on_completion',
    'include_source_on_error',
    'require_data_stream',
  ],
  ...['active_only', 'all_shards', 'allow_no_indices', 'allow_no_match', 'allow_partial_search_results'],
  ...['analyze_wildcard', 'ccs_minimize_roundtrips', 'copy_settings', 'create', 'decompress_definition'],
  ...['defer_definition_decompression', 'detailed', 'reassign'],
  ...['dry_run', 'error_trace', 'exclude_generated', 'explain', 'field_statistics', 'fielddata', 'finish_pending_work'],
  ...['flat_settings', 'flush', 'force', 'full_id', 'help', 'human', 'ignore_throttled', 'ignore_unavailable'],
  ...['include_bootstrap', 'include_defaults', 'include_empty_fields', 'include_named_queries_score'],
  ...[
    'include_unloaded_segments',
    'include_unmapped',
    'lazy',
    'lenient',
    'list_executed_pipelines',
    'local',
    'offsets',
  ],
  ...['only_expunge_deletes', 'owner', 'payloads', 'positions', 'preserve_existing', 'pretty', 'pri', 'realtime'],
  ...['request', 'request_cache', 'require_alias', 'rest_total_hits_as_int', 'return_200_for_cluster_health_timeout'],
  ...['rewrite', 'seq_no_primary_term', 'summary', 'term_statistics', 'track_scores', 'ts', 'typed_keys', 'v'],
  ...['verbose', 'wait_for_completion', 'wait_for_no_initializing_shards', 'wait_for_no_relocating_shards'],
  ...['wait_if_ongoing', 'with_limited_by', 'write_index_only', 'forbid_closed_indices', 'ignore_idle_threads'],
  ...['include_remotes', 'include_segment_file_sizes'],
  ...['include_repository', 'index_details', 'index_names', 'verify'],
];
const INTEGERS = [
  ...['batched_reduce_size', 'from', 'max_concurrent_searches', 'max_concurrent_shard_requests', 'max_docs'],
  ...['max_num_segments', 'number_of_allocations', 'offset', 'order', 'pre_filter_shard_size', 'queue_capacity'],
  ...['retry_on_conflict', 'scroll_size', 'size', 'snapshots', 'terminate_after', 'threads', 'threads_per_allocation'],
];
const LONGS = ['if_primary_term', 'if_seq_no', 'if_version'];
const FLOATS = ['min_score'];
const TIMES = [
  'wait_for_completion_timeout',
  'interval',
  'keep_alive',
  'master_timeout',
  'scroll',
  'search_timeout',
  'timeout',
];
const LISTS = [
  ...['_source_excludes', '_source_includes', 'actions', 'docvalue_fields', 'expand_wildcards', 'features', 'fields'],
  ...['completion_fields', 'fielddata_fields', 'groups'],
  ...['filter_path', 'filters', 'h', 'ids', 'include', 'nodes', 's', 'sort', 'stats', 'stored_fields', 'tags', 'types'],
];
/** Text, and what is of another type from one endpoint to the next. */
const TEXTS = [
  ...['_source', 'analyzer', 'cache_size', 'cause', 'default_operator', 'deployment_id', 'df', 'format', 'id', 'index'],
  ...['lang', 'name', 'parent_task_id', 'pipeline', 'preference', 'priority', 'q', 'query', 'realm_name', 'routing'],
  ...['requests_per_second', 'scroll_id', 'slices', 'source', 'source_content_type', 'track_total_hits', 'username'],
  ...['type', 'version', 'wait_for_active_shards', 'wait_for_events', 'wait_for_nodes'],
  ...['categories', 'context', 'ecs_compatibility'],
  ...['after', 'from_sort_value', 'slm_policy_filter'],
];
/** Few values, which the engine checks: each has a sentence of its own. */
const VALUES: Readonly<Record<string, readonly string[]>> = {
  conflicts: ['abort', 'proceed'],
  bytes: ['b', 'kb', 'mb', 'gb', 'tb', 'pb'],
  group_by: ['nodes', 'parents', 'none'],
  health: ['green', 'yellow', 'red'],
  level: ['cluster', 'indices', 'shards'],
  op_type: ['index', 'create'],
  refresh: ['true', 'false', 'wait_for'],
  search_type: ['query_then_fetch', 'dfs_query_then_fetch'],
  time: ['nanos', 'micros', 'ms', 's', 'm', 'h', 'd'],
  version_type: ['internal', 'external', 'external_gte'],
  wait_for: ['starting', 'started', 'fully_allocated'],
  wait_for_status: ['green', 'yellow', 'red'],
};

const ALL: ReadonlyMap<string, Parameter> = new Map<string, Parameter>([
  ...typed('boolean', BOOLEANS),
  ...typed('integer', INTEGERS),
  ...typed('long', LONGS),
  ...typed('float', FLOATS),
  ...typed('time', TIMES),
  ...typed('list', LISTS),
  ...typed('text', TEXTS),
  ...Object.entries(VALUES).map(([name, values]) => [name, { type: 'text', values }] as const),
]);

function typed(type: Type, names: readonly string[]): (readonly [string, Parameter])[] {
  return names.map((name) => [name, { type }] as const);
}

/** What is known of a query parameter by its name; a name means the same everywhere, but for two. */
export function parameter(name: string, params: readonly string[] = []): Parameter | undefined {
  const known = ALL.get(name);
  const type = typeAt(name, params);
  return known === undefined || type === undefined || type === known.type ? known : { type };
}

const INT_MAX = 2n ** 31n - 1n;
const LONG_MAX = 2n ** 63n - 1n;
/** Milliseconds of each unit of time. */
const UNITS: Readonly<Record<string, number>> = {
  ...{ nanos: 1e-6, micros: 1e-3, ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 },
};

/** The milliseconds of a time that {@link checkParameter} has admitted; negative for one without an end. */
export function millisOf(text: string): number {
  const [, number = '', unit = 'ms'] = /^(-?\d+)([a-z]*)$/.exec(text.trim().toLowerCase()) ?? [];
  return Number(number) * (UNITS[unit] ?? 1);
}

const TIME = /^(?:-1|0|\d+(?:nanos|micros|ms|s|m|h|d))$/;

/**
 * `refresh` is a switch where documents are read.
 *
 * @throws {HttpError} 400 for a value of another type than the parameter has, in Elasticsearch’s words
 */
export function checkParameter(name: string, value: string, { params }: Pick<Endpoint, 'params'>): void {
  switch (typeAt(name, params)) {
    case 'boolean':
      checkOnly(name, value);
      if (value === 'true' || value === 'false' || value === '') return;
      throw illegal(`Failed to parse value [${value}] as only [true] or [false] are allowed.`);
    case 'integer':
      if (isWhole(value, INT_MAX)) return;
      throw notNumber('int', name, value);
    case 'long':
      if (isWhole(value, LONG_MAX)) return;
      throw notNumber('long', name, value);
    case 'float':
      if (value.trim() !== '' && Number.isFinite(Number(value))) return;
      throw notNumber('float', name, value);
    case 'time':
      if (TIME.test(value.trim().toLowerCase())) return;
      throw illegal(
        `failed to parse setting [${name}] with value [${value}] as a time value: unit is missing or unrecognized`,
      );
    default:
      checkValues(name, value);
  }
}

/** The type of a parameter among others; two names mean something else at some endpoints. */
function typeAt(name: string, params: readonly string[]): Type | undefined {
  if (name === 'refresh' && params.includes('realtime')) return 'boolean';
  // A direction where a list is sorted, a number where templates are.
  if (name === 'order' && params.includes('from_sort_value')) return 'text';
  return ALL.get(name)?.type;
}

/** Switches that clients send to say what is so here in any case. The other position is refused, with the reason. */
const ONLY_OFF: Readonly<Record<string, string>> = {
  require_data_stream: 'there are no data streams',
};

/** Whether a parameter changes nothing: no engine gets to see it, nor a cluster behind it that may not know it. */
export function changesNothing(name: string): boolean {
  return name in ONLY_OFF || name === 'include_source_on_error';
}

function checkOnly(name: string, value: string): void {
  const why = ONLY_OFF[name];
  if (why !== undefined && (value === 'true' || value === '')) throw illegal(`[${name}] can only be [false]: ${why}`);
}

/** Values with a sentence of their own which every endpoint shares. */
function checkValues(name: string, value: string): void {
  switch (name) {
    case 'refresh':
      if (['', 'true', 'false', 'wait_for'].includes(value)) return;
      throw illegal(`Unknown value for refresh: [${value}].`);
    case 'version_type':
      if (VALUES['version_type']?.includes(value) === true) return;
      throw illegal(`No version type match [${value}]`);
    case 'wait_for_status':
      if (VALUES['wait_for_status']?.includes(value.toLowerCase()) === true) return;
      throw illegal(`No enum constant org.elasticsearch.cluster.health.ClusterHealthStatus.${value.toUpperCase()}`);
    case 'level':
      if (value === 'node' || VALUES['level']?.includes(value) === true) return;
      throw illegal(`level parameter must be one of [cluster] or [indices] or [shards] but was [${value}]`);
    default:
  }
}

/** Up to 20 digits: longer ones are no numbers of these types, however they are written. */
function isWhole(value: string, max: bigint): boolean {
  if (!/^[+-]?\d{1,20}$/.test(value)) return false;
  const number = BigInt(value.replace('+', ''));
  return number <= max && number >= -max - 1n;
}

function illegal(reason: string): HttpError {
  return new HttpError('illegal_argument', reason);
}

function notNumber(type: string, name: string, value: string): HttpError {
  return new HttpError('illegal_argument', `Failed to parse ${type} parameter [${name}] with value [${value}]`, {
    causedBy: { type: 'number_format_exception', reason: `For input string: "${value}"` },
  });
}
