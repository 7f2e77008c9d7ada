import { Sparrow } from '@sparrow-search/engine';
import { expect, it } from 'vitest';

import { dictionary } from '../dictionary.js';
import { TEXTS, crossEncoderQuality, textsFor } from './model-quality.js';

it('a slow model gets fewer texts, though not too few', () => {
  expect([100_000, 1100, 1000, 500, 10, 0].map(textsFor)).toEqual([2000, 2000, 1000, 500, 250, 250]);
});

it('a cross-encoder that knows all definitions has an nDCG@10 of 1, and one that likes others better has nearly none', async () => {
  // In a folder that goes with it.
  const sparrow = await Sparrow.open();
  try {
    const { meanings } = dictionary();
    const pairs: number[] = [];
    const knowing =
      (sign: number) =>
      (texts: readonly string[], word: string): Promise<readonly number[]> => {
        pairs.push(texts.length);
        const right = new Set(meanings.filter(({ words }) => words.includes(word)).map(({ gloss }) => gloss));
        return Promise.resolve(texts.map((text) => (right.has(text) ? sign : 0)));
      };
    const all = await crossEncoderQuality(sparrow, knowing(1), TEXTS);
    expect(all.ndcg).toBe(1);
    expect(new Set(pairs)).toEqual(new Set([20]));
    await sparrow.index('definitions').drop();
    expect((await crossEncoderQuality(sparrow, knowing(-1), TEXTS)).ndcg).toBeLessThan(0.02);
  } finally {
    await sparrow.close();
  }
});
