import { constants, isUtf8 } from 'node:buffer';

import { illegal, refusal, unparsable } from './errors.js';

/** Anything read from JSON that is an object. */
export type Json = Readonly<Record<string, unknown>>;

/** Where a value lies in a text: from its first character up to the one behind its last. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** A member of an object: its name, and where its value lies. */
export interface Member extends Span {
  readonly name: string;
  /** Where its name lies, in quotes. */
  readonly nameAt: Span;
}

/** A piece of a text and what comes in its place. */
export interface Edit extends Span {
  readonly text: string;
}

/** Most values of a body that is no document, as in the native engine. */
const MOST_VALUES = 500_000;

const UTF8 = new TextDecoder('utf-8', { fatal: true });

/**
 * The text of a body.
 *
 * @throws {EngineError} 400 when it is no UTF-8, 413 when no text can be so long
 */
export function decode(body: Uint8Array): string {
  if (body.length > constants.MAX_STRING_LENGTH) {
    const most = String(constants.MAX_STRING_LENGTH);
    throw refusal(413, 'content_too_long_exception', `a body over a cluster may have at most [${most}] bytes`);
  }
  try {
    return UTF8.decode(body);
  } catch {
    throw notUtf8();
  }
}

/**
 * Looks at a body whose text is not needed, which takes a hundredth of the time.
 *
 * @throws {EngineError} 400 when it is no UTF-8
 */
export function checkUtf8(body: Uint8Array): void {
  if (!isUtf8(body)) throw notUtf8();
}

function notUtf8(): Error {
  return unparsable('Invalid UTF-8 in the request body');
}

/** A view of an array of bytes as a Node buffer, without copying them. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

const MARK = Buffer.from('\uFEFF');

/** A UTF-8 text without the byte order mark that some programs begin it with. */
export function withoutMark(bytes: Buffer): Buffer {
  return bytes[0] === MARK[0] && bytes.subarray(0, MARK.length).equals(MARK) ? bytes.subarray(MARK.length) : bytes;
}

/**
 * Reads JSON whose numbers nobody needs exactly; where they are sent on, pieces of the text itself are.
 *
 * @throws {EngineError} 400 for a text that is not JSON
 */
export function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw unparsable(error instanceof Error ? error.message : String(error));
  }
}

/** A JSON text as one line: between its strings, a line break is a blank. */
export function oneLine(json: string): string {
  return json.replaceAll(/[\r\n]+/g, ' ');
}

/** Whether a text is JSON. Any other text is sent on, and the cluster refuses it. */
export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/**
 * Reads what the cluster answered.
 *
 * @throws {EngineError} 502 when it is no JSON, which is no fault of the caller's
 */
export function parseAnswer(text: string | Buffer): unknown {
  try {
    return JSON.parse(text.toString());
  } catch {
    throw malformedAnswer();
  }
}

/** 502 for an answer of the cluster that is cut off, or has another form than it should have. */
export function malformedAnswer(): Error {
  return refusal(
    502,
    'cluster_answer_exception',
    'the cluster answered with something else than the JSON that belongs to the request; it may have carried it out',
  );
}

/**
 * Reads the JSON of a request whose pieces are looked at here and sent on. A name that stands twice in an object is refused, as the cluster
 * does: what is checked has to be what is sent, whichever of the two either takes.
 *
 * @throws {EngineError} 400 for a text that is not an object, or has a name twice
 */
export function parseRequest(text: string): unknown {
  // A value takes at least one character, so that a shorter text cannot have too many.
  if (text.length > MOST_VALUES) checkValues(text);
  const value = parse(text);
  const open: (Set<string> | undefined)[] = [];
  for (let place = 0; place < text.length; place += 1) {
    const sign = text[place];
    if (sign === '{') open.push(new Set());
    else if (sign === '[') open.push(undefined);
    else if (sign === '}' || sign === ']') open.pop();
    else if (sign === '"') {
      const end = behindString(text, place);
      const names = open.at(-1);
      // A text that a colon follows is a name.
      if (names !== undefined && text[blank(text, end)] === ':') {
        const name = nameAt(text, place, end);
        if (names.has(name)) throw unparsable(`Duplicate field '${name}'`);
        names.add(name);
      }
      place = end - 1;
    }
  }
  return value;
}

/** Refuses a text with more values than the native engine reads, before anything is made of it. */
function checkValues(text: string): void {
  let values = 0;
  for (let place = 0; place < text.length; place += 1) {
    const sign = text[place];
    if (sign === ',' || sign === '[' || sign === '{') values += 1;
    else if (sign === '"') place = behindString(text, place) - 1;
  }
  if (values <= MOST_VALUES) return;
  throw illegal(
    `the body has [${String(values)}] values, at most [${String(MOST_VALUES)}] are possible on this server`,
  );
}

/** An object without some of its members. */
export function without(
  object: Readonly<Record<string, unknown>>,
  ...names: readonly string[]
): Record<string, unknown> {
  return Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)));
}

/** A scalar as text; undefined for anything else. */
export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
    ? String(value)
    : undefined;
}

/** Whether a parameter of an address asks for what it names: without a value it does. */
export function isSet(parameter: string | undefined): boolean {
  return parameter === '' || parameter === 'true';
}

/** Whether a value is an object. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value that names lead to, one inside the other; undefined where one of them leads nowhere. */
export function valueAt(value: unknown, names: readonly string[]): unknown {
  return names.reduce<unknown>((inside, name) => (isObject(inside) ? inside[name] : undefined), value);
}

/** The members of the object that begins at `at`, in a text that is known to be JSON. */
export function members(text: string, at: number): Member[] {
  const found: Member[] = [];
  let place = blank(text, at + 1);
  while (text[place] === '"') {
    const nameEnd = skip(text, place);
    const start = blank(text, blank(text, nameEnd) + 1);
    const end = skip(text, start);
    found.push({ name: nameAt(text, place, nameEnd), nameAt: { start: place, end: nameEnd }, start, end });
    place = blank(text, end);
    if (text[place] !== ',') break;
    place = blank(text, place + 1);
  }
  return found;
}

/** The name that stands between two places, in quotes. */
function nameAt(text: string, start: number, end: number): string {
  const inside = text.slice(start + 1, end - 1);
  return inside.includes('\\') ? (JSON.parse(text.slice(start, end)) as string) : inside;
}

/** The elements of the array that begins at `at`, in a text that is known to be JSON. */
export function elements(text: string, at: number): Span[] {
  const found: Span[] = [];
  let place = blank(text, at + 1);
  while (place < text.length && text[place] !== ']') {
    const end = skip(text, place);
    found.push({ start: place, end });
    place = blank(text, end);
    if (text[place] !== ',') break;
    place = blank(text, place + 1);
  }
  return found;
}

/** What lies at `span`: the first character says of which kind it is. */
export function kindAt(text: string, { start }: Span): 'object' | 'array' | 'scalar' {
  if (text[start] === '{') return 'object';
  return text[start] === '[' ? 'array' : 'scalar';
}

/** The value as it is written. */
export function rawOf(text: string, { start, end }: Span): string {
  return text.slice(start, end);
}

/** The value itself. */
export function valueOf(text: string, span: Span): unknown {
  return JSON.parse(rawOf(text, span));
}

/** The whole text as one value. */
export function whole(text: string): Span {
  const start = blank(text, 0);
  return { start, end: skip(text, start) };
}

/** A text with pieces of it replaced. They do not overlap. */
export function edited(text: string, edits: readonly Edit[]): string {
  const sorted = [...edits].sort((a, b) => a.start - b.start);
  let out = '';
  let at = 0;
  for (const { start, end, text: replacement } of sorted) {
    out += text.slice(at, start) + replacement;
    at = end;
  }
  return out + text.slice(at);
}

function blank(text: string, at: number): number {
  while (at < text.length && isBlank(text.charCodeAt(at))) at += 1;
  return at;
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}

/** The place behind the value that begins at `at`. */
function skip(text: string, at: number): number {
  const first = text[at];
  if (first === '"') return behindString(text, at);
  if (first !== '{' && first !== '[') {
    let end = at;
    while (end < text.length && !/[,}\]\s]/.test(text.charAt(end))) end += 1;
    return end;
  }
  let depth = 0;
  for (let place = at; place < text.length; place += 1) {
    const code = text.charCodeAt(place);
    if (code === 0x22) {
      place = behindString(text, place) - 1;
    } else if (code === 0x7b || code === 0x5b) {
      depth += 1;
    } else if (code === 0x7d || code === 0x5d) {
      depth -= 1;
      if (depth === 0) return place + 1;
    }
  }
  return text.length;
}

function behindString(text: string, at: number): number {
  let end = text.indexOf('"', at + 1);
  while (end >= 0 && isEscaped(text, end)) end = text.indexOf('"', end + 1);
  return end < 0 ? text.length : end + 1;
}

function isEscaped(text: string, quote: number): boolean {
  let slashes = 0;
  while (text[quote - 1 - slashes] === '\\') slashes += 1;
  return slashes % 2 === 1;
}
