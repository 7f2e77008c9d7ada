import { HttpError, KEY_REQUESTS } from '@sparrow-search/endpoints';
import { matchesGlob } from '@sparrow-search/engine';

import type { BoundedWork } from '../bounded-work.js';
import type { ApiKey } from './key-store.js';
import { invalid, isObject, parseBody } from './request-body.js';

/** Most keys that are looked through for one page. */
const MAX_WINDOW = 10_000;

const DEFAULT_SIZE = 10;

/** Most clauses of a query, and most keys of a sort: all of them are looked at, on the event loop, for each API key. */
const MOST_CLAUSES = 128;
const MOST_SORTS = 32;

/** Longest text that a key is found or sorted by, in characters: a longer one is as good as absent, as beyond the `ignore_above` of a field. */
const MOST_CHARACTERS = 1024;

/** Characters of two texts that are compared in one step. */
const COMPARED_AT_ONCE = 16;

/** Keys that are sorted at once, before others have a turn. */
const RUN = 64;

const REALM = '_es_api_key';

type Value = string | number | boolean;
type Test = (key: ApiKey) => boolean;

/** What can be asked for and sorted by, beside `metadata.…`. */
const FIELDS: Readonly<Record<string, (key: ApiKey) => Value | undefined>> = {
  id: (key) => key.id,
  type: () => 'rest',
  name: (key) => key.name,
  creation: (key) => key.creation,
  expiration: (key) => key.expiration,
  invalidated: (key) => key.invalidated,
  invalidation: (key) => key.invalidation,
  username: (key) => key.username,
  realm_name: () => REALM,
};

/** A key with the values that it is sorted by. */
export interface FoundKey {
  readonly key: ApiKey;
  /** Absent if the request does not sort. */
  readonly sort?: readonly (Value | null)[];
}

/** Keys that a query finds: a page of them, and how many there are. */
export interface FoundKeys {
  readonly total: number;
  readonly page: readonly FoundKey[];
}

/**
 * Carries out the body of `_security/_query/api_key` over keys.
 *
 * @throws {HttpError} 400 for a query, a field or a member that is not known, when it takes too many steps or when its client has left
 */
export async function queryKeys(
  keys: Iterable<ApiKey>,
  body: Uint8Array | undefined,
  work: BoundedWork,
): Promise<FoundKeys> {
  const { QueryApiKeysRequest: known } = KEY_REQUESTS;
  const request = body === undefined ? {} : parseBody(body, known, 'query_api_key_request');
  const from = whole(request['from'], 'from') ?? 0;
  const size = whole(request['size'], 'size') ?? DEFAULT_SIZE;
  if (from + size > MAX_WINDOW) {
    throw new HttpError(
      'illegal_argument',
      `Result window is too large, from + size must be less than or equal to: [${String(MAX_WINDOW)}] but was [${String(from + size)}]`,
    );
  }
  const room: Room = { clauses: MOST_CLAUSES, pattern: MOST_PATTERN, work };
  const test = request['query'] === undefined ? (): boolean => true : parseQuery(request['query'], room);
  const order = parseSort(request['sort'], work);
  const after = parseAfter(request['search_after'], order.length);
  const rows: Required<FoundKey>[] = [];
  for (const key of keys) {
    work.spend(1);
    if (test(key)) rows.push({ key, sort: order.map(({ values }) => values(key)[0] ?? null) });
    if (work.isOver) await work.next();
  }
  const compared: Compared = (a, b) => {
    for (const [at, { down }] of order.entries()) {
      const found = compare(a[at] ?? null, b[at] ?? null, down, work);
      if (found !== 0) return found;
    }
    return 0;
  };
  if (order.length === 0)
    return { total: rows.length, page: rows.slice(from, from + size).map(({ key }) => ({ key })) };
  const inOrder = await sorted(rows, compared, work);
  let first = 0;
  // They are in order: all that come after are at the end.
  for (const { sort } of after === undefined ? [] : inOrder) {
    if (after !== undefined && compared(sort, after) > 0) break;
    first += 1;
    if (work.isOver) await work.next();
  }
  return { total: rows.length, page: inOrder.slice(first + from, first + from + size) };
}

type Compared = (a: readonly (Value | null)[], b: readonly (Value | null)[]) => number;

/** Rows in order, those that are equal as they came. Others have turns meanwhile: there may be a hundred thousand. */
async function sorted(
  rows: readonly Required<FoundKey>[],
  compared: Compared,
  work: BoundedWork,
): Promise<readonly Required<FoundKey>[]> {
  let runs: (readonly Required<FoundKey>[])[] = [];
  for (let at = 0; at < rows.length; at += RUN) {
    runs.push(rows.slice(at, at + RUN).sort((a, b) => compared(a.sort, b.sort)));
    if (work.isOver) await work.next();
  }
  while (runs.length > 1) {
    const merged: (readonly Required<FoundKey>[])[] = [];
    for (let at = 0; at < runs.length; at += 2) {
      const [left = [], right = []] = runs.slice(at, at + 2);
      const both: Required<FoundKey>[] = [];
      let [l, r] = [0, 0];
      for (;;) {
        const [a, b] = [left[l], right[r]];
        if (a === undefined || b === undefined) break;
        if (compared(a.sort, b.sort) <= 0) {
          both.push(a);
          l += 1;
        } else {
          both.push(b);
          r += 1;
        }
        if (work.isOver) await work.next();
      }
      merged.push(both.concat(left.slice(l), right.slice(r)));
    }
    runs = merged;
  }
  return runs[0] ?? [];
}

function parseAfter(after: unknown, sorts: number): readonly (Value | null)[] | undefined {
  if (after === undefined) return undefined;
  if (!Array.isArray(after) || after.length !== sorts || sorts === 0) {
    throw new HttpError('illegal_argument', 'search_after must have one value for each sort');
  }
  // A list or an object would be written as text again for each comparison.
  if (!after.every((value) => value === null || isScalar(value))) throw malformed('search_after');
  return after as (Value | null)[];
}

function whole(value: unknown, name: string): number | undefined {
  if (value === undefined) return undefined;
  if (typeof value !== 'number' || !Number.isInteger(value)) {
    throw new HttpError('json', `[${name}] must be a whole number`);
  }
  if (value < 0) throw invalid(`[${name}] parameter cannot be negative but was [${String(value)}]`);
  return value;
}

/** How many more clauses a query may have, and characters of its patterns; and the work that it does for each key. */
interface Room {
  clauses: number;
  pattern: number;
  readonly work: BoundedWork;
}

/** The depth of the whole body is bounded too. */
function parseQuery(query: unknown, room: Room): Test {
  room.clauses -= 1;
  if (room.clauses < 0) {
    throw new HttpError('illegal_argument', `a query for API keys may have at most [${String(MOST_CLAUSES)}] clauses`);
  }
  const [kind, given] = only(query, 'query');
  switch (kind) {
    case 'match_all':
      return () => true;
    case 'bool':
      return bool(given, room);
    case 'ids': {
      const wanted = new Set(list(isObject(given) ? given['values'] : undefined, 'ids'));
      return (key) => wanted.has(key.id);
    }
    case 'exists': {
      const values = field(isObject(given) ? given['field'] : undefined, room.work);
      return (key) => values(key).length > 0;
    }
    case 'term':
    case 'match': {
      const [values, options] = ofField(given, kind, room.work);
      const wanted = scalar(isObject(options) ? (options['value'] ?? options['query']) : options, kind);
      return (key) => values(key).some((value) => String(value) === wanted);
    }
    case 'terms': {
      const [values, options] = ofField(given, kind, room.work);
      const wanted = new Set(list(options, kind));
      return (key) => values(key).some((value) => wanted.has(String(value)));
    }
    case 'prefix': {
      const [values, options] = ofField(given, kind, room.work);
      const wanted = scalar(isObject(options) ? options['value'] : options, kind);
      return (key) => values(key).some((value) => String(value).startsWith(wanted));
    }
    case 'wildcard': {
      const [values, options] = ofField(given, kind, room.work);
      const wanted = scalar(isObject(options) ? (options['value'] ?? options['wildcard']) : options, kind);
      room.pattern -= wanted.length;
      if (room.pattern < 0) {
        throw new HttpError(
          'illegal_argument',
          `a pattern of [${String(wanted.length)}] characters is too long, at most [${String(MOST_PATTERN)}] are possible in all patterns`,
        );
      }
      const spend = (steps: number): void => {
        room.work.spend(steps);
      };
      return (key) => values(key).some((value) => matchesGlob(wanted, String(value), '?', spend));
    }
    case 'range':
      return range(given, room.work);
    default:
      throw new HttpError('illegal_argument', `Query type [${kind}] is not supported for API Key query`);
  }
}

/** Most characters of all patterns of a query: more take seconds on long values. */
const MOST_PATTERN = 256;

function bool(given: unknown, room: Room): Test {
  if (!isObject(given)) throw malformed('bool');
  const tests: Record<string, Test[]> = { must: [], filter: [], should: [], must_not: [] };
  let least: unknown;
  for (const [name, value] of Object.entries(given)) {
    if (name === 'minimum_should_match') least = value;
    else if (Object.hasOwn(tests, name)) {
      tests[name] = (Array.isArray(value) ? (value as unknown[]) : [value]).map((one) => parseQuery(one, room));
    } else throw new HttpError('parse', `[bool] query does not support [${name}]`);
  }
  const { must = [], filter = [], should = [], must_not: not = [] } = tests;
  const wanted = least ?? (should.length > 0 && must.length + filter.length === 0 ? 1 : 0);
  if (typeof wanted !== 'number' || !Number.isInteger(wanted)) throw malformed('minimum_should_match');
  return (key) =>
    [...must, ...filter].every((test) => test(key)) &&
    !not.some((test) => test(key)) &&
    should.filter((test) => test(key)).length >= wanted;
}

function range(given: unknown, work: BoundedWork): Test {
  const [values, options] = ofField(given, 'range', work);
  if (!isObject(options)) throw malformed('range');
  const tests = Object.entries(options).map(([name, bound]): ((value: number) => boolean) => {
    if (name === 'format') return () => true;
    const limit = typeof bound === 'number' ? bound : Date.parse(String(bound));
    if (Number.isNaN(limit)) throw new HttpError('parse', `failed to parse date field [${String(bound)}]`);
    switch (name) {
      case 'gt':
        return (value) => value > limit;
      case 'gte':
        return (value) => value >= limit;
      case 'lt':
        return (value) => value < limit;
      case 'lte':
        return (value) => value <= limit;
      default:
        throw new HttpError('parse', `[range] query does not support [${name}]`);
    }
  });
  return (key) => values(key).some((value) => typeof value === 'number' && tests.every((test) => test(value)));
}

type Values = (key: ApiKey) => readonly Value[];

/** The values of a field: those that are not too long. Each is a step. */
function field(name: unknown, work: BoundedWork): Values {
  if (typeof name !== 'string') throw malformed('field');
  const known = Object.hasOwn(FIELDS, name) ? FIELDS[name] : undefined;
  if (known === undefined && !name.startsWith('metadata.')) {
    throw new HttpError('illegal_argument', `Field [${name}] is not allowed for API Key query or aggregation`);
  }
  const path = name.split('.').slice(1);
  return (key) => {
    const found: Value[] = [];
    collect(known === undefined ? at(key.metadata, path) : known(key), found, work);
    return found;
  };
}

function at(value: unknown, path: readonly string[]): unknown {
  let found = value;
  for (const name of path) {
    if (!isObject(found) || !Object.hasOwn(found, name)) return undefined;
    found = found[name];
  }
  return found;
}

function collect(value: unknown, found: Value[], work: BoundedWork): void {
  work.spend(1);
  if (Array.isArray(value)) {
    for (const item of value) collect(item, found, work);
  } else if (isScalar(value) && !(typeof value === 'string' && value.length > MOST_CHARACTERS)) found.push(value);
}

function isScalar(value: unknown): value is Value {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}

function parseSort(sort: unknown, work: BoundedWork): readonly { readonly values: Values; readonly down: boolean }[] {
  if (sort === undefined) return [];
  const all: unknown[] = Array.isArray(sort) ? sort : [sort];
  if (all.length > MOST_SORTS) {
    throw new HttpError(
      'illegal_argument',
      `[sort] may have at most [${String(MOST_SORTS)}] keys, but has [${String(all.length)}]`,
    );
  }
  return all.map((one) => {
    if (typeof one === 'string') return { values: field(one, work), down: false };
    const [name, options] = only(one, 'sort');
    const order = isObject(options) ? options['order'] : options;
    if (order !== undefined && order !== 'asc' && order !== 'desc') {
      throw new HttpError('illegal_argument', `the order of a sort is [asc] or [desc], not [${JSON.stringify(order)}]`);
    }
    return { values: field(name, work), down: order === 'desc' };
  });
}

/** What is missing comes last, whichever way. */
function compare(a: Value | null, b: Value | null, down: boolean, work: BoundedWork): number {
  work.spend(1 + (typeof a === 'string' ? a.length : 0) / COMPARED_AT_ONCE);
  if (a === b) return 0;
  if (a === null) return 1;
  if (b === null) return -1;
  return (a < b ? -1 : 1) * (down ? -1 : 1);
}

function ofField(given: unknown, kind: string, work: BoundedWork): readonly [Values, unknown] {
  const [name, options] = only(given, kind);
  return [field(name, work), options];
}

/** The one member of an object. */
function only(value: unknown, what: string): readonly [string, unknown] {
  const entries = isObject(value) ? Object.entries(value) : [];
  const [first] = entries;
  if (first === undefined || entries.length > 1) throw malformed(what);
  return first;
}

function scalar(value: unknown, what: string): string {
  if (!isScalar(value)) throw malformed(what);
  return String(value);
}

function list(value: unknown, what: string): readonly string[] {
  if (!Array.isArray(value)) throw malformed(what);
  return value.map((item) => scalar(item, what));
}

function malformed(what: string): HttpError {
  return new HttpError('parse', `[${what}] malformed query`);
}
