import { OPERATIONS } from '@sparrow-search/engine';

import { VERSION } from '../version.js';
import { SPARSE_PATH, isOpenAiPath } from '../routes/openai-paths.js';
import { parameter } from '../routes/parameters.js';
import { ENDPOINTS, type Route, routesByPath } from '../routes/table.js';
import { COMMON_PARAMS, type Endpoint } from '../routes/types.js';
import { COMPONENTS } from './components.js';
import { BODIES, type Bodies, type Named } from './operations.js';
import { LIST_RULE, saidOf } from './parameters.js';
import { type Schema, ref } from './schemas/schema.js';
import { SHAPES } from './shapes.generated.js';

let text: string | undefined;

/** The interface as an OpenAPI 3.1 document, made from the route table. */
export function openapi(): string {
  text ??= JSON.stringify(describe(), (_, value: unknown) =>
    isOpenObject(value) ? { ...value, additionalProperties: true } : value,
  );
  return text;
}

/** An object of which the document names no member. Generators of clients make an empty one of it where it does not say that it is open. */
function isOpenObject(value: unknown): value is Schema {
  if (typeof value !== 'object' || value === null || !('type' in value)) return false;
  if ('properties' in value || 'additionalProperties' in value) return false;
  return value.type === 'object' || (Array.isArray(value.type) && value.type.includes('object'));
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
    // Relative to where the document itself is: a part of another application, or a server behind a proxy, is below a path.
    servers: [{ url: '.' }],
    security: [{ ApiKey: [] }, { Basic: [] }, { Bearer: [] }],
    tags: [...new Set(ENDPOINTS.map(tagOf))].sort().map((name) => ({ name })),
    paths: Object.fromEntries(routesByPath().map((route) => [route.path, pathItem(route, used)])),
    components: { ...COMPONENTS, parameters: { ...COMPONENTS.parameters, ...sharedParameters() } },
  };
}

/** Parameters that mean the same nearly everywhere, by their names: the document would be many times as long otherwise. */
function sharedParameters(): Readonly<Record<string, object>> {
  const names = new Set(ENDPOINTS.flatMap(parametersOf).filter((name) => !COMMON_PARAMS.has(name)));
  return Object.fromEntries([...names].sort().map((name) => [name, described(name)]));
}

function parametersOf({ action, body, params }: Endpoint): readonly string[] {
  if (action === 'public') return [];
  return [...params, ...(body ? ['source', 'source_content_type'] : [])];
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
  const { action, body, method, params } = endpoint;
  const isPublic = action === 'public';
  return {
    operationId: uniqueId(endpoint, used),
    summary: summaryOf(endpoint),
    description: aboutOf(endpoint),
    tags: [tagOf(endpoint)],
    ...(isPublic ? { security: [] } : {}),
    parameters: [
      ...parametersOf(endpoint).map((name) => parameterAt(name, endpoint)),
      ...(isPublic ? [] : [...COMMON_PARAMS].filter((name) => !params.includes(name)).map(refTo)),
    ],
    ...(body ? { requestBody: requestOf(endpoint) } : {}),
    responses: responsesOf(endpoint, method === 'HEAD'),
  };
}

function aboutOf({ handler }: Endpoint): string {
  return 'engine' in handler ? OPERATIONS[handler.engine].about : BODIES[handler.local].about;
}

function bodiesOf(endpoint: Endpoint): Bodies {
  const { handler } = endpoint;
  const bodies = BODIES[nameOf(endpoint)] ?? {};
  const holds = 'engine' in handler ? OPERATIONS[handler.engine].holds : undefined;
  return holds === undefined ? bodies : { ...bodies, request: ref(holds) };
}

const isTable = (name: Named): boolean => name.startsWith('cat_') && name !== 'cat_help';

/** Rows for people, in JSON. */
const TABLE: Schema = { type: 'array', items: { type: 'object', additionalProperties: { type: ['string', 'null'] } } };

/** A parameter of an operation: the shared one, unless it is another one there. */
function parameterAt(name: string, endpoint: Endpoint): object {
  const own = described(name, endpoint);
  const isShared = JSON.stringify(own) === JSON.stringify(described(name));
  return isShared && !COMMON_PARAMS.has(name) ? refTo(name) : own;
}

const refTo = (name: string): object => ({ $ref: `#/components/parameters/${name}` });

function described(name: string, endpoint?: Endpoint): object {
  const { description: said, preset } = saidOf(name, endpoint === undefined ? '' : nameOf(endpoint));
  const isList = parameter(name, endpoint?.params)?.type === 'list' && !said.startsWith('Taken');
  const description = isList ? `${said} ${LIST_RULE}` : said;
  const schema = schemaOf(name, endpoint?.params ?? []);
  return { name, in: 'query', description, schema: preset === undefined ? schema : { ...schema, default: preset } };
}

/** A body in one of the kinds that are spoken. Of lines, the schema is that of each text between them. */
function requestOf(endpoint: Endpoint): object {
  const { request = {} } = bodiesOf(endpoint);
  if (endpoint.ndjson === true) {
    const description = 'Lines of JSON, the last of which ends as well.';
    const schema = { type: 'string', contentMediaType: 'application/json', contentSchema: request };
    const types = [
      'application/x-ndjson',
      'application/vnd.elasticsearch+x-ndjson; compatible-with=8',
      'application/vnd.elasticsearch+x-ndjson; compatible-with=9',
      'application/json',
    ];
    return { description, content: Object.fromEntries(types.map((type) => [type, { schema }])) };
  }
  const vendored = [8, 9].map((version) => `application/vnd.elasticsearch+json; compatible-with=${String(version)}`);
  const types = ['application/json', ...vendored, 'application/yaml'];
  return { content: Object.fromEntries(types.map((type) => [type, { schema: request }])) };
}

/** What was seen is not all that there may be. */
function opened(shape: Schema): Schema {
  return Object.fromEntries(
    Object.entries(shape).flatMap(([key, value]) => {
      // Averages are whole numbers by chance.
      if (key === 'type' && value === 'integer') return [[key, 'number']];
      if (key === 'items') return [[key, opened(value as Schema)]];
      if (key !== 'properties') return [[key, key === 'additionalProperties' ? opened(value as Schema) : value]];
      const members = Object.entries(value as Record<string, Schema>).map(([name, part]) => [name, opened(part)]);
      return [
        [key, Object.fromEntries(members)],
        ['additionalProperties', true],
      ];
    }),
  );
}

/** Operations that answer with a page for a browser. */
const PAGES: ReadonlySet<string> = new Set(['console', 'documentation', 'search_documentation']);

function responsesOf(endpoint: Endpoint, isHead: boolean): object {
  const { action, reply, handler } = endpoint;
  const name = nameOf(endpoint);
  const isText = reply === 'text';
  const schema = bodiesOf(endpoint).answer ?? (isTable(name) ? TABLE : opened(SHAPES[name] ?? {}));
  const isPage = 'local' in handler && PAGES.has(handler.local);
  const content = isPage
    ? { 'text/html': { schema: { type: 'string' } } }
    : {
        ...(isText ? { 'text/plain': { schema: { type: 'string' } } } : {}),
        'application/json': { schema },
        'application/yaml': { schema },
      };
  const done = { description: 'What was asked for.', ...(isHead ? {} : { content }) };
  // A job that fails on its way says how far it came.
  const isJob = JSON.stringify(schema).includes('ByQueryAnswer');
  const refused = (name: keyof typeof COMPONENTS.responses): object =>
    isHead
      ? { description: `${name}, without a body.` }
      : isOpenAiPath(endpoint.path)
        ? { description: COMPONENTS.responses[name].description, content: OPENAI_ERROR }
        : endpoint.path === SPARSE_PATH
          ? { description: COMPONENTS.responses[name].description, content: SPARSE_ERROR }
          : { $ref: `#/components/responses/${isJob ? (JOB[name] ?? name) : name}` };
  if (action === 'public') {
    const local = 'local' in handler ? handler.local : undefined;
    return {
      200: done,
      ...(local === 'documentation'
        ? {
            301: { description: 'The name of a Markdown file leads to its page.' },
            404: { description: 'There is no such page.' },
          }
        : {}),
      ...(local === 'search_documentation' ? { 429: refused('TooManyRequests'), 503: refused('Unavailable') } : {}),
      ...(local === 'openapi' ? { 400: refused('BadRequest') } : {}),
      ...(local === 'health' ? { 503: { description: 'The engine is not open yet.' } } : {}),
    };
  }
  return {
    200: done,
    ...(CREATING.has(name) ? { 201: { ...done, description: 'It was created.' } } : {}),
    ...(name === 'info' ? { 303: { description: 'A browser is led to the console.' } } : {}),
    ...(name === 'mcp' ? { 202: { description: 'A notification was taken.' } } : {}),
    400: refused(name === 'mcp' ? 'BadMessage' : 'BadRequest'),
    401: refused('Unauthenticated'),
    403: refused('Forbidden'),
    404: refused('NotFound'),
    408: refused('TimedOut'),
    409: refused('Conflict'),
    429: refused('TooManyRequests'),
    406: refused('NotAcceptable'),
    413: refused('TooLarge'),
    ...failures(refused),
  };
}

/** The form of errors in the interface of text-embeddings-inference, and in those of OpenAI and Cohere. */
const SPARSE_ERROR = { 'application/json': { schema: { $ref: '#/components/schemas/SparseError' } } };
const OPENAI_ERROR = { 'application/json': { schema: { $ref: '#/components/schemas/OpenAiError' } } };

/** Operations that answer 201 when they make something: those that write one document. */
const CREATING: ReadonlySet<Named> = new Set<Named>(['index_doc', 'create_doc', 'update_doc']);

/** Failures that every operation can have, whatever the request. */
const failures = (refused: (name: keyof typeof COMPONENTS.responses) => object): object => ({
  500: refused('Failed'),
  502: refused('BadGateway'),
  503: refused('Unavailable'),
  504: refused('OutOfTime'),
});

/** JSON Schema of a query parameter's values. */
function schemaOf(name: string, params: readonly string[]): Schema {
  const { type, values } = parameter(name, params) ?? { type: 'text' as const, values: undefined };
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

const JOB: Readonly<Record<string, string>> = {
  BadRequest: 'JobFailed',
  Forbidden: 'JobFailed',
  Conflict: 'JobFailed',
  NotFound: 'JobFailed',
  TooManyRequests: 'JobFailed',
  Failed: 'JobFailed',
  BadGateway: 'JobFailed',
  Unavailable: 'JobFailed',
  OutOfTime: 'JobFailed',
};

function nameOf({ handler }: Endpoint): Named {
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
  if (/^data\/(?:write|read\/(?:get|mget|m?tv)\b)/.test(family)) return 'documents';
  if (scope === 'indices') return family.startsWith('data/') ? 'search' : 'indices';
  if (path.startsWith('/_ml') || path.startsWith('/_inference') || isOpenAiPath(path) || path === SPARSE_PATH) {
    return 'inference';
  }
  if (path.startsWith('/_ingest')) return 'ingest';
  return 'cluster';
}
