/**
 * Recorded exchanges that this version does not answer as recorded, each with the reason. Whatever is not named here must
 * match: a new exchange counts as covered until somebody says why it is not.
 */
export const NOT_COVERED: Readonly<Record<string, string>> = {
  ...group('the module was not loaded in the recording', [
    ...['root', 'head-root', 'put-pipeline', 'put-pipeline-missing-prop', 'delete-pipeline-missing', 'delete-pipeline'],
    ...['search-sparse-bool-rank-feature', 'search-text-expansion', 'search-rrf-retriever'],
    ...['reindex-missing-source', 'reindex-missing-source-async', 'reindex-empty', 'reindex-same'],
    ...['reindex-bad-pipeline', 'reindex-sync', 'reindex-op-type-create-conflicts', 'reindex-op-type-create-proceed'],
    ...['reindex-sync-nopipe', 'inference-put', 'ml-trained-models', 'xpack', 'license'],
  ]),
  ...group('a merge there keeps deleted documents for a time, and they count in the scores recorded after it', [
    'forcemerge',
  ]),
  ...group('9 is spoken as well: clients of that version send it with every request', ['accept-compat-v9']),
  ...group('lists a table of snapshots, and none of models, as the module was not loaded', ['cat-help']),
  ...group("names Lucene's phases, of which other engines have others", ['search-profile']),
  ...group('lists the background tasks of that server', ['tasks-list-2']),
};

/** Keys of single exchanges that must be there with the recorded kind, but may have another value. */
export const KIND_ONLY: Readonly<Record<string, { readonly keys: readonly string[]; readonly reason: string }>> = {
  'forcemerge-task-completed': { keys: ['id'], reason: 'tasks are numbered as they come' },
  'error-trace': { keys: ['stack_trace'], reason: 'each server has its own stack' },
  'cluster-health': {
    keys: ['active_primary_shards', 'active_shards', 'active_shards_percent_as_number'],
    reason: 'an excused exchange (forcemerge-async) made an index of tasks there',
  },
};

const COUNTERS = 'counts bytes, times and calls, of which the excused exchanges made some there';
const MACHINE = 'figures of that machine';

/** Exchanges whose figures are counters or those of a machine: every number and text needs its kind only. */
export const FIGURES: Readonly<Record<string, string>> = {
  ...group(COUNTERS, ['index-stats', 'cat-health', 'cat-count', 'cat-shards']),
  ...group(MACHINE, ['cluster-stats', 'nodes-info', 'nodes-stats', 'cat-nodes']),
};

/** Keys whose whole content is another on every server: what a virtual machine is made of, which fields and queries there are. */
export const ANYTHING: ReadonlySet<string> = new Set([
  ...['pools', 'collectors', 'buffer_pools', 'classes', 'gc_collectors', 'memory_pools', 'input_arguments'],
  ...['component_versions', 'modules', 'attributes', 'roles', 'field_types', 'versions', 'queries', 'sections'],
  ...['retrievers', 'transport_types', 'http_types', 'packaging_types', 'names', 'pretty_names', 'architectures'],
  ...['threads', 'bound_address'],
]);

function group(reason: string, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, reason]));
}
