import { illegal, notOverCluster, unparsable } from './errors.js';
import { isObject, textOf } from './json.js';
import type { Product } from './product.js';
import type { Text } from './queries.js';
import type { SparseAsk, Tokens } from './sparse-queries.js';

/** A sparse clause of a request. */
export interface Sparse extends SparseAsk {
  readonly asks: { readonly text: Text } | { readonly tokens: Tokens };
}

/**
 * Reads a sparse clause, and says which warning it gives.
 *
 * @throws {EngineError} 400 for one that is malformed, or that the cluster cannot carry out
 */
export function readSparse(
  clause: string,
  body: unknown,
  product: Product,
): { readonly clause: Sparse; readonly warning?: string } {
  if (!isObject(body)) throw unparsable(`[${clause}] query malformed, no start_object after query name`);
  if (clause === 'sparse_vector') return { clause: sparseVector(body, product) };
  const fields = Object.entries(body);
  const [first, second] = fields;
  if (first === undefined) throw illegal(`[${clause}] requires fieldName`);
  if (second !== undefined) {
    throw unparsable(`[${clause}] query doesn't support multiple fields, found [${first[0]}] and [${second[0]}]`);
  }
  const [field, given] = first;
  if (!isObject(given)) throw unparsable(`[${clause}] query doesn't support simple values`);
  const warning =
    clause === 'text_expansion'
      ? 'text_expansion is deprecated. Use sparse_vector instead.'
      : 'weighted_tokens is deprecated and will be removed. Use sparse_vector instead.';
  const known = clause === 'text_expansion' ? ['model_id', 'model_text'] : ['tokens'];
  const { boost, name } = common(clause, given, known);
  const pruning = prunedBy(clause, given['pruning_config'] !== undefined, given, product);
  if (clause === 'weighted_tokens') {
    if (given['tokens'] === undefined) throw illegal('[weighted_tokens] requires a tokens value');
    const lists = Array.isArray(given['tokens']) ? (given['tokens'] as unknown[]) : [given['tokens']];
    const asks = { tokens: Object.assign({}, ...lists.map((it) => tokens(clause, it))) as Tokens };
    return { clause: { field, boost, name, pruning, asks }, warning };
  }
  const { model_id: id, model_text: text } = given;
  if (typeof text !== 'string') throw unparsable('No text specified for text query');
  if (typeof id !== 'string') throw illegal('[text_expansion] requires a model_id value');
  return { clause: { field, boost, name, pruning, asks: { text: { id, text, wants: 'tokens' } } }, warning };
}

function sparseVector(body: Readonly<Record<string, unknown>>, product: Product): Sparse {
  const known = ['field', 'query_vector', 'inference_id', 'query', 'prune'];
  const { boost, name } = common('sparse_vector', body, known);
  const { field, query_vector: vector, inference_id: id, query: text, prune } = body;
  if (typeof field !== 'string') throw unparsable('Required [field]');
  const pruning = prunedBy('sparse_vector', prune === true, body, product);
  if (vector !== undefined && id === undefined && text === undefined) {
    return { field, boost, name, pruning, asks: { tokens: tokens('sparse_vector', vector) } };
  }
  if (vector === undefined && typeof text === 'string') {
    if (typeof id !== 'string') throw notOverCluster('[query] of query [sparse_vector] without an [inference_id]');
    return { field, boost, name, pruning, asks: { text: { id, text, wants: 'tokens' } } };
  }
  throw unparsable('[sparse_vector] requires one of [query_vector] or [inference_id] for sparse_vector fields');
}

/** @throws {EngineError} 400 where the cluster cannot tell which tokens are frequent */
function prunedBy(
  clause: string,
  isWanted: boolean,
  given: Readonly<Record<string, unknown>>,
  product: Product,
): SparseAsk['pruning'] {
  const { pruning_config: config } = given;
  if (product.name !== 'Elasticsearch' && (isWanted || config !== undefined)) {
    throw notOverCluster(
      `[${config === undefined ? 'prune' : 'pruning_config'}] of query [${clause}]`,
      'searches are exact',
    );
  }
  if (!isWanted) return undefined;
  return config === undefined ? {} : { pruning_config: config };
}

function common(
  clause: string,
  given: Readonly<Record<string, unknown>>,
  known: readonly string[],
): { readonly boost: number | undefined; readonly name: string | undefined } {
  for (const key of Object.keys(given)) {
    if (!known.includes(key) && !['boost', '_name', 'pruning_config'].includes(key)) {
      throw unparsable(`[${clause}] query does not support [${key}]`);
    }
  }
  const { boost, _name: name } = given;
  const factor = boost === undefined ? undefined : Number(boost);
  if (factor !== undefined && !(Number.isFinite(factor) && factor >= 0)) {
    throw illegal(`negative [boost] are not allowed in [${clause}], use a value between 0 and 1 to deboost`);
  }
  return { boost: factor, name: textOf(name) };
}

function tokens(clause: string, given: unknown): Tokens {
  if (!isObject(given)) throw unparsable(`[${clause}] query_vector doesn't support values of this type`);
  for (const [token, weight] of Object.entries(given)) {
    if (typeof weight !== 'number' || !(weight > 0)) {
      throw illegal(`[${clause}] weights must be positive numbers, got [${String(weight)}] for token [${token}]`);
    }
  }
  return given as Tokens;
}
