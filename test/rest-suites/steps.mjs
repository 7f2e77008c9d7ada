// Carries out the steps of a test: calls, assertions, values put aside, and the conditions under which a test is skipped.
import { ParameterError, requestOf } from './api-spec.mjs';
import { AssertionFailed, COMPARISONS, PRESENCE, regexOf } from './assertions.mjs';
import { withoutTypes } from './removed-in-8.mjs';

/** The version of the interface that the conditions of tests are held against. */
const VERSION = [8, 19, 0];

const FEATURES = new Set([
  ...['arbitrary_key', 'catch_unauthorized', 'close_to', 'contains', 'default_shards', 'embedded_stash_key', 'headers'],
  ...[
    'regex',
    'stash_in_key',
    'stash_in_path',
    'warnings',
    'warnings_regex',
    'allowed_warnings',
    'allowed_warnings_regex',
  ],
  ...['yaml', 'capabilities', 'no_xpack', 'exists', 'not_exists', 'is_after'],
]);

/** The statuses that a `catch` names; `request` is any other error. */
const CATCHES = {
  bad_request: [400],
  unauthorized: [401],
  forbidden: [403],
  missing: [404],
  request_timeout: [408],
  conflict: [409],
  unavailable: [503],
};

/** The test does not apply to this server. */
export class Skipped extends Error {}

/** Carries out one step. `send` is a client's, `stash` the test's. */
export async function runStep(step, { spec, send, stash }) {
  const [[kind, given]] = Object.entries(step);
  if (kind === 'do') return call(given, { spec, send, stash });
  if (kind === 'skip') return skip(given);
  if (kind === 'requires') return requires(given);
  if (kind === 'set') {
    for (const [path, name] of Object.entries(given)) stash.values.set(name, stash.at(path));
    return undefined;
  }
  if (kind in PRESENCE) {
    PRESENCE[kind](stash.at(stash.resolve(given)), given);
    return undefined;
  }
  if (kind in COMPARISONS) {
    for (const [path, expected] of Object.entries(given)) {
      if (path === '_type' || path.endsWith('._type')) continue;
      COMPARISONS[kind](stash.at(path), stash.resolve(expected), path, stash.answer);
    }
    return undefined;
  }
  throw new AssertionFailed(`a step ${kind}, which the runner does not know: ${JSON.stringify(given)}`);
}

const SETTINGS = [
  'catch',
  'headers',
  'warnings',
  'warnings_regex',
  'allowed_warnings',
  'allowed_warnings_regex',
  'node_selector',
];

async function call(given, { spec, send, stash }) {
  const [[name, written], ...more] = Object.entries(given).filter(([key]) => !SETTINGS.includes(key));
  if (more.length > 0) throw new AssertionFailed(`several calls in one step: ${more.map(([key]) => key).join()}`);
  const { ignore, ...args } = withoutTypes(name, stash.resolve(written ?? {}));
  let request;
  try {
    request = requestOf(spec, name, args);
  } catch (error) {
    if (!(error instanceof ParameterError)) throw error;
    if (given.catch === 'param') return;
    // A server must refuse by itself what the specification of another version does not have.
    throw new AssertionFailed(error.message);
  }
  const answer = await send({ ...request, headers: stash.resolve(given.headers ?? {}) });
  stash.answer = request.method === 'HEAD' ? { ...answer, body: answer.status === 200 } : answer;
  const ignored = [ignore].flat().map(Number).includes(answer.status);
  checkStatus(given.catch, answer, request, ignored || (request.method === 'HEAD' && answer.status === 404));
}

function checkStatus(expected, { status, text }, { method, path, body }, tolerated) {
  const asked = `${method} ${path}${body === undefined ? '' : ` ${body.slice(0, 300)}`}`;
  const failed = (wanted) => new AssertionFailed(`${asked}: expected ${wanted}, got ${status} ${text.slice(0, 500)}`);
  if (expected === undefined) {
    if (status >= 400 && !tolerated) throw failed('success');
    return;
  }
  if (status < 400) throw failed(`catch ${expected}`);
  if (expected === 'param') return;
  if (expected in CATCHES) {
    if (!CATCHES[expected].includes(status)) throw failed(`catch ${expected}`);
  } else if (expected !== 'request') {
    const pattern = regexOf(expected, false);
    if (pattern === undefined) throw new AssertionFailed(`a catch ${expected}, which the runner does not know`);
    if (!pattern.test(text) && !pattern.test(text.replaceAll('\\"', '"').replaceAll('\\\\', '\\'))) {
      throw failed(`catch ${expected}`);
    }
  }
}

function skip({ version, features, reason, cluster_features: having, awaits_fix: broken }) {
  if (version !== undefined && coversVersion(String(version)))
    throw new Skipped(`skips ${version}: ${reason ?? ''}`.trim());
  if (broken !== undefined) throw new Skipped(`awaits a fix: ${broken}`);
  if ([having ?? []].flat().some(hasFeature)) throw new Skipped(`skips what has ${having}`);
  const missing = [features ?? []].flat().filter((name) => !FEATURES.has(name));
  if (missing.length > 0) throw new Skipped(`the runner lacks ${missing.join()}`);
}

function requires({ cluster_features: needed, test_runner_features: features }) {
  const missing = [needed ?? []].flat().filter((name) => !hasFeature(name));
  if (missing.length > 0) throw new Skipped(`requires ${missing.join()}`);
  skip({ features });
}

/** Features of clusters are those of version 8.19: named ones are taken to be there, `gte_vX` is compared. */
function hasFeature(name) {
  const version = /^gte_v(.+)$/.exec(name)?.[1];
  return version === undefined || compare(numbers(version), VERSION) <= 0;
}

function coversVersion(ranges) {
  if (ranges.trim() === 'all') return true;
  return ranges.split(',').some((range) => {
    const [from, to] = range.includes(' - ') || /^\s*-|-\s*$/.test(range) ? range.split(/\s*-\s*/) : [range, range];
    return (
      (from.trim() === '' || compare(numbers(from), VERSION) <= 0) &&
      (to.trim() === '' || compare(VERSION, numbers(to)) <= 0)
    );
  });
}

const numbers = (version) => version.trim().split('.').map(Number);

function compare(left, right) {
  for (let place = 0; place < 3; place += 1) {
    const difference = (left[place] ?? 0) - (right[place] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
