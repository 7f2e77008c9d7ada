import type { Cancel, SearchEngine } from '@sparrow-search/engine';

import { encode } from './encoding.js';
import type { FieldModels } from './field-models.js';
import { targetOf } from './multiple.js';
import type { Asker, Names } from './names.js';
import { type NeighbourContext, findNeighbours } from './neighbours.js';
import { stoppable } from './replies.js';
import { SearchBody } from './search-body.js';
import type { SemanticFields } from './semantic-fields.js';
import { bindSemantic } from './semantic-queries.js';

/** What reading the body of a search needs of its surroundings. */
export interface ReadingContext extends NeighbourContext {
  readonly native: SearchEngine;
  readonly names: Names;
  readonly models: FieldModels;
  readonly semantic: SemanticFields;
}

/** Parameters of a search by which an answer is more than a page of hits, or its number of hits has another form. */
const NOT_PAGES = [
  'scroll',
  'from',
  'sort',
  'q',
  'explain',
  'rest_total_hits_as_int',
  'terminate_after',
  'search_type',
];

/** The action by which a clause reads a document of an index that it names. */
const READS_DOCUMENT = 'indices:data/read/get';

/**
 * Reads the body of a search or a query: its sender has to have a right to each index that its clauses name, and its texts are
 * made tokens or vectors. Neighbours of vectors are looked for.
 *
 * @param expression the indices that are searched
 * @param isPage whether the code that sends the search on makes {@link SearchBody.mostHits} true in the answer
 * @throws {EngineError} 400 for what is malformed or cannot be carried out over a cluster, 403 for indices that the caller may not read
 */
export async function readSearch(
  context: ReadingContext,
  asker: Asker,
  expression: string,
  text: string,
  cancel?: Cancel,
  isPage = false,
): Promise<SearchBody> {
  const { native, product, names, models } = context;
  const size = asker.query['size'] === undefined ? undefined : Number(asker.query['size']);
  const pages = isPage && !NOT_PAGES.some((name) => name in asker.query);
  const semantic = await context.semantic.of(expression);
  const read = new SearchBody(text, { product, restricted: asker.rights !== undefined, size, pages, semantic });
  await names.check(asker, [...read.foreign], READS_DOCUMENT);
  await models.check(expression, read.uses);
  const begun = performance.now();
  const clauses = await bindSemantic(context.semantic, semantic, read.semantic, cancel);
  read.bind(clauses.bound);
  const texts = await encode(native, read.texts, cancel);
  read.resolve(texts.encoded);
  read.warn([...clauses.warnings, ...texts.warnings]);
  if (read.texts.length > 0 || read.semantic.length > 0) read.inferred = performance.now() - begun;
  await stoppable(cancel, (signal) => findNeighbours(context, expression, targetOf(asker.query), read, signal));
  return read;
}
