/**
 * JSON as text: lays out (`pretty`) and thins out (`filter_path`) an answer without turning its numbers into JavaScript's.
 * Scalars stay the slices of text they came as, so `1.0` stays `1.0` and a long integer keeps its digits. Only requests
 * that ask for it pay for this.
 */
export type Json =
  | { readonly kind: 'scalar'; readonly text: string }
  | { readonly kind: 'array'; readonly items: readonly Json[] }
  | { readonly kind: 'object'; readonly entries: readonly (readonly [key: string, value: Json])[] };

/** Reads the engine's own output: valid JSON, or an exception. Keys keep their quotes and escapes. */
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

/** Without any space. */
export function compact(json: Json): string {
  switch (json.kind) {
    case 'scalar':
      return json.text;
    case 'array':
      return `[${json.items.map(compact).join(',')}]`;
    case 'object':
      return `{${json.entries.map(([key, value]) => `${key}:${compact(value)}`).join(',')}}`;
  }
}

/** The layout of `?pretty`: two spaces a level, ` : ` after keys, a newline at the end. */
export function pretty(json: Json): string {
  return `${indent(json, '')}\n`;
}

function indent(json: Json, margin: string): string {
  const inner = `${margin}  `;
  const lines = (items: readonly string[]): string => `\n${items.map((item) => inner + item).join(',\n')}\n${margin}`;
  switch (json.kind) {
    case 'scalar':
      return json.text;
    case 'array':
      return json.items.length === 0 ? '[ ]' : `[${lines(json.items.map((item) => indent(item, inner)))}]`;
    case 'object':
      return json.entries.length === 0
        ? '{ }'
        : `{${lines(json.entries.map(([key, value]) => `${key} : ${indent(value, inner)}`))}}`;
  }
}

/**
 * Keeps what `filter_path` names: comma-separated dot paths, with `*` inside a segment, `**` for any depth and a leading
 * `-` to leave something out. Arrays are looked through. Containers that become empty vanish.
 */
export function filterPath(json: Json, filter: string): Json {
  const paths = filter
    .split(',')
    .map((path) => path.trim())
    .filter((path) => path !== '');
  const excluded = paths.filter((path) => path.startsWith('-')).map((path) => segments(path.slice(1)));
  const included = paths.filter((path) => !path.startsWith('-')).map(segments);
  const kept = included.length === 0 ? json : include(json, included);
  const left = kept === undefined || excluded.length === 0 ? kept : exclude(kept, excluded);
  return left ?? { kind: 'object', entries: [] };
}

/** The names of a dot path; a dot of a name itself is written behind a backslash. */
function segments(path: string): readonly string[] {
  return path.split(/(?<!\\)\./).map((segment) => segment.replaceAll('\\.', '.'));
}

function include(json: Json, paths: readonly (readonly string[])[]): Json | undefined {
  return walk(json, paths, (value, rests) =>
    rests.some((rest) => rest.length === 0) ? value : rests.length === 0 ? undefined : include(value, rests),
  );
}

function exclude(json: Json, paths: readonly (readonly string[])[]): Json | undefined {
  return walk(json, paths, (value, rests) =>
    rests.some((rest) => rest.length === 0) ? undefined : rests.length === 0 ? value : exclude(value, rests),
  );
}

/** Rebuilds an object with `decide` on each value, given what remains of the paths that reach it. */
function walk(
  json: Json,
  paths: readonly (readonly string[])[],
  decide: (value: Json, rests: readonly (readonly string[])[]) => Json | undefined,
): Json | undefined {
  switch (json.kind) {
    case 'scalar':
      // A path that leads through a scalar names nothing in it.
      return decide(json, []);
    case 'array': {
      const items = json.items.map((item) => walk(item, paths, decide)).filter((item) => item !== undefined);
      return items.length === 0 ? undefined : { kind: 'array', items };
    }
    case 'object': {
      const entries = json.entries.flatMap(([key, value]) => {
        const decided = decide(value, advance(paths, JSON.parse(key) as string));
        return decided === undefined ? [] : [[key, decided] as const];
      });
      return entries.length === 0 ? undefined : { kind: 'object', entries };
    }
  }
}

/** What remains of each path after `key`; a path that does not match drops out. */
function advance(paths: readonly (readonly string[])[], key: string): readonly (readonly string[])[] {
  return paths.flatMap((path): readonly (readonly string[])[] => {
    const [head, ...rest] = path;
    if (head === undefined) return [];
    if (head === '**') return [path, ...advance([rest], key)];
    return matches(head, key) ? [rest] : [];
  });
}

function matches(pattern: string, key: string): boolean {
  if (!pattern.includes('*')) return pattern === key;
  const source = pattern
    .split('*')
    .map((part) => part.replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&'))
    .join('.*');
  return new RegExp(`^${source}$`, 's').test(key);
}
