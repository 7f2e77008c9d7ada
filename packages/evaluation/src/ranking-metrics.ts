/** Documents that are relevant to a query, with their grades. */
export type Grades = ReadonlyMap<string, number>;

/**
 * nDCG@k of a ranked list: the gain of a document is its grade, discounted by log2(rank + 1), the best document having rank 1.
 * Judgements name documents by id alone. So if several indices hold the same id, it is credited once, at its first rank, and what
 * comes again takes its place for nothing.
 *
 * @param ranked ids of documents, the best first
 */
export function ndcg(ranked: readonly string[], grades: Grades, k = 10): number {
  const gain = (grade: number, at: number): number => grade / Math.log2(at + 2);
  const places = ranked.slice(0, k).map((id, at) => [id, at] as const);
  // Of equal keys a map keeps the last.
  const firstPlaces = new Map(places.toReversed());
  const actual = [...firstPlaces].reduce((sum, [id, at]) => sum + gain(grades.get(id) ?? 0, at), 0);
  const ideal = [...grades.values()]
    .sort((a, b) => b - a)
    .slice(0, k)
    .reduce((sum, grade, at) => sum + gain(grade, at), 0);
  return ideal === 0 ? 0 : actual / ideal;
}

/** The share of the relevant documents that is among the first k of a ranked list. */
export function recall(ranked: readonly string[], grades: Grades, k = 100): number {
  const found = new Set(ranked.slice(0, k));
  return [...grades.keys()].filter((id) => found.has(id)).length / grades.size;
}
