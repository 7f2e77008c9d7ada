import type { Properties, Property } from '@sparrow-search/endpoints';
import { SparrowError } from '@sparrow-search/engine';

import type { Context } from './context.js';
import { CommandError } from './errors.js';
import { commandName } from './shell.js';
import { inLine, number } from './terminal.js';

/** A kind of vectors. */
export type Vector = 'sparse' | 'dense';

/** Indices that are named to who asked for one that is not there. */
const MOST_NAMED = 10;

/** The mappings of the indices; undefined where the key may not see them. */
export async function mappingsOf(
  { remote }: Context,
  index: string,
): Promise<Readonly<Record<string, { mappings: { properties?: Properties } }>> | undefined> {
  try {
    return await remote.request('GET', `/${encodeURIComponent(index)}/_mapping`);
  } catch (error) {
    if (error instanceof SparrowError && error.status === 403) return undefined;
    throw error;
  }
}

/** The vectors that a `semantic_text` holds, as its first document or else its endpoint says. */
export function kindsOf({ inference_id: id = '', model_settings: settings }: Property): readonly Vector[] {
  const task = settings?.task_type ?? (id === '.hybrid' ? 'hybrid_embedding' : '');
  if (task === 'hybrid_embedding') return ['sparse', 'dense'];
  return [task === 'text_embedding' || id === '.all-minilm-l6-v2-elasticsearch' ? 'dense' : 'sparse'];
}

/** An error that also names the indices that are there, if it says that one is not. `remedy` says what to do about it. */
export async function namingIndices({ remote }: Context, error: unknown, remedy?: string): Promise<unknown> {
  if (!(error instanceof SparrowError) || error.type !== 'index_not_found_exception') return error;
  const said = [inLine(error.message)];
  try {
    const query = { format: 'json', h: 'index', s: 'index' };
    const rows = await remote.request<{ index: string }[]>('GET', '/_cat/indices', { query });
    said.push(indicesNamed(rows.map(({ index }) => inLine(index))));
  } catch {
    // The key may not see them.
    if (remedy === undefined) return error;
  }
  if (remedy !== undefined) said.push(remedy);
  return new CommandError(said.join('; '), { cause: error });
}

function indicesNamed(there: readonly string[]): string {
  if (there.length <= 1) return there.length === 0 ? 'there are no indices' : `there is only [${there.join('')}]`;
  const named = there.slice(0, MOST_NAMED).join(', ');
  const more = there.length - MOST_NAMED;
  return more <= 0
    ? `the indices are ${named}`
    : `there are ${named} and ${number(more)} more, which \`${commandName()} status\` shows`;
}
