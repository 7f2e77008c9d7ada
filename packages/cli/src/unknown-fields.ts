import { comparesLetters, textsCompared, unknownAmong, withParents } from '@sparrow-search/engine/diagnostics';

import type { Context } from './context.js';
import { inLine } from './terminal.js';

/**
 * Says of fields that no index has that nothing is found by them, and of texts that a filter compares with numbers that it compares letters:
 * Elasticsearch says nothing.
 */
export async function noteFields(
  context: Context,
  index: string,
  names: readonly string[],
  filters: readonly string[] = [],
): Promise<void> {
  if (names.length === 0) return;
  let known: object;
  try {
    const path = `/${encodeURIComponent(index)}/_field_caps`;
    const query = { fields: withParents(names).join(',') };
    known = (await context.remote.request<{ fields: typeof known }>('GET', path, { query })).fields;
  } catch {
    // The key may not see them, or there is no such index: the search tells that.
    return;
  }
  for (const name of unknownAmong(names, known))
    context.note(`[${inLine(index)}] has no field [${inLine(name)}], so nothing is found by it`);
  for (const compared of filters.flatMap((filter) => textsCompared(filter, known)))
    context.note(inLine(comparesLetters(compared)));
}
