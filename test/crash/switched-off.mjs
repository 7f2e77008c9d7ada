// Operations that are left out because they show a mistake that is known and not mended yet, each with its reason. The workload still has them:
// `npm run test:crash -- --with NAME` puts one back.

/** @type {Map<string, string>} names of operations and why they are off */
export const SWITCHED_OFF = new Map([
  [
    'narrowMapping',
    'a replay reads logged documents with the mapping of today: the index does not open after the crash (issue 18, 1)',
  ],
  [
    'deletionRaces',
    'a request that works on an index while it is deleted is a 500, and metadata saved late bring the index back (issue 18, 2 and 11)',
  ],
]);
