import { HttpError } from '../errors.js';
import { matchesGlob } from '../glob.js';
import type { ApiKey } from './key-store.js';
import { invalid, isObject, parseBody } from './request-body.js';

/** Most keys that are looked through for one page. */
const MAX_WINDOW = 10_000;

const DEFAULT_SIZE = 10;

/** Most clauses of a query, and most keys of a sort: all of them are looked at, on the event loop, for each API key. */
const MOST_CLAUSES = 128;
const MOST_SORTS = 32;

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

/** Keys that a query finds: a page of them, and how many there are. */
export interface FoundKeys {
  readonly total: number;
  /** With the values that they are sorted by, if the request sorts. */
  readonly page: readonly { readonly key: ApiKey; readonly sort?: readonly (Value | null)[] }[];
}

/**
 * Carries out the body of `_security/_query/api_key` over keys.
 *
 * @throws {HttpError} 400 for a query, a field or a member that is not known
 */
export function queryKeys(keys: readonly ApiKey[], body: Uint8Array | undefined): FoundKeys {
  const request =
    body === undefined
      ? {}
      : parseBody(body, ['query', 'from', 'size', 'sort', 'search_after'], 'query_api_key_request');
  const from = whole(request['from'], 'from') ?? 0;
  const size = whole(request['size'], 'size') ?? DEFAULT_SIZE;
  if (from + size > MAX_WINDOW) {
    throw new HttpError(
      'illegal_argument',
      `Result window is too large, from + size must be less than or equal to: [${String(MAX_WINDOW)}] but was [${String(from + size)}]`,
    );
  }
  const room: Room = { clauses: MOST_CLAUSES, pattern: MOST_PATTERN };
  const test = request['query'] === undefined ? (): boolean => true : parseQuery(request['query'], room);
  const order = parseSort(request['sort']);
  const found = keys.filter(test);
  const rows = found.map((key) => ({ key, sort: order.map(({ values }) => values(key)[0] ?? null) }));
  const compared = (a: readonly (Value | null)[], b: readonly (Value | null)[]): number =>
    order.reduce((before, { down }, at) => (before !== 0 ? before : compare(a[at] ?? null, b[at] ?? null, down)), 0);
  rows.sort((a, b) => compared(a.sort, b.sort));
  const after = request['search_after'];
  if (after !== undefined && (!Array.isArray(after) || after.length !== order.length || order.length === 0)) {
    throw new HttpError('illegal_argument', 'search_after must have one value for each sort');
  }
  const rest = after === undefined ? rows : rows.filter(({ sort }) => compared(sort, after as (Value | null)[]) > 0);
  const page = rest.slice(from, from + size);
  return { total: found.length, page: order.length === 0 ? page.map(({ key }) => ({ key })) : page };
}

function whole(value: unknown, name: string): number | undefined {
  if (value === undefined) return undefined;
  if (typeof value !== 'number' || !Number.isInteger(value)) {
    throw new HttpError('json', `[${name}] must be a whole number`);
  }
  if (value < 0) throw invalid(`[${name}] parameter cannot be negative but was [${String(value)}]`);
  return value;
}

/** How many more clauses a query may have, and characters of its patterns. */
interface Room {
  clauses: number;
  pattern: number;
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
      const values = field(isObject(given) ? given['field'] : undefined);
      return (key) => values(key).length > 0;
    }
    case 'term':
    case 'match': {
      const [values, options] = ofField(given, kind);
      const wanted = scalar(isObject(options) ? (options['value'] ?? options['query']) : options, kind);
      return (key) => values(key).some((value) => String(value) === wanted);
    }
    case 'terms': {
      const [values, options] = ofField(given, kind);
      const wanted = new Set(list(options, kind));
      return (key) => values(key).some((value) => wanted.has(String(value)));
    }
    case 'prefix': {
      const [values, options] = ofField(given, kind);
      const wanted = scalar(isObject(options) ? options['value'] : options, kind);
      return (key) => values(key).some((value) => String(value).startsWith(wanted));
    }
    case 'wildcard': {
      const [values, options] = ofField(given, kind);
      const wanted = scalar(isObject(options) ? (options['value'] ?? options['wildcard']) : options, kind);
      room.pattern -= wanted.length;
      if (room.pattern < 0) {
        throw new HttpError(
          'illegal_argument',
          `a pattern of [${String(wanted.length)}] characters is too long, at most [${String(MOST_PATTERN)}] are possible in all patterns`,
        );
      }
      return (key) => values(key).some((value) => matchesGlob(wanted, String(value), '?'));
    }
    case 'range':
      return range(given);
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

function range(given: unknown): Test {
  const [values, options] = ofField(given, 'range');
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

function field(name: unknown): Values {
  if (typeof name !== 'string') throw malformed('field');
  const known = Object.hasOwn(FIELDS, name) ? FIELDS[name] : undefined;
  if (known !== undefined) {
    return (key) => {
      const value = known(key);
      return value === undefined ? [] : [value];
    };
  }
  if (!name.startsWith('metadata.')) {
    throw new HttpError('illegal_argument', `Field [${name}] is not allowed for API Key query or aggregation`);
  }
  const path = name.split('.').slice(1);
  return (key) => scalars(at(key.metadata, path));
}

function at(value: unknown, path: readonly string[]): unknown {
  const [name, ...rest] = path;
  if (name === undefined) return value;
  return isObject(value) && Object.hasOwn(value, name) ? at(value[name], rest) : undefined;
}

function scalars(value: unknown): readonly Value[] {
  if (Array.isArray(value)) return value.flatMap(scalars);
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? [value] : [];
}

function parseSort(sort: unknown): readonly { readonly values: Values; readonly down: boolean }[] {
  if (sort === undefined) return [];
  const all: unknown[] = Array.isArray(sort) ? sort : [sort];
  if (all.length > MOST_SORTS) {
    throw new HttpError(
      'illegal_argument',
      `[sort] may have at most [${String(MOST_SORTS)}] keys, but has [${String(all.length)}]`,
    );
  }
  return all.map((one) => {
    if (typeof one === 'string') return { values: field(one), down: false };
    const [name, options] = only(one, 'sort');
    const order = isObject(options) ? options['order'] : options;
    if (order !== undefined && order !== 'asc' && order !== 'desc') {
      throw new HttpError('illegal_argument', `the order of a sort is [asc] or [desc], not [${JSON.stringify(order)}]`);
    }
    return { values: field(name), down: order === 'desc' };
  });
}

/** What is missing comes last, whichever way. */
function compare(a: Value | null, b: Value | null, down: boolean): number {
  if (a === b) return 0;
  if (a === null) return 1;
  if (b === null) return -1;
  return (a < b ? -1 : 1) * (down ? -1 : 1);
}

function ofField(given: unknown, kind: string): readonly [Values, unknown] {
  const [name, options] = only(given, kind);
  return [field(name), options];
}

/** The one member of an object. */
function only(value: unknown, what: string): readonly [string, unknown] {
  const entries = isObject(value) ? Object.entries(value) : [];
  const [first] = entries;
  if (first === undefined || entries.length > 1) throw malformed(what);
  return first;
}

function scalar(value: unknown, what: string): string {
  if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean') throw malformed(what);
  return String(value);
}

function list(value: unknown, what: string): readonly string[] {
  if (!Array.isArray(value)) throw malformed(what);
  return value.map((item) => scalar(item, what));
}

function malformed(what: string): HttpError {
  return new HttpError('parse', `[${what}] malformed query`);
}
