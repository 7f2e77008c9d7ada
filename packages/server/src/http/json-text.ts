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
