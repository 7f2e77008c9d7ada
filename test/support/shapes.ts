/** A JSON Schema of what was seen: types, members, items. */
export interface Shape {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly additionalProperties?: Shape;
  readonly items?: Shape;
}

/** Levels of members that are described; what lies deeper is an object. */
const LEVELS = 4;

const typeOf = (value: unknown): string => {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number';
  return typeof value;
};

/** Names that somebody gave: of indices, fields, nodes and the like. They are not members that every answer has. */
const isGiven = (name: string): boolean =>
  !/^[a-z_]+[a-z0-9_]*$/.test(name) ||
  /^(?:books|copy|thing|pipe|a|title|tag|point|other|sparse|search|feed)$/.test(name);

/** Members whose value is the user's own: a document, a query. */
const OPAQUE = new Set(['_source', 'doc', 'query', 'filter', 'mappings', 'metadata', '_meta', 'aggs']);

/** The shape of a value. */
export function shapeOf(value: unknown, level = 0): Shape {
  const type = typeOf(value);
  if (Array.isArray(value)) {
    const [first, ...rest] = value.map((item) => shapeOf(item, level));
    return first === undefined ? { type } : { type, items: rest.reduce(merged, first) };
  }
  if (type !== 'object' || level === LEVELS) return { type };
  const entries = Object.entries(value as object).map(
    ([name, part]) => [name, OPAQUE.has(name) ? { type: typeOf(part) } : shapeOf(part, level + 1)] as const,
  );
  if (entries.length === 0) return { type };
  if (entries.some(([name]) => isGiven(name))) {
    const [first, ...rest] = entries.map(([, part]) => part);
    return { type, additionalProperties: rest.reduce(merged, first ?? {}) };
  }
  return { type, properties: Object.fromEntries(entries) };
}

/** The shape of what has either shape. */
export function merged(one: Shape, other: Shape): Shape {
  const types = new Set([one.type ?? [], other.type ?? []].flat());
  if (types.has('number')) types.delete('integer');
  const names = [...new Set([...Object.keys(one.properties ?? {}), ...Object.keys(other.properties ?? {})])];
  const both = (a: Shape | undefined, b: Shape | undefined): Shape | undefined => (a && b ? merged(a, b) : (a ?? b));
  const values = [one, other].flatMap((shape) => [
    shape.additionalProperties,
    ...Object.values(shape.properties ?? {}),
  ]);
  const isOpen = one.additionalProperties !== undefined || other.additionalProperties !== undefined;
  const additional = isOpen
    ? values.filter((shape) => shape !== undefined).reduce<Shape | undefined>(both, undefined)
    : undefined;
  const items = both(one.items, other.items);
  const [type] = types;
  return {
    ...(types.size === 0 ? {} : { type: types.size === 1 ? (type ?? '') : [...types].sort() }),
    ...(additional === undefined && names.length > 0
      ? {
          properties: Object.fromEntries(
            names.map((name) => [name, both(one.properties?.[name], other.properties?.[name]) ?? {}]),
          ),
        }
      : {}),
    ...(additional === undefined ? {} : { additionalProperties: additional }),
    ...(items === undefined ? {} : { items }),
  };
}

/** Where a value is not of a shape, or undefined. Members may be missing, and there may be others. */
export function misfit(value: unknown, shape: Shape, path = '$'): string | undefined {
  const allowed = [shape.type ?? []].flat();
  const type = typeOf(value);
  const fits = allowed.length === 0 || allowed.includes(type) || (type === 'integer' && allowed.includes('number'));
  if (!fits) return `${path} is ${type}, not ${allowed.join(' or ')}`;
  if (Array.isArray(value)) {
    const { items } = shape;
    return items && value.map((item, at) => misfit(item, items, `${path}[${String(at)}]`)).find(Boolean);
  }
  if (type !== 'object') return undefined;
  return Object.entries(value as object)
    .map(([name, part]) => {
      const described = shape.properties?.[name] ?? shape.additionalProperties;
      return described && misfit(part, described, `${path}.${name}`);
    })
    .find(Boolean);
}
