import type { Cancel } from '@sparrow-search/engine';

import { illegal, notOverCluster, unparsable } from './errors.js';
import { readDenseField } from './dense-fields.js';
import { type Json, type Span, isObject } from './json.js';
import { type Knn, nestedQuery } from './knn.js';
import { passagesOf, pathOfSlot, settledOf } from './passage-mappings.js';
import type { Product } from './product.js';
import { type Tokens, sparseQuery } from './sparse-queries.js';
import {
  type SemanticFields,
  type SemanticIndex,
  type SemanticIndices,
  executeNative,
  searchedSlots,
  textIn,
} from './semantic-fields.js';

/** One kind of vectors. */
export type Part = 'sparse' | 'dense';

/** A clause on a `semantic_text` field, as the native engine is asked what it comes to. */
export interface SemanticAsk {
  readonly field: string;
  /** The clause without its filters. */
  readonly query: Json;
  readonly part?: Part | undefined;
  /** Hits that the list around it wants. */
  readonly hits: number;
}

/** What a clause comes to. */
type Bound =
  | { readonly kind: 'sparse'; readonly field: string; readonly tokens: Tokens }
  | {
      readonly kind: 'dense';
      readonly field: string;
      readonly vector: readonly number[];
      readonly k: number;
      readonly candidates: number;
      readonly similarity: number | null;
    }
  | { readonly kind: 'any'; readonly parts: readonly { readonly boost: number; readonly clause: Bound }[] }
  | { readonly kind: 'none' }
  | { readonly kind: 'other' };

export interface BoundClause {
  readonly boost: number;
  readonly name: string | null;
  readonly clause: Bound;
}

/** The indices that have a field of a clause. */
export function hasSemantic(known: SemanticIndices | undefined, field: string): boolean {
  return known?.indices.some(({ fields }) => Object.hasOwn(fields, field)) === true;
}

/**
 * What clauses on `semantic_text` fields come to: their texts are encoded, and compared with the models that filled the fields.
 *
 * @throws {EngineError} 400 for a clause that means one thing in one index and another in the next
 */
export async function bindSemantic(
  semantic: SemanticFields,
  known: SemanticIndices | undefined,
  clauses: readonly SemanticAsk[],
  cancel?: Cancel,
): Promise<{ readonly bound: readonly BoundClause[]; readonly warnings: readonly string[] }> {
  if (clauses.length === 0 || known === undefined) return { bound: [], warnings: [] };
  const body = { indices: known.indices, clauses: clauses.map(({ query, part, hits }) => ({ query, part, hits })) };
  const reply = await executeNative(semantic.native, 'bind_semantic', body, cancel);
  const answer = JSON.parse(textIn(reply)) as {
    readonly clauses: readonly { boost: number; name: string | null; indices: readonly Bound[] }[];
  };
  const bound = clauses.map(({ field, part }, at): BoundClause => {
    const { boost = 1, name = null, indices = [] } = answer.clauses[at] ?? {};
    if (part === undefined && known.others.has(field)) {
      throw notOverCluster(`a query on field [${field}], which is semantic_text in some of the indices only,`);
    }
    const all = indices.flatMap((it, place) => {
      const index = known.indices[place];
      return index === undefined || !(field in index.fields) ? [] : [inSlots(it, index)];
    });
    // Where no document has a passage yet, nothing is found by the clause of the others either.
    const distinct = new Set(all.filter(({ kind }) => kind !== 'none').map((it) => JSON.stringify(it)));
    const [first, second] = [...distinct];
    if (second !== undefined) {
      throw notOverCluster(`a query on field [${field}], whose models differ between the indices that are searched,`);
    }
    return { boost, name, clause: first === undefined ? { kind: 'none' } : (JSON.parse(first) as Bound) };
  });
  return { bound, warnings: reply.warnings ?? [] };
}

/** What a clause comes to, with the places of the vectors that searches in an index read. */
function inSlots(bound: Bound, index: SemanticIndex): Bound {
  if (bound.kind === 'any')
    return { ...bound, parts: bound.parts.map((part) => ({ ...part, clause: inSlots(part.clause, index) })) };
  if (bound.kind !== 'sparse' && bound.kind !== 'dense') return bound;
  const path = pathOfSlot(bound.field);
  const field = searchedSlots(index).find((slot) => pathOfSlot(slot) === path);
  return field === undefined ? bound : { ...bound, field };
}

/** A clause that finds neighbours among passages, in the form of those among documents. */
export function passagesKnn(
  known: SemanticIndices | undefined,
  bound: Extract<Bound, { kind: 'dense' }>,
  span: Span,
  filters: readonly Span[],
): Knn {
  const { field, vector, k, candidates, similarity } = bound;
  const path = pathOfSlot(field);
  const definition = known?.indices.map(({ fields }) => fields[path]).find((it) => settledOf(it ?? {}) !== undefined);
  const settled = settledOf(definition ?? {})?.vector;
  return {
    span,
    form: 'query',
    field: `${passagesOf(field)}.vector`,
    passages: passagesOf(field),
    dense: settled === undefined ? undefined : readDenseField(path, settled),
    asks: { vector },
    k,
    candidates,
    filters,
    similarity: similarity ?? undefined,
    boost: undefined,
    name: undefined,
  };
}

/** Tokens among passages, as the cluster looks for them. */
export function passagesSparse(product: Product, { field, tokens }: Extract<Bound, { kind: 'sparse' }>): string {
  const path = passagesOf(field);
  const clause = { field: `${path}.tokens`, boost: undefined, name: undefined };
  return nestedQuery(path, sparseQuery(product, clause, tokens));
}

/** A clause that finds documents with passages in a field. */
export function passagesExist(known: SemanticIndices | undefined, field: string): string {
  const slots = (known?.indices ?? []).flatMap((index) => searchedSlots(index));
  const own = [...new Set(slots)].filter((slot) => pathOfSlot(slot) === field);
  const each = own.map((slot) => nestedQuery(passagesOf(slot), '{"match_all":{}}'));
  return `{"constant_score":{"filter":{"bool":{"should":[${each.join(',')}]}}}}`;
}

/** A query with a boost and a name of its own around another one. */
export function around(query: string, boost: number, name: string | null): string {
  if (boost === 1 && name === null) return query;
  const more = { ...(boost === 1 ? {} : { boost }), ...(name === null ? {} : { _name: name }) };
  return `{"bool":{"must":[${query}],${JSON.stringify(more).slice(1)}}`;
}

/** The field of a clause that may be on a `semantic_text` field, and the clause without its filters. */
export function semanticAsk(clause: string, value: unknown, hits: number): SemanticAsk | undefined {
  if (!isObject(value)) return undefined;
  if (clause === 'match' || clause === 'text_expansion') {
    const [field] = Object.keys(value);
    return field === undefined ? undefined : { field, query: { [clause]: value }, hits };
  }
  const field = value['field'];
  return typeof field === 'string' ? { field, query: { [clause]: value }, hits } : undefined;
}

/** @throws {EngineError} 400 for a `semantic` clause on a field of another type */
export function refuseOther(value: unknown): never {
  const field = isObject(value) ? value['field'] : undefined;
  if (typeof field !== 'string') throw unparsable('[semantic] Required [field]');
  throw illegal(
    `Field [${field}] does not support semantic queries: in the indices that are searched, no field of that name is a semantic_text`,
  );
}
