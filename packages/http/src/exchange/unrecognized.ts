import { HttpError } from '@sparrow-search/endpoints';
import { near } from '@sparrow-search/engine/diagnostics';

/**
 * The refusal of parameters that an endpoint does not have.
 *
 * @param candidates the names that may have been meant
 */
export function unrecognized(path: string, names: readonly string[], candidates: Iterable<string>): HttpError {
  const known = [...candidates];
  const shown = [...names].sort().map((name) => {
    const meant = near(name, known);
    if (meant.length === 0) return `[${name}]`;
    return `[${name}] -> did you mean ${meant.length === 1 ? '' : 'any of '}[${meant.join(', ')}]?`;
  });
  const detail = names.length > 1 ? 'parameters' : 'parameter';
  return new HttpError('illegal_argument', `request [${path}] contains unrecognized ${detail}: ${shown.join(', ')}`);
}
