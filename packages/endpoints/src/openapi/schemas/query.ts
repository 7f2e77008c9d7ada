import {
  type Schema,
  type Schemas,
  any,
  bool,
  either,
  int,
  list,
  map,
  num,
  object,
  one,
  oneMember,
  open,
  preset,
  ref,
  several,
  text,
} from './schema.js';

/** What every query takes. */
const COMMON = {
  boost: preset(num('factor of its score'), 1),
  _name: text('name under which a hit tells that it matched: `matched_queries`'),
};
const clause = (properties: Schemas, required: readonly string[] = [], description?: string): Schema =>
  object({ ...properties, ...COMMON }, required, description);

const scalar: Schema = { type: ['string', 'number', 'boolean', 'null'] };
const numeric: Schema = { type: ['number', 'string'] };
const flexible: Schema = { type: ['string', 'integer'] };
const query = ref('Query');
const queries = several(query);

/** A clause about one field: `{"field": value}`, or `{"field": {…}}` with options. */
function ofField(value: string, properties: Schemas, others: readonly string[] = []): Schema {
  const same = Object.fromEntries([value, ...others].map((name) => [name, scalar]));
  return {
    type: 'object',
    minProperties: 1,
    maxProperties: 1,
    additionalProperties: either(scalar, clause({ ...same, ...properties })),
  };
}

const analyzer = text('analyzer of the text; otherwise that of the field');
const minimum = {
  ...flexible,
  description: 'how many optional clauses have to match: a number, a percentage, or a combination such as `2<75%`',
};
const zeroTerms = preset(one(['none', 'all'], 'what a text without terms finds'), 'none');
const operator = preset(text('`or`: some term has to match; `and`: all'), 'or');
const synonyms = preset(bool('synonyms of several words are searched as phrases'), true);
const rewrite = text('how the terms that match are scored, such as `constant_score`');
const fuzziness = { ...flexible, description: 'edits that a term may be away: `AUTO`, or 0 to 2' };
const fields = either(text(), list(text('name or pattern, with a weight as `title^2`')));

const MATCH = {
  operator,
  minimum_should_match: minimum,
  analyzer,
  fuzziness,
  prefix_length: preset(int('first characters that have to be the same'), 0),
  max_expansions: preset(int('terms that a fuzzy or unfinished one may stand for'), 50),
  fuzzy_transpositions: preset(bool('swapped neighbours are one edit'), true),
  fuzzy_rewrite: rewrite,
};
const LENIENT = preset(bool('values of the wrong type match nothing, instead of being an error'), false);
const matching = {
  ...MATCH,
  lenient: LENIENT,
  zero_terms_query: zeroTerms,
  auto_generate_synonyms_phrase_query: synonyms,
};
const phrase = { analyzer, slop: preset(int('places that words may be moved'), 0), zero_terms_query: zeroTerms };
const TYPES = ['best_fields', 'most_fields', 'cross_fields', 'phrase', 'phrase_prefix', 'bool_prefix'];
const multiType = preset(one([...TYPES, 'boolean'], 'how the scores of the fields come together'), 'best_fields');
const tieBreaker = num('share of the scores of the other fields or clauses: 0 for the best alone, 1 for the sum');
const states = preset(int('states that an automaton may have'), 10_000);
const caseless = preset(bool('upper and lower case are the same'), false);

const pruning = object(
  {
    tokens_freq_ratio_threshold: preset(num('tokens that are so much more frequent than the average are left out'), 5),
    tokens_weight_threshold: preset(num('tokens of less than this share of the greatest weight are left out'), 0.4),
    only_score_pruned_tokens: preset(bool('the tokens that are left out score the first hits again'), false),
  },
  [],
  'leaves frequent tokens of little weight out of the search',
);
const tokens = either(map(num(), 'tokens with their weights'), list(map(num())));
const vector = list(num());
const builder = object(
  {
    text_embedding: object({
      model_id: text('model or endpoint; that of the field if nothing is said'),
      model_text: text('text that becomes the vector'),
    }),
  },
  ['text_embedding'],
);
const knn: Schemas = {
  field: text('a `dense_vector`, or a `semantic_text` with dense vectors'),
  query_vector: either(vector, text('hexadecimal bytes')),
  query_vector_builder: builder,
  k: int('neighbours that are found; `size` if nothing is said'),
  num_candidates: int('candidates that are looked at; if nothing is said, half as many again as `k`, but at least 100'),
  filter: queries,
  similarity: num('least similarity of a neighbour'),
  inner_hits: { ...open(), description: 'which of the nearest objects are shown, for a field inside a nested one' },
  rescore_vector: object({
    oversample: num(
      'candidates that quantised vectors choose, as a multiple of `k`; the best by exact scores are hits',
    ),
  }),
};

const words = { analyzer: text(), use_field: text() };
const intervalsFilter = oneMember(
  Object.fromEntries(
    [
      ...['after', 'before', 'contained_by', 'containing'],
      ...['not_contained_by', 'not_containing', 'not_overlapping', 'overlapping'],
    ].map((name) => [name, ref('IntervalsRule')]),
  ),
  'a relation to other intervals',
);
const ordered = { max_gaps: preset(int(), -1), ordered: preset(bool(), false), filter: intervalsFilter };
const intervals: Schemas = {
  match: object({ query: text(), ...ordered, ...words }, ['query']),
  any_of: object({ intervals: list(ref('IntervalsRule')), filter: intervalsFilter }, ['intervals']),
  all_of: object({ intervals: list(ref('IntervalsRule')), ...ordered }, ['intervals']),
  prefix: object({ prefix: text(), ...words }, ['prefix']),
  wildcard: object({ pattern: text(), ...words }, ['pattern']),
  regexp: object({ pattern: text(), ...words }, ['pattern']),
  fuzzy: object({
    ...{ term: text(), fuzziness, prefix_length: int(), transpositions: bool() },
    ...words,
  }),
  range: object({ gte: scalar, gt: scalar, lte: scalar, lt: scalar, ...words }),
};

const like = several(
  either(
    text(),
    object({
      _index: text(),
      _id: text(),
      doc: open(),
      fields: list(text()),
      routing: text(),
      version: int(),
      version_type: text(),
      per_field_analyzer: map(text()),
    }),
  ),
);
/** A point on the earth: an object, `[lon, lat]` or a text. */
const point = any('a point: `{"lat", "lon"}`, `[lon, lat]`, `"lat,lon"`, WKT, GeoJSON or a geohash');
const geo: Schemas = {
  validation_method: preset(one(['STRICT', 'COERCE', 'IGNORE_MALFORMED']), 'STRICT'),
  ignore_unmapped: preset(bool('an index without the field finds nothing, instead of being an error'), false),
  ...COMMON,
};
const corners = object({
  ...{ top_left: point, bottom_right: point, top_right: point, bottom_left: point },
  ...{ top: num(), left: num(), bottom: num(), right: num(), wkt: text() },
});
const decay = (description: string): Schema => ({
  type: 'object',
  description,
  properties: { multi_value_mode: one(['min', 'max', 'avg', 'sum']) },
  additionalProperties: object({ origin: any(), scale: scalar, offset: scalar, decay: preset(num(), 0.5) }),
});
/** A script: its text, or an object. */
export const script = either(
  text(),
  object({ source: text(), lang: one(['painless']), params: open(), options: open() }),
);
const scoreFunction: Schemas = {
  filter: query,
  weight: num(),
  field_value_factor: object({
    field: text(),
    factor: preset(num(), 1),
    modifier: preset(
      one(['none', 'log', 'log1p', 'log2p', 'ln', 'ln1p', 'ln2p', 'square', 'sqrt', 'reciprocal']),
      'none',
    ),
    missing: num(),
  }),
  random_score: object({ seed: flexible, field: text() }),
  script_score: object({ script }, ['script']),
  gauss: decay('a bell around an origin'),
  exp: decay('falls exponentially away from an origin'),
  linear: decay('falls in a straight line away from an origin'),
};
const bound: Schema = scalar;

/** Every query that is answered, by its name. */
export const QUERIES: Schemas = {
  bool: clause({
    must: { ...queries, description: 'have to match, and score' },
    should: { ...queries, description: 'may match, and score' },
    filter: { ...queries, description: 'have to match, without a score' },
    must_not: { ...queries, description: 'may not match' },
    mustNot: queries,
    minimum_should_match: minimum,
    adjust_pure_negative: preset(bool(), true),
  }),
  boosting: clause({ positive: query, negative: query, negative_boost: num() }, ['positive', 'negative']),
  combined_fields: clause(
    {
      ...{ query: scalar, fields, operator, minimum_should_match: minimum, zero_terms_query: zeroTerms },
      auto_generate_synonyms_phrase_query: synonyms,
    },
    ['query', 'fields'],
  ),
  constant_score: clause({ filter: query }, ['filter']),
  dis_max: clause({ queries, tie_breaker: preset(tieBreaker, 0) }, ['queries']),
  distance_feature: clause({ field: text(), origin: any(), pivot: text() }, ['field', 'origin', 'pivot']),
  exists: clause({ field: text() }, ['field']),
  function_score: clause({
    ...scoreFunction,
    query,
    functions: list(object(scoreFunction)),
    score_mode: preset(one(['multiply', 'sum', 'avg', 'first', 'max', 'min']), 'multiply'),
    boost_mode: preset(one(['multiply', 'replace', 'sum', 'avg', 'max', 'min']), 'multiply'),
    max_boost: num(),
    min_score: num(),
  }),
  geo_bounding_box: {
    type: 'object',
    properties: { ...geo, type: text() },
    additionalProperties: corners,
  },
  geo_distance: {
    type: 'object',
    required: ['distance'],
    properties: { distance: { type: ['string', 'number'] }, unit: text(), distance_type: text(), ...geo },
    additionalProperties: point,
  },
  fuzzy: ofField('value', {
    ...{ fuzziness, prefix_length: preset(int(), 0), max_expansions: preset(int(), 50) },
    ...{ transpositions: preset(bool(), true), rewrite },
  }),
  ids: clause({ values: several(flexible), type: several(text()) }),
  intervals: {
    type: 'object',
    minProperties: 1,
    maxProperties: 1,
    additionalProperties: object({ ...intervals, ...COMMON }),
  },
  knn: clause(knn, ['field']),
  match: ofField('query', matching),
  match_all: clause({}),
  match_bool_prefix: ofField('query', MATCH),
  match_none: clause({}),
  match_phrase: ofField('query', phrase),
  match_phrase_prefix: ofField('query', { ...phrase, max_expansions: preset(int(), 50) }),
  more_like_this: clause(
    {
      ...{ like, unlike: like, fields: list(text()), stop_words: list(text()), analyzer },
      max_query_terms: preset(int('terms that are chosen from the examples'), 25),
      min_term_freq: preset(int(), 2),
      min_doc_freq: preset(int(), 5),
      max_doc_freq: int(),
      min_word_length: preset(int(), 0),
      max_word_length: preset(int(), 0),
      minimum_should_match: { ...minimum, default: '30%' },
      boost_terms: preset(num(), 0),
      include: preset(bool('the examples may be found as well'), false),
      fail_on_unsupported_field: preset(bool(), true),
    },
    ['like'],
  ),
  multi_match: clause({ ...matching, query: scalar, fields, type: multiType, tie_breaker: tieBreaker, slop: int() }, [
    'query',
  ]),
  nested: clause(
    {
      query,
      path: text(),
      ignore_unmapped: bool(),
      score_mode: { ...one(['none', 'min', 'max', 'avg', 'sum']), default: 'avg' },
      inner_hits: { ...open(), description: 'which of the objects that match are shown' },
    },
    ['query', 'path'],
    'documents by their objects in a field of the type `nested`',
  ),
  pinned: clause({ ids: list(text()), docs: list(object({ _index: text(), _id: text() }, ['_id'])), organic: query }, [
    'organic',
  ]),
  prefix: ofField('value', { case_insensitive: caseless, rewrite }, ['prefix']),
  query_string: clause(
    {
      query: { ...scalar, description: "a query in Lucene's syntax" },
      ...{ fields, default_field: text(), default_operator: operator, analyzer, quote_analyzer: text() },
      ...{ quote_field_suffix: text(), lenient: LENIENT, type: multiType, tie_breaker: tieBreaker },
      analyze_wildcard: preset(bool(), false),
      allow_leading_wildcard: preset(bool(), true),
      phrase_slop: preset(int(), 0),
      ...{ fuzziness, fuzzy_prefix_length: int(), fuzzy_max_expansions: int() },
      ...{ fuzzy_transpositions: bool(), fuzzy_rewrite: rewrite, rewrite, minimum_should_match: minimum },
      ...{ escape: bool(), time_zone: text(), auto_generate_synonyms_phrase_query: synonyms },
      enable_position_increments: bool(),
      max_determinized_states: states,
    },
    ['query'],
  ),
  range: {
    type: 'object',
    minProperties: 1,
    maxProperties: 1,
    additionalProperties: clause({
      ...{ gt: bound, gte: bound, lt: bound, lte: bound, from: bound, to: bound },
      include_lower: preset(bool(), true),
      include_upper: preset(bool(), true),
      format: text('how dates of the bounds are written'),
      time_zone: text(),
      relation: one(['intersects', 'INTERSECTS', 'contains', 'CONTAINS', 'within', 'WITHIN']),
    }),
  },
  rank_feature: clause(
    {
      field: text('a `rank_feature`, or a feature of a `rank_features`'),
      saturation: object({ pivot: num() }),
      log: object({ scaling_factor: num() }, ['scaling_factor']),
      sigmoid: object({ pivot: num(), exponent: num() }, ['pivot', 'exponent']),
      linear: object({}),
    },
    ['field'],
  ),
  regexp: ofField('value', {
    ...{ flags: text(), flags_value: int(), case_insensitive: caseless, max_determinized_states: states, rewrite },
  }),
  script: clause({ script }, ['script']),
  script_score: clause({ query, script, min_score: num() }, ['query', 'script']),
  semantic: clause(
    { field: text('a `semantic_text`'), query: text('what is looked for, in words of the user') },
    ['field', 'query'],
    'the best passage of a `semantic_text`',
  ),
  simple_query_string: clause(
    {
      ...{ query: scalar, fields, analyzer, default_operator: operator, lenient: LENIENT },
      flags: flexible,
      ...{ analyze_wildcard: bool(), minimum_should_match: minimum, quote_field_suffix: text() },
      ...{ auto_generate_synonyms_phrase_query: synonyms, fuzzy_prefix_length: int(), fuzzy_max_expansions: int() },
      fuzzy_transpositions: bool(),
    },
    ['query'],
  ),
  sparse_vector: clause(
    {
      field: text('a `sparse_vector`, or a `semantic_text` with sparse vectors'),
      query_vector: tokens,
      inference_id: text('endpoint or model that encodes `query`; that of the field if nothing is said'),
      query: text('text that becomes the vector'),
      prune: preset(bool(), true),
      pruning_config: pruning,
    },
    ['field'],
  ),
  term: ofField('value', { case_insensitive: caseless }, ['term']),
  terms: {
    type: 'object',
    properties: COMMON,
    additionalProperties: either(
      list(scalar),
      object(
        { index: text(), id: text(), path: text(), routing: text() },
        ['index', 'id', 'path'],
        'terms of a document',
      ),
    ),
  },
  terms_set: {
    type: 'object',
    minProperties: 1,
    maxProperties: 1,
    additionalProperties: clause({
      terms: list(scalar),
      minimum_should_match_field: text(),
      minimum_should_match_script: script,
      minimum_should_match: minimum,
    }),
  },
  text_expansion: {
    type: 'object',
    minProperties: 1,
    maxProperties: 1,
    additionalProperties: clause({ model_id: text(), model_text: text(), pruning_config: pruning }),
  },
  weighted_tokens: {
    type: 'object',
    minProperties: 1,
    maxProperties: 1,
    additionalProperties: clause({ tokens, pruning_config: pruning }),
  },
  wildcard: ofField('value', { case_insensitive: caseless, rewrite }, ['wildcard']),
  wrapper: object({ query: text('a query in JSON, in base64') }, ['query']),
};

export const QUERY_SCHEMAS: Schemas = {
  Query: oneMember(QUERIES, 'One query: an object with one member, whose name says which.'),
  IntervalsRule: oneMember(intervals, 'Where words stand in a text.'),
  Knn: clause(knn, ['field'], 'The nearest neighbours of a vector.'),
  QueryVectorBuilder: builder,
  Script: script,
};

const numberOf = numeric;
export { numberOf as numeric, scalar };
