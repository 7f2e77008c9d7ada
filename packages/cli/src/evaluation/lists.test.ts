import { expect, it } from 'vitest';
import { type Kind, weightOf } from '@sparrow-search/evaluation';

import { bodyFor } from './lists.js';

it('the weights that are sent are those that were tuned, as 32-bit numbers of few digits', () => {
  for (const fields of [1, 2, 3, 6, 7]) {
    const share = 1 / fields;
    const retriever = (): Record<string, object> => ({});
    const parts = (['sparse', 'dense'] as const).map((kind: Kind) => ({ name: kind, kind, share, retriever }));
    for (const dense of [0.5, 1, 1.5, 2, 3, 6]) {
      const weights = { words: 0, sparse: 1, dense };
      const body = bodyFor(parts, { fusion: 'rrf', constant: 5, weights }, 'text') as any;
      const sent = body.retriever.rrf.retrievers.map(({ weight }: { readonly weight: number }) => weight);
      expect(sent.map(Math.fround)).toEqual([weightOf(1, share), weightOf(dense, share)]);
      for (const weight of sent) expect(String(weight).length).toBeLessThan(12);
    }
  }
});
