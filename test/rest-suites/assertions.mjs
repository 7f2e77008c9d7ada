// The assertions of a suite. Each throws an AssertionFailed that says what was expected and what came.
import { NumberLiteral, stringify } from './yaml-values.mjs';

export class AssertionFailed extends Error {}

/** What the assertions see of a value. */
const show = (value) => (value === undefined ? 'nothing' : stringify(value)).slice(0, 600);

/** name of the assertion → check of the actual value against the expected one */
export const COMPARISONS = {
  match: (actual, expected, path, answer) => {
    const pattern = typeof expected === 'string' ? regexOf(expected, true) : undefined;
    const seen = path === '$body' && (pattern !== undefined || typeof expected === 'string') ? answer.text : actual;
    const holds = pattern === undefined ? same(seen, expected) : seen !== undefined && pattern.test(text(seen));
    require(holds, `${path} to be ${show(expected)}`, seen);
  },
  length: (actual, expected, path) => {
    const length =
      typeof actual === 'string' || Array.isArray(actual) ? actual.length : Object.keys(actual ?? {}).length;
    require(actual !== undefined && length === Number(expected), `${path} to have ${show(expected)} parts`, actual);
  },
  contains: (actual, expected, path) => {
    const holds =
      typeof actual === 'string'
        ? actual.includes(text(expected))
        : Array.isArray(actual) && actual.some((member) => includes(member, expected));
    require(holds, `${path} to contain ${show(expected)}`, actual);
  },
  close_to: (actual, { value, error }, path) =>
    require(Math.abs(actual - Number(value)) <=
      Number(error), `${path} to be within ${show(error)} of ${show(value)}`, actual),
  gt: (actual, expected, path) => require(actual > below(expected), `${path} > ${show(expected)}`, actual),
  gte: (actual, expected, path) => require(actual >= below(expected), `${path} >= ${show(expected)}`, actual),
  lt: (actual, expected, path) => require(actual < below(expected), `${path} < ${show(expected)}`, actual),
  lte: (actual, expected, path) => require(actual <= below(expected), `${path} <= ${show(expected)}`, actual),
};

/** name of the assertion → check of the value at a path */
export const PRESENCE = {
  is_true: (actual, path) => require(truthy(actual), `${path} to be true`, actual),
  is_false: (actual, path) => require(!truthy(actual), `${path} to be false`, actual),
  exists: (actual, path) => require(actual !== undefined, `${path} to be there`, actual),
  not_exists: (actual, path) => require(actual === undefined, `${path} not to be there`, actual),
};

/** The pattern of `/…/`; undefined for another text. With `comments`, blanks and `#` to the end of a line are left out. */
export function regexOf(source, comments) {
  const inner = /^\s*\/([\s\S]*)\/\s*$/.exec(source)?.[1];
  if (inner === undefined) return undefined;
  return new RegExp(comments ? inner.replace(/(\\[\s\S])|\s+|#[^\n]*/g, (_, escaped) => escaped ?? '') : inner, 'm');
}

function require(holds, expectation, actual) {
  if (!holds) throw new AssertionFailed(`expected ${expectation}, got ${show(actual)}`);
}

const below = (value) => (value instanceof NumberLiteral ? value.valueOf() : value);
const text = (value) => (typeof value === 'object' ? stringify(value) : String(value));
const truthy = (value) => ![undefined, null, false, '', 0, 'false', '0'].includes(value);

/** Deep equality, in which numbers are equal by value and a text may stand for a number that a stash kept. */
function same(actual, expected) {
  if (expected instanceof NumberLiteral || typeof expected === 'number') {
    return typeof actual === 'number' && Number(expected) === actual;
  }
  if (expected === null || typeof expected !== 'object')
    return actual === expected || (expected === null && actual === undefined);
  if (actual === null || typeof actual !== 'object' || Array.isArray(actual) !== Array.isArray(expected)) return false;
  const keys = Object.keys(expected);
  return keys.length === Object.keys(actual).length && keys.every((key) => same(actual[key], expected[key]));
}

function includes(member, expected) {
  if (expected === null || typeof expected !== 'object') return same(member, expected);
  return Object.entries(expected).every(([key, value]) => same(member?.[key], value));
}
