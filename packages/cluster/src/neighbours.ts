import { spaceOf } from './dense-fields.js';
import { notOverCluster } from './errors.js';
import {
  type Json,
  type Span,
  elements,
  isObject,
  kindAt,
  members,
  parseAnswer,
  rawOf,
  textOf,
  whole,
} from './json.js';
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
import { type Product, hasWholeCosines } from './product.js';
import { INSIDE, type Near, hasNested } from './queries.js';
import { firstFrom } from './replacements.js';
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
  for (const one of body.near.filter((it) => it.findsNothing)) one.text = '{"match_none":{}}';
  const inFilters = neighboursInFilters(body.near);
  const inAny = new Set([...inFilters.values()].flat());
  const left = new Set(body.near.filter((it) => !it.findsNothing));
  while (left.size > 0) {
    const ready = [...left].filter((one) => !(inFilters.get(one) ?? []).some((it) => left.has(it)));
    await find(context, { expression, target, signal }, body, ready, inAny);
    for (const one of ready) left.delete(one);
  }
}

/** For neighbours with filters, those that stand in these. */
function neighboursInFilters(near: readonly Near[]): ReadonlyMap<Near, readonly Near[]> {
  const placed = near.map((one) => ({ one, ...one.replaces })).sort((a, b) => a.start - b.start);
  const inside = ({ start, end }: Span): readonly Near[] => {
    const found = placed.slice(firstFrom(placed, start), firstFrom(placed, end));
    return found.filter((it) => it.end <= end).map(({ one }) => one);
  };
  const withFilters = near.filter(({ knn }) => knn.filters.length > 0);
  return new Map(
    withFilters.map((one) => [one, one.knn.filters.flatMap(inside).filter(({ knn }) => knn !== one.knn)] as const),
  );
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
  { transport, product, vectors }: NeighbourContext,
  place: Place,
  body: SearchBody,
  near: readonly Near[],
  inFilters: ReadonlySet<Near>,
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
  const unknown = all.filter(({ known, parts }) => parts.areCompared && known.length === 0);
  for (const { knn } of unknown) await refuseForeign(vectors, place.expression, knn.field);
  const [first] = all;
  if (first !== undefined && !first.parts.areCompared && body.near.length === 1 && body.takesBest(first.one)) {
    const { one, knn, known, filters } = first;
    one.text = asNative(knn, candidatesQuery(knn, one.vector, knn.candidates, filters), known[0]);
    return;
  }
  const searches = all.map(({ one: { vector }, knn, known: [dense], filters, parts }) => {
    const factor =
      parts.areCompared && dense !== undefined && hasWholeCosines(product) && spaceOf(dense) === 'cosinesimil' ? 2 : 1;
    const least = knn.similarity === undefined ? {} : { min_score: factor * leastScore(knn.similarity, dense) };
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
    one.text = inFilters.has(one)
      ? JSON.stringify(theseDocuments(found))
      : neighboursQuery(knn, one.vector, found, dense, ofObjects);
  });
}

/**
 * Objects are compared as the mapping of their field says, which Sparrow has written down where it made the field. A field that no index has
 * finds nothing.
 *
 * @throws {EngineError} 400 for a field of vectors that the cluster has from others
 */
async function refuseForeign(vectors: VectorFields, expression: string, field: string): Promise<void> {
  if (!(await vectors.paths(expression)).includes(field)) return;
  const filter = 'a filter about nested objects, or about objects and their documents,';
  throw notOverCluster(`${filter} of a [knn] on field [${field}], which was not mapped by Sparrow,`);
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
   * Whether a filter is about other nested objects, or some are about the compared ones and some about their documents: OpenSearch would look
   * for all among the compared ones, or all among documents. So all objects of the documents that pass are compared one by one then.
   */
  readonly areCompared: boolean;
}

/**
 * @param path of the nested objects whose vectors are compared, if they are in any
 * @throws {EngineError} 400 for a filter that objects or their documents pass, whichever do
 */
function apart(path: string | undefined, filters: readonly string[]): Parts {
  if (path === undefined) return { ofDocuments: filters, ofObjects: [], areCompared: false };
  const parts = { ofDocuments: [] as string[], ofObjects: [] as string[] };
  for (const filter of filters.flatMap((it) => (isMixed(path, it) ? conditionsOf(it) : [it]))) {
    const fields = fieldsIn(JSON.parse(filter));
    if (!fields.some((it) => it.startsWith(`${path}.`))) parts.ofDocuments.push(filter);
    else if (!isMixed(path, filter)) parts.ofObjects.push(filter);
    else {
      const what = 'a condition in a filter of a [knn] on nested objects that is about these or about their documents';
      throw notOverCluster(what, 'give conditions that all have to hold');
    }
  }
  const areBoth = parts.ofDocuments.length > 0 && parts.ofObjects.length > 0;
  return { ...parts, areCompared: areBoth || hasNestedIn(filters) };
}

function isMixed(path: string, filter: string): boolean {
  const fields = fieldsIn(JSON.parse(filter));
  const inside = fields.filter((it) => it.startsWith(`${path}.`)).length;
  return inside > 0 && inside < fields.length;
}

/** The filters that a filter consists of, as it is written: all of them have to be passed. */
function conditionsOf(filter: string): readonly string[] {
  const [clause, second] = members(filter, whole(filter).start);
  if (clause === undefined || second !== undefined) return [filter];
  const parts = kindAt(filter, clause) === 'object' ? members(filter, clause.start) : [];
  const each = (name: string): readonly string[] =>
    parts
      .filter((it) => it.name === name)
      .flatMap((it) => (kindAt(filter, it) === 'array' ? elements(filter, it.start) : [it]))
      .map((it) => rawOf(filter, it));
  if (clause.name === 'constant_score') return each('filter').flatMap((it) => conditionsOf(it));
  if (clause.name !== 'bool') return [filter];
  const musts = ['must', 'filter'].flatMap((name) => each(name));
  const least = parts.find(({ name }) => name === 'minimum_should_match');
  const shoulds = least === undefined && musts.length > 0 ? [] : each('should');
  const more = least === undefined ? '' : `,"minimum_should_match":${rawOf(filter, least)}`;
  return [
    ...musts.flatMap((it) => conditionsOf(it)),
    ...each('must_not').map((it) => `{"bool":{"must_not":[${it}]}}`),
    ...(shoulds.length === 0 ? [] : [`{"bool":{"should":[${shoulds.join(',')}]${more}}}`]),
  ];
}

/** Clauses that name several fields in a list, where they name any. */
const OF_SEVERAL: ReadonlySet<string> = new Set([
  ...['multi_match', 'combined_fields', 'query_string', 'simple_query_string', 'more_like_this'],
]);

/** Members of clauses beside the field that they are about. */
const OPTIONS: ReadonlySet<string> = new Set(['boost', '_name', 'ignore_unmapped']);
const OPTIONS_OF_PLACES: ReadonlySet<string> = new Set(['distance', 'distance_type', 'validation_method', 'type']);

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
    if (OF_SEVERAL.has(name)) return listedIn(name, clause);
    const own = textOf(clause['field']);
    const isOption = (it: string): boolean => OPTIONS.has(it) || (name.startsWith('geo_') && OPTIONS_OF_PLACES.has(it));
    return own === undefined ? Object.keys(clause).filter((it) => !isOption(it)) : [own];
  });
}

/** The fields that a clause lists, without their boosts, and those that the words of a `query_string` begin with. */
function listedIn(name: string, { fields, default_field: one, query }: Json): readonly string[] {
  const listed = [fields, one].flat().flatMap((it) => (typeof it === 'string' ? [it.split('^')[0] ?? ''] : []));
  if (name !== 'query_string' || typeof query !== 'string') return listed;
  const before = query.split(':').slice(0, -1);
  const named = before.map((it) => (it.split(/[\s()"+\-!&|]/u).at(-1) ?? '').replaceAll('\\', ''));
  return [...listed, ...named.filter((it) => it !== '')];
}

function filtersIn({ functions }: Json): readonly unknown[] {
  return [functions].flat().map((it) => (isObject(it) ? it['filter'] : undefined));
}
