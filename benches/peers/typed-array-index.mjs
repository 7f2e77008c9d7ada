// The good inverted index that somebody could write in TypeScript: typed arrays, term at a time into an accumulator array, a heap
// for the best. It holds the same vectors as Sparrow and answers exactly, so it is the reference for everybody's answers too.

export class TypedArrayIndex {
  #start;
  #docs;
  #weights;
  #scores;

  /**
   * @param {import('../lib/vectors.mjs').Vectors} vectors one row a document
   * @param {{ precise?: boolean }} [options] sums in double precision, for a reference
   */
  constructor({ ptr, idx, val, rows }, { precise = false } = {}) {
    // Words of texts have more columns than a model's vocabulary.
    const columns = idx.reduce((most, term) => Math.max(most, term + 1), 0);
    const start = new Uint32Array(columns + 1);
    for (const term of idx) start[term + 1] += 1;
    for (let term = 0; term < columns; term += 1) start[term + 1] += start[term];
    const next = start.slice();
    const [docs, weights] = [new Uint32Array(idx.length), new Float32Array(idx.length)];
    for (let doc = 0; doc < rows; doc += 1) {
      for (let at = ptr[doc]; at < ptr[doc + 1]; at += 1) {
        const to = next[idx[at]]++;
        docs[to] = doc;
        weights[to] = val[at];
      }
    }
    this.#start = start;
    this.#docs = docs;
    this.#weights = weights;
    this.#scores = precise ? new Float64Array(rows) : new Float32Array(rows);
  }

  get bytes() {
    return this.#docs.byteLength + this.#weights.byteLength + this.#start.byteLength;
  }

  /**
   * The `k` documents with the highest dot products above zero, best first, equals by number.
   *
   * @param {Uint32Array} terms
   * @param {Float32Array} query their weights
   * @returns {{ doc: number, score: number }[]}
   */
  search(terms, query, k) {
    const [start, docs, weights, scores] = [this.#start, this.#docs, this.#weights, this.#scores];
    for (let i = 0; i < terms.length; i += 1) {
      const weight = query[i];
      const end = start[terms[i] + 1];
      for (let at = start[terms[i]]; at < end; at += 1) scores[docs[at]] += weight * weights[at];
    }
    const [heapScores, heapDocs] = [new Float64Array(k), new Int32Array(k).fill(-1)];
    let least = 0;
    // Documents come in ascending order, so that of equals the first stay.
    for (let doc = 0; doc < scores.length; doc += 1) {
      const score = scores[doc];
      if (score <= least) continue;
      let at = 0;
      for (;;) {
        let child = 2 * at + 1;
        if (child >= k) break;
        if (child + 1 < k && below(heapScores, heapDocs, child + 1, child)) child += 1;
        if (heapScores[child] > score || (heapScores[child] === score && heapDocs[child] < doc)) break;
        heapScores[at] = heapScores[child];
        heapDocs[at] = heapDocs[child];
        at = child;
      }
      heapScores[at] = score;
      heapDocs[at] = doc;
      least = heapScores[0];
    }
    scores.fill(0);
    return Array.from(heapDocs, (doc, at) => ({ doc, score: heapScores[at] }))
      .filter(({ doc }) => doc >= 0)
      .sort((a, b) => b.score - a.score || a.doc - b.doc);
  }
}

/** Whether the entry at `a` has to leave the heap before the one at `b`: the lower score, of equals the later document. */
function below(scores, docs, a, b) {
  return scores[a] < scores[b] || (scores[a] === scores[b] && docs[a] > docs[b]);
}
