import type { EngineReply, EngineRequest } from '@sparrow-search/engine';

import { type Json, asBuffer, isObject, parseAnswer, without } from './json.js';
import { COMPANION } from './passage-mappings.js';
import type { Product } from './product.js';
import type { SemanticFields } from './semantic-fields.js';

/** Filters of `_field_caps`, which OpenSearch does not have, each with what it leaves out: by name, and by type. */
const FILTERS: Readonly<Partial<Record<string, (name: string, types: Json) => boolean>>> = {
  '-metadata': (name) => name.startsWith('_'),
  '-parent': (_, types) => 'object' in types || 'nested' in types,
};

/** A request of `_field_caps` as the cluster gets it, and the filters that are left to {@link shownCapabilities}. */
export function askedCapabilities(
  { name: product }: Product,
  request: EngineRequest,
): { readonly request: EngineRequest; readonly filters: readonly string[] } {
  const filters = (request.query['filters'] ?? '').split(',').filter((it) => it !== '');
  // A filter that is not in the table is passed on, so that the cluster refuses it.
  if (product !== 'OpenSearch' || filters.length === 0 || !filters.every((it) => Object.hasOwn(FILTERS, it)))
    return { request, filters: [] };
  return { request: { ...request, query: without(request.query, 'filters') as EngineRequest['query'] }, filters };
}

/** An answer of `_field_caps` without the passages that are kept beside documents, and with their fields as the native engine shows them. */
export async function shownCapabilities(
  semantic: SemanticFields,
  expression: string,
  reply: EngineReply,
  filters: readonly string[],
): Promise<EngineReply> {
  const hasPassages = asBuffer(reply.body).includes(`"${COMPANION}`);
  if (reply.status !== 200 || (!hasPassages && filters.length === 0)) return reply;
  const known = await semantic.of(expression);
  const paths = new Set(known?.indices.flatMap(({ fields }) => Object.keys(fields)));
  const answer = parseAnswer(asBuffer(reply.body)) as { readonly fields: Readonly<Record<string, Json>> };
  const fields = Object.entries(answer.fields)
    .filter(([name]) => name !== COMPANION && !name.startsWith(`${COMPANION}.`))
    .filter(([name, types]) => !filters.some((filter) => FILTERS[filter]?.(name, types)))
    .map(([name, types]) => {
      const text = types['text'];
      // Words in it are not looked for, but it is.
      const shown = paths.has(name) && isObject(text) ? { ...types, text: { ...text, searchable: true } } : types;
      return [name, shown];
    });
  return { ...reply, body: Buffer.from(JSON.stringify({ ...answer, fields: Object.fromEntries(fields) as object })) };
}
