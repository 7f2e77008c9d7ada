import { type Addon, findBinding, loadAddon } from './binding.js';

/** How a linear fusion can bring the scores of a list to a common scale. */
export const NORMALIZERS = ['none', 'minmax', 'l2_norm', 'zscore'] as const;
/** How a linear fusion brings the scores of a list to a common scale. */
export type Normalizer = (typeof NORMALIZERS)[number];

/** A document of a ranked list. */
export interface Ranked {
  /** What tells the document from all others. */
  readonly key: string;
  /** Its score in the list. */
  readonly score: number;
}

/** One of the lists to fuse: without repeats, best first. */
export interface RankedList {
  /** The documents. */
  readonly hits: readonly Ranked[];
  /** Factor of the list's contribution to the fused scores. */
  readonly weight: number;
  /** How its scores are normalized in a sum. */
  readonly normalizer: Normalizer;
}

/** How the scores of a document in several lists are combined: by reciprocal ranks, or as a sum of normalized scores. */
export type FusionMethod =
  | {
      /** By the reciprocals of ranks. */
      readonly kind: 'rrf';
      /** Added to each rank: the higher it is, the smaller the advantage of the first ranks. */
      readonly rankConstant: number;
    }
  | {
      /** As a sum of normalized scores. */
      readonly kind: 'linear';
    };

let addon: Addon | undefined;

/**
 * Fuses lists with the arithmetic of the engine's own searches, in 32-bit floats. Equal scores are ordered by the first list that holds
 * either document, and by the rank there.
 */
export function fuseLists(method: FusionMethod, lists: readonly RankedList[]): readonly Ranked[] {
  addon ??= loadAddon(findBinding());
  const keys: string[] = [];
  const numbers = new Map<string, number>();
  const numberOf = (key: string): number => {
    const known = numbers.get(key);
    if (known !== undefined) return known;
    numbers.set(key, keys.length);
    return keys.push(key) - 1;
  };
  const { documents, scores } = addon.fuseLists(
    method.kind === 'rrf' ? method.rankConstant : null,
    lists.map(({ hits, weight, normalizer }) => ({
      documents: Uint32Array.from(hits, ({ key }) => numberOf(key)),
      scores: Float32Array.from(hits, ({ score }) => score),
      weight,
      normalizer,
    })),
  );
  return Array.from(documents, (document, at) => ({ key: keys[document] ?? '', score: scores[at] ?? 0 }));
}
