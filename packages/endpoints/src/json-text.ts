/**
 * JSON as text: scalars stay the slices of text they came as, so `1.0` stays `1.0` and a long integer keeps its digits.
 */
export type Json =
  | { readonly kind: 'scalar'; readonly text: string }
  | { readonly kind: 'array'; readonly items: readonly Json[] }
  | { readonly kind: 'object'; readonly entries: readonly (readonly [key: string, value: Json])[] };

/** Reads valid JSON; anything else is an exception or comes out as something else. Keys keep their quotes and escapes. */
export function parseJson(text: string): Json {
  let at = 0;

  const skip = (): void => {
    while (at < text.length && ' \t\r\n'.includes(text.charAt(at))) at += 1;
  };
  const string = (): string => {
    const start = at;
    at += 1;
    while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
    at += 1;
    return text.slice(start, at);
  };
  const list = <T>(close: string, item: () => T): T[] => {
    const items: T[] = [];
    at += 1;
    skip();
    while (text[at] !== close) {
      items.push(item());
      skip();
      if (text[at] === ',') at += 1;
      else if (text[at] !== close) throw new SyntaxError(`unexpected character at ${String(at)}`);
      skip();
    }
    at += 1;
    return items;
  };
  const value = (): Json => {
    skip();
    switch (text.charAt(at)) {
      case '{':
        return {
          kind: 'object',
          entries: list('}', () => {
            const key = string();
            skip();
            at += 1;
            return [key, value()] as const;
          }),
        };
      case '[':
        return { kind: 'array', items: list(']', value) };
      case '"':
        return { kind: 'scalar', text: string() };
      default: {
        const scalar = /[^,\]}\s]+/y;
        scalar.lastIndex = at;
        const match = scalar.exec(text);
        if (match === null) throw new SyntaxError(`unexpected end at ${String(at)}`);
        at = scalar.lastIndex;
        return { kind: 'scalar', text: match[0] };
      }
    }
  };
  return value();
}

/** The text of a value. */
export function writeJson(json: Json): string {
  if (json.kind === 'scalar') return json.text;
  if (json.kind === 'array') return `[${json.items.map(writeJson).join(',')}]`;
  return `{${json.entries.map(([key, value]) => `${key}:${writeJson(value)}`).join(',')}}`;
}

/** Whether a text may hold a whole number that JavaScript would round. */
export function mayHoldLong(text: string): boolean {
  // Not the digits of a fraction, of which most numbers of vectors have as many.
  return /(?<![\d.])\d{16,}(?![\d.eE])/.test(text);
}

/** A value as JavaScript has it, but whole numbers that it would round as texts of their digits. */
export function exactValue(json: Json): unknown {
  if (json.kind === 'array') return json.items.map(exactValue);
  if (json.kind === 'object')
    return Object.fromEntries(json.entries.map(([key, value]) => [JSON.parse(key) as string, exactValue(value)]));
  const value = JSON.parse(json.text) as unknown;
  return typeof value === 'number' && !Number.isSafeInteger(value) && /^-?\d+$/.test(json.text) ? json.text : value;
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;

/**
 * Counts the values and levels of a text before it is parsed, as each comma and each bracket begins a value: a few bytes are a value
 * each, which takes a hundred times as long to parse as the bytes of a text do.
 */
export function sizeOfJson(body: Uint8Array): { readonly values: number; readonly levels: number } {
  let values = 1;
  let levels = 0;
  let deepest = 0;
  let isInText = false;
  for (let at = 0; at < body.length; at += 1) {
    const byte = body[at] ?? 0;
    if (isInText) {
      if (byte === BACKSLASH) at += 1;
      else if (byte === QUOTE) isInText = false;
    } else if (byte === QUOTE) isInText = true;
    else if (byte === COMMA) values += 1;
    else if (byte >= 0x5b) {
      // Brackets, as this is the innermost loop of all that is read on the event loop.
      if (byte === 0x5b || byte === 0x7b) {
        values += 1;
        levels += 1;
        if (levels > deepest) deepest = levels;
      } else if (byte === 0x5d || byte === 0x7d) levels -= 1;
    }
  }
  return { values, levels: deepest };
}
