/** What aggregations come to, counted by hand from all matching documents. */
import { composite, dateHistogram, histogram } from './intervals-of-values.js';
import type { Corpus, Doc } from './corpus.js';
import { type Query, valuesOf } from './clauses.js';
import { evaluate } from './queries.js';
import { autoDates, grid, significant, variableWidths } from './families.js';
import { metric } from './metrics.js';
import { parentPipeline, siblingPipeline } from './pipelines.js';

export type Aggregation = Readonly<Record<string, any>>;
export type Result = Record<string, any>;

/** A document, and the index that it is in. */
export interface Found {
  readonly doc: Doc;
  readonly corpus: Corpus;
}

/** Anything is right. */
export const ANY = Symbol('any');

export const subs = (aggregation: Aggregation): Record<string, Aggregation> =>
  aggregation['aggs'] ?? aggregation['aggregations'] ?? {};

/** Aggregations that look at the results of others. */
const SIBLINGS = /_bucket$/;
const PARENTS = /^(cumulative_sum|derivative|serial_diff|normalize|bucket_sort|bucket_script|bucket_selector)$/;

export const kindOf = (aggregation: Aggregation): string =>
  Object.keys(aggregation).find((key) => !['aggs', 'aggregations', 'meta'].includes(key)) ?? '';

/** Results of several aggregations over the same documents. */
export function aggregateAll(list: Record<string, Aggregation>, docs: readonly Found[], all: readonly Found[]): Result {
  const results: Result = {};
  for (const [name, aggregation] of Object.entries(list)) {
    const kind = kindOf(aggregation);
    if (!SIBLINGS.test(kind) && !PARENTS.test(kind)) results[name] = aggregate(aggregation, docs, all);
  }
  for (const [name, aggregation] of Object.entries(list)) {
    const kind = kindOf(aggregation);
    if (SIBLINGS.test(kind)) results[name] = siblingPipeline(kind, aggregation[kind], list, results);
  }
  return results;
}

/** A value as a key, and as a text where its type has one. */
export function keyOf(field: string, value: unknown): Result {
  if (field === 'flag') return { key: value === true ? 1 : 0, key_as_string: String(value) };
  if (field === 'when') return { key: value, key_as_string: new Date(Number(value)).toISOString() };
  return { key: value };
}

/** Order of two keys: bytes of texts, size of numbers. */
export function compare(a: unknown, b: unknown): number {
  if (typeof a === 'string' && typeof b === 'string') return Buffer.compare(Buffer.from(a), Buffer.from(b));
  const [left, right] = [Number(a), Number(b)];
  return left - right;
}

/** Documents by the values that they hold. */
export function grouped<K>(docs: readonly Found[], keys: (found: Found) => readonly K[]): Map<K, Found[]> {
  const groups = new Map<K, Found[]>();
  for (const found of docs) {
    for (const key of new Set(keys(found))) groups.set(key, [...(groups.get(key) ?? []), found]);
  }
  return groups;
}

interface Bucket extends Result {
  doc_count: number;
}

/** A bucket with the results below it. */
export function bucket(own: Result, aggregation: Aggregation, docs: readonly Found[], all: readonly Found[]): Bucket {
  return { ...own, doc_count: docs.length, ...aggregateAll(subs(aggregation), docs, all) };
}

function ordered(buckets: Bucket[], order: unknown): Bucket[] {
  const steps = [order ?? { _count: 'desc' }].flat().flatMap((step) => Object.entries(step as object));
  const value = (one: Bucket, by: string): unknown =>
    by === '_count' ? one.doc_count : by === '_key' ? one['key'] : by.split('.').reduce<any>((at, n) => at[n], one);
  const single = (one: Bucket, by: string): unknown => {
    const found: any = value(one, by);
    return by !== '_count' && by !== '_key' && found !== null && typeof found === 'object' ? found.value : found;
  };
  const keys = (a: Bucket, b: Bucket): number => {
    const [left, right] = [a['key'], b['key']];
    if (!Array.isArray(left)) return compare(left, right);
    return left.map((part, n) => compare(part, right[n])).find((found) => found !== 0) ?? 0;
  };
  return [...buckets].sort((a, b) => {
    for (const [by, direction] of steps) {
      const [left, right] = [single(a, by), single(b, by)];
      // What has no number is last, whatever the direction.
      if (left === null || right === null) {
        if (left !== right) return left === null ? 1 : -1;
        continue;
      }
      const found = by === '_key' ? keys(a, b) : compare(left, right);
      if (found !== 0) return direction === 'asc' ? found : -found;
    }
    return keys(a, b);
  });
}

function selected(key: string, { include, exclude }: Aggregation): boolean {
  const within = (list: unknown): boolean =>
    Array.isArray(list) ? list.map(String).includes(key) : new RegExp(`^(?:${String(list)})$`).test(key);
  return (include === undefined || within(include)) && (exclude === undefined || !within(exclude));
}

function terms(aggregation: Aggregation, docs: readonly Found[], all: readonly Found[]): Result {
  const body = aggregation['terms'];
  const field = String(body.field);
  const values = ({ doc }: Found): unknown[] => {
    const own = valuesOf(doc, field);
    return own.length === 0 && 'missing' in body ? [body.missing] : own;
  };
  const groups = grouped(docs, values);
  if (body.min_doc_count === 0)
    for (const key of grouped(all, values).keys()) if (!groups.has(key)) groups.set(key, []);
  const buckets = [...groups]
    .filter(([key, of]) => selected(String(key), body) && of.length >= (body.min_doc_count ?? 1))
    .map(([key, of]) => bucket(keyOf(field, key), aggregation, of, all));
  const sorted = ordered(buckets, body.order);
  const size = Number(body.size ?? 10);
  const rest = sorted.slice(size).reduce((sum, { doc_count }) => sum + doc_count, 0);
  return { doc_count_error_upper_bound: 0, sum_other_doc_count: rest, buckets: sorted.slice(0, size) };
}

function multiTerms(aggregation: Aggregation, docs: readonly Found[], all: readonly Found[]): Result {
  const body = aggregation['multi_terms'];
  const fields = (body.terms as { field: string }[]).map(({ field }) => field);
  const tuples = ({ doc }: Found): string[] =>
    fields
      .reduce<unknown[][]>(
        (made, field) => made.flatMap((one) => [...new Set(valuesOf(doc, field))].map((value) => [...one, value])),
        [[]],
      )
      .map((tuple) => JSON.stringify(tuple));
  const buckets = [...grouped(docs, tuples)].map(([tuple, of]) => {
    const key = JSON.parse(tuple) as unknown[];
    const shown = key.map((value) => (typeof value === 'boolean' ? String(value) : value));
    return bucket({ key: shown, key_as_string: key.join('|') }, aggregation, of, all);
  });
  const sorted = ordered(buckets, body.order);
  const size = Number(body.size ?? 10);
  const rest = sorted.slice(size).reduce((sum, { doc_count }) => sum + doc_count, 0);
  return { doc_count_error_upper_bound: 0, sum_other_doc_count: rest, buckets: sorted.slice(0, size) };
}

function rareTerms(aggregation: Aggregation, docs: readonly Found[], all: readonly Found[]): Result {
  const body = aggregation['rare_terms'];
  const field = String(body.field);
  const buckets = [...grouped(docs, ({ doc }) => valuesOf(doc, field))]
    .filter(([, of]) => of.length <= (body.max_doc_count ?? 1))
    .map(([key, of]) => bucket(keyOf(field, key), aggregation, of, all));
  return { buckets: ordered(buckets, { _count: 'asc' }) };
}

const decimal = (value: number): string => (Number.isInteger(value) ? `${String(value)}.0` : String(value));

function range(aggregation: Aggregation, kind: string, docs: readonly Found[], all: readonly Found[]): Result {
  const body = aggregation[kind];
  const dates = kind === 'date_range';
  const number = (end: unknown): number => (dates ? Date.parse(`${String(end)}T00:00:00Z`) : Number(end));
  const shown = (end: number): string => (dates ? new Date(end).toISOString() : decimal(end));
  const buckets = (body.ranges as Aggregation[])
    .map((one) => {
      const from = one['from'] === undefined ? undefined : number(one['from']);
      const to = one['to'] === undefined ? undefined : number(one['to']);
      const inside = (value: unknown): boolean =>
        (from === undefined || Number(value) >= from) && (to === undefined || Number(value) < to);
      const of = docs.filter(({ doc }) => valuesOf(doc, body.field).some(inside));
      const text = (end: number | undefined): string => (end === undefined ? '*' : shown(end));
      const own: Result = { key: one['key'] ?? `${text(from)}-${text(to)}` };
      if (from !== undefined) Object.assign(own, { from }, dates ? { from_as_string: shown(from) } : {});
      if (to !== undefined) Object.assign(own, { to }, dates ? { to_as_string: shown(to) } : {});
      return { from: from ?? -Infinity, to: to ?? Infinity, made: bucket(own, aggregation, of, all) };
    })
    .sort((a, b) => (a.from === b.from ? (a.to === b.to ? 0 : a.to - b.to) : a.from - b.from))
    .map(({ made }) => made);
  return { buckets: body.keyed === true ? keyed(buckets, 'key') : buckets };
}

/** Buckets by their key, which they do not show then. */
export function keyed(buckets: readonly Result[], name: string): Result {
  const without = (one: Result): Result => Object.fromEntries(Object.entries(one).filter(([key]) => key !== name));
  return Object.fromEntries(buckets.map((one) => [String(one[name]), name === 'key' ? without(one) : one]));
}

const matches = (query: Query, { doc, corpus }: Found): boolean => evaluate(query, doc, corpus) !== undefined;

function filters(aggregation: Aggregation, docs: readonly Found[], all: readonly Found[]): Result {
  const body = aggregation['filters'];
  const named = !Array.isArray(body.filters);
  const given: [string, Query][] = Object.entries(body.filters as Record<string, Query>);
  const list = named ? given.sort(([a], [b]) => compare(a, b)) : given;
  const made = list.map(([name, query]): [string, Bucket] => [
    name,
    bucket(
      {},
      aggregation,
      docs.filter((found) => matches(query, found)),
      all,
    ),
  ]);
  if (body.other_bucket === true || body.other_bucket_key !== undefined) {
    const rest = docs.filter((found) => !list.some(([, query]) => matches(query, found)));
    made.push([body.other_bucket_key ?? '_other_', bucket({}, aggregation, rest, all)]);
  }
  const plain = named && body.keyed !== false;
  if (plain) return { buckets: Object.fromEntries(made) };
  return { buckets: made.map(([name, one]) => (named ? { key: name, ...one } : one)) };
}

function adjacency(aggregation: Aggregation, docs: readonly Found[], all: readonly Found[]): Result {
  const list = Object.entries(aggregation['adjacency_matrix'].filters as Record<string, Query>).sort(([a], [b]) =>
    compare(a, b),
  );
  const cells = list.flatMap(([name, query], n) => [
    { key: name, of: docs.filter((found) => matches(query, found)) },
    ...list.slice(n + 1).map(([other, second]) => ({
      key: `${name}&${other}`,
      of: docs.filter((found) => matches(query, found) && matches(second, found)),
    })),
  ]);
  const buckets = cells.filter(({ of }) => of.length > 0).map(({ key, of }) => bucket({ key }, aggregation, of, all));
  return { buckets: buckets.sort((a, b) => compare(a['key'], b['key'])) };
}

/** The result of one aggregation over documents; `all` are those of the indices, found or not. */
export function aggregate(aggregation: Aggregation, docs: readonly Found[], all: readonly Found[]): Result {
  const kind = kindOf(aggregation);
  const body = aggregation[kind];
  switch (kind) {
    case 'terms':
      return terms(aggregation, docs, all);
    case 'multi_terms':
      return multiTerms(aggregation, docs, all);
    case 'rare_terms':
      return rareTerms(aggregation, docs, all);
    case 'range':
    case 'date_range':
      return range(aggregation, kind, docs, all);
    case 'histogram':
      return parentPipeline(aggregation, histogram(aggregation, docs, all), body.keyed === true);
    case 'date_histogram':
      return parentPipeline(aggregation, dateHistogram(aggregation, docs, all), body.keyed === true);
    case 'auto_date_histogram':
      return autoDates(aggregation, docs, all);
    case 'variable_width_histogram':
      return variableWidths(aggregation, docs, all);
    case 'geohash_grid':
    case 'geotile_grid':
      return grid(kind, aggregation, docs, all);
    case 'significant_terms':
    case 'significant_text':
      return significant(kind, aggregation, docs, all);
    case 'composite':
      return composite(aggregation, docs, all);
    case 'filter':
      return bucket(
        {},
        aggregation,
        docs.filter((found) => matches(body, found)),
        all,
      );
    case 'filters':
      return filters(aggregation, docs, all);
    case 'adjacency_matrix':
      return adjacency(aggregation, docs, all);
    case 'missing':
      return bucket(
        {},
        aggregation,
        docs.filter(({ doc }) => valuesOf(doc, body.field).length === 0),
        all,
      );
    case 'global':
      return bucket({}, aggregation, all, all);
    default:
      return metric(
        kind,
        body,
        docs.map(({ doc }) => doc),
      );
  }
}
