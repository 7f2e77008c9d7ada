import type { Context } from './context.js';
import { inLine } from './terminal.js';

/** A field before a colon, as Lucene's syntax names one: not within quotes, where colons are letters. */
const FIELD = /(?<![\w.\\])([A-Za-z_][\w.-]*):/g;

/** The fields that a filter in Lucene's syntax names; patterns and what is no field are left out. */
export function fieldsOfFilter(filter: string): string[] {
  const named = [...filter.replaceAll(/"(?:\\.|[^"\\])*"?/gs, '""').matchAll(FIELD)].map(([, name = '']) => name);
  return [...new Set(named)].filter((name) => name !== '_exists_');
}

/** Says of fields that no index has that nothing is found by them: Elasticsearch finds nothing, and says nothing. */
export async function noteUnknownFields(context: Context, index: string, names: readonly string[]): Promise<void> {
  if (names.length === 0) return;
  let known: Readonly<Record<string, unknown>>;
  try {
    const path = `/${encodeURIComponent(index)}/_field_caps`;
    const query = { fields: names.join(',') };
    known = (await context.remote.request<{ fields: typeof known }>('GET', path, { query })).fields;
  } catch {
    // The key may not see them, or there is no such index: the search tells that.
    return;
  }
  for (const name of names.filter((one) => !Object.hasOwn(known, one)))
    context.note(`[${inLine(index)}] has no field [${inLine(name)}], so nothing is found by it`);
}
