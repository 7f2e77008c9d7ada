import { notOverCluster } from './errors.js';
import { parseAnswer } from './json.js';
import {
  type Knn,
  type Neighbour,
  asNative,
  candidatesQuery,
  checkQueryVector,
  knnAsClause,
  leastScore,
  neighboursQuery,
} from './knn.js';
import { multiple } from './multiple.js';
import type { Product } from './product.js';
import type { SearchBody } from './search-body.js';
import type { Transport } from './transport.js';
import type { VectorFields } from './vector-fields.js';

/** What looking for neighbours needs of its surroundings. */
export interface NeighbourContext {
  readonly transport: Transport;
  readonly product: Product;
  readonly vectors: VectorFields;
}

/**
 * Finds the neighbours of the vectors in a body before the search itself, as Elasticsearch does for its section: OpenSearch would count
 * `k` in each shard, and give as many as it looks at. Their clauses find these documents and no others then. A search that wants no more
 * than the best of them is sent at once.
 *
 * @param target of the search, as {@link targetOf} gives it
 * @throws {EngineError} 400 for vectors that do not fit the field
 */
export async function findNeighbours(
  { transport, product, vectors }: NeighbourContext,
  expression: string,
  target: Readonly<Record<string, string>>,
  body: SearchBody,
  signal?: AbortSignal,
): Promise<void> {
  const { near } = body;
  if (near.length === 0) return;
  const filtersOf = ({ knn }: (typeof near)[number]): readonly string[] => knn.filters.map((it) => body.piece(it));
  if (product.name === 'Elasticsearch') {
    for (const one of near) one.text = knnAsClause(one.knn, one.vector, filtersOf(one));
    return;
  }
  const fields = await vectors.of(expression);
  const known = near.map(({ knn }) =>
    knn.passages === undefined ? fields.flatMap((of) => of.get(knn.field) ?? []) : [knn.dense ?? []].flat(),
  );
  const knns = near.map(({ knn }, at): Knn => {
    // The best object of a document is compared, also where no clause around it says so.
    const passages = knn.passages ?? (knn.nested === undefined ? known[at]?.[0]?.nested : undefined);
    return passages === undefined ? knn : { ...knn, passages };
  });
  knns.forEach(({ passages, nested }, at) => {
    const one = near[at];
    const isAbout = passages !== undefined || nested !== undefined;
    // OpenSearch would look for other objects than those that are asked for.
    if (isAbout && one !== undefined && filtersOf(one).some((it) => it.includes('"nested"')))
      throw notOverCluster('a [nested] query in the filter of a [knn] on passages or nested objects');
  });
  const [only, second] = near;
  if (only !== undefined && second === undefined && body.takesBest(only)) {
    const [knn = only.knn] = knns;
    checkQueryVector(knn.field, only.vector, known[0] ?? []);
    only.text = asNative(knn, candidatesQuery(knn, only.vector, knn.candidates, filtersOf(only)), known[0]?.[0]);
    return;
  }
  const searches = near.map((one, at) => {
    const { vector } = one;
    const knn = knns.at(at) ?? one.knn;
    const dense = known[at] ?? [];
    checkQueryVector(knn.field, vector, dense);
    const least = knn.similarity === undefined ? {} : { min_score: leastScore(knn.similarity, dense[0]) };
    const rest = { size: knn.k, _source: false, track_total_hits: false, ...least };
    return `{"query":${candidatesQuery(knn, vector, knn.candidates, filtersOf(one))},${JSON.stringify(rest).slice(1)}`;
  });
  const answers = await multiple({ transport, expression, target, signal, pit: body.section('pit') }, searches);
  near.forEach((one, at) => {
    one.text = neighboursQuery(knns[at] ?? one.knn, one.vector, documentsIn(answers[at] ?? ''), known[at]?.[0]);
  });
}

function documentsIn(answer: string): readonly Neighbour[] {
  const { hits } = parseAnswer(answer) as { hits: { hits: readonly { _index: string; _id: string }[] } };
  return hits.hits.map(({ _index: index, _id: id }) => ({ index, id }));
}
