import type { Product } from './product.js';

/** Tokens with their weights. */
export type Tokens = Readonly<Record<string, number>>;

/** What a sparse clause says besides its tokens. */
export interface SparseAsk {
  readonly field: string;
  readonly boost: number | undefined;
  readonly name: string | undefined;
  /** How light, frequent tokens are left out, which Elasticsearch can; undefined where none are. */
  readonly pruning?: { readonly pruning_config?: unknown } | undefined;
}

/** A sparse clause as the cluster has it: the exact dot product of the tokens, over the weights as it keeps them. */
export function sparseQuery(
  product: Product,
  { field, boost, name, pruning }: SparseAsk,
  tokensOfText: Tokens,
): string {
  const more = { ...(boost === undefined ? {} : { boost }), ...(name === undefined ? {} : { _name: name }) };
  const found = Object.entries(tokensOfText);
  if (found.length === 0) return JSON.stringify({ match_none: more });
  if (product.name === 'Elasticsearch') {
    return JSON.stringify({
      sparse_vector: { field, query_vector: tokensOfText, prune: pruning !== undefined, ...pruning, ...more },
    });
  }
  // A boost of the plugin's clause is not everywhere what one of any other is, so it stands around it.
  const should = product.neuralSparse
    ? [{ neural_sparse: { [field]: { query_tokens: tokensOfText } } }]
    : found.map(([token, weight]) => ({ rank_feature: { field: `${field}.${token}`, linear: {}, boost: weight } }));
  return JSON.stringify({ bool: { should, ...more } });
}
