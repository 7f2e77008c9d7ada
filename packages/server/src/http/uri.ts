import { HttpError } from '../errors.js';

const NONE: Readonly<Record<string, string>> = Object.freeze({});

/**
 * The query string of a URI as parameters. The last of several with one name counts.
 *
 * @throws {HttpError} 400 for an escape that is none, or that is not UTF-8
 */
export function parametersOf(uri: string): Readonly<Record<string, string>> {
  const mark = uri.indexOf('?');
  if (mark < 0) return NONE;
  const text = uri.slice(mark + 1);
  if (text.includes('%')) {
    for (const part of text.split(/[&=]/)) {
      const problem = badEscape(part);
      if (problem !== undefined) {
        throw new HttpError('bad_parameter', `java.lang.IllegalArgumentException: ${problem}`, {
          causedBy: { type: 'illegal_argument_exception', reason: problem },
        });
      }
    }
  }
  return Object.fromEntries(new URLSearchParams(text));
}

/** @throws {HttpError} 400 for a path with an escape that is none, or that is not UTF-8 */
export function checkPath(path: string): void {
  if (!path.includes('%')) return;
  for (const segment of path.split('/')) {
    const problem = badEscape(segment);
    if (problem !== undefined) throw new HttpError('illegal_argument', problem);
  }
}

/** What is wrong with the escapes of a piece of a URI, in Elasticsearch's words; undefined if nothing is. */
function badEscape(text: string): string | undefined {
  for (let at = text.indexOf('%'); at >= 0; at = text.indexOf('%', at + 3)) {
    if (at + 1 >= text.length) return `unterminated escape sequence at end of string: ${text}`;
    if (at + 2 >= text.length) return `partial escape sequence at end of string: ${text}`;
    const escape = text.slice(at, at + 3);
    if (!/^%[\da-f]{2}$/i.test(escape))
      return `invalid escape sequence \`${escape}' at index ${String(at)} of: ${text}`;
  }
  try {
    decodeURIComponent(text);
    return undefined;
  } catch {
    // Replacing what is malformed would make one name of several.
    return `escape sequences that are not UTF-8 in: ${text}`;
  }
}
