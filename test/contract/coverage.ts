/**
 * Recorded exchanges that this version does not answer as recorded, each with the reason. Whatever is not named here must
 * match: a new exchange counts as covered until somebody says why it is not.
 */
export const NOT_COVERED: Readonly<Record<string, string>> = {
  ...group('the module was not loaded when this was recorded', [
    ...['root', 'head-root', 'put-pipeline', 'put-pipeline-missing-prop', 'delete-pipeline-missing'],
    ...['simulate-pipeline', 'search-sparse-bool-rank-feature'],
    ...['search-text-expansion', 'search-rrf-retriever', 'reindex-missing-source', 'reindex-missing-source-async'],
    ...['reindex-empty', 'reindex-same', 'reindex-bad-pipeline', 'reindex-sync', 'reindex-op-type-create-conflicts'],
    ...['reindex-op-type-create-proceed', 'reindex-sync-nopipe', 'ml-trained-models', 'xpack'],
    ...['delete-pipeline', 'inference-put'],
  ]),
  ...group('not part of this version', [
    ...['search-profile', 'search-explain-version', 'search-aggs-terms', 'search-standard-retriever', 'msearch'],
    ...['search-scroll-open', 'scroll-next', 'scroll-clear', 'forcemerge', 'analyze', 'put-alias', 'get-alias'],
    ...['get-alias-missing', 'aliases', 'forcemerge-async', 'forcemerge-task-completed', 'cat-health', 'cat-nodes'],
    ...['cat-shards', 'cat-count', 'cat-help', 'cluster-stats', 'index-stats', 'nodes-info', 'nodes-stats', 'field-caps'],
    ...['termvectors', 'accept-yaml', 'license', 'error-trace'],
  ]),
  ...group('depends on what else that server held', [
    ...['tasks-list-2', 'cluster-health', 'cluster-health-index-missing', 'cat-indices-v'],
    ...['cat-indices-json', 'cat-bad-column', 'task-cancel-not-found'],
  ]),
};

function group(reason: string, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, reason]));
}
