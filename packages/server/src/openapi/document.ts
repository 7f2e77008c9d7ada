import { VERSION } from '../identity.js';
import { parameter } from '../routes/parameters.js';
import { ENDPOINTS, type Route, routesByPath } from '../routes/table.js';
import { COMMON_PARAMS, type Endpoint } from '../routes/types.js';
import { COMPONENTS } from './components.js';
import { SHAPES } from './shapes.generated.js';

let text: string | undefined;

/** The interface as an OpenAPI 3.1 document, made from the route table. */
export function openapi(): string {
  text ??= JSON.stringify(describe());
  return text;
}

function describe(): object {
  const used = new Set<string>();
  return {
    openapi: '3.1.0',
    info: {
      title: 'Sparrow',
      version: VERSION,
      description: 'Semantic search with the interface of Elasticsearch 8.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    security: [{ ApiKey: [] }],
    tags: [...new Set(ENDPOINTS.map(tagOf))].sort().map((name) => ({ name })),
    paths: Object.fromEntries(routesByPath().map((route) => [route.path, pathItem(route, used)])),
    components: COMPONENTS,
  };
}

function pathItem({ path, methods }: Route, used: Set<string>): object {
  const parameters = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string', minLength: 1 },
  }));
  const operations = [...methods].map(
    ([method, endpoint]) => [method.toLowerCase(), operation(endpoint, used)] as const,
  );
  return { ...(parameters.length === 0 ? {} : { parameters }), ...Object.fromEntries(operations) };
}

function operation(endpoint: Endpoint, used: Set<string>): object {
  const { action, body, method, ndjson = false } = endpoint;
  const isPublic = action === 'public';
  const query = isPublic ? [] : [...endpoint.params, ...(body ? ['source', 'source_content_type'] : [])];
  const common = isPublic ? [] : [...COMMON_PARAMS].filter((name) => !endpoint.params.includes(name));
  return {
    operationId: uniqueId(endpoint, used),
    summary: summaryOf(endpoint),
    tags: [tagOf(endpoint)],
    ...(isPublic ? { security: [] } : {}),
    parameters: [
      ...query.map((name) => ({ name, in: 'query', schema: schemaOf(name) })),
      ...common.map((name) => ({ $ref: `#/components/parameters/${name}` })),
    ],
    ...(body ? { requestBody: { content: ndjson ? NDJSON_BODY : jsonBody(SHAPES[nameOf(endpoint)]?.request) } } : {}),
    responses: responsesOf(endpoint, method === 'HEAD'),
  };
}

/** A body in one of the kinds that are spoken. Types are those of an example: there may be other members. */
const jsonBody = (schema: object = {}): object => ({
  'application/json': { schema },
  'application/vnd.elasticsearch+json; compatible-with=8': { schema },
  'application/yaml': { schema },
});

const NDJSON_BODY = {
  'application/x-ndjson': { schema: { type: 'string' } },
  'application/vnd.elasticsearch+x-ndjson; compatible-with=8': { schema: { type: 'string' } },
  'application/json': { schema: { type: 'string' } },
};

function responsesOf(endpoint: Endpoint, isHead: boolean): object {
  const { action, reply, handler } = endpoint;
  const schema = SHAPES[nameOf(endpoint)]?.answer ?? {};
  const isText = reply === 'text';
  const isPage = 'local' in handler && (handler.local === 'console' || handler.local === 'documentation');
  const content = isPage
    ? { 'text/html': { schema: { type: 'string' } } }
    : {
        ...(isText ? { 'text/plain': { schema: { type: 'string' } } } : {}),
        'application/json': { schema },
        'application/yaml': { schema },
      };
  const done = { description: 'What was asked for.', ...(isHead ? {} : { content }) };
  if (action === 'public') {
    const local = 'local' in handler ? handler.local : undefined;
    return {
      200: done,
      ...(local === 'documentation' ? { 404: { description: 'There is no such page.' } } : {}),
      ...(local === 'health' ? { 503: { description: 'The engine is not open yet.' } } : {}),
    };
  }
  const refused = (name: string): object =>
    isHead ? { description: `${name}, without a body.` } : { $ref: `#/components/responses/${name}` };
  return {
    200: done,
    201: { ...done, description: 'It was created.' },
    400: refused('BadRequest'),
    401: refused('Unauthenticated'),
    403: refused('Forbidden'),
    404: refused('NotFound'),
    408: refused('TimedOut'),
    409: refused('Conflict'),
    429: refused('TooManyRequests'),
    406: refused('NotAcceptable'),
    413: refused('TooLarge'),
    503: refused('Starting'),
  };
}

/** JSON Schema of a query parameter's values. */
function schemaOf(name: string): object {
  const { type, values } = parameter(name) ?? { type: 'text' as const, values: undefined };
  switch (type) {
    case 'boolean':
      return { type: 'boolean' };
    case 'integer':
      return { type: 'integer', format: 'int32' };
    case 'long':
      return { type: 'integer', format: 'int64' };
    case 'float':
      return { type: 'number' };
    case 'time':
      return { type: 'string', pattern: '^(-1|0|[0-9]+(nanos|micros|ms|s|m|h|d))$' };
    default:
      return { type: 'string', ...(values === undefined ? {} : { enum: values }) };
  }
}

function nameOf({ handler }: Endpoint): string {
  return 'engine' in handler ? handler.engine : handler.local;
}

/** The operation's name, and what tells its forms apart: method and parameters of the path. */
function uniqueId(endpoint: Endpoint, used: Set<string>): string {
  const parts = [...endpoint.path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
  const name = [nameOf(endpoint), endpoint.method.toLowerCase(), ...(parts.length === 0 ? [] : ['by', ...parts])].join(
    '_',
  );
  let id = name;
  // Several paths for one thing, such as the prefixes of the migration.
  for (let number = 2; used.has(id); number += 1) id = `${name}_${String(number)}`;
  used.add(id);
  return id;
}

function summaryOf(endpoint: Endpoint): string {
  const words = nameOf(endpoint).replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** What an operation is about: the family of its action. */
function tagOf({ action, path }: Endpoint): string {
  if (path.startsWith('/_cat')) return 'cat';
  if (path.startsWith('/_security')) return 'security';
  if (action === null || action === 'public') return 'service';
  const [scope = '', family = ''] = action.split(':');
  if (scope === 'indices') return family.startsWith('data/') ? 'documents and search' : 'indices';
  if (path.startsWith('/_ml') || path.startsWith('/_inference')) return 'inference';
  if (path.startsWith('/_ingest')) return 'ingest';
  return 'cluster';
}
