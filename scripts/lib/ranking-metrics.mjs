// Quality of a ranked list against graded judgements.

/**
 * nDCG@k: gain is the grade, discount is log2(rank + 1).
 *
 * @param {string[]} ranked document ids, best first
 * @param {Map<string, number>} grades of the relevant documents
 */
export function ndcg(ranked, grades, k = 10) {
  const gain = (grade, rank) => grade / Math.log2(rank + 2);
  const actual = ranked.slice(0, k).reduce((sum, id, rank) => sum + gain(grades.get(id) ?? 0, rank), 0);
  const ideal = [...grades.values()]
    .sort((a, b) => b - a)
    .slice(0, k)
    .reduce((sum, grade, rank) => sum + gain(grade, rank), 0);
  return ideal === 0 ? 0 : actual / ideal;
}

/** Share of the relevant documents among the first k. */
export function recall(ranked, grades, k = 100) {
  const found = new Set(ranked.slice(0, k));
  return [...grades.keys()].filter((id) => found.has(id)).length / grades.size;
}
