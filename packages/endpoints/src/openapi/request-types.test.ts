// The types of requests of the library are those of the OpenAPI document: what one knows, the other does.
import { readFileSync, writeFileSync } from 'node:fs';

import { expect, it } from 'vitest';
import openapiTS, { astToString } from 'openapi-typescript';
import type { Properties, SearchRequest } from '@sparrow-search/engine';

import { openapi } from './document.js';

const FILE = new URL('../../../engine/src/library/requests.generated.ts', import.meta.url);

interface Document {
  readonly openapi: string;
  readonly info: object;
  readonly components: { readonly schemas: Readonly<Record<string, object>> };
}

/** The schemas that are needed to write these down, by their names. */
function closure(schemas: Readonly<Record<string, object>>, names: readonly string[]): string[] {
  const found = new Set<string>();
  const take = (name: string): void => {
    if (found.has(name)) return;
    found.add(name);
    visit(schemas[name]);
  };
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    if ('$ref' in value && typeof value.$ref === 'string') take(value.$ref.split('/').at(-1) ?? '');
    Object.values(value).forEach(visit);
  };
  names.forEach(take);
  return [...found].sort();
}

it('a slip of the hand in a request does not compile', () => {
  const requests: SearchRequest[] = [
    { query: { match: { title: 'whales' } }, size: 3, highlight: { fields: { title: {} } } },
    { retriever: { linear: { query: 'whales', normalizer: 'zscore' } } },
    // @ts-expect-error -- the member is `query`
    { qurey: { match_all: {} } },
    // @ts-expect-error -- there is no such query
    { query: { mach: { title: 'whales' } } },
    // @ts-expect-error -- there is no such normalizer
    { retriever: { linear: { query: 'whales', normalizer: 'zcore' } } },
  ];
  const properties: Properties[] = [
    { text: { type: 'semantic_text' } },
    // @ts-expect-error -- there is no such type
    { text: { type: 'semantictext' } },
  ];
  expect([requests.length, properties.length]).toEqual([5, 2]);
});

it('types of requests are those of the OpenAPI document', async () => {
  const { openapi: version, info, components } = JSON.parse(openapi()) as Document;
  const names = closure(components.schemas, ['SearchRequest', 'CreateIndexRequest']);
  const schemas = Object.fromEntries(names.map((name) => [name, components.schemas[name]]));
  const document = { openapi: version, info, paths: {}, components: { schemas } };
  const nodes = await openapiTS(JSON.stringify(document), { immutable: true, defaultNonNullable: false });
  const text = astToString(
    nodes.filter((node) => 'name' in node && (node.name as { text?: string }).text === 'components'),
  );
  // Each schema is a type in a line, under its own name: that is what the compiler shows where a request is wrong.
  const types = text
    .replaceAll(/\n {12,}|\n {8}(?=\})/g, ' ')
    .replaceAll('@description ', '')
    .replaceAll(/components\["schemas"\]\["(\w+)"\]/g, '$1')
    .replaceAll(/^ {8}readonly (\w+): /gm, 'export type $1 = ')
    .split('\n')
    .filter((line) => /^(?:export type| {8}\/\*\*)/.test(line))
    .map((line) => line.trim());
  const wanted = [
    '// Written by UPDATE_LIBRARY_TYPES=1 npx vitest run packages/endpoints/src/openapi/request-types.test.ts',
    ...types,
    '',
  ].join('\n');
  if (process.env['UPDATE_LIBRARY_TYPES'] === '1') writeFileSync(FILE, wanted);
  expect(readFileSync(FILE, 'utf8')).toBe(wanted);
});
