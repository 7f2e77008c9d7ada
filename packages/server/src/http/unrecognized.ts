import { HttpError } from '../errors.js';

/** Similarity of two names above which one is taken for a slip of the other. */
const SIMILAR = 0.5;

/**
 * The refusal of parameters that an endpoint does not have.
 *
 * @param candidates the names that may have been meant
 */
export function unrecognized(path: string, names: readonly string[], candidates: Iterable<string>): HttpError {
  const known = [...candidates];
  const shown = [...names].sort().map((name) => {
    const near = known
      .map((candidate) => ({ candidate, similarity: similarity(name, candidate) }))
      .filter((one) => one.similarity > SIMILAR)
      .sort((a, b) => b.similarity - a.similarity || (a.candidate < b.candidate ? -1 : 1))
      .map(({ candidate }) => candidate);
    if (near.length === 0) return `[${name}]`;
    return `[${name}] -> did you mean ${near.length === 1 ? '' : 'any of '}[${near.join(', ')}]?`;
  });
  const detail = names.length > 1 ? 'parameters' : 'parameter';
  return new HttpError('illegal_argument', `request [${path}] contains unrecognized ${detail}: ${shown.join(', ')}`);
}

/** One less the edit distance by the length of the longer name. */
function similarity(a: string, b: string): number {
  const longer = Math.max(a.length, b.length);
  // Nothing so different in length is near, and a name may be as long as a line.
  if (longer === 0 || Math.min(a.length, b.length) / longer <= SIMILAR) return 0;
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const changed = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(changed, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return 1 - (row[b.length] ?? 0) / longer;
}
