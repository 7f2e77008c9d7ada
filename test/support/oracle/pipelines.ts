/** Aggregations over the results of others. */
import { type Aggregation, keyed, kindOf, type Result, subs } from './aggregate.js';
import { extendedStats, stats } from './metrics.js';

/** The number at a path of names; `_count` is the number of documents. Buckets without any are gaps. */
function at(bucket: Result, path: string): number | null {
  if (path === '_count' || path === '_key') return bucket[path === '_key' ? 'key' : 'doc_count'];
  if (bucket['doc_count'] === 0) return null;
  const [name = '', property] = path.split('.');
  const found = bucket[name];
  return property === undefined ? found.value : found[property];
}

const decimal = (value: number): string => (Number.isInteger(value) ? `${String(value)}.0` : String(value));
/** A key as text: those of a histogram are numbers with a fraction. */
function keyText(bucket: Result, aggregation: Aggregation): string {
  const { key } = bucket;
  const fraction = typeof key === 'number' && ('histogram' in aggregation || aggregation['terms']?.field === 'd');
  return bucket['key_as_string'] ?? (fraction ? decimal(key) : String(key));
}

export function siblingPipeline(
  kind: string,
  body: Aggregation,
  list: Record<string, Aggregation>,
  results: Result,
): Result {
  const [name = '', path = ''] = String(body['buckets_path']).split('>');
  const buckets = results[name].buckets as Result[];
  const found = buckets
    .map((one) => ({ key: keyText(one, list[name] ?? {}), value: at(one, path) }))
    .filter((one): one is { key: string; value: number } => one.value !== null);
  const values = found.map(({ value }) => value);
  const sum = values.reduce((all, value) => all + value, 0);
  switch (kind) {
    case 'avg_bucket':
      return { value: values.length === 0 ? null : sum / values.length };
    case 'sum_bucket':
      return { value: sum };
    case 'min_bucket':
    case 'max_bucket': {
      const best = kind === 'min_bucket' ? Math.min(...values) : Math.max(...values);
      const keys = found.filter(({ value }) => value === best).map(({ key }) => key);
      return { value: values.length === 0 ? null : best, keys };
    }
    case 'stats_bucket':
      return stats(values);
    case 'extended_stats_bucket':
      return extendedStats(values);
    default: {
      const sorted = [...values].sort((a, b) => a - b);
      // The value at the nearest rank: no interpolation here.
      const of = (percent: number): number | null =>
        sorted.length === 0 ? null : (sorted[Math.round((percent / 100) * (sorted.length - 1))] ?? null);
      return { values: Object.fromEntries((body['percents'] as number[]).map((p) => [`${String(p)}.0`, of(p)])) };
    }
  }
}

/** The two numbers that a script reads; 0 in place of those of a gap where that is asked for. */
const numbers = (
  bucket: Result,
  { buckets_path: { n, x }, gap_policy: gaps }: Aggregation,
): [n: number | null, x: number | null] => {
  const of = (path: string): number | null => at(bucket, path) ?? (gaps === 'insert_zeros' ? 0 : null);
  return [of(String(n)), of(String(x))];
};

/** Adds what looks along the buckets of a histogram; they are by key then if asked for. */
export function parentPipeline(aggregation: Aggregation, made: Result[], byKey: boolean): Result {
  let buckets = made;
  for (const [name, sub] of Object.entries(subs(aggregation))) {
    const kind = kindOf(sub);
    const body = sub[kind];
    const values = (): (number | null)[] => buckets.map((one) => at(one, String(body.buckets_path)));
    switch (kind) {
      case 'cumulative_sum': {
        let sum = 0;
        for (const [n, value] of values().entries()) {
          sum += value ?? 0;
          Object.assign(buckets[n] ?? {}, { [name]: { value: sum } });
        }
        break;
      }
      case 'derivative':
        for (const [n, value] of values().entries()) {
          const last = values()[n - 1];
          const change = value === null || last === null || last === undefined ? null : value - last;
          if (n > 0) Object.assign(buckets[n] ?? {}, { [name]: { value: change } });
        }
        break;
      case 'serial_diff':
        for (const [n, value] of values().entries()) {
          const last = values()[n - Number(body.lag)] ?? null;
          if (value !== null && last !== null) Object.assign(buckets[n] ?? {}, { [name]: { value: value - last } });
        }
        break;
      case 'normalize': {
        const all = values();
        const there = all.filter((value) => value !== null);
        const sum = there.reduce((total, value) => total + value, 0);
        const [min, max] = [Math.min(...there), Math.max(...there)];
        for (const [n, value] of all.entries()) {
          const own = value ?? NaN;
          const share = body.method === 'percent_of_sum' ? own / sum : (own - min) / (max - min);
          Object.assign(buckets[n] ?? {}, { [name]: { value: Number.isFinite(share) ? share : null } });
        }
        break;
      }
      case 'bucket_script':
        for (const one of buckets) {
          const [n, x] = numbers(one, body);
          const number = x === null || n === null ? null : x / n + Number(body.script.params.more);
          // A quotient by zero is no number, and is shown as such; without numbers there is nothing to show.
          if (number !== null) Object.assign(one, { [name]: { value: Number.isFinite(number) ? number : null } });
        }
        break;
      case 'bucket_selector':
        buckets = buckets.filter((one) => {
          const [n, x] = numbers(one, body);
          return (x !== null && x > Number(body.script.params.least)) || Number(n) > 4;
        });
        break;
      case 'bucket_sort': {
        const [[by, direction] = ['_key', 'asc']] = Object.entries((body.sort?.[0] ?? {}) as Record<string, string>);
        const sign = direction === 'desc' ? -1 : 1;
        const sorted = body.sort ? [...buckets].sort((a, b) => ((at(a, by) ?? 0) - (at(b, by) ?? 0)) * sign) : buckets;
        buckets = sorted.slice(body.from ?? 0, (body.from ?? 0) + (body.size ?? sorted.length));
        break;
      }
      default:
    }
  }
  if (!byKey) return { buckets };
  const named = buckets.map((one) => ({ name: keyText(one, aggregation), one }));
  return { buckets: Object.fromEntries(named.map(({ name, one }) => [name, one])) };
}

export { keyed };
