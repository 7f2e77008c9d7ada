import { expect, it } from 'vitest';
import { type Setting, DEFAULTS, tune } from '@sparrow-search/evaluation';

import { terminal } from '../terminal.js';
import { reported, shownTuning } from './report.js';

const other: Setting = { fusion: 'rrf', constant: 2, weights: DEFAULTS.rrf.weights };

/** The advice about a setting whose gain on a query is `gain` more or less than `middle`. */
function advice(queries: number, middle: number, gain: number): string {
  const judged = Array.from({ length: queries }, (_, at) => ({
    ndcg: ({ constant }: Setting): number => 0.5 + (constant === 2 ? middle + (at % 2 === 0 ? gain : -gain) : 0),
  }));
  const report = reported(tune(judged, [DEFAULTS.rrf, other]), [], { request: {} });
  return shownTuning(terminal().out, report).trimEnd().split('\n').at(-2) ?? '';
}

it.each([
  // 2.8 standard deviations of a mean: (2.8 * 0.05 / 0.01) ** 2 are 196 queries.
  [
    300,
    0.0005,
    0.05,
    /^Keep the defaults: with 300 judged queries, a gain of 0\.0100 would probably have shown \(4 of 5\)\.$/,
  ],
  [
    100,
    0.0005,
    0.05,
    /^Keep the defaults: too few judged queries \(100\) for so small a gain; with about 19[89], a gain of 0\.0100 would probably show \(4 of 5\)\.$/,
  ],
  [40, 0.00001, 0.004, /^Keep the defaults: the best setting ranks about as they do\.$/],
  [20, 0.00001, 0.004, /^Keep the defaults: too few judged queries \(20\)\. At least 30 are needed\.$/],
  [40, -0.1, 0.05, /^Keep the defaults: no other setting is better\.$/],
])('the advice for %i queries with a mean gain of %d, more or less %d', (queries, middle, gain, sentence) => {
  expect(advice(queries, middle, gain)).toMatch(sentence);
});
