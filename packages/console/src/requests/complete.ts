// Completion: paths with the names of indices in them, and in a body the words that can stand at a place.
import type { Endpoint } from './catalog';

const MOST = 12;

/** Lines that go on from what was typed, the shortest first. */
export function completeLine(line: string, catalog: readonly Endpoint[], indices: readonly string[]): string[] {
  const typed = line.trimStart();
  const [, method = '', path = ''] = /^([A-Za-z]*)\s*(.*)$/.exec(typed) ?? [];
  const methods = ['GET', 'POST', 'PUT', 'DELETE', 'HEAD'].filter((one) => one.startsWith(method.toUpperCase()));
  if (!/\s/.test(typed))
    return method === '' || methods.includes(method.toUpperCase()) ? [] : methods.map((one) => `${one} /`);
  const wanted = path.startsWith('/') ? path : `/${path}`;
  const lines = catalog
    .filter((endpoint) => endpoint.method === method.toUpperCase())
    .flatMap(({ path: template }) =>
      template.includes('{index}') ? indices.map((index) => template.replace('{index}', index)) : [template],
    )
    .filter((one) => one.startsWith(wanted) && one !== wanted);
  // What only contains it comes after what begins with it.
  const inside = catalog
    .filter(
      (endpoint) =>
        endpoint.method === method.toUpperCase() && endpoint.path.includes(wanted.slice(1)) && wanted.length > 2,
    )
    .map(({ path: template }) => template.replace('{index}', indices[0] ?? '{index}'))
    .filter((one) => one !== wanted);
  return [...new Set([...lines.sort((a, b) => a.length - b.length), ...inside])]
    .slice(0, MOST)
    .map((one) => `${method.toUpperCase()} ${one}`);
}

const QUERIES = [
  ...[
    'match',
    'match_all',
    'match_phrase',
    'multi_match',
    'term',
    'terms',
    'range',
    'exists',
    'prefix',
    'wildcard',
    'fuzzy',
    'ids',
  ],
  ...[
    'bool',
    'query_string',
    'simple_query_string',
    'dis_max',
    'constant_score',
    'function_score',
    'boosting',
    'nested',
  ],
  ...[
    'semantic',
    'sparse_vector',
    'text_expansion',
    'weighted_tokens',
    'knn',
    'more_like_this',
    'rank_feature',
    'regexp',
  ],
];
const SEARCH = [
  ...[
    'query',
    'retriever',
    'knn',
    'size',
    'from',
    'sort',
    '_source',
    'fields',
    'highlight',
    'aggs',
    'explain',
    'profile',
  ],
  ...[
    'min_score',
    'track_total_hits',
    'search_after',
    'post_filter',
    'collapse',
    'rescore',
    'timeout',
    'rank',
    'sub_searches',
  ],
];
const TYPES = [
  ...[
    'text',
    'keyword',
    'semantic_text',
    'sparse_vector',
    'dense_vector',
    'rank_features',
    'long',
    'integer',
    'double',
    'float',
  ],
  ...[
    'boolean',
    'date',
    'object',
    'nested',
    'ip',
    'flattened',
    'geo_point',
    'search_as_you_type',
    'completion',
    'alias',
    'date_nanos',
    'token_count',
    'integer_range',
    'date_range',
  ],
];
/** What may stand under a key; a name of a field where it is empty. */
const UNDER: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    query: QUERIES,
    must: QUERIES,
    should: QUERIES,
    filter: QUERIES,
    must_not: QUERIES,
    bool: ['must', 'should', 'filter', 'must_not', 'minimum_should_match', 'boost'],
    retriever: ['standard', 'knn', 'rrf', 'linear', 'rescorer'],
    retrievers: ['standard', 'knn', 'rrf', 'linear', 'rescorer'],
    standard: ['query', 'filter', 'min_score', 'sort', 'collapse'],
    rrf: ['retrievers', 'query', 'fields', 'rank_constant', 'rank_window_size', 'filter'],
    linear: ['retrievers', 'query', 'fields', 'normalizer', 'rank_window_size', 'filter'],
    semantic: ['field', 'query'],
    sparse_vector: ['field', 'inference_id', 'query', 'query_vector', 'prune', 'pruning_config', 'boost'],
    knn: ['field', 'query_vector', 'query_vector_builder', 'k', 'num_candidates', 'filter', 'similarity', 'boost'],
    query_vector_builder: ['text_embedding'],
    text_embedding: ['model_id', 'model_text'],
    multi_match: ['query', 'fields', 'type', 'operator', 'fuzziness'],
    query_string: ['query', 'fields', 'default_field', 'default_operator'],
    highlight: ['fields', 'type', 'number_of_fragments', 'fragment_size', 'order', 'pre_tags', 'post_tags'],
    mappings: ['properties', 'dynamic', 'dynamic_templates', '_source'],
    settings: ['index', 'default_pipeline', 'refresh_interval', 'analysis'],
    aggs: [],
    source: ['index', 'query', 'size', '_source'],
    dest: ['index', 'pipeline', 'op_type'],
    type: TYPES,
  }),
);
const ROOTS: readonly (readonly [RegExp, readonly string[]])[] = [
  [/_search|_count|_msearch|_validate|_explain/, SEARCH],
  [/_reindex/, ['source', 'dest', 'conflicts', 'max_docs']],
  [/_ingest\/pipeline/, ['description', 'processors', 'on_failure', 'docs', 'pipeline']],
  [/_security\/api_key/, ['name', 'expiration', 'role_descriptors', 'metadata', 'ids']],
  [/_inference/, ['input', 'service', 'service_settings', 'task_settings', 'chunking_settings']],
  [/^\/[^_/][^/]*$/, ['mappings', 'settings', 'aliases']],
];

export interface Completion {
  /** Where the word begins that is to be replaced. */
  readonly from: number;
  readonly words: readonly string[];
}

/** Words that can go on at a place of a body; none outside of a string or a bare word. */
export function completeBody(body: string, at: number, path: string, fields: readonly string[]): Completion {
  const before = body.slice(0, at);
  const typed = /"?([\w.@-]*)$/.exec(before)?.[1] ?? '';
  const { key, isRoot } = placeOf(before.slice(0, before.length - typed.length).replace(/"$/, ''));
  const known = isRoot ? ROOTS.find(([pattern]) => pattern.test(path.split('?')[0] ?? ''))?.[1] : UNDER.get(key ?? '');
  const all = known === undefined || ['field', 'fields', 'default_field'].includes(key ?? '') ? fields : known;
  const words = all.filter((word) => word.startsWith(typed) && word !== typed).slice(0, MOST);
  return { from: at - typed.length, words };
}

/** The key whose value or whose inside a place is in. */
function placeOf(before: string): { key: string | undefined; isRoot: boolean } {
  const open: (string | undefined)[] = [];
  let last: string | undefined;
  for (const [token] of before.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\]:,]/g)) {
    if (token === '{' || token === '[') {
      open.push(last ?? open.at(-1));
      last = undefined;
    } else if (token === '}' || token === ']') {
      open.pop();
      last = undefined;
    } else if (token === ',') last = undefined;
    else if (token !== ':') last = token.slice(1, -1);
  }
  const isValue = /:\s*$/.test(before);
  return { key: isValue ? last : open.at(-1), isRoot: !isValue && open.length === 1 };
}
