import mustache from 'mustache';
import { HttpError } from '@sparrow-search/endpoints';

import { type Members, type Value, isList, isMembers, toJson, toText } from './values.js';

/** Longest template in bytes, as in Elasticsearch (`script.max_size_in_bytes`). */
const MOST_TEMPLATE = 65_535;

/** Longest text that the templates of one request are filled in to. */
const MOST_OUTPUT = 1024 * 1024;

/** Most steps that it takes: each tag, each item of a list, and each place that a name is looked up in. They hold the event loop. */
const MOST_STEPS = 100_000;

/** Letters that are looked up, or escaped for an address, in one step. */
const LETTERS_OF_STEP = 16;

/** Deepest nesting of sections. */
const MOST_LEVELS = 50;

/** The parser looks for the end of a tag from each of the spaces before it: many in a row would take very long. */
const SPACES = /\s{1001}/;

/** Most spaces in a tag, of which each is looked from in the same way; and in a template that changes what a tag begins with. */
const MOST_SPACES = { ofTag: 100, ofTemplate: 5_000 };

/** A token as the parser of the library makes it: kind, name, its place, and for a section what is in it. */
type Token = readonly [kind: string, name: string, start: number, end: number, inner?: readonly Token[] | string];

export type Template = readonly Token[];

/**
 * Reads a template. The library parses it; to fill it in is done here, as Elasticsearch escapes for JSON, has functions of its own, and no
 * template may run away.
 *
 * @throws {HttpError} 400 for what is no template
 */
export function compile(source: string): Template {
  if (Buffer.byteLength(source) > MOST_TEMPLATE) {
    throw refused(`it has more than [${String(MOST_TEMPLATE)}] bytes`);
  }
  if (SPACES.test(source)) throw refused('it has more than [1000] spaces in a row');
  checkSpaces(source);
  let tokens: Template;
  try {
    // One that remembers templates would keep all that anybody ever sent.
    tokens = new mustache.Writer().parse(source) as Template;
  } catch (error) {
    throw refused(error instanceof Error ? error.message : String(error));
  }
  check(tokens, 0);
  return tokens;
}

function checkSpaces(source: string): void {
  const spaces = (text: string): number => text.match(/\s/g)?.length ?? 0;
  const tags = source.split('{{').slice(1);
  if (tags.some((tag) => spaces(tag.split('}}', 1)[0] ?? '') > MOST_SPACES.ofTag)) {
    throw refused(`a tag has more than [${String(MOST_SPACES.ofTag)}] spaces`);
  }
  if (tags.some((tag) => tag.startsWith('=')) && spaces(source) > MOST_SPACES.ofTemplate) {
    throw refused(`it changes its delimiters and has more than [${String(MOST_SPACES.ofTemplate)}] spaces`);
  }
}

function check(tokens: Template, depth: number): void {
  if (depth > MOST_LEVELS) throw refused(`its sections are nested deeper than [${String(MOST_LEVELS)}] levels`);
  for (const token of tokens) {
    const [kind, name] = token;
    if (kind === '>') throw refused(`partial templates are disabled: [${name}]`);
    const called = kind === '#' ? functionOf(name) : undefined;
    if (called !== undefined && called.name !== 'url' && nameIn(token) === undefined) {
      throw refused(`the function [${called.name}] must contain one and only one identifier`);
    }
    if (kind === '#' || kind === '^') check(innerOf(token), depth + 1);
  }
}

function refused(problem: string): HttpError {
  return new HttpError('illegal_argument', `the search template cannot be read: ${problem}`);
}

function innerOf([, , , , inner]: Token): Template {
  return Array.isArray(inner) ? (inner as Template) : [];
}

/** A section that is called as a function. */
interface Called {
  readonly name: 'toJson' | 'join' | 'url';
  readonly delimiter: string;
}

function functionOf(section: string): Called | undefined {
  const name = section.trim();
  if (name === 'toJson' || name === 'join' || name === 'url') return { name, delimiter: ',' };
  const delimiter = /^join\s+delimiter='(.*)'$/s.exec(name)?.[1];
  return delimiter === undefined ? undefined : { name: 'join', delimiter };
}

/** The one name that a function contains. */
function nameIn(token: Token): string | undefined {
  const [first, ...others] = innerOf(token);
  return first?.[0] === 'text' && others.length === 0 ? first[1].trim() : undefined;
}

/** What the templates of one request may still write and do. */
export class Budget {
  #characters = MOST_OUTPUT;
  #steps = MOST_STEPS;

  /** @throws {HttpError} 400 when as many characters are too many */
  write(characters: number): void {
    this.#characters -= characters;
    if (this.#characters < 0) throw tooMuch(MOST_OUTPUT, 'characters');
  }

  /** @throws {HttpError} 400 when as many steps are too many */
  spend(steps: number): void {
    this.#steps -= steps;
    if (this.#steps < 0) throw tooMuch(MOST_STEPS, 'steps, one for each tag and each item of a list');
  }
}

function tooMuch(most: number, what: string): HttpError {
  return new HttpError(
    'illegal_argument',
    `the search template takes too much: it may be filled in to at most [${String(MOST_OUTPUT)}] characters in [${String(MOST_STEPS)}] steps, ` +
      `and this one takes more than [${String(most)}] ${what}; repeat fewer sections, or fill in lists with toJson`,
  );
}

/** A value that names are looked up in, and those around it. */
interface Scope {
  readonly value: Value;
  readonly outer: Scope | undefined;
}

/**
 * Fills in a template.
 *
 * @throws {HttpError} 400 when it takes more than is left of the budget
 */
export function fillIn(template: Template, params: Members, budget: Budget): string {
  return textOf(template, { value: params, outer: undefined }, budget);
}

function textOf(tokens: Template, scope: Scope, budget: Budget): string {
  let text = '';
  for (const token of tokens) {
    // A long name is looked up letter by letter.
    budget.spend(1 + token[1].length / LETTERS_OF_STEP);
    text += pieceOf(token, scope, budget);
  }
  return text;
}

function pieceOf(token: Token, scope: Scope, budget: Budget): string {
  const [kind, name] = token;
  switch (kind) {
    case 'text':
      return written(name, budget);
    case 'name':
      return written(escaped(toText(find(name, scope, budget))), budget);
    case '&':
      return written(toText(find(name, scope, budget)), budget);
    case '^':
      return isFalsy(find(name, scope, budget)) ? textOf(innerOf(token), scope, budget) : '';
    case '#':
      return sectionOf(token, scope, budget);
    default:
      return '';
  }
}

function written(text: string, budget: Budget): string {
  budget.write(text.length);
  return text;
}

function sectionOf(token: Token, scope: Scope, budget: Budget): string {
  const called = functionOf(token[1]);
  if (called?.name === 'url') {
    const text = textOf(innerOf(token), scope, budget);
    budget.spend(text.length / LETTERS_OF_STEP);
    return written(new URLSearchParams([['', text]]).toString().slice(1), budget);
  }
  if (called !== undefined) {
    const value = find(nameIn(token) ?? '', scope, budget);
    if (value === null) return '';
    if (called.name === 'toJson') return written(toJson(value), budget);
    const items = isList(value) ? value : [value];
    // Each is a step, however little it writes.
    budget.spend(items.length);
    budget.write(items.length * called.delimiter.length);
    return written(items.map((item) => escaped(toText(item))).join(called.delimiter), budget);
  }
  const value = find(token[1], scope, budget);
  if (isFalsy(value)) return '';
  const items = isList(value) ? value : [value];
  let text = '';
  for (const item of items) {
    budget.spend(1);
    text += textOf(innerOf(token), { value: item, outer: scope }, budget);
  }
  return text;
}

/** Whether a section with the value is left out. As in Elasticsearch a zero is not, unlike in Mustache for JavaScript. */
function isFalsy(value: Value): boolean {
  return value === null || value === false || value === '' || (isList(value) && value.length === 0);
}

/** The value of a name, which may have dots; null for one that nobody gave. */
function find(name: string, scope: Scope, budget: Budget): Value {
  if (name === '.') return scope.value;
  const [first = '', ...rest] = name.split('.');
  let found: Value | undefined;
  for (let at: Scope | undefined = scope; at !== undefined && found === undefined; at = at.outer) {
    budget.spend(1);
    found = memberOf(at.value, first);
  }
  for (const part of rest) found = memberOf(found, part);
  return found ?? null;
}

function memberOf(value: Value | undefined, name: string): Value | undefined {
  if (isMembers(value)) return value.get(name);
  if (!isList(value)) return undefined;
  return name === 'size' ? { digits: String(value.length) } : /^\d{1,9}$/.test(name) ? value[Number(name)] : undefined;
}

/** A text as it stands between the quotes of a string in JSON. */
function escaped(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}
