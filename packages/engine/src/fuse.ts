import type { FusedList } from './addon.generated.js';
import { type Addon, findBinding, loadAddon } from './binding.js';
import { EngineError } from './errors.js';

/** How a linear fusion can bring the scores of a list to a common scale. */
export const NORMALIZERS = ['none', 'minmax', 'l2_norm', 'zscore', 'rarity', 'calibrated'] as const;
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

/** Documents by their numbers, best first. */
export interface NumberedHits {
  /** Numbers of the documents, without repeats. */
  readonly documents: Uint32Array;
  /** The score of each document. */
  readonly scores: Float32Array;
}

/** One of the lists to fuse, of documents that are numbers. */
export interface NumberedList extends NumberedHits {
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

/** The lists that the short form of a fusion stands for: a text that is looked for as words and by its meaning. */
export interface ShortForm {
  /** Added to each rank; null for a sum of scores. */
  readonly rank_constant: number | null;
  /** How many hits of each list are fused: as many as the request says, or so many to begin with. */
  readonly window: {
    /** Hits of each list. */
    readonly size: number;
    /** Whether the request says it. */
    readonly given: boolean;
  };
  /** The lists. */
  readonly lists: readonly {
    /** Factor of the list's contribution to the fused scores. */
    readonly weight: number;
    /** The name of the normalizer of its scores. */
    readonly normalizer: string;
    /** Words in fields, with the factors of these, or one kind of vectors of a `semantic_text` field. */
    readonly list:
      | {
          /** Names and factors; none for all fields. */
          readonly fields: readonly (readonly [string, number])[];
          /** Whether only documents that have all words of the text are in the list. */
          readonly all: boolean;
        }
      | {
          /** Path of the field. */
          readonly field: string;
          /** The kind of vectors. */
          readonly part: 'sparse' | 'dense';
        };
  }[];
}

let addon: Addon | undefined;

/**
 * The lists that the short form of an `rrf` or `linear` retriever stands for, with the weights, windows and constants of the engine's own
 * searches.
 *
 * @param kind `rrf` or `linear`
 * @param given what the retriever says, without filters
 * @param indices the mappings of the indices that are searched, as far as they concern `semantic_text`
 * @throws {EngineError} what a search with it answers
 */
export function expandShortForm(
  kind: string,
  given: object,
  indices: readonly {
    /** Name of the index. */
    readonly index: string;
    /** Its mapping. */
    readonly mapping: object;
    /** What of its state a mapping does not show. */
    readonly state: unknown;
  }[],
): ShortForm {
  addon ??= loadAddon(findBinding());
  const { status, body } = addon.expandShortForm(JSON.stringify({ retriever: { [kind]: given }, indices }));
  if (status !== 200) throw new EngineError(status, Buffer.from(body));
  return JSON.parse(body) as ShortForm;
}

/**
 * Fuses lists with the arithmetic of the engine's own searches, in 32-bit floats. Equal scores are ordered by the first list that holds
 * either document, and by the rank there.
 */
export function fuseLists(method: FusionMethod, lists: readonly RankedList[]): readonly Ranked[] {
  const documents = new Documents();
  const numbered = lists.map(({ hits, weight, normalizer }) => ({ ...documents.listed(hits), weight, normalizer }));
  return documents.named(fuseNumbered(method, numbered));
}

/** As {@link fuseLists}, of documents that are numbers, for lists that are fused in many ways. */
export function fuseNumbered(method: FusionMethod, lists: readonly NumberedList[]): NumberedHits {
  addon ??= loadAddon(findBinding());
  return addon.fuseLists(method.kind === 'rrf' ? method.rankConstant : null, [...lists]);
}

/** How the scores of a list in one index become probabilities of relevance. */
export interface CalibrationMap {
  /** Factor of a score. */
  readonly gain: number;
  /** Log-odds of the score 0. */
  readonly offset: number;
  /** Log-odds that a document which is not in the list is relevant. */
  readonly absent: number;
}

/** One of the lists of a calibrated fusion: without repeats, best first. */
export interface CalibratedList {
  /** The documents. */
  readonly hits: readonly Ranked[];
  /** Weight of the list in the fused scores. */
  readonly weight: number;
  /** The map of the list's scores in each index; undefined where it finds nothing there. */
  readonly maps: readonly (CalibrationMap | undefined)[];
}

/**
 * Fuses lists into probabilities of relevance, as the engine's own searches do with the normalizer `calibrated`. Equal scores are ordered
 * as by {@link fuseLists}.
 *
 * @param indexOf the number of the index that a document is from, by its key
 */
export function fuseCalibrated(indexOf: (key: string) => number, lists: readonly CalibratedList[]): readonly Ranked[] {
  addon ??= loadAddon(findBinding());
  const documents = new Documents();
  const listed = lists.map(({ hits, weight, maps }) => ({ ...documents.listed(hits), weight, maps: [...maps] }));
  return documents.named(addon.fuseCalibrated(Uint32Array.from(documents.keys, indexOf), listed));
}

/** Numbers in place of the keys of documents, as the addon has them. */
class Documents {
  readonly keys: string[] = [];
  readonly #numbers = new Map<string, number>();

  listed(hits: readonly Ranked[]): { readonly documents: Uint32Array; readonly scores: Float32Array } {
    return {
      documents: Uint32Array.from(hits, ({ key }) => this.#numberOf(key)),
      scores: Float32Array.from(hits, ({ score }) => score),
    };
  }

  named({ documents, scores }: FusedList): readonly Ranked[] {
    return Array.from(documents, (document, at) => ({ key: this.keys[document] ?? '', score: scores[at] ?? 0 }));
  }

  #numberOf(key: string): number {
    const known = this.#numbers.get(key);
    if (known !== undefined) return known;
    this.#numbers.set(key, this.keys.length);
    return this.keys.push(key) - 1;
  }
}
