import type { SearchEngine } from '@sparrow-search/engine';

import { type Json, isObject, without } from '../json.js';
import { ask } from './asking.js';

/** How far the move of an index is. */
export interface Mark {
  /** The uuid of the index that it comes from. */
  readonly from: string;
  /** Documents that are written. */
  readonly documents: number;
  /** The last sequence number that is written, by the number of the shard. */
  readonly after: Readonly<Record<string, number>>;
  /** Whether everything is written. */
  readonly done: boolean;
}

/** Where the mapping of an index keeps its mark while the move goes on. */
const META = 'sparrow_migration';

/** The mark of an index; undefined for one that no migration made. */
export async function readMark(engine: SearchEngine, index: string): Promise<Mark | undefined> {
  const found = (await meta(engine, index))[META];
  return isObject(found) ? (found as unknown as Mark) : undefined;
}

/** Sets down how far the move of an index is. */
export async function writeMark(engine: SearchEngine, index: string, mark: Mark): Promise<void> {
  await put(engine, index, { ...(await meta(engine, index)), [META]: mark });
}

/** Takes the mark away when everything is moved. */
export async function removeMark(engine: SearchEngine, index: string): Promise<void> {
  await put(engine, index, without(await meta(engine, index), META));
}

async function meta(engine: SearchEngine, index: string): Promise<Json> {
  const found = await ask<Record<string, { mappings?: Json }>>(engine, 'get_mapping', { path: { index } });
  const mappings = found[index]?.mappings ?? {};
  return isObject(mappings['_meta']) ? mappings['_meta'] : {};
}

async function put(engine: SearchEngine, index: string, value: Json): Promise<void> {
  await ask(engine, 'put_mapping', { path: { index }, body: { _meta: value } });
}
