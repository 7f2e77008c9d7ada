import type { Cancel, Ranked, SearchEngine } from '@sparrow-search/engine';

import { type Json, isObject, parseAnswer } from './json.js';
import { type Asking, multiple } from './multiple.js';
import { PAYLOAD, slotsOf } from './passage-mappings.js';
import { keyOf, theseOf } from './ranked-hits.js';
import { type SemanticFields, askNative } from './semantic-fields.js';
import { hasSemantic } from './semantic-queries.js';
import type { VectorFields } from './vector-fields.js';

interface Context {
  readonly native: SearchEngine;
  readonly semantic: SemanticFields;
  readonly vectors: VectorFields;
}

interface Found {
  readonly _index: string;
  readonly _id: string;
  readonly _source?: unknown;
  readonly fields?: Readonly<Record<string, readonly unknown[]>>;
}

/**
 * What says which hits of a list differ from each other: the native engine chooses them, by the vectors that the cluster has.
 *
 * @returns a function that takes a retriever, whose own list is not looked at, and gives the places of hits that are kept
 */
export function different(
  { native, semantic, vectors }: Context,
  asking: Asking,
  cancel?: Cancel,
): (retriever: Json, hits: readonly Ranked[]) => Promise<readonly number[]> {
  return async (retriever, hits) => {
    const [{ field: path }] = Object.values(retriever) as [{ readonly field: string }];
    const known = await semantic.of(asking.expression);
    const isOfPassages = known !== undefined && hasSemantic(known, path);
    const isDense = (await vectors.of(asking.expression)).some((fields) => fields.has(path));
    const shown = isOfPassages ? { stored_fields: [PAYLOAD] } : { _source: [path] };
    const found = isOfPassages || isDense ? await documents(asking, shown, hits) : new Map<string, Found>();
    const candidates = hits.map(({ key }) => {
      const { _index: name, _source: source, fields } = found.get(key) ?? {};
      if (!isOfPassages) return { vectors: vectorsAt(source, path.split('.')) };
      const index = known.indices.find((it) => it.index === name);
      const [{ name: slot }] = slotsOf(path, {}, index?.state);
      return { payload: fields?.[PAYLOAD]?.[0] ?? null, slot };
    });
    const asked = { retriever, indices: known?.indices ?? [], hits: candidates };
    return (JSON.parse(await askNative(native, 'choose_different', asked, cancel)) as { kept: readonly number[] }).kept;
  };
}

async function documents(asking: Asking, shown: object, hits: readonly Ranked[]): Promise<ReadonlyMap<string, Found>> {
  if (hits.length === 0) return new Map();
  const { filter, most } = theseOf(hits);
  const search = { query: { bool: { filter } }, size: most, track_total_hits: false, ...shown };
  const [answer = ''] = await multiple(asking, [JSON.stringify(search)]);
  const { hits: found } = parseAnswer(answer) as { hits: { hits: readonly Found[] } };
  return new Map(found.hits.map((hit) => [keyOf(hit._index, hit._id), hit]));
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
