// Completion: paths with the names of indices in them, and in a body the words that can stand at a place.
import type { Body, Endpoint, Schema } from './catalog';

const MOST = 12;

/** Lines that go on from what was typed, the shortest first. */
export function completeLine(line: string, catalog: readonly Endpoint[], indices: readonly string[]): string[] {
  const typed = line.trimStart();
  const [, method = '', path = ''] = /^([A-Za-z]*)\s*(.*)$/.exec(typed) ?? [];
  const methods = ['GET', 'POST', 'PUT', 'DELETE', 'HEAD'].filter((one) => one.startsWith(method.toUpperCase()));
  if (!/\s/.test(typed))
    return method === '' || methods.includes(method.toUpperCase()) ? [] : methods.map((one) => `${one} /`);
  const wanted = path.startsWith('/') ? path : `/${path}`;
  const lines = catalog
    .filter((endpoint) => endpoint.method === method.toUpperCase())
    .flatMap(({ path: template }) =>
      template.includes('{index}') ? indices.map((index) => template.replace('{index}', index)) : [template],
    )
    .filter((one) => one.startsWith(wanted) && one !== wanted);
  // What only contains it comes after what begins with it.
  const inside = catalog
    .filter(
      (endpoint) =>
        endpoint.method === method.toUpperCase() && endpoint.path.includes(wanted.slice(1)) && wanted.length > 2,
    )
    .map(({ path: template }) => template.replace('{index}', indices[0] ?? '{index}'))
    .filter((one) => one !== wanted);
  return [...new Set([...lines.sort((a, b) => a.length - b.length), ...inside])]
    .slice(0, MOST)
    .map((one) => `${method.toUpperCase()} ${one}`);
}

export interface Completion {
  /** Where the word begins that is to be replaced. */
  readonly from: number;
  readonly words: readonly string[];
}

/** Members whose values are names of fields. */
const OF_FIELDS: readonly string[] = ['field', 'fields', 'default_field', '_source', 'sort', 'path'];

/** Words that can go on at a place of the body of an endpoint; none outside of a string or a bare word. */
export function completeBody(body: string, at: number, takes: Endpoint['body'], fields: readonly string[]): Completion {
  const before = body.slice(0, at);
  const typed = /"?([\w.@-]*)$/.exec(before)?.[1] ?? '';
  const { keys, isValue } = placeOf(before.slice(0, before.length - typed.length).replace(/"$/, ''));
  const known = takes === undefined ? [] : wordsAt(takes, keys, isValue, fields);
  const isField = isValue && OF_FIELDS.includes(keys.at(-1) ?? '');
  const all = isField || (known.length === 0 && !isValue) ? fields : known;
  const words = all.filter((word) => word.startsWith(typed) && word !== typed).slice(0, MOST);
  return { from: at - typed.length, words };
}

/** The names of members, or the values, that the schema of a body has at a place. */
function wordsAt(
  { schema, schemas }: Body,
  keys: readonly string[],
  isValue: boolean,
  fields: readonly string[],
): string[] {
  const plain = (one: Schema): Schema[] => {
    if (one.$ref !== undefined) return plain(schemas[one.$ref.split('/').at(-1) ?? ''] ?? {});
    // What is in a list stands where the list does.
    return one.anyOf?.flatMap(plain) ?? (one.items === undefined ? [one] : plain(one.items));
  };
  const inside = (all: readonly Schema[], key: string): Schema[] =>
    all.flatMap(({ properties = {}, additionalProperties }) => {
      const next = Object.hasOwn(properties, key) ? properties[key] : additionalProperties;
      return typeof next === 'object' ? plain(next) : [];
    });
  const there = keys.reduce(inside, plain(schema));
  const words = ({
    enum: values = [],
    properties = {},
    required = [],
    additionalProperties,
  }: Schema): readonly string[] =>
    isValue
      ? values
      : [...required, ...Object.keys(properties), ...(typeof additionalProperties === 'object' ? fields : [])];
  return [...new Set(there.flatMap(words))];
}

/** The keys that a place is inside of, and whether it is the value of the last one. */
function placeOf(before: string): { keys: string[]; isValue: boolean } {
  const open: (string | undefined)[] = [];
  let last: string | undefined;
  for (const [token] of before.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\]:,]/g)) {
    if (token === '{' || token === '[') {
      open.push(last);
      last = undefined;
    } else if (token === '}' || token === ']') {
      open.pop();
      last = undefined;
    } else if (token === ',') last = undefined;
    else if (token !== ':') last = token.slice(1, -1);
  }
  const isValue = /:\s*$/.test(before) || before.trimEnd().endsWith('[');
  return { keys: [...open, isValue ? last : undefined].filter((key) => key !== undefined), isValue };
}
