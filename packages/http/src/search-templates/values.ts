import { type Json, HttpError, parseJson, sizeOfJson } from '@sparrow-search/endpoints';

import { checkNames } from '../security/request-body.js';

/** Deepest nesting of a body: a search nests no deeper either. */
const MAX_DEPTH = 100;

/** Most values in a body, which are read on the event loop: more than the longest list of terms has. */
const MOST_VALUES = 100_000;

/** A number in the digits that it came in: a long integer keeps all of them. */
export interface Numeral {
  readonly digits: string;
}

/**
 * A JSON value whose objects are maps: a name in a template reaches the members that were sent and nothing else, such as what every object
 * of JavaScript inherits.
 */
export type Value = null | boolean | string | Numeral | readonly Value[] | Members;
export type Members = ReadonlyMap<string, Value>;

export function isMembers(value: Value | undefined): value is Members {
  return value instanceof Map;
}

/** A list; `Array.isArray` says nothing of one that cannot be changed. */
export function isList(value: Value | undefined): value is readonly Value[] {
  return Array.isArray(value);
}

/**
 * The members of a body.
 *
 * @param known their names; absent: whichever
 * @param parser what the error calls the body
 * @throws {HttpError} 400 for what is no object, has too many values or a name twice, or has one that is not known
 */
export function readMembers(
  body: Uint8Array | undefined,
  known: readonly string[] | undefined,
  parser: string,
): Members {
  if (body === undefined) throw new HttpError('parse', 'request body is required');
  const { values } = sizeOfJson(body);
  if (values > MOST_VALUES) {
    throw new HttpError(
      'illegal_argument',
      `a body with a template may have [${String(MOST_VALUES)}] values, but has [${String(values)}]: send fewer parameters`,
    );
  }
  let value: Value;
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(body);
    JSON.parse(text);
    value = valueOf(parseJson(text), 0);
  } catch (error) {
    throw new HttpError('json', `the body is not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (!isMembers(value)) throw new HttpError('json', 'the body must be a JSON object');
  if (known !== undefined) checkNames(value.keys(), known, parser);
  return value;
}

function valueOf(json: Json, depth: number): Value {
  if (depth > MAX_DEPTH) throw new SyntaxError(`nested deeper than [${String(MAX_DEPTH)}] levels`);
  if (json.kind === 'array') return json.items.map((item) => valueOf(item, depth + 1));
  if (json.kind === 'scalar') return scalarOf(json.text);
  const members = new Map<string, Value>();
  for (const [key, value] of json.entries) {
    const name = JSON.parse(key) as string;
    if (members.has(name)) throw new SyntaxError(`Duplicate field '${name}'`);
    members.set(name, valueOf(value, depth + 1));
  }
  return members;
}

function scalarOf(text: string): Value {
  const value = JSON.parse(text) as null | boolean | string | number;
  return typeof value === 'number' ? { digits: text } : value;
}

/** A value as JSON. */
export function toJson(value: Value): string {
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return JSON.stringify(value);
  if (isList(value)) return `[${value.map(toJson).join(',')}]`;
  if (isMembers(value)) {
    return `{${Array.from(value, ([name, member]) => `${JSON.stringify(name)}:${toJson(member)}`).join(',')}}`;
  }
  return value.digits;
}

/** A value as Elasticsearch writes it into a text: lists and objects in Java's way. */
export function toText(value: Value): string {
  if (value === null) return '';
  if (typeof value === 'boolean') return String(value);
  if (typeof value === 'string') return value;
  if (isList(value)) return `[${value.map(toText).join(', ')}]`;
  if (isMembers(value)) return `{${Array.from(value, ([name, member]) => `${name}=${toText(member)}`).join(', ')}}`;
  return value.digits;
}

/** @throws {HttpError} 400 for a member of another kind */
export function textMember(members: Members, name: string): string | undefined {
  const value = members.get(name);
  if (value === undefined || value === null || typeof value === 'string') return value ?? undefined;
  throw new HttpError('json', `[${name}] must be a text`);
}

/** @throws {HttpError} 400 for a member of another kind */
export function objectMember(members: Members, name: string): Members | undefined {
  const value = members.get(name) ?? undefined;
  if (value === undefined || isMembers(value)) return value;
  throw new HttpError('json', `[${name}] must be an object`);
}

/** @throws {HttpError} 400 for a member of another kind */
export function switchMember(members: Members, name: string): boolean {
  const value = members.get(name) ?? false;
  if (value === true || value === 'true') return true;
  if (value === false || value === 'false') return false;
  throw new HttpError('json', `[${name}] must be [true] or [false]`);
}
