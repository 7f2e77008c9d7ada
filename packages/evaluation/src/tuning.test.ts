import { describe, expect, it } from 'vitest';

import { DEFAULTS, FUSIONS, type RankedHit, type Kind, type List, QueryLists, type Setting } from './fusion.js';
import { bootstrapInterval, deviation, mean, randomFrom, shuffled, valuesNeeded } from './statistics.js';
import { isSame, settingsFor, tune } from './tuning.js';

const KINDS = new Set<Kind>(['words', 'sparse', 'dense']);
const ids = Array.from({ length: 30 }, (_, at) => `d${String(at)}`);

/** Queries with one relevant document each, whose rank in each list is drawn at random between two bounds. */
function queries(count: number, seed: number, ranks: Readonly<Record<Kind, readonly [number, number]>>): QueryLists[] {
  const random = randomFrom(seed);
  return Array.from({ length: count }, () => {
    const relevant = ids[Math.floor(random() * ids.length)] ?? '';
    const lists = [...KINDS].map((kind): List => {
      const order = [...shuffled(ids.length, random)].map((at) => ids[at] ?? '').filter((id) => id !== relevant);
      const [from, to] = ranks[kind];
      order.splice(from + Math.floor(random() * (to - from + 1)), 0, relevant);
      const hits = order.map((id, at): RankedHit => ({
        index: 'i',
        id,
        order: ids.indexOf(id),
        score: ids.length - at + random(),
      }));
      return { kind, share: 1, hits };
    });
    return new QueryLists(lists, new Map([[relevant, 1]]));
  });
}

describe('settings', () => {
  it('begin with the defaults, and have nothing twice', () => {
    const settings = settingsFor(KINDS, FUSIONS);
    expect(settings[0]).toEqual({ fusion: 'rrf', constant: 5, weights: { words: 1, sparse: 1, dense: 1.5 } });
    for (const [at, one] of settings.entries()) expect(settings.findIndex((other) => isSame(one, other))).toBe(at);
  });

  it('vary only weights of lists that there are', () => {
    for (const { fusion, weights } of settingsFor(new Set<Kind>(['words', 'dense']), FUSIONS))
      expect(weights.sparse).toBe(DEFAULTS[fusion].weights.sparse);
  });

  it('vary the constant only where it makes a difference', () => {
    expect(settingsFor(KINDS, FUSIONS)).toHaveLength(189);
    const dense = (lists: readonly Kind[]): number =>
      settingsFor(lists, ['rrf']).filter(({ weights: { words, dense: weight } }) => words === 0 && weight > 0).length;
    expect([dense(['words', 'dense']), dense(['words', 'dense', 'dense'])]).toEqual([1, 5]);
  });

  it('leave words out beside several lists of a kind, whichever kind is not there', () => {
    for (const fusion of FUSIONS) {
      const settings = settingsFor(['words', 'dense', 'dense'], [fusion]);
      expect(settings.some((one) => one.fusion === fusion && one.weights.words === 0)).toBe(true);
    }
  });

  it('are of the fusion that is asked for, besides the defaults', () => {
    const [, ...rest] = settingsFor(KINDS, ['linear']);
    expect(new Set(rest.map(({ fusion }) => fusion))).toEqual(new Set(['linear']));
  });
});

describe('tuning', () => {
  const settings = settingsFor(KINDS, ['rrf']);

  it('finds that one list is right and the others are not', () => {
    const result = tune(queries(80, 1, { words: [5, 29], sparse: [5, 29], dense: [0, 1] }), settings);
    expect(result.choice).toBe('tuned');
    const { weights } = result.best.setting;
    expect(weights.dense).toBeGreaterThanOrEqual(2 * Math.max(weights.words, weights.sparse));
    expect(result.heldOut.interval.low).toBeGreaterThan(0);
    expect(result.heldOut.gain).toBeGreaterThan(0.1);
  });

  describe('among settings that are equally good', () => {
    const settingsAlike = [
      [0.5, 1, 3],
      [0.5, 3, 1],
      [1, 0.5, 3],
      [1, 3, 0.5],
      [3, 0.5, 1],
      [3, 1, 0.5],
    ].map(([words = 0, sparse = 0, dense = 0]): Setting => ({
      fusion: 'rrf',
      constant: 5,
      weights: { words, sparse, dense },
    }));
    const judged = (seed: number, count = 60): QueryLists[] =>
      queries(count, seed, { words: [0, 25], sparse: [0, 25], dense: [0, 25] });

    it('does not take luck for a gain', () => {
      let [flattered, held, certain] = [0, 0, 0];
      for (let seed = 1; seed <= 40; seed += 1) {
        const result = tune(judged(seed), settingsAlike);
        flattered += (result.best.ndcg - result.defaults.ndcg) / 40;
        held += result.heldOut.gain / 40;
        if (result.choice !== 'defaults') certain += 1;
      }
      // What the best setting gains on the queries that chose it is luck.
      expect(flattered).toBeGreaterThan(0.02);
      expect(Math.abs(held)).toBeLessThan(flattered / 3);
      expect(certain).toBeLessThanOrEqual(3);
    });

    it('asks for more queries', () => {
      const result = [1, 2, 3, 4, 5, 6].map((seed) => tune(judged(seed, 40), settingsAlike));
      const uncertain = result.filter(({ reason }) => reason === 'uncertain');
      expect(uncertain.length).toBeGreaterThan(1);
      for (const { needed, choice } of uncertain) {
        expect(choice).toBe('defaults');
        expect(needed).toBeGreaterThan(40);
      }
    });
  });

  it('recommends nothing with very few queries, however large the gain is', () => {
    const few = tune(queries(10, 1, { words: [5, 29], sparse: [5, 29], dense: [0, 1] }), settings);
    expect(few.heldOut.interval.low).toBeGreaterThan(0);
    expect(few).toMatchObject({ choice: 'defaults', reason: 'too-few', needed: 30 });
  });

  it('says no number of queries where the best setting ranks about as the defaults do', () => {
    const better = { fusion: 'rrf', constant: 2, weights: DEFAULTS.rrf.weights } as const;
    for (const [count, reason] of [
      [40, 'uncertain'],
      [20, 'too-few'],
    ] as const) {
      const judged = Array.from({ length: count }, (_, at) => ({
        ndcg: ({ constant }: Setting): number => 0.5 + (at === 0 && constant === 2 ? 0.004 : 0),
      }));
      const { needed, neededFor, ...rest } = tune(judged, [DEFAULTS.rrf, better]);
      expect([needed, neededFor]).toEqual([undefined, undefined]);
      expect(rest).toMatchObject({ choice: 'defaults', reason, best: { setting: better } });
    }
  });

  it('says so where nothing is better than the defaults', () => {
    const result = tune(queries(40, 1, { words: [0, 0], sparse: [0, 0], dense: [0, 0] }), settings);
    expect(result).toMatchObject({ choice: 'defaults', reason: 'best', heldOut: { gain: 0 } });
    expect(result.best.chosen).toBe(result.best.trainings);
  });

  it('recommends linear with its defaults if that is certain', () => {
    // Ranks say little, scores much: the relevant document is far above the rest of the list by dense vectors.
    const random = randomFrom(5);
    const judged = Array.from({ length: 60 }, () => {
      const relevant = 'd0';
      const of = (kind: Kind, hits: readonly (readonly [string, number])[]): List => ({
        kind,
        share: 1,
        hits: hits.map(([id, score]) => ({ index: 'i', id, order: ids.indexOf(id), score })),
      });
      const others = ids.slice(1).map((id, at) => [id, 1 - at / 1000] as const);
      const dense = random() < 0.9 ? ([[relevant, 9], ...others] as const) : ([...others, [relevant, 0.1]] as const);
      return new QueryLists([of('words', others), of('dense', dense)], new Map([[relevant, 1]]));
    });
    const result = tune(judged, settingsFor(new Set<Kind>(['words', 'dense']), FUSIONS));
    expect(result.linear?.interval.low).toBeGreaterThan(0);
    expect(result.choice).toBe('linear');
  });

  const tuned = { fusion: 'rrf', constant: 2, weights: DEFAULTS.rrf.weights } as const;
  /** A gain on every query that is certain, and one that half of the queries have and the others lose. */
  const certainly = (gain: number) => (): number => gain;
  const perhaps =
    (gain: number) =>
    (at: number): number =>
      gain + (at % 2 === 0 ? 0.2 : -0.2);
  it.each([
    ['linear, where tuned is not certain', certainly(0.05), perhaps(0.06), 'linear'],
    ['tuned, where only that is certain', perhaps(0), certainly(0.05), 'tuned'],
    ['tuned, where it is certain to beat linear', certainly(0.05), certainly(0.1), 'tuned'],
    [
      'linear, where tuned is certain, but not to beat linear',
      certainly(0.15),
      (at: number) => 0.16 + perhaps(0)(at) / 2,
      'linear',
    ],
    ['linear, where that is the best setting', certainly(0.1), certainly(0.05), 'linear'],
    ['the defaults, where nothing is certain', perhaps(0.001), perhaps(0.002), 'defaults'],
  ] as const)('recommends %s', (_, ofLinear, ofTuned, choice) => {
    const judged = Array.from({ length: 60 }, (__, at) => ({
      ndcg: (setting: Setting): number => {
        const gain = isSame(setting, DEFAULTS.linear) ? ofLinear(at) : isSame(setting, tuned) ? ofTuned(at) : 0;
        return 0.5 + gain;
      },
    }));
    expect(tune(judged, [DEFAULTS.rrf, DEFAULTS.linear, tuned]).choice).toBe(choice);
  });

  it('gives the same result each time', () => {
    const some = queries(40, 3, { words: [0, 12], sparse: [0, 12], dense: [0, 9] });
    expect(tune(some, settings)).toEqual(tune(some, settings));
  });
});

describe('statistics', () => {
  const random = randomFrom(11);
  /** About normally distributed numbers. */
  const normal = (count: number, middle: number, spread: number): Float64Array =>
    Float64Array.from({ length: count }, () => {
      const sum = Array.from({ length: 12 }, random).reduce((total, one) => total + one, 0);
      return middle + spread * (sum - 6);
    });

  it('an interval has the width that theory gives, and holds the mean 95 times of 100', () => {
    let held = 0;
    const widths: number[] = [];
    for (let round = 0; round < 200; round += 1) {
      const { low, high } = bootstrapInterval(normal(100, 0.3, 2), 500, round);
      if (low <= 0.3 && high >= 0.3) held += 1;
      widths.push(high - low);
    }
    expect(mean(Float64Array.from(widths))).toBeCloseTo((2 * 1.96 * 2) / 10, 1);
    expect(held).toBeGreaterThan(180);
    expect(held).toBeLessThan(199);
  });

  it('as many values as are needed show a gain in about four cases of five', () => {
    const count = valuesNeeded(2, 0.5);
    expect(count).toBe(126);
    let shown = 0;
    for (let round = 0; round < 200; round += 1) {
      if (bootstrapInterval(normal(count, 0.5, 2), 500, round).low > 0) shown += 1;
    }
    expect(shown / 200).toBeGreaterThan(0.72);
    expect(shown / 200).toBeLessThan(0.88);
  });

  it('mean and deviation', () => {
    expect([mean(Float64Array.of()), deviation(Float64Array.of(1))]).toEqual([0, 0]);
    expect(deviation(Float64Array.of(1, 2, 3, 4))).toBeCloseTo(1.29099);
  });
});
