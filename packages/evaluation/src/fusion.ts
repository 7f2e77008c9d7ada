import { type NumberedHits, type NumberedList, fuseNumbered } from '@sparrow-search/engine';

import { type Grades, ndcg } from './ranking-metrics.js';

/** What a ranked list is made by. */
export const KINDS = ['words', 'sparse', 'dense'] as const;
export type Kind = (typeof KINDS)[number];

/** How much the lists of each kind count. All the lists of one kind share its weight. */
export type Weights = Readonly<Record<Kind, number>>;

export const FUSIONS = ['rrf', 'linear'] as const;
export type Fusion = (typeof FUSIONS)[number];

/** One way to fuse lists. Scores of `linear` are normalized by `zscore`. */
export interface Setting {
  readonly fusion: Fusion;
  /** The `rank_constant`, which only `rrf` has. */
  readonly constant?: number;
  readonly weights: Weights;
}

/** Settings of the short forms `{"rrf": {"query"}}` and `{"linear": {"query", "normalizer": "zscore"}}` of the server. */
export const DEFAULTS: Readonly<Record<Fusion, Setting>> = {
  rrf: { fusion: 'rrf', constant: 5, weights: { words: 1, sparse: 1, dense: 1.5 } },
  linear: { fusion: 'linear', weights: { words: 1, sparse: 0.7, dense: 1.5 } },
};

/** Hits of each list that are fused by default. */
export const WINDOW = 100;
/** Ranks that nDCG takes into account. */
const DEPTH = 10;

/** A document in the answer of a search. */
export interface RankedHit {
  readonly index: string;
  readonly id: string;
  /** The sequence number of its last write, by which the server sorts hits of equal scores. */
  readonly order: number;
  readonly score: number;
}

/** The hits of one of the searches that are fused, the best first. */
export interface List {
  readonly kind: Kind;
  /** The part of the weight of its kind that this list has: 1 unless there are several semantic fields. */
  readonly share: number;
  readonly hits: readonly RankedHit[];
}

interface Prepared extends NumberedHits {
  readonly kind: Kind;
  readonly share: number;
}

/**
 * The lists that were fetched for one query, ready to be fused in many ways, with the arithmetic of the server. Equal scores are sorted by
 * the order of the documents, and those of `linear` by the place in the first list that holds either document. A test compares the order
 * of the hits with the server's.
 */
export class QueryLists {
  readonly #lists: readonly Prepared[];
  /** Ids of the documents, in the order of the server. */
  readonly #ids: readonly string[];
  /** Numbers of the documents by {@link keyOf}. */
  readonly #numbers: ReadonlyMap<string, number>;
  readonly #grades: Grades;

  constructor(lists: readonly List[], grades: Grades) {
    const hitsByKey = new Map(lists.flatMap(({ hits }) => hits.map((hit) => [keyOf(hit), hit] as const)));
    const documents = [...hitsByKey].sort(([, one], [, other]) => compare(one, other));
    const numbers = new Map(documents.map(([key], number) => [key, number]));
    this.#numbers = numbers;
    this.#ids = documents.map(([, { id }]) => id);
    this.#lists = lists.map(({ kind, share, hits }) => ({
      kind,
      share,
      documents: Uint32Array.from(hits, (hit) => numbers.get(keyOf(hit)) ?? 0),
      scores: Float32Array.from(hits, ({ score }) => score),
    }));
    this.#grades = grades;
  }

  /** Whether any of the lists has a relevant document. */
  get findsRelevant(): boolean {
    return this.#ids.some((id) => (this.#grades.get(id) ?? 0) > 0);
  }

  /** Ids of the fused list, the best first. */
  ranked(setting: Setting): readonly string[] {
    return this.#idsOf(this.#fused(setting).documents);
  }

  /**
   * Whether hits are the first {@link WINDOW} of the fused list, as far as scores can tell: documents whose scores differ by less than
   * rounding does may have changed places.
   */
  isRanked(setting: Setting, hits: readonly Pick<RankedHit, 'index' | 'id'>[]): boolean {
    const { documents, scores } = this.#fused(setting);
    const scoreOf = new Map(Array.from(documents, (document, rank) => [document, scores[rank] ?? 0]));
    return (
      hits.length === Math.min(documents.length, WINDOW) &&
      hits.every((hit, rank) => {
        const document = this.#numbers.get(keyOf(hit));
        // A document that is in no list that counts has no score.
        const score = document === undefined ? undefined : scoreOf.get(document);
        return score !== undefined && Math.abs(score - (scores[rank] ?? 0)) < ROUNDING;
      })
    );
  }

  /** nDCG@10 of the fused list. */
  ndcg(setting: Setting): number {
    return ndcg(this.#idsOf(this.#fused(setting).documents.subarray(0, DEPTH)), this.#grades, DEPTH);
  }

  #idsOf(documents: Uint32Array): readonly string[] {
    return Array.from(documents, (document) => this.#ids[document] ?? '');
  }

  #fused({ fusion, constant = 0, weights }: Setting): NumberedHits {
    const counting = this.#lists.flatMap(({ kind, share, documents, scores }): NumberedList[] => {
      const weight = weightOf(weights[kind], share);
      return weight > 0 ? [{ documents, scores, weight, normalizer: 'zscore' }] : [];
    });
    if (fusion === 'linear') return fuseNumbered({ kind: 'linear' }, counting);
    return inOrder(fuseNumbered({ kind: 'rrf', rankConstant: constant }, counting));
  }
}

/** Sorts documents of equal scores by their numbers. */
function inOrder(fused: NumberedHits): NumberedHits {
  const { documents, scores } = fused;
  for (let start = 0, end = 1; start < scores.length; start = end, end += 1) {
    while (end < scores.length && scores[end] === scores[start]) end += 1;
    if (end - start > 1) documents.subarray(start, end).sort();
  }
  return fused;
}

/** Scores that differ by less than this are taken for equal. One rank more makes a greater difference. */
const ROUNDING = 1e-5;

/** The weight of one list, as the server has it. */
export function weightOf(weight: number, share: number): number {
  return Math.fround(Math.fround(weight) * Math.fround(share));
}

function keyOf({ index, id }: Pick<RankedHit, 'index' | 'id'>): string {
  return JSON.stringify([index, id]);
}

function compare(one: RankedHit, other: RankedHit): number {
  if (one.index !== other.index) return one.index < other.index ? -1 : 1;
  return one.order - other.order;
}
