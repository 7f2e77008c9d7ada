/** Aggregations by intervals of numbers and dates, and `composite`. */
import { type Aggregation, bucket, compare, type Found, grouped, type Result } from './aggregate.js';
import { DAY } from './corpus.js';
import { valuesOf } from './clauses.js';
import { cellsOf, compareTiles } from './families.js';

const HOUR = 3_600_000;
/** Offsets of zones whose clocks are not changed. */
const ZONES: Readonly<Record<string, number>> = {
  UTC: 0,
  '+02:00': 2 * HOUR,
  '-05:30': -5.5 * HOUR,
  'America/Phoenix': -7 * HOUR,
};

/** Puts buckets in order, without those that hold too few documents. */
function finish(buckets: Result[], body: Aggregation): Result[] {
  const kept = buckets.filter((one) => one['doc_count'] >= (body['min_doc_count'] ?? 0));
  const [[by, direction] = ['_key', 'asc']] = Object.entries((body['order'] ?? {}) as Record<string, string>);
  const value = (one: Result): unknown => (by === '_count' ? one['doc_count'] : one['key']);
  return kept.sort((a, b) => {
    const found = compare(value(a), value(b)) * (direction === 'asc' ? 1 : -1);
    return found === 0 ? compare(a['key'], b['key']) : found;
  });
}

/** The keys of a histogram, from the lowest to the highest; only those with documents if empty ones are not shown. */
function filled(
  found: readonly number[],
  body: Aggregation,
  next: (key: number) => number,
  { min, max }: { min?: number | undefined; max?: number | undefined },
): number[] {
  const keys = [...found].sort((a, b) => a - b);
  if ((body['min_doc_count'] ?? 0) > 0) return keys;
  // Without any document two bounds are needed, with some each makes the histogram longer at its end.
  const [first = min, last = max] = [keys[0], keys.at(-1)];
  if (first === undefined || last === undefined) return [];
  const [from, to] = [Math.min(first, min ?? first), Math.max(last, max ?? last)];
  const all: number[] = [];
  for (let key = from; key <= to; key = next(key)) all.push(key);
  return all;
}

export function histogram(aggregation: Aggregation, docs: readonly Found[], all: readonly Found[]): Result[] {
  const body = aggregation['histogram'];
  const { interval, offset = 0, hard_bounds: hard = {}, extended_bounds: extended = {} } = body;
  const key = (value: number): number => Math.floor((value - offset) / interval) * interval + offset;
  // Bounds are held against the key without the offset, as Elasticsearch does it.
  const inside = (value: number): boolean => {
    const plain = key(value) - offset;
    return plain >= (hard.min ?? -Infinity) && plain <= (hard.max ?? Infinity);
  };
  const groups = grouped(docs, ({ doc }) => {
    const own = valuesOf(doc, body.field).map(Number);
    const values = own.length === 0 && 'missing' in body ? [Number(body.missing)] : own;
    return values.filter(inside).map(key);
  });
  const bound = (end: number | undefined): number | undefined => (end === undefined ? undefined : key(end));
  const bounds = { min: bound(extended.min), max: bound(extended.max) };
  const keys = filled([...groups.keys()], body, (at) => at + interval, bounds);
  const buckets = keys.map((at) => bucket({ key: at }, aggregation, groups.get(at) ?? [], all));
  return finish(buckets, body);
}

interface Rounding {
  down(at: number): number;
  next(at: number): number;
}

function rounding(body: Aggregation): Rounding {
  const zone = ZONES[body['time_zone'] ?? 'UTC'] ?? 0;
  const shift = { '+6h': 6 * HOUR, '-2h': -2 * HOUR, '+1d': DAY }[String(body['offset'])] ?? 0;
  const fixed = body['fixed_interval'];
  if (fixed !== undefined) {
    const length = parseInt(fixed, 10) * (String(fixed).endsWith('d') ? DAY : HOUR);
    const down = (at: number): number => Math.floor((at - shift + zone) / length) * length - zone + shift;
    return { down, next: (at) => at + length };
  }
  const unit = String(body['calendar_interval']);
  /** Start of the unit that so many units after the local time. */
  const start = (local: number, plus: number): number => {
    const date = new Date(local);
    const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
    if (unit === 'hour') return (Math.floor(local / HOUR) + plus) * HOUR;
    if (unit === 'day') return (Math.floor(local / DAY) + plus) * DAY;
    // The epoch was a Thursday; weeks begin on Mondays.
    if (unit === 'week') return (Math.floor((local / DAY + 3) / 7) + plus) * 7 * DAY - 3 * DAY;
    if (unit === 'month') return Date.UTC(year, month + plus);
    if (unit === 'quarter') return Date.UTC(year, Math.floor(month / 3) * 3 + 3 * plus);
    return Date.UTC(year + plus, 0);
  };
  return {
    down: (at) => start(at - shift + zone, 0) - zone + shift,
    next: (at) => start(at - shift + zone, 1) - zone + shift,
  };
}

/** A date as the aggregation shows it. */
function shown(at: number, body: Aggregation): string {
  const zone = ZONES[body['time_zone'] ?? 'UTC'] ?? 0;
  const local = new Date(at + zone).toISOString();
  if (body['format'] === 'yyyy-MM-dd') return local.slice(0, 10);
  if (zone === 0) return local;
  const minutes = Math.abs(zone) / 60_000;
  const two = (number: number): string => String(Math.floor(number)).padStart(2, '0');
  return `${local.slice(0, -1)}${zone < 0 ? '-' : '+'}${two(minutes / 60)}:${two(minutes % 60)}`;
}

export function dateHistogram(aggregation: Aggregation, docs: readonly Found[], all: readonly Found[]): Result[] {
  const body = aggregation['date_histogram'];
  const { down, next } = rounding(body);
  const zone = ZONES[body.time_zone ?? 'UTC'] ?? 0;
  const date = (text: string): number => Date.parse(`${text}T00:00:00Z`) - zone;
  const { extended_bounds: extended = {}, hard_bounds: hard = {} } = body;
  // Bounds are rounded, and the upper one is no part of them, as Elasticsearch has it.
  const inside = (at: number): boolean =>
    (hard.min === undefined || down(at) >= down(date(hard.min))) &&
    (hard.max === undefined || down(at) < down(date(hard.max)));
  const groups = grouped(docs, ({ doc }) => {
    const own = valuesOf(doc, 'when').map(Number);
    const values = own.length === 0 && 'missing' in body ? [date(body.missing)] : own;
    return values.filter(inside).map(down);
  });
  const bound = (end: string | undefined): number | undefined => (end === undefined ? undefined : down(date(end)));
  const bounds = { min: bound(extended.min), max: bound(extended.max) };
  const keys = filled([...groups.keys()], body, next, bounds);
  const buckets = keys.map((at) =>
    bucket({ key: at, key_as_string: shown(at, body) }, aggregation, groups.get(at) ?? [], all),
  );
  return finish(buckets, body);
}

/** All buckets of a `composite`, as its pages give them together. */
export function composite(aggregation: Aggregation, docs: readonly Found[], all: readonly Found[]): Result {
  const sources = (aggregation['composite'].sources as Aggregation[]).map((source) => {
    const [[name, definition] = ['', {}]] = Object.entries(source);
    const [[kind, body] = ['', {}]] = Object.entries(definition as Aggregation);
    return { name, kind, body: body as Aggregation };
  });
  const values = (found: Found, kind: string, body: Aggregation): unknown[] => {
    const own = kind === 'geotile_grid' ? cellsOf(kind, body, found) : [...new Set(valuesOf(found.doc, body['field']))];
    if (own.length === 0) return body['missing_bucket'] === true ? [null] : [];
    if (kind === 'terms' || kind === 'geotile_grid') return own;
    if (kind === 'date_histogram') return [...new Set(own.map((at) => rounding(body).down(Number(at))))];
    return [...new Set(own.map((value) => Math.floor(Number(value) / body['interval']) * body['interval']))];
  };
  const tuples = (found: Found): string[] =>
    sources
      .reduce<unknown[][]>(
        (made, { kind, body }) => made.flatMap((one) => values(found, kind, body).map((value) => [...one, value])),
        [[]],
      )
      .map((tuple) => JSON.stringify(tuple));
  const rows = [...grouped(docs, tuples)].map(([tuple, of]) => ({ tuple: JSON.parse(tuple) as unknown[], of }));
  rows.sort((a, b) => {
    for (const [n, { kind, body }] of sources.entries()) {
      const [left, right] = [a.tuple[n], b.tuple[n]];
      if (left === right) continue;
      const sign = body['order'] === 'desc' ? -1 : 1;
      if (left === null || right === null) {
        const first = { first: -1, last: 1 }[String(body['missing_order'])] ?? -sign;
        return left === null ? first : -first;
      }
      return (kind === 'geotile_grid' ? compareTiles(String(left), String(right)) : compare(left, right)) * sign;
    }
    return 0;
  });
  const buckets = rows.map(({ tuple, of }) => {
    const key = Object.fromEntries(sources.map(({ name }, n) => [name, tuple[n]]));
    return bucket({ key }, aggregation, of, all);
  });
  return { buckets };
}
