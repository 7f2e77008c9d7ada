import type { Cancel, Ranked, SearchEngine } from '@sparrow-search/engine';

import { type HitDocument, readDocuments } from './documents-of-hits.js';
import { illegal } from './errors.js';
import { type Json, isObject } from './json.js';
import type { Asking } from './multiple.js';
import { PAYLOAD, slotsOf } from './passage-mappings.js';
import { type SemanticFields, askNative } from './semantic-fields.js';
import { hasSemantic } from './semantic-queries.js';
import type { VectorFields } from './vector-fields.js';

interface Context {
  readonly native: SearchEngine;
  readonly semantic: SemanticFields;
  readonly vectors: VectorFields;
}

/** Characters of the vectors of a window, which are together in memory. */
const MOST_VECTORS = 256 * 1024 * 1024;

/**
 * What says which hits of a list differ from each other: the native engine chooses them, by the vectors that the cluster has.
 *
 * @returns a function that takes a retriever, whose own list is not looked at, and gives the places of hits that are kept; it throws a
 * 400 for hits with more vectors than may be in memory
 */
export function different(
  { native, semantic, vectors }: Context,
  asking: Asking,
  cancel?: Cancel,
  most = MOST_VECTORS,
): (retriever: Json, hits: readonly Ranked[]) => Promise<readonly number[]> {
  return async (retriever, hits) => {
    const [{ field: path }] = Object.values(retriever) as [{ readonly field: string }];
    const known = await semantic.of(asking.expression);
    const isOfPassages = known !== undefined && hasSemantic(known, path);
    const isDense = (await vectors.of(asking.expression)).some((fields) => fields.has(path));
    const shown = isOfPassages ? { stored_fields: [PAYLOAD] } : { _source: [path] };
    const found = new Map<string, string>();
    let characters = 0;
    const keep = (key: string, of: object): void => {
      const candidate = JSON.stringify(of);
      characters += candidate.length;
      if (characters > most) throw illegal(tooMany(path, most));
      found.set(key, candidate);
    };
    const vectorsOf = ({ index: name, source, fields }: HitDocument): object => {
      if (!isOfPassages) return { vectors: vectorsAt(source, path.split('.')) };
      const index = known.indices.find((it) => it.index === name);
      const [{ name: slot }] = slotsOf(path, {}, index?.state);
      return { payload: fields?.[PAYLOAD]?.[0] ?? null, slot };
    };
    if (isOfPassages || isDense) {
      await readDocuments(asking, shown, hits, (documents) => {
        for (const document of documents) keep(document.key, vectorsOf(document));
      });
    }
    const candidates = hits.map(({ key }) => found.get(key) ?? '{"vectors":[]}').join(',');
    const about = JSON.stringify({ retriever, indices: known?.indices ?? [] }).slice(0, -1);
    const asked = `${about},"hits":[${candidates}]}`;
    return (JSON.parse(await askNative(native, 'choose_different', asked, cancel)) as { kept: readonly number[] }).kept;
  };
}

function tooMany(field: string, most: number): string {
  return `[diversify] would compare more than [${String(most)}] characters of vectors of field [${field}]; give a smaller [rank_window_size]`;
}

/** The vector at a path, whose names may hold dots; none where there is no list of numbers. */
function vectorsAt(value: unknown, path: readonly string[]): readonly (readonly number[])[] {
  if (path.length === 0) return Array.isArray(value) && value.every((it) => typeof it === 'number') ? [value] : [];
  if (!isObject(value)) return [];
  for (const at of path.keys()) {
    const found = vectorsAt(value[path.slice(0, at + 1).join('.')], path.slice(at + 1));
    if (found.length > 0) return found;
  }
  return [];
}
