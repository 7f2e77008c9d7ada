import { describe, expect, it } from 'vitest';

import { type List, fuse, shortest } from './fusion.js';

const list = (keys: string, more: Partial<List> = {}): List => ({
  hits: [...keys].map((key, at) => ({ key, score: 10 - at })),
  weight: 1,
  normalizer: 'none',
  ...more,
});

describe('fusion', () => {
  it('adds reciprocal ranks as 32-bit floats', () => {
    const [first, second] = fuse({ kind: 'rrf', rankConstant: 60 }, [list('ab'), list('ba')]);
    expect([first?.key, second?.key]).toEqual(['a', 'b']);
    expect(shortest(first?.score ?? 0)).toBe('0.032522473');
  });

  it('puts equal scores in the order of the first list that holds either', () => {
    const keys = fuse({ kind: 'rrf', rankConstant: 60 }, [list('xa'), list('yb')]).map(({ key }) => key);
    expect(keys).toEqual(['x', 'y', 'a', 'b']);
  });

  it('weighs and normalizes scores', () => {
    const minmax = fuse({ kind: 'linear' }, [list('abc', { normalizer: 'minmax', weight: 2 })]);
    expect(minmax.map(({ score }) => score)).toEqual([2, 1, 0]);
    const norm = fuse({ kind: 'linear' }, [
      {
        ...list(''),
        hits: [
          { key: 'a', score: 3 },
          { key: 'b', score: 4 },
        ],
        normalizer: 'l2_norm',
      },
    ]);
    expect(norm.map(({ score }) => shortest(score))).toEqual(['0.8', '0.6']);
    expect(fuse({ kind: 'linear' }, [list('a', { normalizer: 'minmax', weight: 3 })])[0]?.score).toBe(3);
    // The mean is 8.5, the deviation √1.25; what is below the mean counts nothing.
    const zscore = fuse({ kind: 'linear' }, [list('abcd', { normalizer: 'zscore', weight: 2 })]);
    expect(zscore.map(({ key, score }) => [key, shortest(score)])).toEqual([
      ['a', '2.6832814'],
      ['b', '0.8944272'],
      ['c', '0.0'],
      ['d', '0.0'],
    ]);
    expect(fuse({ kind: 'linear' }, [list('a', { normalizer: 'zscore' })])[0]?.score).toBe(1);
  });

  it.each([
    [0.1, '0.1'],
    [1 / 61, '0.016393442'],
    [12, '12.0'],
    [16777216, '16777216.0'],
  ])('writes the float nearest to %d shortest', (score, text) => {
    expect(shortest(Math.fround(score))).toBe(text);
  });
});
