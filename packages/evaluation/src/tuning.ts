import { DEFAULTS, type Fusion, type Kind, type QueryLists, type Setting } from './fusion.js';
import { type Interval, bootstrapInterval, deviation, mean, randomFrom, shuffled, valuesNeeded } from './statistics.js';

/** Values that are tried. Words weigh 1, or nothing; only ratios of weights matter. */
const CONSTANTS = [2, 5, 10, 20, 60];
const SPARSE = [0, 0.7, 1, 2];
const DENSE = [0, 0.5, 1, 1.5, 2, 3, 6];
/** Weights of sparse and dense lists that are tried without words. */
const WITHOUT_WORDS = [
  [1, 0],
  [0, 1],
  [1, 0.5],
  [1, 1],
  [1, 1.5],
  [1, 3],
] as const;

export const FOLDS = 5;
export const REPEATS = 10;
export const RESAMPLES = 2000;
export const SEED = 42;
/** With fewer queries than this, no interval is trusted: a bootstrap of so few values is too narrow. */
export const FEWEST = 30;
/** The least gain in nDCG@10 that is looked for in more queries; for less, it is said how many would show a gain worth having. */
const LEAST = 0.002;
const WORTHWHILE = 0.01;
/** Below this spread of the differences, the best setting ranks about as the defaults do, and no number of queries follows from it. */
const ALIKE = 0.01;

/** A comparison with the default settings, on the same queries. */
export interface Difference {
  /** Mean nDCG@10. */
  readonly ndcg: number;
  /** How much higher that is than with the default settings. */
  readonly gain: number;
  /** The 95% interval of `gain`. */
  readonly interval: Interval;
}

/** What to search with: the default settings of `rrf`, those of `linear`, or the best setting. */
export type Choice = 'defaults' | 'linear' | 'tuned';
/** Why the default settings are to be kept. */
export type Reason = 'best' | 'too-few' | 'uncertain' | 'worse';

export interface Tuning {
  readonly queries: number;
  /** How many settings were tried. */
  readonly settings: number;
  readonly defaults: { readonly setting: Setting; readonly ndcg: number };
  /** `linear` with its default settings, where it was among those tried. */
  readonly linear?: Difference;
  /** What choosing a setting by some queries gains on other queries. */
  readonly heldOut: Difference;
  /** The setting with the best mean over all queries, and that mean, which flatters it. */
  readonly best: {
    readonly setting: Setting;
    readonly ndcg: number;
    /** In how many of all trainings it was chosen. */
    readonly chosen: number;
    readonly trainings: number;
  };
  readonly choice: Choice;
  /** Why to keep the defaults, if that is the choice. */
  readonly reason?: Reason;
  /**
   * With how many judged queries the gain would show in four cases of five; undefined if there are as many, or if the best setting
   * ranks about as the defaults do.
   */
  readonly needed?: number;
  /** The gain that `needed` is for. Undefined if the best setting ranks about as the defaults do. */
  readonly neededFor?: number;
}

/**
 * Settings to try, the defaults first. Of equally good ones the first is chosen.
 *
 * @param lists the kind of each list
 */
export function settingsFor(lists: Iterable<Kind>, fusions: readonly Fusion[]): readonly Setting[] {
  const kindOfEach = [...lists];
  const kinds = new Set(kindOfEach);
  const all = [
    ...SPARSE.flatMap((sparse) => DENSE.map((dense) => ({ words: 1, sparse, dense }))),
    ...WITHOUT_WORDS.map(([sparse, dense]) => ({ words: 0, sparse, dense })),
  ];
  // What a list that is not there would weigh makes no difference.
  const known = (one: Setting['weights'], fusion: Fusion): Setting['weights'] => {
    const usual = DEFAULTS[fusion].weights;
    const of = (kind: Kind): number => (kinds.has(kind) ? one : usual)[kind];
    return { words: of('words'), sparse: of('sparse'), dense: of('dense') };
  };
  const counts = (weights: Setting['weights']): boolean => [...kinds].some((kind) => weights[kind] > 0);
  // A list alone is ranked in the same way with any weight.
  const ratios = (one: Setting['weights']): string => {
    const present = [...kinds].map((kind) => one[kind]);
    return present.map((weight) => weight / Math.max(...present)).join();
  };
  const weightsFor = (fusion: Fusion): readonly Setting['weights'][] => {
    const usable = all.map((one) => known(one, fusion)).filter(counts);
    return [...new Map(usable.toReversed().map((one) => [ratios(one), one])).values()].toReversed();
  };
  // A single list keeps its order with any constant, and normalized scores only lose the order below the mean.
  const isMixed = (one: Setting['weights']): boolean => kindOfEach.filter((kind) => one[kind] > 0).length > 1;
  const constantsFor = (one: Setting['weights']): readonly number[] =>
    isMixed(one) ? CONSTANTS : [DEFAULTS.rrf.constant ?? 0];
  const settings = fusions.flatMap((fusion) =>
    fusion === 'linear'
      ? weightsFor(fusion)
          .filter(isMixed)
          .map((one): Setting => ({ fusion, weights: one }))
      : weightsFor(fusion).flatMap((one) =>
          constantsFor(one).map((constant): Setting => ({ fusion, constant, weights: one })),
        ),
  );
  const rest = settings.filter((one) => !isSame(one, DEFAULTS.rrf)).sort((a, b) => distance(a) - distance(b));
  return [DEFAULTS.rrf, ...rest];
}

export function isSame(one: Setting, other: Setting): boolean {
  const of = ({ fusion, constant, weights: { words, sparse, dense } }: Setting): string =>
    [fusion, constant, words, sparse, dense].join();
  return of(one) === of(other);
}

/** How far a setting is from the defaults. */
function distance({ fusion, constant, weights }: Setting): number {
  const { constant: usual = 0, weights: usually } = DEFAULTS.rrf;
  const apart = (a: number, b: number): number => Math.abs(Math.log2((a + 0.25) / (b + 0.25)));
  const ofWeights = (['words', 'sparse', 'dense'] as const).map((kind) => apart(weights[kind], usually[kind]));
  return ofWeights.reduce((sum, one) => sum + one, fusion === 'linear' ? 0 : apart(constant ?? 0, usual) / 2);
}

/**
 * Chooses a setting by nDCG@10 and estimates what it gains over the first of `settings`, which are the defaults.
 *
 * The gain is measured by repeated cross-validation: the queries are split into folds, the best setting on all folds but one is
 * scored on that one, and each query gets the mean over all repetitions. A setting that is the best by chance on some queries
 * therefore gains nothing here. The interval is that of a paired bootstrap over the queries.
 */
export function tune(queries: readonly Pick<QueryLists, 'ndcg'>[], settings: readonly Setting[]): Tuning {
  const [standard = DEFAULTS.rrf] = settings;
  const scores = settings.map((setting) => Float64Array.from(queries, (query) => query.ndcg(setting)));
  const [base = new Float64Array()] = scores;
  const everything = Int32Array.from(queries.keys());
  const best = bestOf(scores, everything);
  const { differences, choices } = crossValidated(scores, base);
  const heldOut = compared(differences, base);
  const otherDefaults = settings.findIndex((setting) => isSame(setting, DEFAULTS.linear));
  const linear =
    otherDefaults > 0 ? scores[otherDefaults]?.map((score, query) => score - (base[query] ?? 0)) : undefined;
  const bestDifferences = (scores[best] ?? base).map((score, query) => score - (base[query] ?? 0));
  const certainly = queries.length < FEWEST ? 'defaults' : certain(best === 0 ? undefined : differences, linear);
  const choice = certainly === 'tuned' && best === otherDefaults ? 'linear' : certainly;
  return {
    queries: queries.length,
    settings: settings.length,
    defaults: { setting: standard, ndcg: mean(base) },
    ...(linear && { linear: compared(linear, base) }),
    heldOut,
    best: {
      setting: settings[best] ?? standard,
      ndcg: mean(scores[best] ?? base),
      chosen: choices.filter((one) => one === best).length,
      trainings: choices.length,
    },
    choice,
    ...(choice === 'defaults' && reasonOf(best === 0, heldOut, deviation(bestDifferences), queries.length)),
  };
}

function compared(differences: Float64Array, base: Float64Array): Difference {
  const gain = mean(differences);
  return { ndcg: mean(base) + gain, gain, interval: bootstrapInterval(differences, RESAMPLES, SEED) };
}

/** Which of the settings has the best mean over some queries. */
function bestOf(scores: readonly Float64Array[], queries: Int32Array): number {
  let best = 0;
  let most = -Infinity;
  for (const [setting, row] of scores.entries()) {
    let sum = 0;
    for (const query of queries) sum += row[query] ?? 0;
    // Sums in another order differ in the last digits.
    if (sum > most + 1e-9) [best, most] = [setting, sum];
  }
  return best;
}

/** How much better each query does under settings that were chosen without it, and which settings these were. */
function crossValidated(
  scores: readonly Float64Array[],
  base: Float64Array,
): { readonly differences: Float64Array; readonly choices: readonly number[] } {
  const random = randomFrom(SEED);
  const count = base.length;
  const differences = new Float64Array(count);
  const choices: number[] = [];
  const folds = Math.min(FOLDS, count);
  for (let repeat = 0; repeat < REPEATS; repeat += 1) {
    const order = shuffled(count, random);
    for (let fold = 0; fold < folds; fold += 1) {
      const choice = bestOf(
        scores,
        order.filter((_, at) => at % folds !== fold),
      );
      choices.push(choice);
      const row = scores[choice];
      for (let at = fold; at < count; at += folds) {
        const query = order[at] ?? 0;
        const difference = (row?.[query] ?? 0) - (base[query] ?? 0);
        differences[query] = (differences[query] ?? 0) + difference / REPEATS;
      }
    }
  }
  return { differences, choices };
}

/**
 * The simplest search whose gain is certain, and which none gains over with certainty.
 *
 * @param tuned by query, how much better a tuned search does than the defaults; undefined if these are the best setting
 * @param linear the same of `linear` with its defaults; undefined if that is not an option
 */
function certain(tuned: Float64Array | undefined, linear: Float64Array | undefined): Choice {
  const isGain = (differences: Float64Array): boolean => bootstrapInterval(differences, RESAMPLES, SEED).low > 0;
  const isLinear = linear !== undefined && isGain(linear);
  if (tuned === undefined || !isGain(tuned)) return isLinear ? 'linear' : 'defaults';
  return isLinear && !isGain(tuned.map((one, query) => one - (linear[query] ?? 0))) ? 'linear' : 'tuned';
}

/**
 * Why the gain that was measured is no reason to leave the defaults, and how many queries would tell.
 *
 * @param spread the standard deviation of what the best setting gains on each query
 */
function reasonOf(
  isBest: boolean,
  { gain, interval }: Difference,
  spread: number,
  count: number,
): Pick<Tuning, 'reason' | 'needed' | 'neededFor'> {
  const neededFor = gain >= LEAST ? gain : WORTHWHILE;
  const needed = Math.max(FEWEST, valuesNeeded(spread, neededFor));
  const isAlike = spread < ALIKE;
  if (count < FEWEST) return { reason: 'too-few', ...(!isAlike && { needed, neededFor }) };
  if (isBest) return { reason: 'best' };
  if (interval.high < 0) return { reason: 'worse' };
  if (isAlike) return { reason: 'uncertain' };
  return { reason: 'uncertain', neededFor, ...(needed > count && { needed }) };
}
