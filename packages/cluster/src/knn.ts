import { type DenseField, spaceOf } from './dense-fields.js';
import { illegal, notOverCluster, refusal, unparsable } from './errors.js';
import { type Member, type Span, elements, isObject, kindAt, members, textOf, valueOf } from './json.js';
import type { Text } from './queries.js';
import { documentsClause } from './ranked-hits.js';
import { dimsOf, queryVector, vectorProblem } from './vector-values.js';

/** Where a `knn` stands: as a clause of a query, or as a section of a search or a retriever, whose `k` has another default. */
export type KnnForm = 'query' | 'section';

/** A `knn` clause, section or retriever. */
export interface Knn {
  /** Where the object with its parameters stands. */
  readonly span: Span;
  readonly form: KnnForm;
  readonly field: string;
  readonly asks: { readonly text: Text } | { readonly vector: readonly number[] };
  /** Neighbours, and vectors that are looked at in each shard to find them; both from 1 to 10,000. */
  readonly k: number;
  readonly candidates: number;
  readonly filters: readonly Span[];
  /** Least similarity: a cosine, a product, a largest distance or number of different bits. */
  readonly similarity: number | undefined;
  /** How codes of vectors are compared once more, which Elasticsearch has, and OpenSearch needs not. */
  readonly rescore?: unknown;
  readonly boost: number | undefined;
  readonly name: string | undefined;
  /** The nested objects whose vectors are compared, where they are those of passages; and what is known of the field then. */
  readonly passages?: string | undefined;
  readonly dense?: DenseField | undefined;
  /** The nested objects around the clause, whose vectors are compared. */
  readonly nested?: string | undefined;
}

/** A document that was found, with what tells it from all others. */
export interface Neighbour {
  readonly index: string;
  readonly id: string;
}

const KEYS: ReadonlySet<string> = new Set([
  ...['field', 'query_vector', 'query_vector_builder', 'k', 'num_candidates', 'filter', 'similarity'],
  ...['rescore_vector', 'boost', '_name'],
]);

const MOST_CANDIDATES = 10_000;
/** Least number of candidates where a request gives none, as in the native engine. */
const FEWEST_CANDIDATES = 100;

/**
 * Reads a `knn`.
 *
 * @param parts of it that are read
 * @param hits that the search, or the list that it makes, wants: what `k` is taken from where it is not given
 * @param more filters of the retrievers around it
 * @throws {EngineError} 400 for what the native engine refuses as well
 */
export function readKnn(
  text: string,
  span: Span,
  parts: readonly Member[],
  form: KnnForm,
  hits: number,
  more: readonly Span[] = [],
): Knn {
  const value = (name: string): unknown => {
    const part = parts.find((it) => it.name === name);
    return part === undefined ? undefined : (valueOf(text, part) ?? undefined);
  };
  for (const { name } of parts) {
    if (name === 'inner_hits') throw illegal('[inner_hits] of [knn] is not supported by this server');
    if (!KEYS.has(name)) throw refusal(400, 'x_content_parse_exception', `[knn] unknown field [${name}]`);
  }
  const field = value('field');
  if (typeof field !== 'string') throw unparsable('Required [field]');
  const boost = numberOf('boost', value('boost'));
  if (boost !== undefined && boost < 0)
    throw illegal('negative [boost] are not allowed in [knn], use a value between 0 and 1 to deboost');
  const given = { k: wholeOf('k', value('k')), candidates: wholeOf('num_candidates', value('num_candidates')) };
  return {
    span,
    form,
    field,
    asks: vectorAsked(value('query_vector'), value('query_vector_builder')),
    ...numbersOf(form, hits, given),
    filters: [...parts.filter(({ name }) => name === 'filter').flatMap((it) => listed(text, it)), ...more],
    similarity: numberOf('similarity', value('similarity')),
    rescore: value('rescore_vector'),
    boost,
    name: textOf(value('_name')),
  };
}

/**
 * A `knn` as Elasticsearch has it: what it does not have itself is replaced, and all else stays as it is written. The vector of a text
 * comes in place of the text, and a vector that is a text as an array.
 */
export function knnOfElasticsearch(
  text: string,
  span: Span,
  vector: readonly number[],
  isNothing: boolean,
  piece: (span: Span) => string,
): string {
  const given = members(text, span.start).filter(({ name }) => !isNothing || name !== 'filter');
  const parts = given.map((member) => {
    const isVector = member.name === 'query_vector_builder' || member.name === 'query_vector';
    return isVector ? `"query_vector":${JSON.stringify(vector)}` : `${JSON.stringify(member.name)}:${piece(member)}`;
  });
  if (isNothing) parts.push('"filter":{"match_none":{}}');
  return `{${parts.join(',')}}`;
}

/** The clause that a `knn` of a retriever, or beside `rank`, is in Elasticsearch; its filters are in the cluster's form. */
export function knnAsClause(knn: Knn, vector: readonly number[], filters: readonly string[]): string {
  const { field, k, candidates, similarity, rescore, boost, name, passages } = knn;
  const given = {
    ...{ field, query_vector: vector, k, num_candidates: candidates, similarity },
    ...{ rescore_vector: rescore, boost, _name: name },
  };
  const filter = filters.length === 0 ? '' : `,"filter":[${filters.join(',')}]`;
  const clause = `{"knn":${JSON.stringify(given).slice(0, -1)}${filter}}}`;
  return passages === undefined ? clause : nestedQuery(passages, clause);
}

/** A query on the passages of a document, which has the score of the best one. */
export function nestedQuery(path: string, query: string): string {
  return `{"nested":{"path":${JSON.stringify(path)},"score_mode":"max","ignore_unmapped":true,"query":${query}}}`;
}

/**
 * Checks the vector that is looked for against the fields that are searched.
 *
 * @throws {EngineError} 400 `query_shard_exception`, as from the native engine
 */
export function checkQueryVector(field: string, vector: readonly number[], fields: readonly DenseField[]): void {
  for (const dense of fields) {
    if (!dense.index)
      throw unfit(`to perform knn search on field [${field}], its mapping must have [index] set to [true]`);
    const given = dimsOf(dense.element, vector.length);
    if (dense.dims !== undefined && given !== dense.dims) {
      throw unfit(
        `the query vector has a different number of dimensions [${String(given)}] than the document vectors ` +
          `[${String(dense.dims)}]`,
      );
    }
    const problem = vectorProblem(dense, vector);
    if (problem !== undefined) throw unfit(problem);
  }
  const [first] = fields;
  if (fields.some((it) => it.element !== first?.element || it.similarity !== first.similarity)) {
    throw notOverCluster(`[knn] on field [${field}], whose vectors are compared differently in several indices,`);
  }
}

/** The least score in OpenSearch of vectors that are as similar as a request wants. */
export function leastScore(similarity: number, dense: DenseField | undefined): number {
  if (dense === undefined) throw notOverCluster('[similarity] of [knn] on a field that was not mapped by Sparrow');
  const { element, similarity: kind } = dense;
  if (element === 'bit') return 1 / (1 + similarity);
  if (kind === 'l2_norm') return 1 / (1 + similarity * similarity);
  if (kind === 'cosine' || (kind === 'dot_product' && element === 'float')) return (1 + similarity) / 2;
  return similarity < 0 ? 1 / (1 - similarity) : similarity + 1;
}

/**
 * The clause of OpenSearch that looks for candidates.
 *
 * @param filters in the cluster's form
 * @param isInside whether it stands inside the clause about nested objects that was around the `knn`
 */
export function candidatesQuery(
  { field, passages, nested }: Knn,
  vector: readonly number[],
  candidates: number,
  filters: readonly string[],
  isInside = false,
): string {
  const filter =
    filters.length === 0
      ? ''
      : `,"filter":${filters.length === 1 ? (filters[0] ?? '') : `{"bool":{"filter":[${filters.join(',')}]}}`}`;
  const query =
    `{"knn":{${JSON.stringify(field)}:{"vector":${JSON.stringify(vector)},"k":${String(candidates)}` +
    `${filter},"ignore_unmapped":true}}}`;
  const path = passages ?? (isInside ? undefined : nested);
  return path === undefined ? query : nestedQuery(path, query);
}

/**
 * The clause of OpenSearch that finds the neighbours, once they are known, with the scores of the native engine.
 *
 * @param ofObjects filters of the nested objects that are compared, in the cluster's form
 */
export function neighboursQuery(
  knn: Knn,
  vector: readonly number[],
  found: readonly Neighbour[],
  dense: DenseField | undefined,
  ofObjects: readonly string[] = [],
): string {
  if (found.length === 0) return JSON.stringify({ match_none: moreOf(knn) });
  // The filter lets so few documents through that OpenSearch compares them exactly: the scores are those of the first search.
  const query = candidatesQuery(knn, vector, found.length, [JSON.stringify(theseDocuments(found)), ...ofObjects], true);
  return asNative(knn, query, dense);
}

/** A clause that finds vectors, with the boost and the name of a `knn`, and the scores of the native engine. */
export function asNative(knn: Knn, query: string, dense: DenseField | undefined): string {
  const more = moreOf(knn);
  if (Object.keys(more).length === 0) return scored(query, dense);
  return `{"bool":{"must":[${scored(query, dense)}],${JSON.stringify(more).slice(1)}}`;
}

function moreOf({ boost, name }: Knn): object {
  return { ...(boost === undefined ? {} : { boost }), ...(name === undefined ? {} : { _name: name }) };
}

/**
 * The query of OpenSearch that compares all objects of documents, one by one; each document has the score of the nearest one.
 *
 * @param ofDocuments filters of the documents, in the cluster's form
 * @param ofObjects those of the objects
 */
export function comparedQuery(
  { field, passages, nested }: Knn,
  vector: readonly number[],
  dense: DenseField | undefined,
  ofDocuments: readonly string[],
  ofObjects: readonly string[],
): string {
  if (dense === undefined) return '{"match_none":{}}';
  const having = `{"bool":{"filter":[${[JSON.stringify({ exists: { field } }), ...ofObjects].join(',')}]}}`;
  const params = { field, query_value: vector, space_type: spaceOf(dense) };
  const script = JSON.stringify({ lang: 'knn', source: 'knn_score', params });
  const compared = nestedQuery(passages ?? nested ?? '', `{"script_score":{"query":${having},"script":${script}}}`);
  return `{"bool":{"must":[${compared}],"filter":[${ofDocuments.join(',')}]}}`;
}

/** The clause that finds the documents of some neighbours. */
export function theseDocuments(found: readonly Neighbour[]): object {
  return documentsClause(found.map(({ index, id }) => [index, id]));
}

/** A query with the native engine's scores, which OpenSearch has for all fields but those of bits and those of products of bytes. */
function scored(query: string, dense: DenseField | undefined): string {
  const { element, similarity, dims = 1 } = dense ?? {};
  let source: string;
  if (element === 'bit') source = '(params.dims - (1.0 / _score - 1.0)) / params.dims';
  else if (element === 'byte' && similarity === 'dot_product')
    source = '0.5 + (_score >= 1 ? _score - 1 : 1 - 1 / _score) / (params.dims * 32768.0)';
  else return query;
  return `{"script_score":{"query":${query},"script":${JSON.stringify({ source, params: { dims } })}}}`;
}

/**
 * The vector that is looked for: given as numbers or as a text, or to be made of a text by a model.
 *
 * @throws {EngineError} 400 when it is neither, or both
 */
export function vectorAsked(vector: unknown, builder: unknown): Knn['asks'] {
  if (vector !== undefined && builder !== undefined)
    throw illegal('cannot provide both [query_vector_builder] and [query_vector]');
  if (builder !== undefined) return { text: textIn(builder) };
  if (vector === undefined) throw illegal('either [query_vector_builder] or [query_vector] must be provided');
  const numbers = typeof vector === 'number' ? [vector] : vector;
  if (Array.isArray(numbers) && numbers.every((it) => typeof it === 'number')) return { vector: numbers };
  const decoded = typeof vector === 'string' ? queryVector(vector) : { problem: 'it is neither an array nor a text' };
  if ('vector' in decoded) return decoded;
  const cause = { type: 'illegal_argument_exception', reason: decoded.problem };
  throw refusal(400, 'x_content_parse_exception', '[knn] failed to parse field [query_vector]', cause);
}

/** The text of `{"text_embedding": {"model_id": …, "model_text": …}}`. */
function textIn(builder: unknown): Text {
  const [first, second] = isObject(builder) ? Object.entries(builder) : [];
  const [kind, given] = first ?? [];
  if (kind !== 'text_embedding' || second !== undefined || !isObject(given))
    throw unparsable(`unknown query vector builder [${kind ?? ''}]`);
  const { model_id: id, model_text: text } = given;
  if (typeof text !== 'string') throw unparsable('Required [model_text]');
  // The model of a semantic_text field need not be named.
  return { id: typeof id === 'string' ? id : '', text, wants: 'vector' };
}

function numbersOf(
  form: KnnForm,
  hits: number,
  given: { readonly k: number | undefined; readonly candidates: number | undefined },
): Pick<Knn, 'k' | 'candidates'> {
  const between = (least: number, number: number): number => Math.min(Math.max(number, least), MOST_CANDIDATES);
  const ofHits = (count: number): number => between(1, count + Math.ceil(count / 2));
  const ownK = form === 'query' ? (given.candidates ?? ofHits(hits)) : between(1, hits);
  const k = given.k ?? ownK;
  const candidates = given.candidates ?? Math.max(between(FEWEST_CANDIDATES, ofHits(given.k ?? between(1, hits))), k);
  if (k < 1) throw illegal('[k] must be greater than 0');
  if (candidates < k) throw illegal('[num_candidates] cannot be less than [k]');
  if (candidates > MOST_CANDIDATES) throw illegal(`[num_candidates] cannot exceed [${String(MOST_CANDIDATES)}]`);
  return { k, candidates };
}

function listed(text: string, filter: Member): readonly Span[] {
  return kindAt(text, filter) === 'array' ? elements(text, filter.start) : [filter];
}

function wholeOf(name: string, given: unknown): number | undefined {
  const number = numberOf(name, given);
  return number === undefined ? undefined : Math.max(0, Math.trunc(number));
}

function numberOf(name: string, given: unknown): number | undefined {
  if (given === undefined) return undefined;
  const number = Number(given);
  if (!Number.isFinite(number)) throw unparsable(`[knn] failed to parse field [${name}]`);
  return number;
}

function unfit(reason: string): Error {
  const cause = { type: 'illegal_argument_exception', reason };
  return refusal(400, 'query_shard_exception', `failed to create query: ${reason}`, cause);
}
