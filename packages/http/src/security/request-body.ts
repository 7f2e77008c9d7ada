import { type Json, HttpError, parseJson, sizeOfJson } from '@sparrow-search/endpoints';
import { near } from '@sparrow-search/engine';

/** Deepest nesting of a body. */
const MAX_DEPTH = 20;

/** Most values in a body, which takes time for each of them on the event loop: ten thousand ids beside roles and metadata are fewer. */
const MOST_VALUES = 50_000;

/**
 * The members of a request about keys.
 *
 * @throws {HttpError} 400 for what is no object, has too many values or a name twice, or has one that is not `known`
 */
export function parseBody(
  body: Uint8Array | undefined,
  known: { readonly properties: object },
  parser = 'api_key_request',
): Readonly<Record<string, unknown>> {
  if (body === undefined) throw new HttpError('parse', 'request body is required');
  const { values } = sizeOfJson(body);
  if (values > MOST_VALUES) {
    throw new HttpError(
      'illegal_argument',
      `the body has [${String(values)}] values, it may have [${String(MOST_VALUES)}]: send less in one request`,
    );
  }
  let parsed: unknown;
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(body);
    parsed = JSON.parse(text);
    checkMembers(parseJson(text), 0);
  } catch (error) {
    throw new HttpError('json', `the body is not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (!isObject(parsed)) throw new HttpError('json', 'the body must be a JSON object');
  checkNames(Object.keys(parsed), Object.keys(known.properties), parser);
  return parsed;
}

/**
 * @param parser what the error calls the body
 * @throws {HttpError} 400 for the first name that is not known
 */
export function checkNames(names: Iterable<string>, known: readonly string[], parser: string): void {
  for (const name of names) {
    if (!known.includes(name))
      throw new HttpError('json', `[1:1] [${parser}] unknown field [${name}]${meantBy(name, known)}`);
  }
}

/** The end of an error about a name that is not known: the one that is most like it, if any is. */
export function meantBy(name: string, known: Iterable<string>): string {
  const [meant] = near(name, known);
  return meant === undefined ? '' : ` did you mean [${meant}]?`;
}

/** What is kept for ever is bounded in depth, and no name in it is ambiguous. */
function checkMembers(json: Json, depth: number): void {
  if (depth > MAX_DEPTH) throw new SyntaxError(`nested deeper than [${String(MAX_DEPTH)}] levels`);
  if (json.kind === 'array')
    json.items.forEach((item) => {
      checkMembers(item, depth + 1);
    });
  if (json.kind !== 'object') return;
  const names = new Set<unknown>();
  for (const [key, value] of json.entries) {
    const name: unknown = JSON.parse(key);
    if (names.has(name)) throw new SyntaxError(`Duplicate field '${String(name)}'`);
    names.add(name);
    checkMembers(value, depth + 1);
  }
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A request that cannot be carried out as it stands. */
export function invalid(problem: string): HttpError {
  return new HttpError('validation', `Validation Failed: 1: ${problem};`);
}
