/** Similarity of two names above which one is taken for a slip of the other. */
const SIMILAR = 0.5;

/** The names that may have been meant by one that is not known, the most similar first. */
export function near(name: string, known: Iterable<string>): string[] {
  return [...known]
    .map((candidate) => ({ candidate, similarity: similarity(name, candidate) }))
    .filter((one) => one.similarity > SIMILAR)
    .sort((a, b) => b.similarity - a.similarity || (a.candidate < b.candidate ? -1 : 1))
    .map(({ candidate }) => candidate);
}

/** One less the edit distance by the length of the longer name; 0 for names of very different lengths. */
export function similarity(a: string, b: string): number {
  const longer = Math.max(a.length, b.length);
  // Nothing so different in length is near, and a name may be as long as a line.
  if (longer === 0 || Math.min(a.length, b.length) / longer <= SIMILAR) return 0;
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const changed = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(changed, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return 1 - (row[b.length] ?? 0) / longer;
}
