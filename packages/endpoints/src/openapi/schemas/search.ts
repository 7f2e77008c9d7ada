import { script } from './query.js';
import {
  type Schema,
  type Schemas,
  any,
  bool,
  either,
  int,
  list,
  map,
  nullable,
  num,
  object,
  one,
  oneMember,
  open,
  preset,
  ref,
  several,
  text,
  time,
  scalar,
} from './schema.js';

const query = ref('Query');
const queries = several(query);
const window = int('first hits of each list that are fused');
const named = { filter: queries, min_score: num('hits of less are left out'), _name: text() };
const inner = either(
  ref('Retriever'),
  object({ retriever: ref('Retriever'), weight: preset(num(), 1) }, ['retriever']),
);
const normalizer = one(
  ['none', 'minmax', 'l2_norm', 'zscore', 'rarity', 'calibrated'],
  'brings the scores of the lists to one scale; `calibrated` makes probabilities of relevance of them',
);
const shortForm = {
  query: text(
    'a question: the words of all fields and every kind of vector of the `semantic_text` fields are searched',
  ),
  fields: list(text(), 'names or patterns, with weights as `title^2`; all if nothing is said'),
};

/** Every retriever that is answered, by its name. */
export const RETRIEVERS: Schemas = {
  standard: object({
    ...{ query, ...named },
    ...{ sort: ref('Sort'), search_after: list(any()), terminate_after: int(), collapse: ref('Collapse') },
  }),
  knn: object(
    {
      ...{ field: text(), query_vector: list(num()), query_vector_builder: ref('QueryVectorBuilder') },
      ...{ k: int(), num_candidates: int(), similarity: num(), rescore_vector: object({ oversample: num() }) },
      ...named,
    },
    ['field'],
  ),
  rrf: object({
    ...{ retrievers: list(inner), ...shortForm, rank_window_size: window },
    rank_constant: preset(
      int('how little first places count more than later ones; 5 where a question stands alone'),
      60,
    ),
    ...named,
  }),
  linear: object({
    retrievers: list(object({ retriever: ref('Retriever'), weight: preset(num(), 1), normalizer }, ['retriever'])),
    ...{ ...shortForm, normalizer, rank_window_size: window, ...named },
  }),
  text_similarity_reranker: object(
    {
      ...{ retriever: ref('Retriever'), field: text('whose text is read'), inference_id: text() },
      chunk_rescorer: object({ size: preset(int('how many parts of a text are read'), 1), chunking_settings: open() }),
      ...{ inference_text: text('the question'), rank_window_size: window, ...named },
    },
    ['retriever', 'field', 'inference_text'],
  ),
  pinned: object(
    {
      ...{ retriever: ref('Retriever'), ids: list(text()) },
      docs: list(object({ _index: text(), _id: text() }, ['_id'])),
      ...{ rank_window_size: window, ...named },
    },
    ['retriever'],
  ),
  diversify: object(
    {
      ...{ retriever: ref('Retriever'), type: one(['mmr']), field: text('whose vectors are compared') },
      lambda: num('how much relevance counts, from 0 to 1'),
      size: preset(int('how many hits are kept'), 10),
      ...{ query_vector: list(num()), query_vector_builder: ref('QueryVectorBuilder') },
      ...{ rank_window_size: window, ...named },
    },
    ['retriever', 'type', 'field', 'lambda'],
  ),
  rescorer: object({ retriever: ref('Retriever'), rescore: several(ref('Rescore')), ...named }, [
    'retriever',
    'rescore',
  ]),
};

const HIGHLIGHT = {
  type: one(['unified', 'plain', 'fvh', 'semantic']),
  pre_tags: several(text()),
  post_tags: several(text()),
  order: one(['none', 'score']),
  fragment_size: preset(int('characters'), 100),
  number_of_fragments: preset(int('0 shows the whole text'), 5),
  no_match_size: preset(int(), 0),
  require_field_match: preset(bool(), true),
  fragmenter: one(['simple', 'span']),
  boundary_scanner: one(['sentence', 'word', 'chars']),
  ...{ boundary_chars: text(), boundary_max_scan: int(), boundary_scanner_locale: text(), phrase_limit: int() },
  ...{
    force_source: bool(),
    highlight_filter: bool(),
    highlight_query: query,
    max_analyzed_offset: int(),
    options: open(),
  },
};
const highlightedField = object({ ...HIGHLIGHT, matched_fields: several(text()), fragment_offset: int() });
const showing = {
  _source: ref('SourceSelection'),
  fields: ref('FieldRequests'),
  docvalue_fields: ref('FieldRequests'),
  stored_fields: several(text()),
  script_fields: map(object({ script, ignore_failure: bool() }, ['script']), 'values that scripts compute'),
  version: bool('hits show their version'),
  seq_no_primary_term: bool('hits show sequence number and primary term'),
  track_scores: bool('scores are shown although hits are sorted by something else'),
};
const distanceSort: Schema = {
  type: 'object',
  description: 'by distance: the field with one point or several, and options',
  properties: {
    ...{ order: text(), unit: text(), mode: text(), distance_type: text() },
    ...{ ignore_unmapped: bool(), validation_method: text(), nested: open() },
  },
  additionalProperties: any(),
};
const sortOptions = object({
  order: one(['asc', 'desc', 'ASC', 'DESC']),
  missing: { ...scalar, description: '`_first`, `_last`, or a value' },
  mode: one(['min', 'max', 'sum', 'avg', 'median']),
  ...{ unmapped_type: text(), numeric_type: text(), format: text(), nested: open(), nested_path: text() },
  ...{ type: text('of the key `_script`: `number`'), script },
});

export const SEARCH_REQUEST: Schemas = {
  query,
  retriever: ref('Retriever'),
  knn: several(ref('Knn')),
  sub_searches: list(object({ query }, ['query'])),
  rank: object({ rrf: object({ rank_constant: preset(int(), 60), rank_window_size: window, window_size: int() }) }),
  aggs: ref('Aggregations'),
  aggregations: ref('Aggregations'),
  post_filter: query,
  from: preset(int('hits that are passed over'), 0),
  size: preset(int('hits that are answered'), 10),
  min_score: num('hits of less are left out'),
  sort: ref('Sort'),
  search_after: list(any(), '`sort` of the last hit of the page before'),
  track_total_hits: {
    type: ['boolean', 'integer', 'string'],
    default: 10_000,
    description: 'how far hits are counted',
  },
  ...showing,
  highlight: ref('Highlight'),
  collapse: ref('Collapse'),
  rescore: several(ref('Rescore')),
  suggest: ref('Suggest'),
  explain: preset(bool('hits say why they have their scores'), false),
  profile: preset(bool('the answer says where the time went'), false),
  timeout: time('after which the search ends with what it has'),
  terminate_after: preset(int('documents of an index after which its search ends'), 0),
  slice: object({ id: int(), max: int(), field: text() }, ['id', 'max']),
  pit: object({ id: text(), keep_alive: time() }, ['id']),
  indices_boost: either(list(map(num())), map(num())),
  stats: list(text()),
};

const explanation = object({ value: num(), description: text(), details: list(ref('Explanation')) }, [
  'value',
  'description',
  'details',
]);
const rescoreQuery = object(
  {
    rescore_query: query,
    query_weight: preset(num(), 1),
    rescore_query_weight: preset(num(), 1),
    score_mode: preset(one(['total', 'multiply', 'avg', 'max', 'min']), 'total'),
  },
  ['rescore_query'],
);

/** What an answer with hits holds, of one search or of a page of it. */
const HITS_ANSWER: Schemas = {
  took: int('milliseconds'),
  timed_out: bool('whether it ended with what it had'),
  terminated_early: bool(),
  _shards: ref('ShardStatistics'),
  hits: ref('Hits'),
  aggregations: ref('AggregationResults'),
  suggest: map(list(ref('Suggestion'))),
  profile: ref('Profile'),
  pit_id: text(),
  _scroll_id: text(),
  num_reduce_phases: int(),
  _clusters: open(),
};

export const SEARCH_SCHEMAS: Schemas = {
  Retriever: oneMember(RETRIEVERS, 'One ranked list: an object with one member, whose name says how it is made.'),
  Rescore: object({ window_size: preset(int(), 10), query: rescoreQuery }),
  SearchRequest: object(SEARCH_REQUEST),
  SourceSelection: either(
    bool(),
    several(text('path or pattern')),
    object({
      ...{ includes: several(text()), include: several(text()) },
      excludes: several(text()),
      exclude: several(text()),
      exclude_vectors: bool(),
    }),
  ),
  FieldRequests: list(
    either(text('name or pattern'), object({ field: text(), format: text(), include_unmapped: bool() }, ['field'])),
  ),
  Sort: several(
    either(text('a field, `_score`, or `_doc`'), {
      type: 'object',
      properties: { _geo_distance: distanceSort },
      additionalProperties: either(text('`asc` or `desc`'), sortOptions),
    }),
  ),
  Highlight: object({
    ...HIGHLIGHT,
    fields: either(map(highlightedField), list(map(highlightedField))),
    encoder: preset(one(['default', 'html']), 'default'),
    tags_schema: one(['default', 'styled']),
  }),
  Collapse: object({ field: text(), inner_hits: several(ref('InnerHits')), max_concurrent_group_searches: int() }, [
    'field',
  ]),
  InnerHits: object({
    ...{ name: text(), ignore_unmapped: bool(), from: int(), size: preset(int(), 3), sort: ref('Sort') },
    ...showing,
    ...{ collapse: ref('Collapse'), highlight: ref('Highlight'), explain: bool() },
  }),
  Suggest: {
    type: 'object',
    properties: { text: text('text of the suggesters that have none') },
    additionalProperties: object({
      ...{ text: text(), prefix: text(), regex: text() },
      term: object({
        ...{ text: text(), field: text(), analyzer: text(), size: preset(int(), 5), shard_size: int() },
        sort: one(['score', 'frequency']),
        suggest_mode: preset(one(['missing', 'popular', 'always']), 'missing'),
        accuracy: preset(num(), 0.5),
        string_distance: one(['internal', 'damerau_levenshtein', 'levenshtein', 'jaro_winkler', 'ngram']),
        ...{ max_edits: int(), max_inspections: int(), max_term_freq: num(), prefix_length: int() },
        ...{ min_word_length: int(), min_doc_freq: num() },
      }),
      completion: object({
        ...{ field: text('a field of type `completion`'), analyzer: text(), size: preset(int(), 5), shard_size: int() },
        skip_duplicates: preset(bool(), false),
        contexts: open('categories and places that inputs have to be in one of'),
        fuzzy: either(
          bool(),
          object({
            fuzziness: preset(either(int(), text()), 1),
            ...{ transpositions: preset(bool(), true), unicode_aware: preset(bool(), false) },
            ...{ min_length: preset(int(), 3), prefix_length: preset(int(), 1), max_determinized_states: int() },
          }),
        ),
        regex: object({ flags: text(), flags_value: int(), max_determinized_states: int() }),
      }),
    }),
  },
  Suggestion: object(
    {
      ...{ text: text(), offset: int(), length: int() },
      options: list({
        ...object({ text: text(), score: num(), freq: int() }),
        description: 'a term, or of the suggester `completion` what a hit has',
        additionalProperties: true,
      }),
    },
    ['text', 'offset', 'length', 'options'],
  ),
  ShardStatistics: object(
    { total: int(), successful: int(), skipped: int(), failed: int(), failures: list(ref('ShardFailure')) },
    ['total', 'successful', 'failed'],
  ),
  ShardFailure: object({
    shard: int(),
    index: nullable(text()),
    node: text(),
    status: text(),
    primary: bool(),
    reason: ref('Cause'),
  }),
  Hits: object(
    {
      total: either(
        object({ value: int(), relation: one(['eq', 'gte']) }, ['value', 'relation']),
        int('with `rest_total_hits_as_int`'),
      ),
      max_score: nullable(num()),
      hits: list(ref('Hit')),
    },
    ['hits'],
  ),
  Hit: object(
    {
      _index: text(),
      _id: text(),
      _score: nullable(num()),
      _rank: int(),
      _source: open('the document'),
      ...{ _version: int(), _seq_no: int(), _primary_term: int(), _routing: text(), _ignored: list(text()) },
      ...{ _node: text(), _shard: text() },
      fields: map(list(any())),
      ignored_field_values: map(list(any())),
      highlight: map(list(text())),
      sort: list(any()),
      matched_queries: either(list(text()), map(num())),
      inner_hits: map(object({ hits: ref('Hits') }, ['hits'])),
      _explanation: ref('Explanation'),
      _nested: open(),
    },
    ['_index'],
  ),
  Explanation: explanation,
  Profile: object({
    shards: list(
      object({
        ...{ id: text(), node_id: text(), shard_id: int(), index: text(), cluster: text() },
        searches: list(object({ query: list(ref('ProfiledQuery')), rewrite_time: int(), collector: list(open()) })),
        ...{ aggregations: list(open()), fetch: open(), dfs: open() },
      }),
    ),
    phases: map(int('nanoseconds'), 'Where the time of the whole request went.'),
    models: list(open(), 'The same of each model, with the number of texts and those that were in the cache.'),
  }),
  ProfiledQuery: object({
    ...{ type: text(), description: text(), time: text(), time_in_nanos: int(), breakdown: map(int()) },
    children: list(ref('ProfiledQuery')),
    debug: object({ executors: list(text('an algorithm that found the hits')) }),
  }),
  SearchAnswer: object(HITS_ANSWER, ['took', 'timed_out', '_shards', 'hits']),
  MultiSearchAnswer: object(
    {
      took: int(),
      responses: list(either(object({ ...HITS_ANSWER, status: int() }, ['hits', 'status']), ref('Error'))),
    },
    ['took', 'responses'],
  ),
  RankEvalRequest: object(
    {
      requests: list(
        object(
          {
            ...{ id: text(), request: ref('SearchRequest'), summary_fields: list(text()) },
            ...{ template_id: text(), params: open() },
            ratings: list(object({ _index: text(), _id: text(), rating: int() }, ['_index', '_id', 'rating'])),
          },
          ['id', 'ratings'],
        ),
      ),
      templates: list(open()),
      metric: oneMember(
        {
          precision: object({ k: int(), relevant_rating_threshold: int(), ignore_unlabeled: bool() }),
          recall: object({ k: int(), relevant_rating_threshold: int() }),
          mean_reciprocal_rank: object({ k: int(), relevant_rating_threshold: int() }),
          dcg: object({ k: int(), normalize: bool() }),
          expected_reciprocal_rank: object({ k: int(), maximum_relevance: int() }, ['maximum_relevance']),
        },
        'The measure of each list.',
      ),
      max_concurrent_searches: int(),
    },
    ['requests'],
  ),
  RankEvalAnswer: object(
    {
      metric_score: { type: ['number', 'string', 'null'] },
      details: map(
        object({
          metric_score: { type: ['number', 'string', 'null'] },
          unrated_docs: list(object({ _index: text(), _id: text() })),
          hits: list(object({ hit: ref('Hit'), rating: nullable(int()) })),
          metric_details: map(open()),
        }),
      ),
      failures: map(open()),
    },
    ['metric_score', 'details', 'failures'],
  ),
  FieldCapabilities: object(
    {
      indices: either(text(), list(text())),
      fields: map(
        map(
          object({
            ...{ type: text(), metadata_field: bool(), searchable: bool(), aggregatable: bool() },
            ...{ indices: list(text()), non_searchable_indices: list(text()), non_aggregatable_indices: list(text()) },
            meta: map(list(text())),
          }),
        ),
      ),
    },
    ['indices', 'fields'],
  ),
};
