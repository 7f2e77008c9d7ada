import { illegal, notOverCluster, unparsable } from './errors.js';
import type { Use } from './field-models.js';
import { type Edit, type Span, elements, isObject, kindAt, members, textOf, valueOf } from './json.js';
import type { Product } from './product.js';

/** Tokens with their weights. */
export type Tokens = Readonly<Record<string, number>>;

/** A text that a model has to read: by the model's own name, or by that of an inference endpoint. */
export interface Text {
  readonly kind: 'model' | 'endpoint';
  readonly id: string;
  readonly text: string;
}

/** A sparse clause of a request: where it stands, and what it asks. */
interface SparseClause extends Span {
  readonly field: string;
  readonly asks: { readonly text: Text } | { readonly tokens: Tokens };
  readonly boost: number | undefined;
  readonly name: string | undefined;
}

/** Clauses that hold others, and where. */
const INSIDE: ReadonlyMap<string, readonly string[]> = new Map([
  ['bool', ['must', 'should', 'filter', 'must_not']],
  ['boosting', ['positive', 'negative']],
  ['constant_score', ['filter']],
  ['dis_max', ['queries']],
  ['function_score', ['query', 'functions']],
  ['has_child', ['query']],
  ['has_parent', ['query']],
  ['nested', ['query']],
  ['pinned', ['organic']],
  ['script_score', ['query']],
]);

/** Clauses of Elasticsearch that a cluster would read in its own way, with its own models, or not at all. */
const REFUSED: ReadonlySet<string> = new Set(['semantic', 'rule']);

/** Deepest nesting of clauses; the cluster has bounds of its own. */
const MAX_DEPTH = 200;

/** How much of a request's bodies a caller's rights leave to be understood. */
export interface Reading {
  readonly product: Product;
  /** Whether the caller may use some indices only: then no clause may name another one. */
  readonly restricted: boolean;
}

/** Sparse clauses of a text, gathered clause by clause, and what comes in their place. */
export class QueryTranslation {
  readonly #text: string;
  readonly #reading: Reading;
  readonly #sparse: SparseClause[] = [];
  readonly #warnings = new Set<string>();

  constructor(text: string, reading: Reading) {
    this.#text = text;
    this.#reading = reading;
  }

  /** Sentences about deprecated forms that the clauses have. */
  get warnings(): readonly string[] {
    return [...this.#warnings];
  }

  /** The texts that models have to read. */
  get texts(): readonly Text[] {
    return this.#sparse.flatMap(({ asks }) => ('text' in asks ? [asks.text] : []));
  }

  /** The fields that are searched with texts, and by which ids their models are named. */
  get uses(): readonly Use[] {
    return this.#sparse.flatMap(({ field, asks }) => ('text' in asks ? [{ field, id: asks.text.id }] : []));
  }

  /**
   * Looks through a query or a list of queries.
   *
   * @throws {EngineError} 400 for a sparse clause that is malformed, and for what no cluster can carry out
   */
  query(span: Span, depth = 0): void {
    if (depth > MAX_DEPTH)
      throw illegal(`The nested depth of the query exceeds the maximum nested depth [${String(MAX_DEPTH)}]`);
    if (kindAt(this.#text, span) === 'array') {
      for (const one of elements(this.#text, span.start)) this.query(one, depth + 1);
      return;
    }
    if (kindAt(this.#text, span) !== 'object') return;
    for (const clause of members(this.#text, span.start)) {
      const { name } = clause;
      if (REFUSED.has(name)) throw notOverCluster(`query [${name}]`);
      if (name === 'text_expansion' || name === 'weighted_tokens' || name === 'sparse_vector') {
        this.#sparse.push({ ...this.#sparseClause(name, clause), start: span.start, end: span.end });
        continue;
      }
      if (name === 'knn') this.#refuseKnn(clause);
      const inside = INSIDE.get(name);
      if (inside === undefined || kindAt(this.#text, clause) !== 'object') continue;
      for (const part of members(this.#text, clause.start)) {
        if (!inside.includes(part.name)) continue;
        if (part.name === 'functions') this.#functions(part, depth);
        else this.query(part, depth + 1);
      }
    }
  }

  /** What comes in place of the sparse clauses, once their texts are tokens. */
  edits(tokensOf: (text: Text) => Tokens): Edit[] {
    return this.#sparse.map((clause) => {
      const tokens = 'text' in clause.asks ? tokensOf(clause.asks.text) : clause.asks.tokens;
      return { start: clause.start, end: clause.end, text: sparseQuery(this.#reading.product, clause, tokens) };
    });
  }

  #functions(span: Span, depth: number): void {
    if (kindAt(this.#text, span) !== 'array') return;
    for (const one of elements(this.#text, span.start)) {
      if (kindAt(this.#text, one) !== 'object') continue;
      const filter = members(this.#text, one.start).find(({ name }) => name === 'filter');
      if (filter !== undefined) this.query(filter, depth + 1);
    }
  }

  /** OpenSearch has a clause of the same name and another form. */
  #refuseKnn(span: Span): void {
    const value = valueOf(this.#text, span);
    if (!isObject(value) || !('query_vector' in value || 'query_vector_builder' in value)) return;
    if (this.#reading.product.name === 'OpenSearch' || 'query_vector_builder' in value)
      throw notOverCluster('query [knn]');
  }

  #sparseClause(clause: string, span: Span): Omit<SparseClause, keyof Span> {
    const body = valueOf(this.#text, span);
    if (!isObject(body)) throw unparsable(`[${clause}] query malformed, no start_object after query name`);
    if (clause === 'sparse_vector') return sparseVector(body);
    const fields = Object.entries(body);
    const [first, second] = fields;
    if (first === undefined) throw illegal(`[${clause}] requires fieldName`);
    if (second !== undefined) {
      throw unparsable(`[${clause}] query doesn't support multiple fields, found [${first[0]}] and [${second[0]}]`);
    }
    const [field, given] = first;
    if (!isObject(given)) throw unparsable(`[${clause}] query doesn't support simple values`);
    this.#warnings.add(
      clause === 'text_expansion'
        ? 'text_expansion is deprecated. Use sparse_vector instead.'
        : 'weighted_tokens is deprecated and will be removed. Use sparse_vector instead.',
    );
    const known = clause === 'text_expansion' ? ['model_id', 'model_text'] : ['tokens'];
    const { boost, name } = common(clause, given, known);
    if (clause === 'weighted_tokens') {
      if (given['tokens'] === undefined) throw illegal('[weighted_tokens] requires a tokens value');
      const lists = Array.isArray(given['tokens']) ? (given['tokens'] as unknown[]) : [given['tokens']];
      return {
        field,
        boost,
        name,
        asks: { tokens: Object.assign({}, ...lists.map((it) => tokens(clause, it))) as Tokens },
      };
    }
    const { model_id: id, model_text: text } = given;
    if (typeof text !== 'string') throw unparsable('No text specified for text query');
    if (typeof id !== 'string') throw illegal('[text_expansion] requires a model_id value');
    return { field, boost, name, asks: { text: { kind: 'model', id, text } } };
  }
}

function sparseVector(body: Readonly<Record<string, unknown>>): Omit<SparseClause, keyof Span> {
  const known = ['field', 'query_vector', 'inference_id', 'query', 'prune'];
  const { boost, name } = common('sparse_vector', body, known);
  const { field, query_vector: vector, inference_id: id, query: text, prune } = body;
  if (typeof field !== 'string') throw unparsable('Required [field]');
  if (prune === true) throw notOverCluster('[prune] of query [sparse_vector]', 'searches are exact');
  if (vector !== undefined && id === undefined && text === undefined) {
    return { field, boost, name, asks: { tokens: tokens('sparse_vector', vector) } };
  }
  if (vector === undefined && typeof text === 'string') {
    if (typeof id !== 'string') throw notOverCluster('[query] of query [sparse_vector] without an [inference_id]');
    return { field, boost, name, asks: { text: { kind: 'endpoint', id, text } } };
  }
  throw unparsable('[sparse_vector] requires one of [query_vector] or [inference_id] for sparse_vector fields');
}

function common(
  clause: string,
  given: Readonly<Record<string, unknown>>,
  known: readonly string[],
): { readonly boost: number | undefined; readonly name: string | undefined } {
  for (const key of Object.keys(given)) {
    if (key === 'pruning_config') throw notOverCluster(`[pruning_config] of query [${clause}]`, 'searches are exact');
    if (!known.includes(key) && key !== 'boost' && key !== '_name') {
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

/** A sparse clause as the cluster has it: the exact dot product of the tokens, over the weights as it keeps them. */
export function sparseQuery(
  product: Product,
  { field, boost, name }: Pick<SparseClause, 'field' | 'boost' | 'name'>,
  tokensOfText: Tokens,
): string {
  const more = { ...(boost === undefined ? {} : { boost }), ...(name === undefined ? {} : { _name: name }) };
  const found = Object.entries(tokensOfText);
  if (found.length === 0) return JSON.stringify({ match_none: more });
  if (product.name === 'Elasticsearch') {
    return JSON.stringify({ sparse_vector: { field, query_vector: tokensOfText, prune: false, ...more } });
  }
  // A boost of the plugin's clause is not everywhere what one of any other is, so it stands around it.
  const should = product.neuralSparse
    ? [{ neural_sparse: { [field]: { query_tokens: tokensOfText } } }]
    : found.map(([token, weight]) => ({ rank_feature: { field: `${field}.${token}`, linear: {}, boost: weight } }));
  return JSON.stringify({ bool: { should, ...more } });
}
