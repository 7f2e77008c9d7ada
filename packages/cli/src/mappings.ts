import type { Properties } from '@sparrow-search/endpoints';
import { SparrowError } from '@sparrow-search/engine';

import type { Context } from './context.js';

/** The mapping of an index, as far as the commands look at it. */
export interface Mapping {
  readonly _meta?: Readonly<Record<string, unknown>>;
  readonly properties?: Properties;
}

/** The mapping of an index; nothing where the key may not see it. */
export async function mappingOf({ sparrow }: Context, index: string): Promise<Mapping> {
  try {
    const path = { index };
    const found = await sparrow.execute<Readonly<Record<string, { mappings: Mapping }>>>('get_mapping', { path });
    return Object.values(found)[0]?.mappings ?? {};
  } catch (error) {
    forbidden(error);
    return {};
  }
}

/** Adds to the mapping of an index. */
export async function putMapping({ sparrow }: Context, index: string, body: Mapping): Promise<void> {
  await sparrow.execute('put_mapping', { path: { index }, body });
}

/** Lets a key do without what it may not do. */
export function forbidden(error: unknown): void {
  if (error instanceof SparrowError && (error.status === 403 || error.status === 404)) return;
  throw error;
}
