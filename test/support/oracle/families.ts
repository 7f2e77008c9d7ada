/** Grids over the earth, significant values, and histograms that are asked for a number of buckets, computed by hand. */
import { type Aggregation, bucket, compare, type Found, grouped, keyOf, type Result } from './aggregate.js';
import { DAY } from './corpus.js';
import { type Query, valuesOf } from './clauses.js';
import { evaluate } from './queries.js';

const DIGITS = '0123456789bcdefghjkmnpqrstuvwxyz';

/** The geohash of a point: which half it is in, again and again, in turns from west to east and from south to north. */
function geohash(lat: number, lon: number, digits: number): string {
  const [east, north] = [
    { low: -180, high: 180 },
    { low: -90, high: 90 },
  ];
  let bits = '';
  for (let n = 0; n < 5 * digits; n++) {
    const [range, degrees] = n % 2 === 0 ? [east, lon] : [north, lat];
    const middle = (range.low + range.high) / 2;
    bits += degrees >= middle ? '1' : '0';
    if (degrees >= middle) range.low = middle;
    else range.high = middle;
  }
  return (bits.match(/.{5}/g) ?? []).map((five) => DIGITS[parseInt(five, 2)]).join('');
}

/** The tile of a point on a map in Mercator's projection. */
function tile(lat: number, lon: number, zoom: number): string {
  const tiles = 2 ** zoom;
  const radians = (lat * Math.PI) / 180;
  const within = (share: number): number => Math.min(Math.max(Math.floor(share * tiles), 0), tiles - 1);
  const down = (1 - Math.asinh(Math.tan(radians)) / Math.PI) / 2;
  return `${String(zoom)}/${String(within((lon + 180) / 360))}/${String(within(down))}`;
}

/** The cells of a grid that a document is in. */
export function cellsOf(kind: string, body: Aggregation, { doc }: Found): string[] {
  const { lat, lon } = doc.source.at ?? {};
  if (lat === undefined || lon === undefined) return [];
  return kind === 'geohash_grid' ? [geohash(lat, lon, body['precision'])] : [tile(lat, lon, body['precision'])];
}

/** Order of two tiles of one size: by their numbers. */
export function compareTiles(a: string, b: string): number {
  const right = b.split('/').map(Number);
  const differences = a.split('/').map((part, n) => Number(part) - (right[n] ?? 0));
  return differences.find((found) => found !== 0) ?? 0;
}

export function grid(kind: string, aggregation: Aggregation, docs: readonly Found[], all: readonly Found[]): Result {
  const body = aggregation[kind];
  const order = kind === 'geohash_grid' ? compare : compareTiles;
  const buckets = [...grouped(docs, (found) => cellsOf(kind, body, found))]
    .sort(([a, of], [b, others]) => others.length - of.length || order(b, a))
    .map(([key, of]) => bucket({ key }, aggregation, of, all));
  return { buckets: buckets.slice(0, body.size ?? 10_000) };
}

interface Counts {
  readonly found: number;
  readonly bucket: number;
  readonly spread: number;
  readonly background: number;
}

/** How significant a value is. */
function score(body: Aggregation, { found, bucket: own, spread, background }: Counts): number {
  if ('percentage' in body) return spread === 0 ? 0 : found / spread;
  if ('chi_square' in body) {
    const [n11, n01, n10] = [found, own - found, spread - found];
    const n00 = background - own - n10;
    if (n11 / own < n10 / (n00 + n10)) return -Infinity;
    const margins = own * spread * (background - spread) * (background - own);
    return (background * (n11 * n00 - n01 * n10) * (n11 * n00 - n01 * n10)) / margins;
  }
  const [inside, outside] = [found / own, Math.max(spread, 1) / background];
  return own === 0 || background === 0 ? 0 : Math.max(inside - outside, 0) * (inside / outside);
}

export function significant(
  kind: string,
  aggregation: Aggregation,
  docs: readonly Found[],
  all: readonly Found[],
): Result {
  const body = aggregation[kind];
  const values = ({ doc }: Found): unknown[] =>
    kind === 'significant_text' ? (doc.source.t?.split(' ') ?? []) : valuesOf(doc, body.field);
  const wanted = body.background_filter as Query | undefined;
  const background = all.filter(
    ({ doc, corpus }) => wanted === undefined || evaluate(wanted, doc, corpus) !== undefined,
  );
  const spread = grouped(background, values);
  const counts = (key: unknown, found: number): Counts => ({
    found,
    bucket: docs.length,
    spread: spread.get(key)?.length ?? 0,
    background: background.length,
  });
  const buckets = [...grouped(docs, values)]
    .filter(([, of]) => of.length >= (body.min_doc_count ?? 3))
    .map(([key, of]) => ({ key, of, score: score(body, counts(key, of.length)) }))
    .filter((one) => one.score > 0)
    .sort((a, b) => b.score - a.score || b.of.length - a.of.length || compare(a.key, b.key))
    .slice(0, body.size ?? 10)
    .map(({ key, of, score }) =>
      bucket({ ...keyOf(body.field, key), score, bg_count: counts(key, of.length).spread }, aggregation, of, all),
    );
  return { doc_count: docs.length, bg_count: background.length, buckets };
}

/** Units of intervals: where the one that has a moment begins, how many others lie between two beginnings, and how many may be one. */
const UNITS: readonly (readonly [
  letter: string,
  start: (at: number) => number,
  next: (at: number) => number,
  number[],
])[] = [
  ...[
    ['s', 1_000, [1, 5, 10, 30]],
    ['m', 60_000, [1, 5, 10, 30]],
    ['h', 3_600_000, [1, 3, 12]],
    ['d', DAY, [1, 7]],
  ].map(
    ([letter, length, counts]) =>
      [
        letter as string,
        (at: number) => Math.floor(at / Number(length)) * Number(length),
        (at: number) => at + Number(length),
        counts as number[],
      ] as const,
  ),
  ['M', (at) => month(at, 0), (at) => month(at, 1), [1, 3]],
  ['y', (at) => year(at, 0), (at) => year(at, 1), [1, 5, 10, 20, 50, 100]],
];

const month = (at: number, more: number): number =>
  Date.UTC(new Date(at).getUTCFullYear(), new Date(at).getUTCMonth() + more);
const year = (at: number, more: number): number => Date.UTC(new Date(at).getUTCFullYear() + more, 0);

export function autoDates(aggregation: Aggregation, docs: readonly Found[], all: readonly Found[]): Result {
  const { field, buckets: most } = aggregation['auto_date_histogram'];
  const dates = ({ doc }: Found): number[] => valuesOf(doc, field).map(Number);
  const moments = docs.flatMap(dates);
  if (moments.length === 0) return { buckets: [], interval: '1s' };
  const [first, last] = [Math.min(...moments), Math.max(...moments)];
  for (const [n, [letter, start, next, counts]] of UNITS.entries()) {
    const starts = [start(first)];
    const limit = most * Math.max(...counts);
    while (starts.length <= limit && next(starts.at(-1) ?? 0) <= last) starts.push(next(starts.at(-1) ?? 0));
    if (starts.length > limit && n < UNITS.length - 1) continue;
    const units = counts.find((units) => Math.ceil(starts.length / units) <= most) ?? 1;
    const ends = starts.filter((_, place) => place % units === 0);
    const made = ends.map((from, place) => {
      const to = ends[place + 1] ?? Infinity;
      // A document with two dates in an interval is in it once for each unit that it has a date in.
      const of = docs.flatMap((found) =>
        [
          ...new Set(
            dates(found)
              .filter((at) => at >= from && at < to)
              .map(start),
          ),
        ].map(() => found),
      );
      return bucket({ key_as_string: new Date(from).toISOString(), key: from }, aggregation, of, all);
    });
    return { buckets: made, interval: `${String(units)}${letter}` };
  }
  return {};
}

export function variableWidths(aggregation: Aggregation, docs: readonly Found[], all: readonly Found[]): Result {
  const { field, buckets: most } = aggregation['variable_width_histogram'];
  const runs = [...grouped(docs, ({ doc }) => valuesOf(doc, field).map(Number))]
    .sort(([a], [b]) => a - b)
    .map(([value, of]) => ({ min: value, key: value, max: value, of }));
  while (runs.length > most) {
    const gaps = runs.slice(1).map(({ key }, n) => key - (runs[n]?.key ?? 0));
    const place = gaps.indexOf(Math.min(...gaps));
    const [left, right] = runs.slice(place, place + 2);
    if (left === undefined || right === undefined) break;
    const [few, more] = [left.of.length, right.of.length];
    const key = (left.key * few + right.key * more) / (few + more);
    runs.splice(place, 2, { min: left.min, key, max: right.max, of: [...left.of, ...right.of] });
  }
  return { buckets: runs.map(({ of, ...own }) => bucket(own, aggregation, of, all)) };
}
