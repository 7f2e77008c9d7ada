import { illegal } from './errors.js';

/** What the header of a search in an `_msearch` may say besides its indices. */
const KNOWN: ReadonlySet<string> = new Set([
  ...['search_type', 'request_cache', 'preference', 'routing', 'allow_partial_search_results', 'expand_wildcards'],
  ...['ignore_unavailable', 'allow_no_indices', 'ignore_throttled', 'ccs_minimize_roundtrips'],
]);

/**
 * The parameters of a search that a header of an `_msearch` stands for.
 *
 * @throws {EngineError} 400 for what is none there: among all parameters of a search there is one that holds a whole body
 */
export function parametersOf(header: Readonly<Record<string, unknown>>): Record<string, string> {
  const unknown = Object.keys(header).find((name) => !KNOWN.has(name));
  if (unknown !== undefined) throw illegal(`key [${unknown}] is not supported in the metadata section`);
  return Object.fromEntries(Object.entries(header).map(([name, value]) => [name, String(value)]));
}
