import type { Cancel, SearchEngine } from '@sparrow-search/engine';

import { encode } from './encoding.js';
import type { FieldModels } from './field-models.js';
import { targetOf } from './multiple.js';
import type { Asker, Names } from './names.js';
import { type NeighbourContext, findNeighbours } from './neighbours.js';
import { SearchBody } from './search-body.js';

/** What reading the body of a search needs of its surroundings. */
export interface ReadingContext extends NeighbourContext {
  readonly native: SearchEngine;
  readonly names: Names;
  readonly models: FieldModels;
}

/** The action by which a clause reads a document of an index that it names. */
const READS_DOCUMENT = 'indices:data/read/get';

/**
 * Reads the body of a search or a query: whoever sends it has to have a right to each index that its clauses name, and its texts are
 * made tokens or vectors. Neighbours of vectors are looked for.
 *
 * @param expression the indices that are searched
 * @throws {EngineError} 400 for what is malformed or cannot be carried out over a cluster, 403 for indices that the caller may not read
 */
export async function readSearch(
  context: ReadingContext,
  asker: Asker,
  expression: string,
  text: string,
  cancel?: Cancel,
): Promise<SearchBody> {
  const { native, product, names, models } = context;
  const size = asker.query['size'] === undefined ? undefined : Number(asker.query['size']);
  const read = new SearchBody(text, { product, restricted: asker.rights !== undefined, size });
  await names.check(asker, [...read.foreign], READS_DOCUMENT);
  await models.check(expression, read.uses);
  read.resolve(await encode(native, read.texts, cancel));
  await findNeighbours(context, expression, targetOf(asker.query), read);
  read.finish();
  return read;
}
