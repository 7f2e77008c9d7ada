// What of a JSON file is a document, for the command line and the console: the list in `{"data": [{…}, {…}], "total": 2}`, and every second
// line of a body of `_bulk`. It has no imports, as it runs in browsers too.

/** The longest list of objects among the members of an object, and the name of that member; undefined if no member is such a list. */
export function listInside(value: object): { readonly name: string; readonly list: readonly object[] } | undefined {
  return Object.entries(value)
    .flatMap(([name, list]: [string, unknown]) => (isListOfObjects(list) ? [{ name, list }] : []))
    .sort((a, b) => b.list.length - a.list.length)[0];
}

/** Whether an object is a line of a body of `_bulk` that says how the next one is written. */
export function isBulkAction(value: object): boolean {
  const [[name, about] = ['', undefined], ...more] = Object.entries(value) as [string, unknown][];
  return (
    more.length === 0 &&
    ['index', 'create'].includes(name) &&
    typeof about === 'object' &&
    about !== null &&
    Object.keys(about).every((key) => key.startsWith('_'))
  );
}

function isListOfObjects(value: unknown): value is object[] {
  return (
    Array.isArray(value) &&
    value.length > 0 &&
    value.every((one) => typeof one === 'object' && one !== null && !Array.isArray(one))
  );
}

/** The text of a member of an object, from the first sign of its value to behind the last, as places in the text of the object. */
export function placeOf(name: string, text: string): readonly [number, number] {
  let depth = 0;
  let found: number | undefined;
  let said = '';
  for (let at = 0; at < text.length; at += 1) {
    const sign = text[at];
    if (sign === '"') {
      const begun = at;
      for (at += 1; at < text.length && text[at] !== '"'; at += 1) if (text[at] === '\\') at += 1;
      if (depth === 1 && found === undefined) said = text.slice(begun, at + 1);
    } else if (sign === ':' && depth === 1 && found === undefined && JSON.parse(said) === name) {
      found = at + 1;
    } else if (sign === '[' || sign === '{') {
      depth += 1;
    } else if (sign === ']' || sign === '}') {
      depth -= 1;
      if (found !== undefined && depth === 1) return [found, at + 1];
    }
  }
  return [0, text.length];
}
