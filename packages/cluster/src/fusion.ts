/** A document of a ranked list, by a key that tells it from all others. */
export interface Ranked {
  readonly key: string;
  readonly score: number;
}

/** How a linear fusion brings the scores of a list to a common scale. */
export type Normalizer = (typeof NORMALIZERS)[number];
export const NORMALIZERS = ['none', 'minmax', 'l2_norm', 'zscore'] as const;

/** One of the lists to fuse, best first. */
export interface List {
  readonly hits: readonly Ranked[];
  readonly weight: number;
  readonly normalizer: Normalizer;
}

export type Method = { readonly kind: 'rrf'; readonly rankConstant: number } | { readonly kind: 'linear' };

/** Below it a range or a norm counts as none. */
const EPSILON = 1e-6;

const { fround } = Math;

/**
 * Fuses lists, with the arithmetic of 32-bit floats that the native engine has. Equal scores are ordered by the first list that
 * holds either document, and by the rank there: no two documents have the same.
 */
export function fuse(method: Method, lists: readonly List[]): readonly Ranked[] {
  const fused = new Map<string, { score: number; first: readonly [number, number] }>();
  lists.forEach(({ hits, weight, normalizer }, number) => {
    const normalized = normalization(method.kind === 'rrf' ? 'none' : normalizer, hits);
    hits.forEach(({ key, score }, at) => {
      const added =
        method.kind === 'rrf'
          ? fround(fround(weight) * fround(1 / fround(method.rankConstant + at + 1)))
          : fround(fround(weight) * normalized(score));
      const known = fused.get(key);
      if (known === undefined) fused.set(key, { score: added, first: [number, at] });
      else known.score = fround(known.score + added);
    });
  });
  return [...fused]
    .sort(([, a], [, b]) => b.score - a.score || a.first[0] - b.first[0] || a.first[1] - b.first[1])
    .map(([key, { score }]) => ({ key, score }));
}

function normalization(normalizer: Normalizer, hits: readonly Ranked[]): (score: number) => number {
  // With 0 for the divisor, equal scores are meant, or a single hit: they become 1.
  let [offset, divisor] = [0, 1];
  if (normalizer === 'minmax' && hits.length > 0) {
    const scores = hits.map(({ score }) => score);
    const least = scores.reduce((a, b) => Math.min(a, b));
    const range = fround(scores.reduce((a, b) => Math.max(a, b)) - least);
    [offset, divisor] = range < EPSILON ? [0, 0] : [least, range];
  } else if (normalizer === 'l2_norm') {
    const norm = fround(Math.sqrt(hits.reduce((sum, { score }) => sum + score * score, 0)));
    if (norm >= EPSILON) divisor = norm;
  } else if (normalizer === 'zscore') {
    const count = Math.max(1, hits.length);
    const mean = hits.reduce((sum, { score }) => sum + score, 0) / count;
    const deviation = fround(Math.sqrt(hits.reduce((sum, { score }) => sum + (score - mean) ** 2, 0) / count));
    [offset, divisor] = deviation < EPSILON ? [0, 0] : [fround(mean), deviation];
  }
  const least = normalizer === 'zscore' ? 0 : -Infinity;
  return (score) => (divisor === 0 ? 1 : Math.max(least, fround(fround(score - offset) / divisor)));
}

/** The shortest decimal that stands for a 32-bit float, as answers have scores. */
export function shortest(score: number): string {
  for (let digits = 6; digits < 10; digits += 1) {
    const text = Number(score.toPrecision(digits));
    if (Math.fround(text) === Math.fround(score)) return Number.isInteger(text) ? text.toFixed(1) : String(text);
  }
  return String(score);
}
