import { notOverCluster } from './errors.js';
import { type Json, isObject, parseAnswer, textOf } from './json.js';
import {
  type Knn,
  type Neighbour,
  asNative,
  candidatesQuery,
  checkQueryVector,
  comparedQuery,
  knnAsClause,
  leastScore,
  neighboursQuery,
  theseDocuments,
} from './knn.js';
import { multiple } from './multiple.js';
import type { Product } from './product.js';
import { INSIDE, type Near, hasNested, holds } from './queries.js';
import type { SearchBody } from './search-body.js';
import type { Transport } from './transport.js';
import type { VectorFields } from './vector-fields.js';

/** What looking for neighbours needs of its surroundings. */
export interface NeighbourContext {
  readonly transport: Transport;
  readonly product: Product;
  readonly vectors: VectorFields;
}

/** Where neighbours are looked for. */
interface Place {
  readonly expression: string;
  readonly target: Readonly<Record<string, string>>;
  readonly signal: AbortSignal | undefined;
}

/**
 * Finds the neighbours of the vectors in a body before the search itself, as Elasticsearch does for its section: OpenSearch would count
 * `k` in each shard, and give as many as it looks at. Their clauses find these documents and no others then. A search that wants no more
 * than the best of them is sent at once. Neighbours in the filter of others are found before these.
 *
 * @param target of the search, as {@link targetOf} gives it
 * @throws {EngineError} 400 for vectors that do not fit the field
 */
export async function findNeighbours(
  context: NeighbourContext,
  expression: string,
  target: Readonly<Record<string, string>>,
  body: SearchBody,
  signal?: AbortSignal,
): Promise<void> {
  const find = context.product.name === 'Elasticsearch' ? findInElasticsearch : findInOpenSearch;
  for (let left = body.near; left.length > 0;) {
    const ready = left.filter((one) => !left.some((other) => isInFilter(other, one)));
    await find(context, { expression, target, signal }, body, ready);
    left = left.filter((it) => !ready.includes(it));
  }
}

function isInFilter(inner: Near, { knn }: Near): boolean {
  return inner.knn !== knn && knn.filters.some((it) => holds(it, inner.replaces));
}

async function findInElasticsearch(
  { transport }: NeighbourContext,
  place: Place,
  body: SearchBody,
  near: readonly Near[],
): Promise<void> {
  const filtersOf = ({ knn }: Near): readonly string[] => knn.filters.map((it) => body.piece(it));
  // Inside `nested`, Elasticsearch applies a filter about objects to those that are compared; in the `knn` section, to all objects of the
  // document. So the section is asked first.
  const first = near.filter((one) => (one.knn.passages ?? one.knn.nested) !== undefined && hasNestedIn(filtersOf(one)));
  for (const one of near) one.text = knnAsClause(one.knn, one.vector, filtersOf(one));
  if (first.length === 0) return;
  const searches = first.map((one) => {
    const knn: Knn = { ...one.knn, passages: undefined, boost: undefined, name: undefined };
    const section = knnAsClause(knn, one.vector, filtersOf(one));
    const rest = { size: knn.k, _source: false, track_total_hits: false };
    return `${section.slice(0, -1)},${JSON.stringify(rest).slice(1)}`;
  });
  const answers = await multiple({ transport, ...place, pit: body.section('pit') }, searches);
  first.forEach((one, at) => {
    const found = documentsIn(answers[at] ?? '');
    const { knn, vector } = one;
    const these = JSON.stringify(theseDocuments(found));
    const k = Math.max(1, found.length);
    one.text = found.length === 0 ? '{"match_none":{}}' : knnAsClause({ ...knn, k }, vector, [these]);
  });
}

async function findInOpenSearch(
  { transport, vectors }: NeighbourContext,
  place: Place,
  body: SearchBody,
  near: readonly Near[],
): Promise<void> {
  const fields = await vectors.of(place.expression);
  const all = near.map((one) => {
    const known =
      one.knn.passages === undefined
        ? fields.flatMap((of) => of.get(one.knn.field) ?? [])
        : [one.knn.dense ?? []].flat();
    // The best object of a document is compared, also where no clause around it says so.
    const passages = one.knn.passages ?? (one.knn.nested === undefined ? known[0]?.nested : undefined);
    const knn: Knn = passages === undefined ? one.knn : { ...one.knn, passages };
    const filters = knn.filters.map((it) => body.piece(it));
    checkQueryVector(knn.field, one.vector, known);
    const path = passages ?? knn.nested;
    return { one, knn, known, filters, parts: apart(path, filters) };
  });
  const [first] = all;
  if (first !== undefined && !first.parts.areCompared && body.near.length === 1 && body.takesBest(first.one)) {
    const { one, knn, known, filters } = first;
    one.text = asNative(knn, candidatesQuery(knn, one.vector, knn.candidates, filters), known[0]);
    return;
  }
  const searches = all.map(({ one: { vector }, knn, known: [dense], filters, parts }) => {
    const least = knn.similarity === undefined ? {} : { min_score: leastScore(knn.similarity, dense) };
    const rest = { size: knn.k, _source: false, track_total_hits: false, ...least };
    const query = parts.areCompared
      ? comparedQuery(knn, vector, dense, parts.ofDocuments, parts.ofObjects)
      : candidatesQuery(knn, vector, knn.candidates, filters);
    return `{"query":${query},${JSON.stringify(rest).slice(1)}`;
  });
  const answers = await multiple({ transport, ...place, pit: body.section('pit') }, searches);
  all.forEach(({ one, knn, known: [dense], parts: { ofObjects } }, at) => {
    const found = documentsIn(answers[at] ?? '');
    // A filter gives no scores, and may stand where there are no documents, but only their objects.
    const isFilter = body.near.some((other) => isInFilter(one, other));
    one.text = isFilter
      ? JSON.stringify(theseDocuments(found))
      : neighboursQuery(knn, one.vector, found, dense, ofObjects);
  });
}

function documentsIn(answer: string): readonly Neighbour[] {
  const { hits } = parseAnswer(answer) as { hits: { hits: readonly { _index: string; _id: string }[] } };
  return hits.hits.map(({ _index: index, _id: id }) => ({ index, id }));
}

function hasNestedIn(filters: readonly string[]): boolean {
  return filters.some((it) => hasNested(JSON.parse(it)));
}

/** The filters of a `knn`, by what they are about. */
interface Parts {
  readonly ofDocuments: readonly string[];
  readonly ofObjects: readonly string[];
  /**
   * Whether a filter is about other nested objects: OpenSearch would look for these among the compared ones, so all objects of the
   * documents that pass are compared one by one then.
   */
  readonly areCompared: boolean;
}

/**
 * @param path of the nested objects whose vectors are compared, if they are in any
 * @throws {EngineError} 400 for a filter that is about objects and documents, where the two have to be told apart
 */
function apart(path: string | undefined, filters: readonly string[]): Parts {
  const areCompared = path !== undefined && hasNestedIn(filters);
  const parts = { ofDocuments: [] as string[], ofObjects: [] as string[], areCompared };
  for (const filter of filters) {
    const fields = path === undefined ? [] : fieldsIn(JSON.parse(filter));
    const inside = fields.filter((it) => it.startsWith(`${path ?? ''}.`)).length;
    if (inside === 0) parts.ofDocuments.push(filter);
    else if (inside === fields.length) parts.ofObjects.push(filter);
    else if (areCompared) {
      const what = 'a filter of a [knn] on nested objects that is about objects and their documents';
      throw notOverCluster(what, 'give two filters');
    }
  }
  return parts;
}

/** The fields that a query asks about, and in place of those of nested objects the path of these. */
function fieldsIn(query: unknown): readonly string[] {
  if (Array.isArray(query)) return query.flatMap((it) => fieldsIn(it));
  if (!isObject(query)) return [];
  return Object.entries(query).flatMap(([name, clause]) => {
    if (!isObject(clause)) return [];
    if (name === 'nested') return [textOf(clause['path']) ?? ''];
    const parts = INSIDE.get(name);
    if (parts !== undefined)
      return parts.flatMap((part) => fieldsIn(part === 'functions' ? filtersIn(clause) : clause[part]));
    const own = textOf(clause['field']);
    return own === undefined ? Object.keys(clause).filter((it) => it !== 'boost' && it !== '_name') : [own];
  });
}

function filtersIn({ functions }: Json): readonly unknown[] {
  return [functions].flat().map((it) => (isObject(it) ? it['filter'] : undefined));
}
