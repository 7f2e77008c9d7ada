// Turns the error of Lucene's parser about a filter into a sentence that says what to change.

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
