import {
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
  open,
  ref,
  text,
} from './schema.js';

const explanation = object({ value: num(), description: text(), details: list(ref('Explanation')) }, [
  'value',
  'description',
  'details',
]);
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
