import { openapi } from '@sparrow-search/server';

/**
 * The names that an object with one kind of query, aggregation or retriever may have, as Rust declares them and the OpenAPI document has
 * them, in order. What an aggregation holds beside its kind is left out.
 */
export function kindsOf(schema: string): string[] {
  const { components } = JSON.parse(openapi()) as {
    components: { schemas: Record<string, { properties: Record<string, object> }> };
  };
  const names = Object.keys(components.schemas[schema]?.properties ?? {});
  return names.filter((name) => !['aggs', 'aggregations', 'meta'].includes(name)).sort();
}
