// Holds what goes over the wire against the OpenAPI document: every answer that a test gets, and every request that is accepted.
import { openapi } from '@sparrow-search/server';

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly required?: readonly string[];
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly contentSchema?: Schema;
}

interface Content {
  readonly content?: Readonly<Record<string, { readonly schema: Schema }>>;
}

interface Operation {
  readonly operationId: string;
  readonly requestBody?: Content;
  readonly responses: Readonly<Record<string, Content & { readonly $ref?: string }>>;
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

/** Keywords that this file understands, and those that say nothing about values. */
const KEYWORDS = new Set([
  ...['$ref', 'type', 'enum', 'pattern', 'anyOf', 'items', 'properties', 'additionalProperties', 'required'],
  ...['minProperties', 'maxProperties', 'contentSchema', 'contentMediaType', 'description', 'default', 'format'],
]);

/** Parameters by which an answer is cut, or has members for people. */
const SHAPING = ['filter_path', 'human', 'flat_settings', 'error_trace', 'format', 'help'];

let document: Document | undefined;
let routes: readonly (readonly [RegExp, Readonly<Record<string, Operation>>])[] = [];

function load(): Document {
  if (document === undefined) {
    document = JSON.parse(openapi()) as Document;
    // They stand in the order in which they are tried.
    routes = Object.entries(document.paths).map(([path, item]) => [
      new RegExp(`^${path.replaceAll(/[.*+?^$()|[\]\\]/g, String.raw`\$&`).replaceAll(/\{\w+\}/g, '[^/]+')}/?$`),
      item,
    ]);
  }
  return document;
}

function resolved<T extends { readonly $ref?: string }>(it: T): T {
  if (it.$ref === undefined) return it;
  const parts = it.$ref.slice(2).split('/');
  return resolved(parts.reduce<unknown>((at, part) => (at as Record<string, unknown>)[part], load()) as T);
}

/** One exchange of a test. */
export interface Exchange {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  /** What was sent, if it was one JSON text. */
  readonly request: unknown;
  readonly status: number;
  /** The answer, if it was JSON. */
  readonly answer: unknown;
}

/** What of an exchange is not as the document says, or undefined. */
export function undocumented({ method, path, request, status, answer }: Exchange): string | undefined {
  load();
  const [plain = '', query = ''] = path.split('?', 2);
  const operation = routes.find(([pattern]) => pattern.test(plain))?.[1][method.toLowerCase()];
  if (operation === undefined || method === 'HEAD') return undefined;
  const at = `${method} ${plain} (${operation.operationId})`;
  // A path that others of its methods have.
  if (status === 405) return undefined;
  const response = operation.responses[status];
  if (response === undefined) return `${at}: ${String(status)} is not documented`;
  const isBody = typeof request === 'object' && request !== null && !Buffer.isBuffer(request);
  if (status < 300 && isBody && operation.requestBody !== undefined) {
    // As it was sent: without members that are undefined.
    const sent: unknown = JSON.parse(JSON.stringify(request));
    const wrong = misfit(sent, schemaOf(operation.requestBody), { names: true });
    if (wrong !== undefined) return `${at}: the request was accepted, but is not documented: ${wrong}`;
  }
  const given = new Set(query.split('&').map((part) => part.split('=')[0] ?? ''));
  if (typeof answer !== 'object' || answer === null || SHAPING.some((name) => given.has(name))) return undefined;
  const wrong = misfit(answer, schemaOf(resolved(response)));
  return wrong === undefined ? undefined : `${at}: the answer is not as documented: ${wrong}`;
}

function schemaOf({ content = {} }: Content): Schema {
  return content['application/json']?.schema ?? {};
}

const typeOf = (value: unknown): string => {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number';
  return typeof value;
};

const isScalar = (type: string): boolean => type !== 'object' && type !== 'array';

/** `names`: texts, numbers and the like may stand for each other, as the server takes them, and nothing has to be there. */
interface Mode {
  readonly names: boolean;
}

/**
 * Where a value is not of a schema, or undefined. An object of named members has no others, unless `additionalProperties` says so:
 * what is not documented is to be found.
 */
export function misfit(value: unknown, schema: Schema, mode: Mode = { names: false }, path = '$'): string | undefined {
  const unknown = Object.keys(schema).find((keyword) => !KEYWORDS.has(keyword));
  if (unknown !== undefined) throw new Error(`${path}: the keyword [${unknown}] is not understood`);
  if (schema.$ref !== undefined) return misfit(value, resolved(schema), mode, path);
  if (schema.anyOf !== undefined) return noneFits(value, schema.anyOf, mode, path);
  const type = typeOf(value);
  const allowed = [schema.type ?? []].flat();
  const fits =
    allowed.length === 0 ||
    allowed.includes(type) ||
    (type === 'integer' && allowed.includes('number')) ||
    (mode.names && isScalar(type) && allowed.some(isScalar));
  if (!fits) return `${path} is ${type}, not ${allowed.join(' or ')}`;
  if (!mode.names) {
    if (schema.enum?.includes(value) === false) return `${path} is ${JSON.stringify(value)}`;
    if (schema.pattern !== undefined && typeof value === 'string' && !new RegExp(schema.pattern).test(value))
      return `${path} is ${JSON.stringify(value)}`;
  }
  if (Array.isArray(value)) {
    const { items } = schema;
    return (
      items &&
      firstOf(
        value.map((item, at) => [item, items, `${path}[${String(at)}]`]),
        mode,
      )
    );
  }
  if (type !== 'object') return undefined;
  return ofMembers(value as Readonly<Record<string, unknown>>, schema, mode, path);
}

function noneFits(value: unknown, options: readonly Schema[], mode: Mode, path: string): string | undefined {
  const problems: string[] = [];
  for (const option of options) {
    const problem = misfit(value, option, mode, path);
    if (problem === undefined) return undefined;
    problems.push(problem);
  }
  // The option that was meant is the one whose type is right.
  return problems.toSorted((a, b) => Number(a.startsWith(`${path} is`)) - Number(b.startsWith(`${path} is`)))[0];
}

function ofMembers(
  value: Readonly<Record<string, unknown>>,
  schema: Schema,
  mode: Mode,
  path: string,
): string | undefined {
  const {
    properties,
    additionalProperties: others,
    required = [],
    minProperties = 0,
    maxProperties = Infinity,
  } = schema;
  const names = Object.keys(value);
  const missing = mode.names ? undefined : required.find((name) => value[name] === undefined);
  if (missing !== undefined) return `${path}.${missing} is missing`;
  if (names.length < minProperties || names.length > maxProperties)
    return `${path} has ${String(names.length)} members`;
  if (properties === undefined && others === undefined) return undefined;
  const known = (name: string) => (Object.hasOwn(properties ?? {}, name) ? properties?.[name] : undefined);
  const surplus =
    typeof others === 'object' || others === true ? undefined : names.find((name) => known(name) === undefined);
  if (surplus !== undefined) return `${path} has a member [${surplus}]`;
  const parts = names.map((name) => {
    const described = known(name) ?? (typeof others === 'object' ? others : {});
    return [value[name], described, `${path}.${name}`] as const;
  });
  return firstOf(parts, mode);
}

function firstOf(parts: readonly (readonly [unknown, Schema, string])[], mode: Mode): string | undefined {
  for (const [value, schema, path] of parts) {
    const problem = misfit(value, schema, mode, path);
    if (problem !== undefined) return problem;
  }
  return undefined;
}
