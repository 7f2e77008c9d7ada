// The document at /_openapi.json: it is valid, it is the route table, and every operation in it does what it says.
import { Validator } from '@seriousme/openapi-schema-validator';
import { ENDPOINTS, parameter } from '@sparrow-search/server';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { BODIES, operationOf, pathOf, populate } from '../support/examples.js';
import { REFUSED_EXAMPLES } from '../support/refused-examples.js';
import { type RunningServer, startServer } from '../support/server.js';

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly security?: readonly unknown[];
  readonly parameters: readonly { readonly name?: string; readonly $ref?: string; readonly schema?: Schema }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, unknown>> };
  readonly responses: Readonly<Record<string, unknown>>;
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
let document: { paths: Record<string, Record<string, Operation>>; components: { responses: object } };

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
  document = (await server.request('GET', '/_openapi.json', undefined, { apiKey: null })).body;
});

afterAll(async () => {
  await server.stop();
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
      for (const { name, schema } of parameters) {
        if (name === undefined) continue;
        const query = `${name}=${encodeURIComponent(sample(name, schema))}`;
        const { status, text } = await server.request(method, `${pathOf(endpoint)}?${query}`, body);
        expect(text, query).not.toContain('unrecognized parameter');
        expect(Object.keys(responses), `${query}: ${text}`).toContain(String(status));
        expect(status, `${query}: ${text}`).toBeLessThan(500);
      }
    });
  }
});
