import { describe, expect, it } from 'vitest';

import { ndcg } from './ranking-metrics.js';
import { DEFAULTS, FUSIONS, type RankedHit, type Kind, type List, QueryLists, type Setting } from './fusion.js';
import { randomFrom, shuffled } from './statistics.js';

function list(kind: Kind, ids: string, share = 1): List {
  const hits = [...ids].map((id, at): RankedHit => ({ index: 'i', id, order: id.charCodeAt(0), score: 10 - at }));
  return { kind, share, hits };
}

const weights = (words: number, sparse: number, dense: number): Setting['weights'] => ({ words, sparse, dense });

describe('reciprocal rank fusion', () => {
  const lists = [list('words', 'ab'), list('sparse', 'bc'), list('dense', 'ca')];
  const ranked = (setting: Setting): string => new QueryLists(lists, new Map()).ranked(setting).join('');

  it('adds weights over ranks', () => {
    // a: 1/6 + 1.5/7, b: 1/7 + 1/6, c: 1/7 + 1.5/6
    expect(ranked(DEFAULTS.rrf)).toBe('cab');
    expect(ranked({ fusion: 'rrf', constant: 5, weights: weights(3, 1, 0.5) })).toBe('bac');
  });

  it('leaves out lists without weight, and what only they have', () => {
    expect(ranked({ fusion: 'rrf', constant: 5, weights: weights(1, 0, 0) })).toBe('ab');
  });

  it('sorts documents of equal scores in the order in which they were written', () => {
    const equal = [list('words', 'b'), list('sparse', 'a')];
    expect(new QueryLists(equal, new Map()).ranked(DEFAULTS.rrf)).toEqual(['a', 'b']);
  });

  it('shares the weight of a kind between its lists', () => {
    const two = [list('dense', 'a', 0.5), list('dense', 'a', 0.5), list('words', 'b')];
    const of = (dense: number): string =>
      new QueryLists(two, new Map()).ranked({ fusion: 'rrf', constant: 5, weights: weights(1, 0, dense) }).join('');
    expect([of(0.9), of(1.1)]).toEqual(['ba', 'ab']);
  });
});

describe('a list of the server', () => {
  const lists = new QueryLists([list('words', 'abc'), list('sparse', 'bd'), list('dense', 'ef')], new Map());
  const setting: Setting = { fusion: 'rrf', constant: 5, weights: weights(1, 1, 1) };

  it('is the same as the fused one if only documents of equal scores changed places', () => {
    expect(lists.ranked(setting).join('')).toBe('baedfc');
    const same = ['baedfc', 'beadfc', 'beafdc'].map((ids) => lists.isRanked(setting, inOne(ids)));
    expect(same).toEqual([true, true, true]);
  });

  it('is another one if others did, or if some are missing or unknown', () => {
    for (const ids of ['abedfc', 'baedcf', 'baedf', 'baedfx', '']) {
      expect(lists.isRanked(setting, inOne(ids)), ids).toBe(false);
    }
  });

  it('is another one if a document of the same id in another index stands in its place', () => {
    const hit = (index: string, id: string, at: number): RankedHit => ({ index, id, order: at, score: 10 - at });
    const hits = [hit('i', 'a', 0), hit('j', 'a', 1), hit('i', 'b', 2)];
    const both = new QueryLists([{ kind: 'words', share: 1, hits }], new Map());
    expect(both.isRanked(setting, hits)).toBe(true);
    expect(both.isRanked(setting, hits.toSpliced(1, 1, hit('k', 'a', 1)))).toBe(false);
    expect(both.isRanked(setting, hits.toSpliced(0, 2, hit('j', 'a', 1), hit('i', 'a', 0)))).toBe(false);
  });
});

/** Documents of one index by their ids. */
function inOne(ids: string): readonly Pick<RankedHit, 'index' | 'id'>[] {
  return [...ids].map((id) => ({ index: 'i', id }));
}

describe('the sum of normalized scores', () => {
  it('counts standard deviations above the mean of a list, and nothing below it', () => {
    // 10, 9, 8: deviations of 1.22, 0 and none
    const lists = [list('words', 'abc'), list('dense', 'dcb')];
    const ranked = new QueryLists(lists, new Map()).ranked({ fusion: 'linear', weights: weights(1, 0, 0.5) });
    expect(ranked).toEqual(['a', 'd', 'b', 'c']);
  });

  it('keeps the order of the first list among documents that are above no mean', () => {
    const lists = [list('words', 'dcb'), list('dense', 'ea')];
    const ranked = new QueryLists(lists, new Map()).ranked({ fusion: 'linear', weights: weights(1, 0, 0.5) });
    expect(ranked).toEqual(['d', 'e', 'c', 'b', 'a']);
  });

  it('takes a score for the 32-bit number that the server wrote as a decimal', () => {
    const random = randomFrom(3);
    const decimal = (score: number): number => {
      const digits = [6, 7, 8, 9].find((count) => Math.fround(Number(score.toPrecision(count))) === score);
      return Number(score.toPrecision(digits));
    };
    for (let round = 0; round < 100; round += 1) {
      const scores = Array.from({ length: 5 }, () => Math.fround(random() * 20)).sort((a, b) => b - a);
      // Twice the scores have the same deviations, but other decimals. So each document ties with one of the other list.
      const hits = (factor: number, first: number): RankedHit[] =>
        scores.map((score, at) => {
          const order = 2 * at + first;
          return { index: 'i', id: String(order), order, score: decimal(factor * score) };
        });
      const lists: List[] = [
        { kind: 'words', share: 1, hits: hits(1, 0) },
        { kind: 'dense', share: 1, hits: hits(2, 1) },
      ];
      const ranked = new QueryLists(lists, new Map()).ranked({ fusion: 'linear', weights: weights(1, 0, 1) });
      const mean = scores.reduce((sum, score) => sum + score, 0) / scores.length;
      const above = 2 * scores.filter((score) => score > mean).length;
      expect(ranked.slice(0, above)).toEqual(Array.from({ length: above }, (_, at) => String(at)));
    }
  });

  it('counts the only hit of a list as one deviation', () => {
    const lists = [list('words', 'abc'), list('dense', 'd')];
    const of = (dense: number): string =>
      new QueryLists(lists, new Map()).ranked({ fusion: 'linear', weights: weights(1, 0, dense) })[0] ?? '';
    expect([of(1.2), of(1.25)]).toEqual(['a', 'd']);
  });
});

it.each([1, 3])('nDCG is that of the ranked list, for random lists and settings, of %i indices', (indices) => {
  const random = randomFrom(7);
  const ids = Array.from({ length: 40 }, (_, at) => String.fromCharCode(65 + at));
  for (let round = 0; round < 200; round += 1) {
    const lists = (['words', 'sparse', 'dense'] as const).map((kind): List => {
      const order = [...shuffled(ids.length * indices, random)].slice(0, Math.floor(random() * 30));
      // The same ids in each of the indices.
      const hits = order.map((document, at): RankedHit => {
        const index = String(document % indices);
        return { index, id: ids[Math.floor(document / indices)] ?? '', order: document, score: 40 - at };
      });
      return { kind, share: 1, hits };
    });
    const grades = new Map(ids.filter(() => random() < 0.1).map((id) => [id, 1 + Math.floor(random() * 3)]));
    const query = new QueryLists(lists, grades);
    const some = (): number => Math.floor(random() * 4) / 2;
    for (const fusion of FUSIONS) {
      const setting = { fusion, constant: 5, weights: weights(some(), some(), some()) };
      expect(query.ndcg(setting)).toBeCloseTo(ndcg(query.ranked(setting), grades), 10);
      expect(query.ndcg(setting)).toBeLessThanOrEqual(1 + 1e-12);
    }
  }
});
