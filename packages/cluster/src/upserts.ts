import { unparsable } from './errors.js';
import { type Edit, edited, members, parse, isObject, rawOf, valueOf, whole } from './json.js';

/** The document that an update adds if the index has none of that id. */
export interface Upsert {
  /** As it is written. */
  readonly source: string;
  /** The body of the update with another document in its place. */
  with(source: string): string;
}

/**
 * The document that the body of an update may add: that of `upsert`, or of `doc` with `doc_as_upsert`. A pipeline runs on it before anybody
 * knows whether there is a document, as in the native engine.
 *
 * @returns undefined where it adds none
 */
export function upsertOf(body: string): Upsert | undefined {
  // Few updates add a document, and most bodies need not be read to know it: a name with escapes is still that name.
  if (!/upsert|\\u/.test(body)) {
    // In UTF-16, which a cluster takes as well, no name would be found.
    if (body.includes('\0')) throw unparsable('a body with zero bytes is not JSON in UTF-8');
    return undefined;
  }
  const given = parse(body);
  if (!isObject(given)) return undefined;
  const parts = new Map(members(body, whole(body).start).map((member) => [member.name, member]));
  const [doc, flag, upsert] = ['doc', 'doc_as_upsert', 'upsert'].map((name) => parts.get(name));
  if (flag !== undefined && valueOf(body, flag) === true && doc !== undefined) {
    if (!isObject(given['doc'])) return undefined;
    return {
      source: rawOf(body, doc),
      // The cluster would run a pipeline of its own on `doc`, and none on `upsert` in a request that says so.
      with: (source) => {
        const edits: Edit[] = [
          { start: doc.start, end: doc.end, text: source },
          { start: flag.nameAt.start, end: flag.end, text: `"upsert":${source}` },
          ...(upsert === undefined
            ? []
            : [{ start: upsert.nameAt.start, end: upsert.end, text: '"doc_as_upsert":false' }]),
        ];
        return edited(
          body,
          edits.sort((a, b) => a.start - b.start),
        );
      },
    };
  }
  if (upsert === undefined || !isObject(given['upsert'])) return undefined;
  return {
    source: rawOf(body, upsert),
    with: (source) => edited(body, [{ start: upsert.start, end: upsert.end, text: source }]),
  };
}
