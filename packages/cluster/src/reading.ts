import type { Cancel, SearchEngine } from '@sparrow-search/engine';

import { encode } from './encoding.js';
import type { FieldModels } from './field-models.js';
import type { Asker, Names } from './names.js';
import type { Product } from './product.js';
import { SearchBody } from './search-body.js';

/** What reading the body of a search needs of its surroundings. */
export interface ReadingContext {
  readonly native: SearchEngine;
  readonly product: Product;
  readonly names: Names;
  readonly models: FieldModels;
}

/** The action by which a clause reads a document of an index that it names. */
const READS_DOCUMENT = 'indices:data/read/get';

/**
 * Reads the body of a search or a query: whoever sends it has to have a right to each index that its clauses name, and its texts are
 * made tokens.
 *
 * @param expression the indices that are searched
 * @throws {EngineError} 400 for what is malformed or cannot be carried out over a cluster, 403 for indices that the caller may not read
 */
export async function readSearch(
  { native, product, names, models }: ReadingContext,
  asker: Asker,
  expression: string,
  text: string,
  cancel?: Cancel,
): Promise<SearchBody> {
  const read = new SearchBody(text, { product, restricted: asker.rights !== undefined });
  await names.check(asker, [...read.foreign], READS_DOCUMENT);
  await models.check(expression, read.uses);
  read.resolve(read.texts.length > 0 ? await encode(native, read.texts, cancel) : () => ({}));
  return read;
}
