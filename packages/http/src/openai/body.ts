import { HttpError, sizeOfJson } from '@sparrow-search/endpoints';

import { isObject } from '../security/request-body.js';
import { refused } from './errors.js';

/** Values in a body: more than the longest list of texts has, and few enough to be looked at in no time. */
const MOST_VALUES = 20_000;

/** Deepest nesting: a list of objects. */
const MOST_LEVELS = 8;

/**
 * The members of a request that have a value.
 *
 * @param known what the endpoint reads
 * @param others members that clients send and that are refused here, each with the reason
 * @throws {HttpError} 400 for what is no object, has a name twice, or has one that is not known
 */
export function readBody(
  body: Uint8Array | undefined,
  known: readonly string[],
  others: Readonly<Record<string, string>> = {},
): Readonly<Record<string, unknown>> {
  if (body === undefined) throw new HttpError('parse', 'request body is required');
  const { values } = sizeOfJson(body);
  if (values > MOST_VALUES) {
    throw new HttpError(
      'illegal_argument',
      `the body has [${String(values)}] values, and at most [${String(MOST_VALUES)}] are allowed: send fewer texts at once`,
    );
  }
  let parsed: unknown;
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(body);
    parsed = JSON.parse(text);
  } catch (error) {
    throw new HttpError('json', `the body is not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (!isObject(parsed)) throw new HttpError('json', 'the body must be a JSON object');
  const given = Object.entries(parsed).filter(([, value]) => value !== null);
  for (const [name] of given) {
    const why = Object.hasOwn(others, name) ? others[name] : undefined;
    if (why !== undefined) throw refused(name, why);
    if (!known.includes(name)) throw refused(name, `there is no such parameter; there are [${known.join(', ')}]`);
  }
  const twice = repeatedName(text);
  if (twice !== undefined) throw refused(twice, 'this member is there twice');
  return Object.fromEntries(given);
}

/** A text of a body that there has to be. */
export function requiredText(body: Readonly<Record<string, unknown>>, name: string): string {
  const value = body[name];
  if (value === undefined) throw refused(name, 'this parameter is required');
  return textOf(value, name);
}

/** @throws {HttpError} 400 for what is no text, or an empty one, or none that can be encoded */
export function textOf(value: unknown, param: string): string {
  const text = anyText(value, param);
  if (text === '') throw refused(param, 'an empty text cannot be used');
  return text;
}

/** @throws {HttpError} 400 for what is no text, or none that can be encoded */
export function anyText(value: unknown, param: string): string {
  if (typeof value !== 'string') throw refused(param, `a text is expected, not ${kindOf(value)}`);
  // Half of a character: JSON can say it, UTF-8 cannot.
  if (/\p{Surrogate}/u.test(value)) throw refused(param, 'the text has a surrogate that is alone');
  return value;
}

/** @throws {HttpError} 400 for what is no whole number above 0 */
export function positive(value: unknown, param: string): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value > 0) return value;
  throw refused(param, 'a whole number above 0 is expected');
}

/** What a value is called in an error. */
export function kindOf(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;

/**
 * A name that stands twice in an object of a valid JSON text: which of both was meant is not known.
 *
 * @throws {HttpError} 400 for more levels than any body has that means something
 */
function repeatedName(text: string): string | undefined {
  /** Names of the objects around a place; lists have none. */
  const around: (Set<string> | undefined)[] = [];
  for (let at = 0; at < text.length; at += 1) {
    switch (text.charCodeAt(at)) {
      case 0x7b:
      case 0x5b:
        around.push(text[at] === '{' ? new Set() : undefined);
        if (around.length > MOST_LEVELS)
          throw new HttpError('json', `nested deeper than [${String(MOST_LEVELS)}] levels`);
        break;
      case 0x7d:
      case 0x5d:
        around.pop();
        break;
      case QUOTE: {
        const end = endOfString(text, at);
        if (isName(text, end)) {
          const name = JSON.parse(text.slice(at, end + 1)) as string;
          const names = around.at(-1);
          if (names?.has(name) === true) return name;
          names?.add(name);
        }
        at = end;
        break;
      }
      default:
    }
  }
  return undefined;
}

/** Where the string that begins at a place ends. */
function endOfString(text: string, begin: number): number {
  for (let end = text.indexOf('"', begin + 1); ; end = text.indexOf('"', end + 1)) {
    let before = end - 1;
    while (text.charCodeAt(before) === BACKSLASH) before -= 1;
    if ((end - before) % 2 === 1) return end;
  }
}

/** Whether the string that ends at a place is the name of a member. */
function isName(text: string, end: number): boolean {
  let next = end + 1;
  while (next < text.length && text.charCodeAt(next) <= 0x20) next += 1;
  return text.charCodeAt(next) === COLON;
}
