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
  num,
  object,
  one,
  open,
  preset,
  ref,
  several,
  text,
  scalar,
} from './schema.js';

const format = text('how keys and values are written');
const missing = { ...scalar, description: 'value of documents that have none' };
const valueType = one([
  ...['string', 'long', 'integer', 'short', 'byte', 'double', 'float', 'number', 'numeric', 'date', 'boolean'],
]);
const timeZone = text('such as `Europe/Berlin`');
const SOURCE = { field: text(), missing, format, value_type: valueType };
const directions = { type: 'object', additionalProperties: one(['asc', 'desc', 'ASC', 'DESC']) };
const order = either(directions, list(directions));
const bounds = object({ min: any(), max: any() });
const keyed = preset(bool('an object by keys instead of a list'), false);
const mode = one(['depth_first', 'breadth_first']);
const hint = one([
  'map',
  'global_ordinals',
  'direct',
  'save_memory_heuristic',
  'save_time_heuristic',
  'segment_ordinals',
  'default',
  'high_accuracy',
]);
const pick = either(text(), list(scalar), object({ partition: int(), num_partitions: int() }));
const counts = {
  size: preset(int('buckets that are answered'), 10),
  shard_size: int(),
  min_doc_count: preset(int('documents that a bucket has at least'), 1),
  shard_min_doc_count: int(),
  order,
  collect_mode: mode,
  show_term_doc_count_error: preset(bool(), false),
};
const HISTOGRAM = {
  min_doc_count: preset(int('0 shows empty buckets as well'), 0),
  extended_bounds: bounds,
  hard_bounds: bounds,
  keyed,
  order,
};
const interval = {
  calendar_interval: text('`minute`, `hour`, `day`, `week`, `month`, `quarter`, `year`, or `1d`'),
  fixed_interval: text('such as `30m`'),
  time_zone: timeZone,
};
const range = object({ key: text(), from: any(), to: any() });
const metric = object(SOURCE);
const BUCKETS = {
  buckets_path: either(text(), list(text()), map(text())),
  gap_policy: preset(one(['skip', 'insert_zeros', 'keep_values']), 'skip'),
};
const pipeline = (more: Schemas = {}, required: readonly string[] = []): Schema =>
  object({ ...BUCKETS, format, ...more }, ['buckets_path', ...required]);
const filters = either(map(ref('Query')), list(ref('Query')));
const digest = { compression: preset(num(), 100), execution_hint: hint };
const percents = {
  keyed: preset(bool(), true),
  tdigest: object(digest),
  hdr: object({ number_of_significant_value_digits: int() }),
};
const box = {
  ...open(),
  description: 'corners, or `top`, `left`, `bottom` and `right`: cells that lie outside are left out',
};
const grid = (precision: Schema): Schema =>
  object({ field: text(), precision, bounds: box, size: preset(int(), 10_000), shard_size: int() }, ['field']);
const superset = { background_is_superset: preset(bool(), true) };
const table = object({ ...superset, include_negatives: preset(bool(), false) });
const significant = {
  field: text(),
  ...{ size: counts.size, shard_size: int(), shard_min_doc_count: int(), include: pick, exclude: pick },
  min_doc_count: preset(int('documents that a bucket has at least'), 3),
  background_filter: ref('Query'),
  ...{ jlh: object({}), percentage: object({}), gnd: object(superset), chi_square: table, mutual_information: table },
};
const weighted = object({ field: text(), missing: scalar });
const source = {
  ...{ field: text(), format, value_type: valueType, order: one(['asc', 'desc']) },
  missing_bucket: preset(bool(), false),
  missing_order: preset(one(['first', 'last', 'default']), 'default'),
};

/** Every aggregation that is answered, by its name. */
export const AGGREGATIONS: Schemas = {
  adjacency_matrix: object({ filters, separator: preset(text(), '&') }, ['filters']),
  auto_date_histogram: object(
    {
      ...{ field: text(), missing, format, time_zone: timeZone },
      buckets: preset(int('at most so many'), 10),
      minimum_interval: one(['year', 'month', 'day', 'hour', 'minute', 'second']),
    },
    ['field'],
  ),
  avg: metric,
  avg_bucket: pipeline(),
  boxplot: object({ ...SOURCE, ...digest }),
  bucket_script: pipeline({ script }, ['script']),
  bucket_selector: object({ ...BUCKETS, script }, ['buckets_path', 'script']),
  bucket_sort: object({ from: int(), size: int(), gap_policy: text(), sort: ref('Sort') }),
  cardinality: object({ ...SOURCE, precision_threshold: int(), rehash: bool(), execution_hint: hint }),
  composite: object(
    {
      sources: several(
        map(
          object({
            terms: object(source),
            histogram: object({ ...source, interval: num() }, ['interval']),
            date_histogram: object({ ...source, ...interval, offset: { type: ['string', 'integer'] } }),
            geotile_grid: object({ ...source, precision: preset(int(), 7), bounds: box }),
          }),
        ),
      ),
      size: preset(int(), 10),
      after: { ...open(), description: '`after_key` of the answer before' },
    },
    ['sources'],
  ),
  cumulative_sum: pipeline(),
  date_histogram: object({
    ...{ field: text(), missing, format, ...interval },
    offset: { type: ['string', 'integer'] },
    ...HISTOGRAM,
  }),
  date_range: object({ field: text(), missing, format, time_zone: timeZone, keyed, ranges: list(range) }, ['ranges']),
  derivative: pipeline({ unit: text() }),
  extended_stats: object({ ...SOURCE, sigma: preset(num(), 2) }),
  extended_stats_bucket: pipeline({ sigma: preset(num(), 2) }),
  filter: ref('Query'),
  filters: object({ filters, other_bucket: bool(), other_bucket_key: text(), keyed: preset(bool(), true) }, [
    'filters',
  ]),
  geo_distance: object(
    { ...{ field: text(), origin: any(), unit: text(), distance_type: text(), keyed }, ranges: list(range) },
    ['field', 'origin', 'ranges'],
  ),
  geohash_grid: grid(preset({ type: ['integer', 'string'], description: 'digits, or a distance' }, 5)),
  geotile_grid: grid(preset(int('level of zoom'), 7)),
  global: object({}),
  histogram: object({ ...{ field: text(), missing, format }, interval: num(), offset: num(), ...HISTOGRAM }, [
    'interval',
  ]),
  ip_range: object(
    { field: text(), keyed, ranges: list(object({ key: text(), from: text(), to: text(), mask: text() })) },
    ['field', 'ranges'],
  ),
  max: metric,
  max_bucket: pipeline(),
  median_absolute_deviation: object({ ...SOURCE, ...digest }),
  min: metric,
  min_bucket: pipeline(),
  missing: object({ field: text(), missing: scalar, value_type: valueType, format }),
  moving_fn: pipeline({ script: any(), window: int(), shift: preset(int(), 0) }),
  multi_terms: object({ terms: list(object({ ...SOURCE, time_zone: timeZone })), ...counts }, ['terms']),
  nested: object({ path: text('of a nested field, whose objects are aggregated') }, ['path']),
  normalize: pipeline({ method: text() }),
  percentile_ranks: object({ ...SOURCE, values: list(num()), ...percents }, ['values']),
  percentiles: object({ ...SOURCE, percents: list(num()), ...percents }),
  percentiles_bucket: pipeline({ percents: list(num()), keyed: bool() }),
  range: object({ field: text(), missing, format, keyed, ranges: list(range) }, ['ranges']),
  rare_terms: object({ ...SOURCE, max_doc_count: preset(int(), 1), precision: num(), include: pick, exclude: pick }),
  reverse_nested: object({ path: text('of a nested field around the objects; without it, their documents') }),
  sampler: object({ shard_size: preset(int('documents of each index'), 100) }),
  significant_terms: object({ ...significant, format, execution_hint: hint }, ['field']),
  significant_text: object(
    { ...significant, source_fields: list(text()), filter_duplicate_text: preset(bool(), false) },
    ['field'],
  ),
  serial_diff: pipeline({ lag: preset(int(), 1) }),
  stats: metric,
  stats_bucket: pipeline(),
  string_stats: object({ ...SOURCE, show_distribution: preset(bool(), false) }),
  sum: metric,
  sum_bucket: pipeline(),
  terms: object({ ...SOURCE, ...counts, include: pick, exclude: pick, execution_hint: hint }),
  top_hits: object({
    from: preset(int(), 0),
    size: preset(int(), 3),
    sort: ref('Sort'),
    _source: ref('SourceSelection'),
    ...{ docvalue_fields: ref('FieldRequests'), fields: ref('FieldRequests'), stored_fields: several(text()) },
    highlight: ref('Highlight'),
    ...{ explain: bool(), seq_no_primary_term: bool(), track_scores: bool(), version: bool() },
  }),
  top_metrics: object({ metrics: several(object({ field: text() })), sort: ref('Sort'), size: preset(int(), 1) }, [
    'metrics',
  ]),
  value_count: metric,
  variable_width_histogram: object(
    { field: text(), buckets: preset(int('at most so many'), 10), shard_size: int(), initial_buffer: int() },
    ['field'],
  ),
  weighted_avg: object({ value: weighted, weight: weighted, format, value_type: valueType }, ['value', 'weight']),
};

export const AGGREGATION_SCHEMAS: Schemas = {
  Aggregations: map(ref('Aggregation'), 'Aggregations by names of your own.'),
  Aggregation: object(
    { ...AGGREGATIONS, aggs: ref('Aggregations'), aggregations: ref('Aggregations'), meta: open() },
    [],
    'One aggregation: a member whose name says which, and those below it in `aggs`.',
  ),
  AggregationResults: {
    ...map(ref('AggregationResult')),
    description: 'What each aggregation found, by its name; with `typed_keys` behind its type, as `terms#tags`.',
  },
  AggregationResult: {
    type: 'object',
    description:
      'Members depend on the aggregation; those below it stand beside them, or in each bucket, by their names.',
    additionalProperties: true,
    properties: {
      buckets: either(list(ref('Bucket')), map(ref('Bucket'))),
      doc_count: int(),
      doc_count_error_upper_bound: int(),
      sum_other_doc_count: int(),
      after_key: open(),
      value: { type: ['number', 'null', 'object', 'string', 'boolean', 'array'] },
      value_as_string: text(),
      values: any(),
      hits: ref('Hits'),
      meta: open(),
    },
  },
  Bucket: {
    type: 'object',
    required: ['doc_count'],
    additionalProperties: true,
    properties: { key: any(), key_as_string: text(), doc_count: int(), from: any(), to: any() },
  },
};
