import { illegal, unparsable } from './errors.js';
import { type Json, isObject, textOf } from './json.js';

/** Most documents that a request may pin; the native engine has the same. */
const MOST = 100;

/** The highest score that other hits may have, 2¹²⁷, as bits of a 32-bit float: the native engine gives pinned ones the next larger numbers. */
const HIGHEST = 0x7f00_0000;

/**
 * Clauses that find the documents which a `pinned` clause or retriever names in `ids` or `docs`, with scores above all others, in their
 * order.
 *
 * @throws {EngineError} 400 where it names none, or too many, or names them in both ways
 */
export function pinnedDocuments({ ids, docs }: Json): readonly string[] {
  if (ids !== undefined && docs !== undefined)
    throw illegal('The following fields are not allowed together: [ids, docs] ');
  const [which, given] = ids === undefined ? ['docs', docs] : ['ids', ids];
  if (given === undefined) throw illegal('Required one of fields [ids, docs], but none were specified. ');
  if (!Array.isArray(given)) throw unparsable(`[pinned] failed to parse field [${which}]: it has to be an array`);
  if (given.length > MOST)
    throw illegal(`[pinned] Max of ${String(MOST)} ${which} exceeded: ${String(given.length)} provided.`);
  const score = new DataView(new ArrayBuffer(4));
  return given.map((one: unknown, at) => {
    const { _index: index, _id: id } = isObject(one) && which === 'docs' ? one : { _id: one, _index: undefined };
    const value = textOf(id);
    if (value === undefined) throw unparsable('[specified_document] Required [_id]');
    const filter = [
      { ids: { values: [value] } },
      ...(textOf(index) === undefined ? [] : [{ term: { _index: index } }]),
    ];
    score.setUint32(0, HIGHEST + given.length - at);
    return JSON.stringify({ constant_score: { filter: { bool: { filter } }, boost: score.getFloat32(0) } });
  });
}

/** A query with the highest score that one of several gives to a document. */
export function bestOf(queries: readonly string[]): string {
  return `{"dis_max":{"queries":[${queries.join(',')}]}}`;
}
