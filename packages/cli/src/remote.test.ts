import { expect, it } from 'vitest';

import { patienceFor } from './remote.js';

it('a request is waited for longer, the more text a server may have to encode for it', () => {
  expect([patienceFor('GET', 0), patienceFor('PUT', 0)]).toEqual([30_000, 300_000]);
  // A book in one document took two minutes on an idle machine, and more than five on a busy one.
  expect(patienceFor('POST', 1_200_000)).toBe(900_000);
});
