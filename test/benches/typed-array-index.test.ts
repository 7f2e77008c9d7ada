// The reference for everybody's answers holds terms of any number.
import { expect, it } from 'vitest';

import { TypedArrayIndex } from '../../benches/peers/typed-array-index.mjs';

it('finds documents by terms beyond the vocabulary of the embedded models', () => {
  const vectors = {
    rows: 3,
    ptr: Uint32Array.of(0, 2, 3, 4),
    idx: Uint32Array.of(0, 70_000, 70_000, 5),
    val: Float32Array.of(1, 2, 3, 4),
  };
  const index = new TypedArrayIndex(vectors, { precise: true });
  const search = (...terms: number[]): object[] =>
    index.search(Uint32Array.from(terms), Float32Array.from(terms.map(() => 1)), 10);
  expect(search(0, 70_000)).toEqual([
    { doc: 0, score: 3 },
    { doc: 1, score: 3 },
  ]);
  // A term that no document has, behind all others.
  expect(search(80_000)).toEqual([]);
});
