import { leaves } from '@sparrow-search/endpoints';
import type { SearchRequest } from '@sparrow-search/engine';
import { type Kind, type Setting, WINDOW, weightOf } from '@sparrow-search/evaluation';

import type { Context } from '../context.js';
import { CommandError } from '../errors.js';
import { kindsOf, mappingsOf } from '../searched-fields.js';

/** One of the searches that a hybrid search fuses. */
export interface Part {
  /** The name of the search in tables: its kind, and its field where there are several of the kind. */
  readonly name: string;
  readonly kind: Kind;
  /** The part of the weight of its kind that its list has. */
  readonly share: number;
  /** The search as a retriever. */
  readonly retriever: (text: string) => Retriever;
}

type Retriever = Readonly<Record<string, object>>;

/** Documents from which the nearest ones are taken, for each one that is wanted: what the server's short forms ask for. */
const CANDIDATES = 1.5;

/**
 * The searches that the short forms of `rrf` and `linear` make of a text in an index: one by words, and one for each kind of vectors
 * of each semantic field.
 *
 * @throws {CommandError} if there are no semantic fields, or the key may not see them
 */
export async function partsOf(context: Context, index: string): Promise<readonly Part[]> {
  const mappings = await mappingsOf(context, index);
  if (mappings === undefined) {
    throw new CommandError(`the key may not see the fields of [${index}]: it needs view_index_metadata`);
  }
  const fields = new Map<string, Set<Kind>>();
  for (const { mappings: mapping } of Object.values(mappings)) {
    for (const [name, property] of leaves(mapping.properties ?? {})) {
      // Before its first document, a field has no vectors and makes no list.
      if (property.type !== 'semantic_text' || property.model_settings === undefined) continue;
      const kinds = fields.get(name) ?? new Set();
      for (const kind of kindsOf(property)) kinds.add(kind);
      fields.set(name, kinds);
    }
  }
  if (fields.size === 0) {
    throw new CommandError(
      `[${index}] has no semantic_text field with documents: there is nothing to fuse; \`sparrow import FILE --index NAME --semantic FIELD\` makes one`,
    );
  }
  const share = 1 / fields.size;
  const semantic = [...fields].flatMap(([field, kinds]) =>
    (['sparse', 'dense'] as const)
      .filter((kind) => kinds.has(kind))
      .map((kind): Part => {
        const retriever = kind === 'sparse' ? bySparse(field) : byDense(field);
        return { name: fields.size === 1 ? kind : `${kind} ${field}`, kind, share, retriever };
      }),
  );
  return [{ name: 'words', kind: 'words', share: 1, retriever: byWords }, ...semantic];
}

function byWords(query: string): Retriever {
  return { standard: { query: { multi_match: { query, type: 'most_fields' } } } };
}

function bySparse(field: string) {
  return (query: string): Retriever => ({ standard: { query: { sparse_vector: { field, query } } } });
}

function byDense(field: string) {
  return (text: string): Retriever => ({
    knn: {
      field,
      k: WINDOW,
      num_candidates: WINDOW * CANDIDATES,
      query_vector_builder: { text_embedding: { model_text: text } },
    },
  });
}

/** The body of a search that fuses the parts in the way that a setting says. Parts without weight are left out. */
export function bodyFor(parts: readonly Part[], { fusion, constant, weights }: Setting, text: string): SearchRequest {
  const counting = parts.filter(({ kind }) => weights[kind] > 0);
  const [only] = counting;
  // One list is sorted by ranks as it is; its normalized scores would be 0 below the mean.
  if (only !== undefined && counting.length === 1 && fusion === 'rrf') return { retriever: only.retriever(text) };
  const retrievers = counting.map(({ kind, share, retriever }) => ({
    retriever: retriever(text),
    weight: shortest(weightOf(weights[kind], share)),
    ...(fusion === 'linear' && { normalizer: 'zscore' as const }),
  }));
  const window = { rank_window_size: WINDOW };
  return {
    retriever:
      fusion === 'rrf'
        ? { rrf: { retrievers, ...(constant !== undefined && { rank_constant: constant }), ...window } }
        : { linear: { retrievers, ...window } },
  };
}

/** The number of the fewest digits that is the same 32-bit number. */
function shortest(value: number): number {
  const rounded = Math.fround(value);
  for (let digits = 1; digits < 9; digits += 1) {
    const short = Number(rounded.toPrecision(digits));
    if (Math.fround(short) === rounded) return short;
  }
  return rounded;
}
