import { describe, expect, it } from 'vitest';

import { type RankedList, fuseCalibrated, fuseLists } from './fuse.js';

const list = (keys: string, more: Partial<RankedList> = {}): RankedList => ({
  hits: [...keys].map((key, at) => ({ key, score: 10 - at })),
  weight: 1,
  normalizer: 'none',
  ...more,
});

describe('lists of a cluster are fused as searches are, which', () => {
  it('adds reciprocal ranks as 32-bit floats', () => {
    const [first, second] = fuseLists({ kind: 'rrf', rankConstant: 60 }, [list('ab'), list('ba')]);
    expect([first?.key, second?.key]).toEqual(['a', 'b']);
    expect(first?.score).toBe(Math.fround(Math.fround(1 / 61) + Math.fround(1 / 62)));
  });

  it('puts equal scores in the order of the first list that holds either', () => {
    const keys = fuseLists({ kind: 'rrf', rankConstant: 60 }, [list('xa'), list('yb')]).map(({ key }) => key);
    expect(keys).toEqual(['x', 'y', 'a', 'b']);
  });

  it('weighs and normalizes scores', () => {
    const minmax = fuseLists({ kind: 'linear' }, [list('abc', { normalizer: 'minmax', weight: 2 })]);
    expect(minmax.map(({ score }) => score)).toEqual([2, 1, 0]);
    const norm = fuseLists({ kind: 'linear' }, [
      {
        ...list(''),
        hits: [
          { key: 'a', score: 3 },
          { key: 'b', score: 4 },
        ],
        normalizer: 'l2_norm',
      },
    ]);
    expect(norm.map(({ key, score }) => [key, score])).toEqual([
      ['b', Math.fround(0.8)],
      ['a', Math.fround(0.6)],
    ]);
    expect(fuseLists({ kind: 'linear' }, [list('a', { normalizer: 'minmax', weight: 3 })])[0]?.score).toBe(3);
    // The mean is 8.5, the deviation √1.25; what is below the mean counts nothing.
    const zscore = fuseLists({ kind: 'linear' }, [list('abcd', { normalizer: 'zscore', weight: 2 })]);
    expect(zscore.map(({ key, score }) => [key, score])).toEqual([
      ['a', Math.fround(2.6832814)],
      ['b', Math.fround(0.8944272)],
      ['c', 0],
      ['d', 0],
    ]);
    expect(fuseLists({ kind: 'linear' }, [list('a', { normalizer: 'zscore' })])[0]?.score).toBe(1);
  });
});

describe('fusion of probabilities', () => {
  const map = { gain: 2, offset: -1, absent: -1 };
  const logistic = (odds: number): number => 1 / (1 + Math.exp(-odds));

  it('is the weighted mean of what each list says, also of documents that it does not hold', () => {
    const [first, second] = fuseCalibrated(
      () => 0,
      [
        { hits: [{ key: 'a', score: 1 }], weight: 1, maps: [map] },
        { hits: ['a', 'b'].map((key, at) => ({ key, score: 2 - at })), weight: 3, maps: [map] },
        // A list that finds nothing says nothing.
        { hits: [], weight: 5, maps: [undefined] },
      ],
    );
    expect([first?.key, second?.key]).toEqual(['a', 'b']);
    expect(first?.score).toBeCloseTo((logistic(1) + 3 * logistic(3)) / 4, 6);
    expect(second?.score).toBeCloseTo((logistic(-1) + 3 * logistic(1)) / 4, 6);
  });

  it('takes the map of the index that a document is from', () => {
    const maps = [map, { gain: 4, offset: -1, absent: -1 }];
    const hits = ['0', '1'].map((key) => ({ key, score: 1 }));
    expect(fuseCalibrated(Number, [{ hits, weight: 1, maps }])).toEqual([
      { key: '1', score: expect.closeTo(logistic(3), 6) as number },
      { key: '0', score: expect.closeTo(logistic(1), 6) as number },
    ]);
  });
});
