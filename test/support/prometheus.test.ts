// The reader of the figures for Prometheus is a strict one.
import { expect, it } from 'vitest';

import { readPage } from './prometheus.js';

const HEAD = '# HELP a_total what\n# TYPE a_total counter\n';
const HISTOGRAM = '# HELP h_seconds what\n# TYPE h_seconds histogram\n';

it('takes a page that is well formed', () => {
  const page = readPage(
    `${HEAD}a_total{x="a\\"b,c"} 1\n${HISTOGRAM}h_seconds_bucket{le="1"} 1\nh_seconds_bucket{le="+Inf"} 2\nh_seconds_sum 3\nh_seconds_count 2\n`,
  );
  expect(page.get('a_total')?.samples[0]?.labels).toEqual({ x: 'a\\"b,c' });
});

it.each([
  ['a figure without a family', 'a_total 1\n'],
  ['no end of the last line', `${HEAD}a_total 1`],
  ['a family twice', `${HEAD}a_total 1\n${HEAD}a_total{x="y"} 1\n`],
  ['a figure twice', `${HEAD}a_total{x="y",z="1"} 1\na_total{z="1",x="y"} 1\n`],
  ['a counter without its ending', '# HELP a what\n# TYPE a counter\na 1\n'],
  ['a negative counter', `${HEAD}a_total -1\n`],
  ['a name of another family', `${HEAD}b_total 1\n`],
  ['a label that does not end', `${HEAD}a_total{x="y} 1\n`],
  ['no number', `${HEAD}a_total one\n`],
  [
    'buckets that fall',
    `${HISTOGRAM}h_seconds_bucket{le="1"} 2\nh_seconds_bucket{le="+Inf"} 1\nh_seconds_sum 1\nh_seconds_count 1\n`,
  ],
  ['buckets that do not end', `${HISTOGRAM}h_seconds_bucket{le="1"} 2\nh_seconds_sum 1\nh_seconds_count 2\n`],
  ['another count', `${HISTOGRAM}h_seconds_bucket{le="+Inf"} 1\nh_seconds_sum 1\nh_seconds_count 2\n`],
])('refuses %s', (_, text) => {
  expect(() => readPage(text)).toThrow();
});
