// What is wrong with a filter: the error of Lucene's parser as a sentence that says what to change, and fields that there are not.
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

/** A field before a colon, as Lucene's syntax names one: not within quotes, where colons are letters. */
const FIELD = /(?<![\w.\\])([A-Za-z_][\w.-]*):/g;

/** The fields that a filter names; patterns and what is no field are left out. */
export function fieldsOfFilter(filter: string): string[] {
  const named = [...filter.replaceAll(/"(?:\\.|[^"\\])*"?/gs, '""').matchAll(FIELD)].map(([, name = '']) => name);
  return [...new Set(named)].filter((name) => name !== '_exists_');
}

/** The fields that a filter names and the index does not have: the server finds nothing by them, and says nothing. */
export async function unknownFields(index: string, filter: string): Promise<string[]> {
  const names = fieldsOfFilter(filter);
  if (names.length === 0) return [];
  const path = `/${encodeURIComponent(index)}/_field_caps?fields=${encodeURIComponent(names.join(','))}`;
  const found = await optional<{ readonly fields?: object }>({}, 'GET', path);
  return found.fields === undefined ? [] : names.filter((name) => !Object.hasOwn(found.fields ?? {}, name));
}
