// What a benchmark says about its measurements. Pure functions, tested in test/benches/.

/** The value below which `share` of the values lie: nearest rank, NaN for none. Does not change `values`. */
export function percentile(values, share) {
  if (values.length === 0) return NaN;
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}

export const median = (values) => percentile(values, 0.5);

/** @returns {{ count: number, mean: number, p50: number, p95: number, p99: number, max: number }} in the values' unit */
export function summarize(values) {
  return {
    count: values.length,
    mean: values.reduce((sum, value) => sum + value, 0) / values.length,
    p50: percentile(values, 0.5),
    p95: percentile(values, 0.95),
    p99: percentile(values, 0.99),
    max: percentile(values, 1),
  };
}

/**
 * The exponent e of cost = c · size^e that fits best: the slope of a straight line through the logarithms.
 *
 * @param {[size: number, cost: number][]} points at least two sizes, all above zero
 */
export function exponent(points) {
  const logs = points.map(([size, cost]) => [Math.log(size), Math.log(cost)]);
  const mean = (column) => logs.reduce((sum, point) => sum + point[column], 0) / logs.length;
  const [x, y] = [mean(0), mean(1)];
  const above = logs.reduce((sum, point) => sum + (point[0] - x) * (point[1] - y), 0);
  const below = logs.reduce((sum, point) => sum + (point[0] - x) ** 2, 0);
  return above / below;
}

/**
 * Overlap of ranked lists with the exact ones, ties counted in favour: a returned document is right when its own exact score
 * reaches the k-th exact score (less a relative `tolerance`). A document returned twice counts once.
 *
 * @param {Int32Array} ids `k` a question, -1 for none
 * @param {{ ids: Int32Array, scores: Float32Array, depth: number }} truth `depth` >= k a question, best first; a document that
 *   is not among them is wrong
 * @returns {{ recall: number, allRight: number }} share of right documents, share of questions without a wrong one. A question
 *   with fewer than k matches needs only those.
 */
export function accuracy(ids, truth, { k = 10, tolerance = 1e-5 } = {}) {
  const questions = ids.length / k;
  let [right, wanted, complete] = [0, 0, 0];
  for (let question = 0; question < questions; question += 1) {
    const first = question * truth.depth;
    const exact = new Map();
    for (let rank = 0; rank < truth.depth; rank += 1) {
      if (truth.ids[first + rank] >= 0) exact.set(truth.ids[first + rank], truth.scores[first + rank]);
    }
    const needed = Math.min(k, exact.size);
    const least = needed === 0 ? 0 : truth.scores[first + needed - 1] * (1 - tolerance);
    let found = 0;
    for (const id of new Set(ids.subarray(question * k, question * k + k))) {
      if ((exact.get(id) ?? -Infinity) >= least) found += 1;
    }
    right += Math.min(found, needed);
    wanted += needed;
    if (found >= needed) complete += 1;
  }
  return { recall: wanted === 0 ? 1 : right / wanted, allRight: questions === 0 ? 1 : complete / questions };
}
