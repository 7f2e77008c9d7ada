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
export const DEFAULTS: Readonly<Record<Fusion, Setting>> = {
  rrf: { fusion: 'rrf', constant: 5, weights: { words: 1, sparse: 1, dense: 1.5 } },
  linear: { fusion: 'linear', weights: { words: 1, sparse: 0.7, dense: 1.5 } },
};

/** Hits of each list that are fused by default. */
export const WINDOW = 100;

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

interface Prepared {
  readonly kind: Kind;
  readonly share: number;
  /** Numbers of the documents, the best first. */
  readonly documents: Int32Array;
  /** Normalized scores, in the order of the documents. */
  readonly scores: Float32Array;
}

/**
 * The lists that were fetched for one query, ready to be fused in many ways. As the server does, it rounds each step to 32-bit
 * numbers. Equal scores are sorted by the order of the documents, and those of `linear` by the place in the first list that holds
 * either document. A test compares the order of the hits with the server's.
 */
export class QueryLists {
  readonly #lists: readonly Prepared[];
  /** Ids of the documents, in the order of the server. */
  readonly #ids: readonly string[];
  /** Numbers of the documents by {@link keyOf}. */
  readonly #numbers: ReadonlyMap<string, number>;
  /** For each relevant id in the lists, the numbers of the documents that have it, one of each index, and its grade. */
  readonly #relevant: readonly (readonly [documents: readonly number[], grade: number])[];
  readonly #ideal: number;

  constructor(
    lists: readonly List[],
    grades: Grades,
    /** Ranks that nDCG takes into account. */
    readonly depth = 10,
  ) {
    const hitsByKey = new Map(lists.flatMap(({ hits }) => hits.map((hit) => [keyOf(hit), hit] as const)));
    const documents = [...hitsByKey].sort(([, one], [, other]) => compare(one, other));
    const numbers = new Map(documents.map(([key], number) => [key, number]));
    this.#numbers = numbers;
    this.#ids = documents.map(([, { id }]) => id);
    this.#lists = lists.map(({ kind, share, hits }) => ({
      kind,
      share,
      documents: Int32Array.from(hits, (hit) => numbers.get(keyOf(hit)) ?? 0),
      scores: zscores(hits.map(({ score }) => score)),
    }));
    const numbersById = new Map<string, number[]>();
    for (const [number, id] of this.#ids.entries()) numbersById.set(id, [...(numbersById.get(id) ?? []), number]);
    this.#relevant = [...numbersById].flatMap(([id, found]) => {
      const grade = grades.get(id) ?? 0;
      return grade > 0 ? [[found, grade] as const] : [];
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
    return sorted(this.#fused(setting)).map((document) => this.#ids[document] ?? '');
  }

  /**
   * Whether hits are the first {@link WINDOW} of the fused list, as far as scores can tell: documents whose scores differ by less than
   * rounding does may have changed places.
   */
  isRanked(setting: Setting, hits: readonly Pick<RankedHit, 'index' | 'id'>[]): boolean {
    const fused = this.#fused(setting);
    const { scores } = fused;
    const order = sorted(fused);
    const scoreAt = (rank: number): number => scores[order[rank] ?? -1] ?? ABSENT;
    return (
      hits.length === Math.min(order.length, WINDOW) &&
      hits.every((hit, rank) => {
        const document = this.#numbers.get(keyOf(hit));
        // A document that is in no list that counts has no score: a difference between two of them would be no number.
        const score = document === undefined ? ABSENT : (scores[document] ?? ABSENT);
        return score !== ABSENT && Math.abs(score - scoreAt(rank)) < ROUNDING;
      })
    );
  }

  /**
   * nDCG of the fused list, in which an id that several indices have is credited once, at its first rank. Only the ranks of relevant
   * documents are looked up, since this is called for every setting.
   */
  ndcg(setting: Setting): number {
    if (this.#ideal === 0) return 0;
    const fused = this.#fused(setting);
    const { scores } = fused;
    let gain = 0;
    for (const [documents, grade] of this.#relevant) {
      const document = documents.reduce((first, other) => (isBefore(fused, other, first) ? other : first));
      if (scores[document] === ABSENT) continue;
      let before = 0;
      for (let other = 0; other < scores.length; other += 1) if (isBefore(fused, other, document)) before += 1;
      if (before < this.depth) gain += grade / Math.log2(before + 2);
    }
    return gain / this.#ideal;
  }

  #fused({ fusion, constant = 0, weights }: Setting): Fused {
    const fused = new Float32Array(this.#ids.length).fill(ABSENT);
    const places = Int32Array.from(fused.keys());
    let found = 0;
    for (const { kind, share, documents, scores } of this.#lists) {
      const weight = weightOf(weights[kind], share);
      if (weight <= 0) continue;
      for (const [at, document] of documents.entries()) {
        const value = fusion === 'rrf' ? Math.fround(1 / (constant + at + 1)) : (scores[at] ?? 0);
        const before = fused[document] ?? ABSENT;
        if (before === ABSENT && fusion === 'linear') places[document] = found++;
        fused[document] = (before === ABSENT ? 0 : before) + Math.fround(weight * value);
      }
    }
    return { scores: fused, places };
  }
}

/** What a fusion makes of documents, each by its number. */
interface Fused {
  /** {@link ABSENT} for a document that is in no list that counts. */
  readonly scores: Float32Array;
  /** Which of two documents of equal scores goes first. */
  readonly places: Int32Array;
}

const ABSENT = -Infinity;
/** Scores that differ by less than this are taken for equal. One rank more makes a greater difference. */
const ROUNDING = 1e-5;

/** The weight of one list, as the server has it. */
export function weightOf(weight: number, share: number): number {
  return Math.fround(Math.fround(weight) * Math.fround(share));
}

/** Whether one document goes before another in the fused list. */
function isBefore({ scores, places }: Fused, one: number, other: number): boolean {
  const [score, reached] = [scores[one] ?? ABSENT, scores[other] ?? ABSENT];
  return score > reached || (score === reached && (places[one] ?? 0) < (places[other] ?? 0));
}

/** Numbers of the documents that have a score, the best first. */
function sorted({ scores, places }: Fused): number[] {
  return [...scores.keys()]
    .filter((document) => scores[document] !== ABSENT)
    .sort((a, b) => (scores[b] ?? 0) - (scores[a] ?? 0) || (places[a] ?? 0) - (places[b] ?? 0));
}

function keyOf({ index, id }: Pick<RankedHit, 'index' | 'id'>): string {
  return JSON.stringify([index, id]);
}

function compare(one: RankedHit, other: RankedHit): number {
  if (one.index !== other.index) return one.index < other.index ? -1 : 1;
  return one.order - other.order;
}

/** Standard deviations above the mean of all scores, 0 below it; 1 if all scores are equal. */
function zscores(decimals: readonly number[]): Float32Array {
  // The server writes a 32-bit score as its shortest decimal, which is another number.
  const scores = decimals.map(Math.fround);
  const mean = scores.reduce((sum, score) => sum + score, 0) / Math.max(1, scores.length);
  const squares = scores.reduce((sum, score) => sum + (score - mean) ** 2, 0);
  const deviation = Math.fround(Math.sqrt(squares / Math.max(1, scores.length)));
  const isFlat = deviation < 1e-6;
  const offset = Math.fround(isFlat ? Math.fround(mean) - 1 : mean);
  const divisor = isFlat ? 1 : deviation;
  return Float32Array.from(scores, (score) => Math.max(0, Math.fround(Math.fround(score - offset) / divisor)));
}
