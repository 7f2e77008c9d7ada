/** Metrics of aggregations by their definitions. */
import { ANY, compare, type Aggregation, type Result } from './aggregate.js';
import type { Doc } from './corpus.js';
import { valuesOf } from './clauses.js';

const total = (values: readonly number[]): number => values.reduce((all, value) => all + value, 0);
const orNull = (value: number): number | null => (Number.isFinite(value) ? value : null);

function numbers(docs: readonly Doc[], body: Aggregation): number[] {
  return docs.flatMap((doc) => {
    const own = valuesOf(doc, body['field']).map(Number);
    return own.length === 0 && 'missing' in body ? [Number(body['missing'])] : own;
  });
}

const median = (values: readonly number[]): number => {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = (sorted.length - 1) / 2;
  return ((sorted[Math.floor(middle)] ?? NaN) + (sorted[Math.ceil(middle)] ?? NaN)) / 2;
};

export function stats(values: readonly number[]): Result {
  const count = values.length;
  return {
    count,
    min: orNull(Math.min(...values)),
    max: orNull(Math.max(...values)),
    avg: count === 0 ? null : total(values) / count,
    sum: total(values),
  };
}

export function extendedStats(values: readonly number[], sigma = 2): Result {
  const count = values.length;
  const average = total(values) / count;
  const squares = total(values.map((value) => value * value));
  const spread = Math.max(squares - total(values) ** 2 / count, 0);
  const number = (value: number): number | null | string => (count === 0 ? null : Number.isNaN(value) ? 'NaN' : value);
  const population = spread / count;
  const sampling = count === 1 ? NaN : spread / (count - 1);
  const bound = (variance: number, sign: number): number | null | string =>
    number(average + sign * sigma * Math.sqrt(variance));
  return {
    ...stats(values),
    sum_of_squares: count === 0 ? null : squares,
    variance: number(population),
    variance_population: number(population),
    variance_sampling: number(sampling),
    std_deviation: number(Math.sqrt(population)),
    std_deviation_population: number(Math.sqrt(population)),
    std_deviation_sampling: number(Math.sqrt(sampling)),
    std_deviation_bounds: {
      upper: bound(population, 1),
      lower: bound(population, -1),
      upper_population: bound(population, 1),
      lower_population: bound(population, -1),
      upper_sampling: bound(sampling, 1),
      lower_sampling: bound(sampling, -1),
    },
  };
}

function percentiles(values: readonly number[], body: Aggregation): Result {
  const sorted = [...values].sort((a, b) => a - b);
  const of = (percent: number): unknown => {
    if (sorted.length === 0) return null;
    // Between the ends and the middle, ways to interpolate differ.
    return percent === 0 ? sorted[0] : percent === 100 ? sorted.at(-1) : percent === 50 ? median(sorted) : ANY;
  };
  const list = (body['percents'] as number[]).map((percent) => ({ key: percent, value: of(percent) }));
  if (body['keyed'] === false) return { values: list };
  return { values: Object.fromEntries(list.map(({ key, value }) => [`${String(key)}.0`, value])) };
}

function percentileRanks(values: readonly number[], body: Aggregation): Result {
  const of = (value: number): unknown => {
    if (values.length === 0) return null;
    return value < Math.min(...values) ? 0 : value > Math.max(...values) ? 100 : ANY;
  };
  const list = (body['values'] as number[]).map((value) => [`${String(value)}.0`, of(value)]);
  return { values: Object.fromEntries(list) };
}

function stringStats(docs: readonly Doc[], body: Aggregation): Result {
  const texts = docs.flatMap((doc) => valuesOf(doc, body['field']).map(String));
  const lengths = texts.map((text) => text.length);
  const characters = texts.flatMap((text) => [...text]);
  const counts = new Map<string, number>();
  for (const one of characters) counts.set(one, (counts.get(one) ?? 0) + 1);
  const shares = [...counts].map(([one, count]): [string, number] => [one, count / characters.length]);
  const none = texts.length === 0;
  return {
    count: texts.length,
    min_length: none ? null : Math.min(...lengths),
    max_length: none ? null : Math.max(...lengths),
    avg_length: none ? null : total(lengths) / texts.length,
    entropy: none ? 0 : -total(shares.map(([, share]) => share * Math.log2(share))),
    ...(body['show_distribution'] === true ? { distribution: none ? ANY : Object.fromEntries(shares) } : {}),
  };
}

function weighted(docs: readonly Doc[], body: Aggregation): Result {
  const pairs = docs.flatMap((doc) => {
    const value = valuesOf(doc, body['value'].field)[0] ?? body['value'].missing;
    const weight = valuesOf(doc, body['weight'].field)[0] ?? body['weight'].missing;
    return value === undefined || weight === undefined ? [] : [[Number(value), Number(weight)] as const];
  });
  const weights = total(pairs.map(([, weight]) => weight));
  return { value: weights === 0 ? null : total(pairs.map(([value, weight]) => value * weight)) / weights };
}

function boxplot(values: readonly number[]): Result {
  if (values.length === 0)
    return { min: 'Infinity', max: '-Infinity', q1: 'NaN', q2: 'NaN', q3: 'NaN', lower: ANY, upper: ANY };
  const [min, max] = [Math.min(...values), Math.max(...values)];
  return { min, max, q1: ANY, q2: median(values), q3: ANY, lower: ANY, upper: ANY };
}

/** Documents by their number, the highest first. */
const byNumber = (docs: readonly Doc[]): Doc[] => [...docs].sort((a, b) => (b.source.u ?? 0) - (a.source.u ?? 0));

export function metric(kind: string, body: Aggregation, docs: readonly Doc[]): Result {
  const dated = (value: number | null): Result => ({
    value,
    ...(body['field'] === 'when' && value !== null ? { value_as_string: new Date(value).toISOString() } : {}),
  });
  switch (kind) {
    case 'min':
      return dated(orNull(Math.min(...numbers(docs, body))));
    case 'max':
      return dated(orNull(Math.max(...numbers(docs, body))));
    case 'avg':
      return { value: orNull(total(numbers(docs, body)) / numbers(docs, body).length) };
    case 'sum':
      return { value: total(numbers(docs, body)) };
    case 'stats':
      return stats(numbers(docs, body));
    case 'extended_stats':
      return extendedStats(numbers(docs, body), body['sigma']);
    case 'value_count':
      return { value: docs.flatMap((doc) => valuesOf(doc, body['field'])).length };
    case 'cardinality':
      return { value: new Set(docs.flatMap((doc) => valuesOf(doc, body['field']))).size };
    case 'median_absolute_deviation': {
      const values = numbers(docs, body);
      const middle = median(values);
      return { value: values.length === 0 ? null : median(values.map((value) => Math.abs(value - middle))) };
    }
    case 'percentiles':
      return percentiles(numbers(docs, body), body);
    case 'percentile_ranks':
      return percentileRanks(numbers(docs, body), body);
    case 'weighted_avg':
      return weighted(docs, body);
    case 'boxplot':
      return boxplot(numbers(docs, body));
    case 'string_stats':
      return stringStats(docs, body);
    case 'top_metrics': {
      const sorted = byNumber(docs).slice(0, body['size'] ?? 1);
      const top = sorted.map((doc) => ({
        sort: [doc.source.u],
        metrics: { [body['metrics'].field]: valuesOf(doc, body['metrics'].field)[0] ?? null },
      }));
      return { top };
    }
    case 'top_hits': {
      const sorted = byNumber(docs).slice(body['from'] ?? 0, (body['from'] ?? 0) + (body['size'] ?? 3));
      const hits = sorted.map((doc) => ({ _index: ANY, _id: doc.id, _score: null, sort: [doc.source.u] }));
      return { hits: { total: { value: docs.length, relation: 'eq' }, max_score: null, hits } };
    }
    default:
      throw new Error(`no definition of ${kind}`);
  }
}

export { compare };
