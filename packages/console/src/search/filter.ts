// What is wrong with a filter: the error of Lucene's parser as a sentence that says what to change, and fields that there are not.
import { fieldsOfFilter, unknownAmong, withParents } from '../../../server/src/named-fields';
import { optional } from '../lib/api';

/** What the parser came upon: `"<EOF>"`, `" ")" ") ""`, `" <AND> "AND ""`, and of a lexical error `"x"` or `<EOF>`. */
const ENCOUNTERED = /^Cannot parse '[^]*Encountered:? ([^]+?)(?: at line \d+, column \d+\.)?$/m;

/** A message of the server's; where it says that the filter cannot be parsed, a sentence about that. */
export function filterProblem(message: string, filter: string): string {
  const found = ENCOUNTERED.exec(message)?.[1];
  if (found === undefined) return message;
  if (found.includes('<EOF>'))
    return `The filter “${filter}” ends too early: is a value, a quote or a bracket missing?`;
  const what = /^" (?:<\w+> )?"([^]+?) ?"/.exec(found)?.[1] ?? found.replace(/^"|"$/g, '');
  return `The filter “${filter}” cannot be read: “${what}” is not expected there.`;
}

/** The fields that a filter names and the index does not have: the server finds nothing by them, and says nothing. */
export async function unknownFields(index: string, filter: string): Promise<string[]> {
  const names = fieldsOfFilter(filter);
  if (names.length === 0) return [];
  const path = `/${encodeURIComponent(index)}/_field_caps?fields=${encodeURIComponent(withParents(names).join(','))}`;
  const found = await optional<{ readonly fields?: object }>({}, 'GET', path);
  return found.fields === undefined ? [] : unknownAmong(names, found.fields);
}
