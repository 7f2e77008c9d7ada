import { Turns } from '@sparrow-search/engine';
import { describe, expect, it } from 'vitest';

import { branchOf } from './branches.js';
import type { Leaf } from './retrievers.js';

const HITS = 10_000;

describe('making one list of many', () => {
  it('lets others have their turn', async () => {
    const leaves = Array.from({ length: 8 }, () => ({ kind: 'leaf' }) as Leaf);
    const list = (step: number) =>
      Array.from({ length: HITS }, (_, at) => ({
        key: `["docs","${String((at * step) % 20_011)}"]`,
        score: HITS - at,
      }));
    let turns = 0;
    let isOver = false;
    const other = (): void => {
      turns += 1;
      if (!isOver) setImmediate(other);
    };
    const unused = (): Promise<never> => Promise.reject(new Error('no list is scored again'));
    const sources = { longest: HITS, scores: unused, rescored: unused, different: unused, turns: new Turns() };
    const lists = new Map(leaves.map((leaf, at) => [leaf, list(at + 1)]));
    setImmediate(other);
    // Each of them is a fusion of its own, so that there are many steps.
    const fusion = (inputs: readonly unknown[]): any => ({
      kind: 'fused',
      method: { kind: 'rrf', rankConstant: 60 },
      inputs: inputs.map((node) => ({ node, weight: 1, normalizer: 'none' })),
      window: { size: HITS, given: true },
    });
    const branch = await branchOf(fusion(leaves.map((leaf) => fusion([leaf]))), { ...sources, lists }, HITS);
    isOver = true;
    expect(branch.hits).toHaveLength(HITS);
    expect(turns).toBeGreaterThanOrEqual(4);
  });
});
