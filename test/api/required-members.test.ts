// What the OpenAPI document calls required is: each request with an object in it that lacks such a member is refused, for that reason.
import { openapi } from '@sparrow-search/server';
import { afterAll, beforeAll, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
  readonly default?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly required?: readonly string[];
  readonly minProperties?: number;
  readonly maxProperties?: number;
}

interface Operation {
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> };
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

const document = JSON.parse(openapi()) as Document;
let server: RunningServer;

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
  await server.request('PUT', '/books', { mappings: { properties: { 1: { type: 'text' } } } });
  const config = { model_type: 'pytorch', inference_config: { text_expansion: {} } };
  await server.request('PUT', '/_ml/trained_models/1', config);
});

afterAll(async () => {
  await server.stop();
});

const nameOf = ($ref: string): string => $ref.split('/').at(-1) ?? '';
const resolved = (schema: Schema): Schema =>
  schema.$ref === undefined ? schema : resolved(document.components.schemas[nameOf(schema.$ref)] ?? {});

/** Members of objects beside those that are required: one of several has to be there, or a text is of a language. */
const BESIDE: readonly (readonly [RegExp, object])[] = [
  [/\.pinned$/, { ids: ['1'] }],
  [/\.moving_fn$/, { script: 'MovingFunctions.max(values)' }],
  [/\.chunking_settings$/, { max_chunk_size: 20 }],
  [/pipeline\/_simulate$/, { pipeline: { processors: [] } }],
  [/\/\{model\}$/, { model_type: 'pytorch', inference_config: { text_expansion: {} } }],
  [/definition\/\{part\}$/, { definition: 'MTIz' }],
  [/_scripts\/.*\.script$/, { lang: 'mustache' }],
];

/** Where something else than 400 is the answer, as in Elasticsearch. */
const STATUSES: Readonly<Record<string, number>> = {
  '/_snapshot/{repository}: settings': 500,
  '/_snapshot/{repository}.settings: location': 500,
};

/** The smallest value that a schema allows. A text is a script, too. */
function sample(given: Schema): unknown {
  const schema = resolved(given);
  const { enum: values, default: preset, anyOf, items, properties = {}, required = [] } = schema;
  if (values !== undefined) return values[0];
  if (preset !== undefined) return preset;
  if (anyOf !== undefined) return sample(anyOf[0] ?? {});
  const [type] = [schema.type].flat();
  if (type === 'array') return [sample(items ?? {})];
  if (type === 'integer' || type === 'number') return 1;
  if (type === 'boolean') return true;
  if (type !== 'object') return schema.pattern === undefined ? '1' : '1s';
  const { minProperties, additionalProperties: others } = schema;
  const names = required.length > 0 || minProperties === undefined ? required : Object.keys(properties).slice(0, 1);
  const members = names.map((name) => [name, sample(properties[name] ?? {})]);
  const isNamed = schema.properties !== undefined && required.length === 0;
  if (typeof others === 'object' && !isNamed) members.push(['1', sample(others)]);
  return Object.fromEntries(members);
}

const without = <T extends object>(object: T, name: string): T =>
  Object.fromEntries(Object.entries(object).filter(([member]) => member !== name)) as T;

/** The smallest object of a schema at a place. */
function objectAt(at: string, schema: Schema): Readonly<Record<string, unknown>> {
  const beside = BESIDE.filter(([pattern]) => pattern.test(at)).map(([, members]) => members);
  return Object.assign({}, sample(without(schema, 'anyOf')), ...beside) as Record<string, unknown>;
}

/** An object somewhere in the body of a request, and the body around it. */
interface Place {
  readonly at: string;
  readonly schema: Schema;
  readonly around: (value: unknown) => unknown;
}

/** Every object that a body may hold, each part with a name of its own where it is met first. */
function* objectsIn(given: Schema, at: string, around: Place['around'], seen: Set<string>): Generator<Place> {
  if (given.$ref !== undefined) {
    if (seen.has(given.$ref)) return;
    seen.add(given.$ref);
  }
  const schema = resolved(given);
  for (const option of schema.anyOf ?? []) yield* objectsIn(option, at, around, seen);
  if (schema.items !== undefined) yield* objectsIn(schema.items, `${at}[]`, (value) => around([value]), seen);
  const { properties = {}, additionalProperties: others, maxProperties } = schema;
  if (schema.properties !== undefined) yield { at, schema, around };
  for (const [name, part] of Object.entries(properties)) {
    const whole = maxProperties === 1 ? {} : objectAt(at, schema);
    yield* objectsIn(part, `${at}.${name}`, (value) => around({ ...whole, [name]: value }), seen);
  }
  if (typeof others === 'object') yield* objectsIn(others, `${at}.*`, (value) => around({ 1: value }), seen);
}

/** Searches come first: most of what others hold is answered there soonest. */
function* requests(): Generator<{ readonly method: string; readonly path: string; readonly place: Place }> {
  const seen = new Set<string>();
  const paths = Object.entries(document.paths).sort(
    ([one], [other]) => Number(other === '/{index}/_search') - Number(one === '/{index}/_search'),
  );
  for (const [path, operations] of paths) {
    for (const [method, { requestBody }] of Object.entries(operations)) {
      const schema = requestBody?.content['application/json']?.schema;
      // Templates have no contexts.
      if (schema === undefined || path.includes('{context}')) continue;
      for (const place of objectsIn(schema, path, (value) => value, seen))
        yield { method: method.toUpperCase(), path, place };
    }
  }
}

let models = 1;

/** A path with names in it; that of a model that is to be made is always another one. */
const filled = (path: string): string =>
  path
    .replace('{index}', 'books')
    .replace(/\{model\}$/, () => String((models += 1)))
    .replaceAll(/\{\w+\}/g, '1');

it('an object without a required member is refused, and with it for no such reason', async () => {
  const wrong: string[] = [];
  let tried = 0;
  for (const { method, path, place } of requests()) {
    const { at, schema, around } = place;
    const whole = objectAt(at, schema);
    const complete = await server.request(method, filled(path), around(whole));
    for (const name of schema.required ?? []) {
      tried += 1;
      const { status, text } = await server.request(method, filled(path), around(without(whole, name)));
      if (status !== (STATUSES[`${at}: ${name}`] ?? 400))
        wrong.push(`${at}: without [${name}] it is answered ${String(status)}`);
      else if (text === complete.text) wrong.push(`${at}: with [${name}] it is refused as without it: ${text}`);
    }
  }
  expect(wrong).toEqual([]);
  expect(tried).toBeGreaterThan(150);
});
