/** A document's fields by their names, or any other JSON object. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** Characters of a text, values of a list, and levels of objects that are shown of a hit. */
const SHORT = { characters: 300, items: 10, levels: 3 };

/** How much of a value is shown. */
interface Bounds {
  readonly characters: number;
  readonly items: number;
  readonly levels: number;
}

/** Characters of all values that are shown of a hit. */
const MOST_OF_HIT = 2000;

/** The values of a hit that fit beside its passages; `cut`: the fields of which something is missing. */
export function briefly(source: JsonObject): { readonly fields: JsonObject; readonly cut: readonly string[] } {
  const fields: Record<string, unknown> = {};
  const cut: string[] = [];
  let left = MOST_OF_HIT;
  for (const [name, value] of Object.entries(source)) {
    const shown = bounded(value, SHORT);
    const length = JSON.stringify(shown.value).length + name.length;
    if (length > left) {
      cut.push(name);
      continue;
    }
    left -= length;
    fields[name] = shown.value;
    if (shown.isCut) cut.push(name);
  }
  return { fields, cut };
}

function bounded(value: unknown, bounds: Bounds, level = 1): { readonly value: unknown; readonly isCut: boolean } {
  if (typeof value === 'string') {
    const isCut = value.length > bounds.characters;
    return { value: isCut ? `${slice(value, 0, bounds.characters)}…` : value, isCut };
  }
  if (typeof value !== 'object' || value === null) return { value, isCut: false };
  if (level > bounds.levels) return { value: '…', isCut: true };
  let isCut = false;
  const inner = (one: unknown): unknown => {
    const shown = bounded(one, bounds, level + 1);
    isCut ||= shown.isCut;
    return shown.value;
  };
  const entries = Object.entries(value);
  isCut = entries.length > bounds.items;
  const kept = entries.slice(0, bounds.items).map(([name, one]) => [name, inner(one)] as const);
  return { value: Array.isArray(value) ? kept.map(([, one]) => one) : Object.fromEntries(kept), isCut };
}

/** A part of a text that does not end or begin within a character. */
export function slice(text: string, from: number, length: number): string {
  const isWithin = (at: number): boolean =>
    /[\uDC00-\uDFFF]/.test(text[at] ?? '') && /[\uD800-\uDBFF]/.test(text[at - 1] ?? '');
  const start = isWithin(from) ? from - 1 : from;
  const end = Math.min(from + length, text.length);
  return text.slice(start, isWithin(end) ? end - 1 : end);
}

/** Every text below a value, with the path of its field. */
export function* textsIn(value: unknown, path = '', depth = 0): Generator<readonly [path: string, text: string]> {
  if (typeof value === 'string') yield [path, value];
  if (typeof value !== 'object' || value === null || depth > MOST_DEPTH) return;
  for (const [name, inner] of Object.entries(value)) {
    // The values of a list belong to the field of the list.
    const at = Array.isArray(value) ? path : path === '' ? name : `${path}.${name}`;
    yield* textsIn(inner, at, depth + 1);
  }
}

const MOST_DEPTH = 20;
