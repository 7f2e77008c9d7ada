/** Random aggregations of every kind, as a request states them. */
import type { Aggregation } from './aggregate.js';
import { KEYWORDS } from './corpus.js';
import { day, type Query } from './clauses.js';
import { query } from './queries.js';
import type { Random } from './random.js';

type Make = (random: Random) => object;

/** A filter whose matches do not depend on statistics. */
const filter = (random: Random): Query =>
  query(random, random.pick(['term', 'terms', 'range', 'exists', 'match', 'ids']));
const numeric = (random: Random): string => random.pick(['n', 'd', 'least', 'pop']);
const grouping = (random: Random): string => random.pick(['kw', 'kw', 'n', 'd', 'flag', 'when', 'least', 'ip']);

function orders(random: Random): object {
  const one = (): object => ({ [random.pick(['_count', '_key', 's', 't.max'])]: random.pick(['asc', 'desc']) });
  return random.maybe(0.5, () => ({ order: random.chance(0.6) ? one() : [one(), { _key: 'desc' }] }));
}

/** What `orders` and the pipelines look at. */
const MEASURES: Record<string, Aggregation> = { s: { sum: { field: 'd' } }, t: { stats: { field: 'pop' } } };

function ranges(random: Random, value: () => number | string): object[] {
  return random.several(1, 3, () => {
    const [low, high] = [value(), value()].sort((a, b) => (a < b ? -1 : 1));
    const ends = random.pick([{ from: low, to: high }, { from: low }, { to: high }]);
    return { ...ends, ...random.maybe(0.2, () => ({ key: `k${String(random.int(0, 99))}` })) };
  });
}

function dates(random: Random): object {
  const interval = random.chance(0.5)
    ? { calendar_interval: random.pick(['day', 'week', 'month', 'quarter', 'year']) }
    : { fixed_interval: random.pick(['36h', '7d', '30d']) };
  return {
    ...interval,
    ...random.maybe(0.5, () => ({ time_zone: random.pick(['+02:00', '-05:30', 'America/Phoenix', 'UTC']) })),
    ...random.maybe(0.3, () => ({ offset: random.pick(['+6h', '-2h', '+1d']) })),
  };
}

function bounds(random: Random, value: () => number | string): object {
  const [min, max] = [value(), value()].sort((a, b) => (a < b ? -1 : 1));
  return random.pick([{ min, max }, { min }, { max }]);
}

function filling(random: Random, value: () => number | string): object {
  return {
    ...random.maybe(0.4, () => ({ min_doc_count: random.int(0, 2) })),
    ...random.pick([{}, {}, { extended_bounds: bounds(random, value) }, { hard_bounds: bounds(random, value) }]),
    ...random.maybe(0.2, () => ({ order: { [random.pick(['_key', '_count'])]: random.pick(['asc', 'desc']) } })),
  };
}

function source(random: Random): object {
  const order = random.maybe(0.5, () => ({ order: random.pick(['asc', 'desc']) }));
  const missing = random.maybe(0.5, () => ({
    missing_bucket: true,
    ...random.maybe(0.5, () => ({ missing_order: random.pick(['first', 'last', 'default']) })),
  }));
  switch (random.int(0, 3)) {
    case 3:
      return { geotile_grid: { field: 'at', precision: random.int(0, 16), ...order, ...missing } };
    case 0:
      return { histogram: { field: random.pick(['n', 'd']), interval: random.int(1, 4), ...order, ...missing } };
    case 1:
      return { date_histogram: { field: 'when', ...dates(random), ...order, ...missing } };
    default:
      return { terms: { field: random.pick(['kw', 'n', 'flag']), ...order, ...missing } };
  }
}

/** What values are compared with, and how. A background without the documents of the bucket has only what needs none of them. */
function significance(random: Random): object {
  const apart = random.maybe(0.3, () => ({ background_filter: filter(random) }));
  const heuristic = random.pick([{}, { jlh: {} }, { percentage: {} }, { chi_square: {} }]);
  return {
    ...random.maybe(0.7, () => ({ min_doc_count: random.int(1, 3) })),
    ...random.maybe(0.3, () => ({ size: random.int(1, 6) })),
    ...apart,
    ...('chi_square' in heuristic && Object.keys(apart).length > 0 ? {} : heuristic),
  };
}

/** Kinds that make buckets. */
const BUCKETS: Readonly<Record<string, Make>> = {
  terms: (random) => {
    const field = grouping(random);
    const chosen =
      field === 'kw'
        ? random.pick([
            {},
            {},
            { include: random.some(KEYWORDS, 0.5) },
            { exclude: random.some(KEYWORDS, 0.3) },
            { include: '[aA].*' },
            { include: '.*b.*', exclude: 'a.*' },
          ])
        : {};
    return {
      field,
      ...chosen,
      ...random.maybe(0.5, () => ({ size: random.int(1, 12) })),
      ...random.maybe(0.3, () => ({ min_doc_count: random.int(1, 4) })),
      ...(field === 'kw' || field === 'n' ? random.maybe(0.2, () => ({ missing: field === 'kw' ? 'none' : 99 })) : {}),
      ...orders(random),
    };
  },
  multi_terms: (random) => ({
    terms: random.pick([
      [{ field: 'kw' }, { field: 'flag' }],
      [{ field: 'n' }, { field: 'kw' }],
      [{ field: 'flag' }, { field: 'least' }, { field: 'kw' }],
    ]),
    ...random.maybe(0.6, () => ({ size: random.int(1, 30) })),
    ...orders(random),
  }),
  rare_terms: (random) => ({ field: random.pick(['kw', 'n', 'd']), max_doc_count: random.int(1, 12) }),
  range: (random) => ({
    field: numeric(random),
    ranges: ranges(random, () => random.int(-6, 12) / random.pick([1, 2])),
    ...random.maybe(0.2, () => ({ keyed: false })),
  }),
  date_range: (random) => ({ field: 'when', ranges: ranges(random, () => day(random)) }),
  histogram: (random) => ({
    field: numeric(random),
    interval: random.pick([1, 2, 3, 0.5]),
    ...random.maybe(0.3, () => ({ offset: random.pick([1, 0.25, -1]) })),
    ...random.maybe(0.2, () => ({ missing: random.int(-3, 12) })),
    ...filling(random, () => random.int(-9, 14)),
  }),
  date_histogram: (random) => ({
    field: 'when',
    ...dates(random),
    ...random.maybe(0.2, () => ({ missing: day(random) })),
    ...filling(random, () => day(random)),
    ...random.maybe(0.2, () => ({ format: 'yyyy-MM-dd' })),
  }),
  filter,
  filters: (random) => {
    const named = { b: filter(random), a: filter(random), ...random.maybe(0.3, () => ({ c: filter(random) })) };
    const other = random.pick([{}, { other_bucket: true }, { other_bucket_key: 'rest' }]);
    if (random.chance(0.3)) return { filters: Object.values(named), ...other };
    return { filters: named, ...other, ...random.maybe(0.2, () => ({ keyed: random.chance(0.3) })) };
  },
  auto_date_histogram: (random) => ({ field: 'when', buckets: random.pick([1, 2, 3, 5, 10, 40, 300]) }),
  variable_width_histogram: (random) => ({ field: random.pick(['d', 'pop', 'least']), buckets: random.int(1, 9) }),
  geohash_grid: (random) => ({
    field: 'at',
    precision: random.int(1, 6),
    ...random.maybe(0.3, () => ({ size: random.int(1, 9) })),
  }),
  geotile_grid: (random) => ({
    field: 'at',
    precision: random.int(0, 16),
    ...random.maybe(0.3, () => ({ size: random.int(1, 9) })),
  }),
  significant_terms: (random) => ({
    field: random.pick(['kw', 'kw', 'n', 'least', 'flag', 'ip']),
    ...significance(random),
  }),
  significant_text: (random) => ({ field: 't', ...significance(random) }),
  adjacency_matrix: (random) => ({ filters: { b: filter(random), a: filter(random), c: filter(random) } }),
  missing: (random) => ({ field: random.pick(['kw', 'n', 'd', 'when', 'flag']) }),
  global: () => ({}),
  composite: (random) => ({
    sources: ['x', 'y', 'z'].slice(0, random.int(1, 3)).map((name) => ({ [name]: source(random) })),
    size: random.int(1, 20),
  }),
};

/** Kinds that make numbers. */
const METRICS: Readonly<Record<string, Make>> = {
  min: (random) => ({ field: random.pick([numeric(random), 'when']) }),
  max: (random) => ({ field: random.pick([numeric(random), 'when']) }),
  avg: (random) => ({ field: numeric(random), ...random.maybe(0.2, () => ({ missing: random.int(-3, 9) })) }),
  sum: (random) => ({ field: numeric(random), ...random.maybe(0.2, () => ({ missing: random.int(-3, 9) })) }),
  stats: (random) => ({ field: numeric(random) }),
  extended_stats: (random) => ({ field: numeric(random), ...random.maybe(0.3, () => ({ sigma: 3 })) }),
  value_count: (random) => ({ field: grouping(random) }),
  cardinality: (random) => ({ field: grouping(random) }),
  percentiles: (random) => ({
    field: numeric(random),
    percents: [0, 25, 50, 100],
    ...random.maybe(0.3, () => ({ keyed: random.chance(0.5) })),
  }),
  percentile_ranks: (random) => ({ field: numeric(random), values: [-100, 2, 100] }),
  median_absolute_deviation: (random) => ({ field: numeric(random) }),
  weighted_avg: (random) => ({
    value: { field: 'd', ...random.maybe(0.3, () => ({ missing: 2 })) },
    weight: { field: 'pop', ...random.maybe(0.3, () => ({ missing: 3 })) },
  }),
  boxplot: (random) => ({ field: numeric(random) }),
  string_stats: (random) => ({ field: 'kw', ...random.maybe(0.4, () => ({ show_distribution: true })) }),
  top_metrics: (random) => ({
    metrics: { field: random.pick(['d', 'least', 'pop']) },
    sort: { u: 'desc' },
    ...random.maybe(0.5, () => ({ size: random.int(1, 5) })),
  }),
  top_hits: (random) => ({
    sort: [{ u: 'desc' }],
    _source: false,
    ...random.maybe(0.4, () => ({ size: random.int(1, 5) })),
    ...random.maybe(0.3, () => ({ from: random.int(0, 2) })),
  }),
};

/** Kinds that look along the buckets of a histogram, or over those of the aggregation beside them. */
const PARENTS: Readonly<Record<string, Make>> = {
  cumulative_sum: (random) => ({ buckets_path: random.pick(['_count', 's', 't.max']) }),
  derivative: (random) => ({ buckets_path: random.pick(['_count', 's', 't.max']) }),
  serial_diff: (random) => ({ buckets_path: random.pick(['_count', 's']), lag: random.int(1, 3) }),
  normalize: (random) => ({
    buckets_path: random.pick(['_count', 't.max']),
    method: random.pick(['percent_of_sum', 'rescale_0_1']),
  }),
  bucket_script: (random) => ({
    buckets_path: { n: '_count', x: random.pick(['s', 't.max']) },
    script: { source: 'params.x / params.n + params.more', params: { more: random.int(0, 3) } },
    ...random.maybe(0.3, () => ({ gap_policy: 'insert_zeros' })),
  }),
  bucket_selector: (random) => ({
    buckets_path: { n: '_count', x: random.pick(['s', 't.max']) },
    script: { source: 'params.x > params.least || params.n > 4', params: { least: random.int(-9, 9) } },
  }),
  bucket_sort: (random) => ({
    ...random.maybe(0.5, () => ({ sort: [{ _key: random.pick(['asc', 'desc']) }] })),
    from: random.int(0, 3),
    size: random.int(1, 9),
  }),
};

const path = (random: Random): object => ({ buckets_path: `b>${random.pick(['_count', 's', 't.max'])}` });
const SIBLINGS: Readonly<Record<string, Make>> = {
  avg_bucket: path,
  sum_bucket: path,
  min_bucket: path,
  max_bucket: path,
  stats_bucket: path,
  extended_stats_bucket: path,
  percentiles_bucket: (random) => ({ ...path(random), percents: [0, 25, 50, 99] }),
};

export const KINDS = [BUCKETS, METRICS, PARENTS, SIBLINGS].flatMap((kinds) => Object.keys(kinds));

const oneOf = (random: Random, kinds: Readonly<Record<string, Make>>): Aggregation => {
  const kind = random.pick(Object.keys(kinds));
  return { [kind]: kinds[kind]?.(random) };
};

/** Aggregations with one of a kind among them, in those and over those that it takes. */
export function aggregations(random: Random, kind: string): Record<string, Aggregation> {
  const histogram = (extra: Record<string, Aggregation>): Aggregation => {
    const name = random.pick(['histogram', 'date_histogram']);
    const body = Object.entries(BUCKETS[name]?.(random) ?? {}).filter(([key]) => key !== 'order');
    return { [name]: { ...Object.fromEntries(body), min_doc_count: 0 }, aggs: { ...MEASURES, ...extra } };
  };
  if (kind in PARENTS) return { a: histogram({ p: { [kind]: PARENTS[kind]?.(random) } }) };
  if (kind in SIBLINGS) {
    const over = random.chance(0.5) ? histogram({}) : { terms: BUCKETS['terms']?.(random), aggs: MEASURES };
    return { b: over, a: { [kind]: SIBLINGS[kind]?.(random) } };
  }
  if (kind in METRICS) {
    const measured = { m: { [kind]: METRICS[kind]?.(random) } };
    return random.chance(0.5)
      ? measured
      : { a: { ...oneOf(random, BUCKETS_BELOW), aggs: { ...MEASURES, ...measured } } };
  }
  const inner = random.chance(0.5)
    ? { i: oneOf(random, METRICS) }
    : { i: { ...oneOf(random, BUCKETS_BELOW), aggs: MEASURES } };
  return { a: { [kind]: BUCKETS[kind]?.(random), aggs: { ...MEASURES, ...inner } } };
}

/** Those that may stand below others. */
const BUCKETS_BELOW = Object.fromEntries(
  Object.entries(BUCKETS).filter(([kind]) => !['global', 'composite'].includes(kind)),
);
