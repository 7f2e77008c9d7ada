// The document at /_openapi.json: it is valid, it is the route table, and every operation in it does what it says.

import { Validator } from '@seriousme/openapi-schema-validator';
import { ENDPOINTS, parameter } from '@sparrow-search/server';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { undocumented } from '../support/documented.js';
import { BODIES, operationOf, pathOf, populate } from '../support/examples.js';
import { REFUSED_EXAMPLES } from '../support/refused-examples.js';
import { type RunningServer, startServer } from '../support/server.js';

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly security?: readonly unknown[];
  readonly description: string;
  readonly parameters: readonly Parameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, unknown>> };
  readonly responses: Readonly<Record<string, unknown>>;
}

interface Parameter {
  readonly name?: string;
  readonly $ref?: string;
  readonly description?: string;
  readonly schema?: Schema;
}

interface Schema {
  readonly type: string;
  readonly pattern?: string;
  readonly enum?: readonly string[];
}

const REFUSED = new Map(
  Object.entries(REFUSED_EXAMPLES).flatMap(([status, titles]) => titles.map((title) => [title, Number(status)])),
);

let server: RunningServer;
let document: {
  paths: Record<string, Record<string, Operation>>;
  components: { responses: object; parameters: Record<string, Parameter>; schemas: Record<string, any> };
};

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
  document = (await server.request('GET', '/_openapi.json', undefined, { apiKey: null })).body;
});

afterAll(async () => {
  await server.stop();
});

it('is sent in the shapes that are made once, and in no others', async () => {
  const strange = { apiKey: null };
  for (const query of ['', '?pretty', '?format=yaml', '?format=yaml&pretty']) {
    expect((await server.request('GET', `/_openapi.json${query}`, undefined, strange)).status).toBe(200);
  }
  const { status, text } = await server.request('GET', '/_openapi.json?filter_path=**.a*', undefined, strange);
  expect([status, text]).toEqual([400, expect.stringContaining('ask for the whole answer')]);
});

/** Values of parameters that are no words of any kind. */
const SAMPLES: Readonly<Record<string, string>> = {
  expand_wildcards: 'open',
  version: '1',
  requests_per_second: '-1',
  slices: '1',
  track_total_hits: 'true',
  wait_for_active_shards: '1',
  wait_for_events: 'normal',
  wait_for_nodes: '1',
  wait_for_status: 'red',
  timeout: '1s',
  default_operator: 'and',
  source: '{}',
  source_content_type: 'application/json',
  format: 'json',
  priority: 'normal',
  cache_size: '1mb',
};

/** The end of the description of a parameter that takes several values. */
const LIST_RULE = 'Separate several with commas: if the parameter is repeated, only the last one counts.';

/** Parameters of every endpoint, which other tests try. */
const COMMON = new Set(['pretty', 'human', 'error_trace', 'filter_path']);

function resolved(parameter: Parameter): Parameter {
  const name = parameter.$ref?.split('/').at(-1);
  return name === undefined ? parameter : (document.components.parameters[name] ?? parameter);
}

function sample(name: string, schema: Schema | undefined): string {
  const value = SAMPLES[name] ?? schema?.enum?.[0];
  if (value !== undefined) return value;
  if (schema?.type === 'boolean') return 'true';
  if (schema?.type === 'integer' || schema?.type === 'number') return '1';
  return schema?.pattern === undefined ? 'title' : '1s';
}

describe('the OpenAPI document', () => {
  it('is valid', async () => {
    const result = await new Validator().validate(document);
    expect(result.errors ?? []).toEqual([]);
    expect(result.valid).toBe(true);
  });

  it('names each operation once, and every parameter by its type', () => {
    const operations = Object.values(document.paths).flatMap((item) =>
      Object.values(item).filter((value) => 'operationId' in value),
    );
    expect(operations).toHaveLength(ENDPOINTS.length);
    expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(ENDPOINTS.length);
    const untyped = ENDPOINTS.flatMap(({ params }) => params).filter((name) => parameter(name) === undefined);
    expect([...new Set(untyped)]).toEqual([]);
  });

  it('says what every operation and parameter does', () => {
    for (const item of Object.values(document.paths)) {
      for (const [method, { operationId, description, parameters }] of Object.entries(item)) {
        if (method === 'parameters') continue;
        expect(description, operationId).toMatch(/[.?]$/);
        for (const parameter of parameters) {
          const { name, description: about } = resolved(parameter);
          expect(about, `${operationId}: ${String(name)}`).toMatch(/\.$/);
        }
      }
    }
  });

  it('says of every list how it is written', async () => {
    const lists = Object.values(document.components.parameters).filter(
      ({ name = '', description = '' }) => parameter(name)?.type === 'list' && !description.startsWith('Taken'),
    );
    expect(lists.map(({ name }) => name)).toContain('filter_path');
    expect(lists.filter(({ description = '' }) => !description.endsWith(LIST_RULE)).map(({ name }) => name)).toEqual(
      [],
    );
    const keysOf = async (query: string) => Object.keys((await server.request('GET', `/?${query}`)).body as object);
    expect(await keysOf('filter_path=name,tagline')).toEqual(['name', 'tagline']);
    expect(await keysOf('filter_path=name&filter_path=tagline')).toEqual(['tagline']);
  });

  it('has a 201 only where a document is written', () => {
    const creating = Object.values(document.paths).flatMap((item) =>
      Object.values(item).flatMap(({ operationId, responses = {} }) => ('201' in responses ? [operationId] : [])),
    );
    expect(creating.map((id) => id.replace(/_(?:put|post)_by_.*$/, '')).toSorted()).toEqual([
      'create_doc',
      'create_doc',
      'index_doc',
      'index_doc',
      'index_doc',
      'update_doc',
    ]);
  });

  it('names no type of a field that the server refuses', async () => {
    const forms = document.components.schemas['Property'].anyOf as { properties: { type: Schema } }[];
    const types = forms.flatMap((form) => form.properties.type.enum ?? []);
    expect(types.length).toBeGreaterThan(20);
    for (const type of types) {
      const needs: Record<string, object> = {
        scaled_float: { scaling_factor: 10 },
        alias: { path: 'other' },
        token_count: { analyzer: 'standard' },
      };
      const properties = { other: { type: 'keyword' }, field: { type, ...needs[type] } };
      const { text } = await server.request('PUT', `/type-${type}`, { mappings: { properties } });
      expect(text, type).toContain('"acknowledged":true');
      await server.request('DELETE', `/type-${type}`);
    }
  });

  it('is no wider than what it describes', () => {
    const search = (request: object) =>
      undocumented({ method: 'POST', path: '/books/_search', request, status: 200, answer: undefined });
    expect(search({ query: { match: { title: { query: 'x', fuzziness: 'AUTO' } } } })).toBeUndefined();
    expect(search({ query: { match: { title: { query: 'x', fuzzines: 'AUTO' } } } })).toContain('[fuzzines]');
    expect(search({ query: { matches: {} } })).toContain('[matches]');
    expect(search({ aggs: { a: { terms: { field: 'tag' }, aggs: { b: { sums: {} } } } } })).toContain('[sums]');
    const answered = (answer: object) =>
      undocumented({ method: 'GET', path: '/books/_count', request: undefined, status: 200, answer });
    const _shards = { total: 1, successful: 1, failed: 0 };
    expect(answered({ count: 1, _shards })).toBeUndefined();
    expect(answered({ count: '1', _shards })).toContain('$.count is string');
    expect(answered({ count: 1, _shards, more: 1 })).toContain('[more]');
    expect(answered({ count: 1 })).toContain('$._shards is missing');
  });

  it('has an example for every operation with a body', () => {
    const taking = ENDPOINTS.filter(({ body }) => body).map(operationOf);
    expect([...new Set(taking)].filter((operation) => BODIES[operation] === undefined)).toEqual([]);
  });

  // What deletes or closes comes last, and what it took away is made again.
  for (const endpoint of ENDPOINTS) {
    const { method, path } = endpoint;
    it(`answers ${method} ${path} as it says`, async () => {
      await populate(server);
      const operation = document.paths[path]?.[method.toLowerCase()];
      expect(operation, 'documented').toBeDefined();
      const { parameters = [], requestBody, responses = {}, security } = operation ?? {};
      const body = requestBody === undefined ? undefined : BODIES[operationOf(endpoint)];
      const answer = await server.request(method, pathOf(endpoint), body);
      expect(Object.keys(responses), answer.text).toContain(String(answer.status));
      const refused = REFUSED.get(`${method} ${path}`);
      if (refused === undefined) expect(answer.status, answer.text).toBeLessThan(300);
      else expect(answer.status, answer.text).toBe(refused);
      if (security === undefined) {
        expect((await server.request(method, pathOf(endpoint), body, { apiKey: null })).status).toBe(401);
      }
      for (const parameter of parameters) {
        const { name, schema } = resolved(parameter);
        if (name === undefined || COMMON.has(name)) continue;
        const query = `${name}=${encodeURIComponent(sample(name, schema))}`;
        const { status, text } = await server.request(method, `${pathOf(endpoint)}?${query}`, body);
        expect(text, query).not.toContain('unrecognized parameter');
        expect(Object.keys(responses), `${query}: ${text}`).toContain(String(status));
        expect(status, `${query}: ${text}`).toBeLessThan(500);
      }
    });
  }
});
