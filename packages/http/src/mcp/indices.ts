import { rootReason } from '@sparrow-search/endpoints';
import { SparrowError } from '@sparrow-search/engine';
import { near } from '@sparrow-search/engine/diagnostics';

import { type AskOptions, type RestInterface, ToolError } from './rest-interface.js';
import { slice } from './values.js';

/** An index that the key may search. */
export interface Listed {
  readonly name: string;
  /** Documents that can be found in it; absent where the key may not count them. */
  readonly documents?: number;
  /** Other names of it. */
  readonly aliases: readonly string[];
}

/** Indices that are named at most: a model reads all of them. */
export const MOST_INDICES = 200;

/** Names that are told to who asked for an index that is not there. */
const MOST_NAMED = 10;

const LONGEST_REASON = 500;

interface Resolved {
  readonly indices: readonly { readonly name: string; readonly aliases?: readonly string[] }[];
}

interface Counted {
  readonly aggregations?: { readonly by_index: { readonly buckets: readonly { key: string; doc_count: number }[] } };
}

/** The indices that a key may see, by name. */
export async function listIndices(rest: RestInterface, options: AskOptions = {}): Promise<Listed[]> {
  const { signal } = options;
  let resolved: Resolved;
  try {
    resolved = await rest.request<Resolved>('GET', '/_resolve/index/*', { signal });
  } catch (error) {
    // A key for other things than searching, such as one that only writes, is shown none.
    if (error instanceof SparrowError && error.status === 403) return [];
    throw error;
  }
  const counts = await countsByIndex(rest, signal);
  return resolved.indices
    .filter(({ name }) => !name.startsWith('.'))
    .map(({ name, aliases = [] }) => ({
      name,
      // What has no bucket has no documents.
      ...(counts === undefined ? {} : { documents: counts.get(name) ?? 0 }),
      aliases: [...aliases],
    }));
}

async function countsByIndex(
  rest: RestInterface,
  signal: AbortSignal | undefined,
): Promise<ReadonlyMap<string, number> | undefined> {
  const body = { size: 0, aggs: { by_index: { terms: { field: '_index', size: 10_000 } } } };
  try {
    const { aggregations } = await rest.request<Counted>('POST', '/_search', { body, signal });
    return new Map((aggregations?.by_index.buckets ?? []).map((bucket) => [bucket.key, bucket.doc_count]));
  } catch (error) {
    if (error instanceof SparrowError && error.status === 403) return undefined;
    throw error;
  }
}

/** A refusal of the server as a model can use it: what is wrong, what is there, and what to do next. */
export async function explained(rest: RestInterface, error: unknown, index?: string): Promise<unknown> {
  if (!(error instanceof SparrowError)) return error;
  const { status, type } = error;
  const message = shortly(rootReason(error));
  if (type === 'index_not_found_exception') return new ToolError(`${message}. ${await namesThere(rest, index)}`);
  if (status === 403) {
    return new ToolError(`The API key may not do this: ${message}. ${await namesThere(rest, index)}`);
  }
  if (status === 401) return new ToolError(`The server does not take the API key: ${message}`);
  if (status === 429)
    return new ToolError(`The server has too much to do: ${message}. Wait some seconds and ask again.`);
  if (status === 503) return new ToolError(`The server is starting or stopping: ${message}. Ask again in a moment.`);
  return new ToolError(message);
}

/** As much of a reason as a model can use: some repeat what they are about. */
export function shortly(reason: string): string {
  return reason.length > LONGEST_REASON ? `${slice(reason, 0, LONGEST_REASON)}…` : reason;
}

/** A sentence with the indices that may have been meant, or else those that there are. */
async function namesThere(rest: RestInterface, index = ''): Promise<string> {
  let names: string[];
  try {
    const listed = await listIndices(rest);
    names = listed.flatMap(({ name, aliases }) => [name, ...aliases]);
  } catch {
    // The list only helps to explain an error, so its own failure must not replace that error.
    return 'Use list_indices to see which indices there are.';
  }
  if (names.length === 0) return 'This key can search no index.';
  const [meant] = near(
    index,
    names.filter((name) => name !== index),
  );
  if (meant !== undefined) return `Did you mean [${meant}]?`;
  const more = names.length > MOST_NAMED ? ' and others, which list_indices shows' : '';
  return `This key can search ${names.slice(0, MOST_NAMED).join(', ')}${more}.`;
}
