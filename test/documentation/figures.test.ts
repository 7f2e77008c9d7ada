// The figures of README.md, and of tuning in docs/hybrid-search.md, are those of the records.
import { expect, it } from 'vitest';

import { figure } from '../../benches/lib/rows.mjs';
import { read, rowsOf } from './pages.js';

interface Row {
  readonly what: string;
  readonly against: string | null;
  readonly sparrow: number;
  readonly peer: number;
  readonly detail: any;
}

interface Record_ {
  readonly rows: readonly Row[];
}

const rows = rowsOf(/^## Figures$[^]*?(^\|[^]*?)\n\n/m.exec(read('README.md'))?.[1] ?? '');
const recordOf = (suite: string) => JSON.parse(read(`benches/results/${suite}-full.json`)) as Record_;
const whole = (value: number): string => Math.round(value).toLocaleString('en');
const milliseconds = (digits: number) => (value: number) => `${value.toFixed(digits)} ms`;
const perSecond = (unit: string) => (value: number) => `${whole(value)}${unit}`;
const threeDigits = (value: number) => `${figure(value)} ms`;

it.each([
  ['a question over HTTP', 'http', 'one client, p50', milliseconds(2)],
  ['the same, 32 clients', 'http', '32 clients, requests per second', perSecond(' requests/s')],
  [
    'exact sparse top 10',
    'sparse-search',
    'exact top 10, 1,000,000 documents, p50',
    (value: number) => value.toPrecision(3),
  ],
  ['any of a question', 'words', 'disjunctions, 200,000 passages, p50', threeDigits],
  ['all of its words', 'words', 'conjunctions, 200,000 passages, p50', threeDigits],
  ['its last two words', 'words', 'phrases, 200,000 passages, p50', threeDigits],
  ['encoding passages', 'encoder', 'passages, avx512', perSecond('')],
  ['`_reindex`', 'reindex', 'reindex of 6000 documents', perSecond(' documents/s')],
])('%s is as measured', (name, suite, what, shown) => {
  const [, sparrow, instead] = rows.find(([first]) => first?.startsWith(name)) ?? [];
  const measured = recordOf(suite).rows.find((row) => row.what === what);
  expect(sparrow).toContain(shown(measured?.sparrow ?? NaN));
  expect(instead).toContain(shown(measured?.peer ?? NaN));
});

it('nearest dense vectors are as measured', () => {
  const [name, sparrow, instead] = rows.find(([first]) => first?.startsWith('ten nearest of')) ?? [];
  const measured = recordOf('knn').rows;
  const built = measured.find(({ what }) => what.startsWith('hnsw, ') && what.endsWith('building the graph'))?.detail;
  expect(name).toContain(`${whole(built?.vectors)} dense vectors (\`hnsw\`, ${String(built?.dims)} dimensions)`);
  const compared = measured.filter(({ what }) => what === 'hnsw, recall@10 of 0.95: p50');
  // From the fastest on, under the names of the products.
  const peers = compared.toSorted((one, other) => one.peer - other.peer);
  const named = peers.map(
    ({ against, peer }) => `${against === 'faiss hnsw' ? 'FAISS' : (against ?? '')}: ${threeDigits(peer)}`,
  );
  expect(sparrow).toBe(threeDigits(compared[0]?.sparrow ?? NaN));
  expect(instead).toBe(named.join('; '));
});

it('a hybrid question is as measured', () => {
  const [, sparrow] = rows.find(([first]) => first?.startsWith('a hybrid question over HTTP')) ?? [];
  const measured = (what: string) => recordOf('hybrid').rows.find((row) => row.what === what)?.sparrow ?? NaN;
  expect(sparrow).toContain(`${measured('all three, fused, one client, p50').toFixed(2)} ms p50`);
  expect(sparrow).toContain(`${measured('all three, fused, one client, p95').toFixed(2)} ms p95`);
});

it('the whole workflow is as measured', () => {
  const told = /^The whole workflow on WordNet[^]*?\n\n/m.exec(read('README.md'))?.[0].replaceAll('\n', ' ') ?? '';
  const measured = (what: string) => recordOf('spine').rows.find((row) => row.what === what)?.sparrow ?? NaN;
  expect(told).toContain(`takes ${measured('the whole demo').toFixed(1)} s`);
  expect(told).toContain(`${whole(measured('reindex through the model'))} documents/s`);
  expect(told).toContain(`takes ${measured('a question by meaning over HTTP, p50').toFixed(2)} ms`);
  expect(told).toContain(`${whole(measured('memory of the server, anonymous, peak'))} MB`);
  expect(told).toContain(`${(measured('restart until ready, median') / 1000).toFixed(2)} s after`);
});

const tuned = rowsOf(
  /^## Weights for your own index$[^]*?(^\|[^]*?)\n\n/m.exec(read('docs/hybrid-search.md'))?.[1] ?? '',
).filter(([name = '']) => name.includes('tune-'));

it('what tuning gains is shown for three collections', () => {
  expect(tuned).toHaveLength(3);
});

/** The request that a record recommends, in the words of the table. */
function recommendation({ recommended, best }: any): string {
  if (recommended !== 'tuned') return `\`${recommended === 'linear' ? 'linear' : 'rrf'}\`, defaults`;
  const { fusion, constant, weights } = best;
  const shown = Object.entries(weights as Record<string, number>).filter(([, weight]) => weight > 0);
  const without = Object.keys(weights).filter((kind) => weights[kind] === 0);
  return [
    `\`${fusion}\`${constant === undefined ? '' : ` with ${String(constant)}`}`,
    ...shown.map(([kind, weight]) => `${kind} ${String(weight)}`),
    ...without.map((kind) => `no ${kind}`),
  ].join(', ');
}

it.each(tuned)('%s: what tuning gains is as measured', (name = '', ...cells) => {
  const file = /benches\/results\/tune-[\w-]+\.json/.exec(name)?.[0] ?? '';
  const { queries, tuning } = JSON.parse(read(file)) as { readonly queries: number; readonly tuning: any };
  expect(name).toContain(`${whole(queries)} queries`);
  // To three digits, of which the last may have been rounded twice.
  const numbers = cells.slice(0, 3).map((cell) => (cell.replaceAll('−', '-').match(/-?\d\.\d+/g) ?? []).map(Number));
  const measured = [
    [tuning.defaults['nDCG@10']],
    ...[tuning.linear_defaults, tuning.held_out].map(({ difference, interval }) => [difference, ...interval]),
  ] as number[][];
  for (const [at, expected] of measured.entries()) {
    expect(numbers[at]).toHaveLength(expected.length);
    for (const [part, value] of expected.entries())
      expect(Math.abs((numbers[at]?.[part] ?? 9) - value)).toBeLessThan(0.00051);
  }
  expect(cells[3]).toBe(recommendation(tuning));
});
