import type { Grades } from '../ranking-metrics.js';

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
const DEFAULT_WEIGHTS: Weights = { words: 1, sparse: 1, dense: 1.5 };
export const DEFAULTS: Readonly<Record<Fusion, Setting>> = {
  rrf: { fusion: 'rrf', constant: 5, weights: DEFAULT_WEIGHTS },
  linear: { fusion: 'linear', weights: DEFAULT_WEIGHTS },
};

/** Hits of each list that are fused by default. */
export const WINDOW = 100;

/** A document as a search returned it. */
export interface Found {
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
  readonly hits: readonly Found[];
}

interface Prepared {
  readonly kind: Kind;
  readonly share: number;
  /** Numbers of the documents, the best first. */
  readonly documents: Int32Array;
  /** Their normalized scores. */
  readonly scores: Float32Array;
}

/**
 * The lists that were fetched for one query, ready to be fused in many ways. The results are those of the server, to the bit: it
 * calculates with 32-bit numbers, so each step is rounded to them, and sorts equal scores by the order of the documents.
 */
export class QueryLists {
  readonly #lists: readonly Prepared[];
  /** Ids of the documents, in the order of the server. */
  readonly #ids: readonly string[];
  /** Numbers of the documents that were found and are relevant, with their grades. */
  readonly #relevant: readonly (readonly [document: number, grade: number])[];
  readonly #ideal: number;

  constructor(
    lists: readonly List[],
    grades: Grades,
    /** Ranks that nDCG takes into account. */
    readonly depth = 10,
  ) {
    const found = new Map(lists.flatMap(({ hits }) => hits.map((hit) => [keyOf(hit), hit] as const)));
    const documents = [...found].sort(([, one], [, other]) => compare(one, other));
    const numbers = new Map(documents.map(([key], number) => [key, number]));
    this.#ids = documents.map(([, { id }]) => id);
    this.#lists = lists.map(({ kind, share, hits }) => ({
      kind,
      share,
      documents: Int32Array.from(hits, (hit) => numbers.get(keyOf(hit)) ?? 0),
      scores: zscores(hits.map(({ score }) => score)),
    }));
    this.#relevant = this.#ids.flatMap((id, number) => {
      const grade = grades.get(id) ?? 0;
      return grade > 0 ? [[number, grade] as const] : [];
    });
    const best = [...grades.values()].sort((a, b) => b - a).slice(0, depth);
    this.#ideal = best.reduce((sum, grade, at) => sum + grade / Math.log2(at + 2), 0);
  }

  /** Whether any of the lists has a relevant document. */
  get findsRelevant(): boolean {
    return this.#relevant.length > 0;
  }

  /** Ids of the fused list, the best first. */
  ranked(setting: Setting): readonly string[] {
    const scores = this.#fused(setting);
    return [...scores.keys()]
      .filter((document) => scores[document] !== ABSENT)
      .sort((a, b) => (scores[b] ?? 0) - (scores[a] ?? 0) || a - b)
      .map((document) => this.#ids[document] ?? '');
  }

  /** nDCG of the fused list. Only the ranks of relevant documents are looked up, since this is called for every setting. */
  ndcg(setting: Setting): number {
    if (this.#ideal === 0) return 0;
    const scores = this.#fused(setting);
    let gain = 0;
    for (const [document, grade] of this.#relevant) {
      const own = scores[document] ?? ABSENT;
      if (own === ABSENT) continue;
      let before = 0;
      for (let other = 0; other < scores.length; other += 1) {
        const score = scores[other] ?? ABSENT;
        if (score > own || (score === own && other < document)) before += 1;
      }
      if (before < this.depth) gain += grade / Math.log2(before + 2);
    }
    return gain / this.#ideal;
  }

  /** The score of each document by its number; {@link ABSENT} if it is in no list that counts. */
  #fused({ fusion, constant = 0, weights }: Setting): Float32Array {
    const fused = new Float32Array(this.#ids.length).fill(ABSENT);
    for (const { kind, share, documents, scores } of this.#lists) {
      const weight = Math.fround(Math.fround(weights[kind]) * Math.fround(share));
      if (weight <= 0) continue;
      for (const [at, document] of documents.entries()) {
        const value = fusion === 'rrf' ? Math.fround(1 / (constant + at + 1)) : (scores[at] ?? 0);
        const before = fused[document] ?? ABSENT;
        fused[document] = (before === ABSENT ? 0 : before) + Math.fround(weight * value);
      }
    }
    return fused;
  }
}

const ABSENT = -Infinity;

function keyOf({ index, id }: Found): string {
  return JSON.stringify([index, id]);
}

function compare(one: Found, other: Found): number {
  if (one.index !== other.index) return one.index < other.index ? -1 : 1;
  return one.order - other.order;
}

/** Standard deviations above the mean of all scores, 0 below it; 1 if all scores are equal. */
function zscores(scores: readonly number[]): Float32Array {
  const mean = scores.reduce((sum, score) => sum + score, 0) / Math.max(1, scores.length);
  const squares = scores.reduce((sum, score) => sum + (score - mean) ** 2, 0);
  const deviation = Math.fround(Math.sqrt(squares / Math.max(1, scores.length)));
  const isFlat = deviation < 1e-6;
  const offset = Math.fround(isFlat ? Math.fround(mean) - 1 : mean);
  const divisor = isFlat ? 1 : deviation;
  return Float32Array.from(scores, (score) =>
    Math.max(0, Math.fround(Math.fround(Math.fround(score) - offset) / divisor)),
  );
}
