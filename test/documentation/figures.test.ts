// The figures of README.md, of tuning in docs/hybrid-search.md, and of the request path's design are those of the records.
import { describe, expect, it } from 'vitest';

import { figure } from '../../benches/lib/rows.mjs';
import { read, rowsOf } from './pages.js';

interface Row {
  readonly what: string;
  readonly against: string | null;
  readonly sparrow: number;
  readonly peer: number;
  readonly ratio: number;
  readonly detail: any;
}

interface Record_ {
  readonly machine: {
    readonly cpu: string;
    readonly flags: readonly string[];
    readonly load: { readonly otherCores: number };
  };
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
  ["the question's last two words", 'words', 'phrases, 200,000 passages, p50', threeDigits],
  ['the same, both with codes of 8 bits', 'knn', 'int8_hnsw, recall@10 of 0.95: p50', threeDigits],
  ['encoding passages by the sparse model', 'encoder', 'passages, avx512', perSecond('')],
  ['`_reindex`', 'reindex', 'reindex of 6000 documents', perSecond(' documents/s')],
])('%s is as measured', (name, suite, what, shown) => {
  const [, sparrow, instead] = rows.find(([first]) => first?.startsWith(name)) ?? [];
  const measured = recordOf(suite).rows.find((row) => row.what === what);
  expect(sparrow).toContain(shown(measured?.sparrow ?? NaN));
  expect(instead).toContain(shown(measured?.peer ?? NaN));
});

it('the peers of exact sparse search are as measured', () => {
  const [, , instead] = rows.find(([first]) => first?.startsWith('exact sparse top 10')) ?? [];
  const measured = recordOf('sparse-search').rows.filter(
    ({ what }) => what === 'exact top 10, 1,000,000 documents, p50',
  );
  const peers = { 'a plain loop over floats': 'plain f32 loop', BMP: 'BMP', 'Lucene 10': 'Lucene 10' };
  const named = Object.entries(peers).map(([name, against]) => {
    const row = measured.find((each) => each.against?.startsWith(against));
    return `${name}: ${threeDigits(row?.peer ?? NaN)}`;
  });
  expect(instead).toBe(named.join('; '));
});

it('the peers of the dense model are as measured', () => {
  const [, sparrow, instead] = rows.find(([first]) => first?.startsWith('encoding passages by the dense model')) ?? [];
  const measured = recordOf('encoder-models').rows.filter(({ what }) => what === 'MiniLM-L6, dense: passages');
  expect(sparrow).toBe(figure(measured[0]?.sparrow ?? NaN));
  expect(measured[0]?.detail.kernels).toBe('avx512');
  const named = measured.map(({ against, peer }) => `${against?.split(', ')[1] ?? ''}: ${figure(peer)}`);
  expect(instead).toBe(`onnxruntime-node, ${named.join('; ')}`);
});

/** The suites that measured the rows of README, which begin like this. */
const MEASURED: readonly (readonly [start: string, suite: string])[] = [
  ['a question over HTTP', 'http'],
  ['the same, 32 clients', 'http'],
  ['a hybrid question', 'hybrid'],
  ['exact sparse top 10', 'sparse-search'],
  ['any of a question', 'words'],
  ['all of its words', 'words'],
  ["the question's last two words", 'words'],
  ['ten nearest of', 'knn'],
  ['the same, both with codes', 'knn'],
  ['encoding passages by the sparse model', 'encoder'],
  ['encoding passages by the dense model', 'encoder-models'],
  ['`_reindex`', 'reindex'],
  ['start with', 'start'],
];

/** The suite that measured a row. */
function suiteOf(name: string): string {
  const [found, ...more] = MEASURED.filter(([start]) => name.startsWith(start));
  if (found === undefined || more.length > 0) throw new Error(`which suite measured [${name}]?`);
  return found[1];
}

/** The processor of a record, as README writes it. */
function processorOf(suite: string): string {
  const { cpu } = recordOf(suite).machine;
  const [, family, model] = /^AMD EPYC \(family (\d+), model (\d+)\)$/.exec(cpu) ?? [];
  if (family === undefined || model === undefined) throw new Error(`README says nothing of [${cpu}]`);
  return `${family}/${model}`;
}

it('what other processes did meanwhile is as recorded', () => {
  const most = (suites: readonly string[]): string =>
    String(Math.max(...suites.map((suite) => recordOf(suite).machine.load.otherCores)));
  const others = MEASURED.map(([, suite]) => suite).filter((suite) => suite !== 'http');
  expect(read('README.md').replaceAll('\n', ' ')).toContain(
    `at most ${most([...others, 'spine'])} of the 2 cores meanwhile; in the first two rows ${most(['http'])}, OpenSearch included`,
  );
});

it('every row names the processor of its record', () => {
  const expected = rows.map(([name = '']) => [name, processorOf(suiteOf(name))]);
  expect(rows.map(([name, , , processor]) => [name, processor])).toEqual(expected);
  // Each of the starts is that of one row.
  expect(expected).toHaveLength(13);
  expect(new Set(rows.map(([name = '']) => MEASURED.findIndex(([start]) => name.startsWith(start)))).size).toBe(
    MEASURED.length,
  );
});

it('the processors have AVX-512, or not, as README says', () => {
  const text = read('README.md').replaceAll('\n', ' ');
  const [, withIt = '', without = ''] =
    /says which EPYC: ([^.]*), both with AVX-512\. ([^.]*), an older one without it\./.exec(text) ?? [];
  const suites = ['spine', ...rows.map(([name = '']) => suiteOf(name))];
  for (const suite of suites) {
    const [family, model] = processorOf(suite).split('/');
    const explained = `${processorOf(suite)} is family ${family ?? ''}, model ${model ?? ''}`;
    const has = recordOf(suite).machine.flags.includes('avx512f');
    expect([suite, withIt.includes(explained), without.includes(explained)]).toEqual([suite, has, !has]);
  }
  const told = rows.filter(([name]) => name?.includes('with AVX-512'));
  expect(told).toHaveLength(3);
  for (const [name = ''] of told) expect(recordOf(suiteOf(name)).machine.flags, name).toContain('avx512f');
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
  const byCodes = measured.find(({ what }) => what === 'int8_hnsw, recall@10 of 0.95: p50');
  expect(read('README.md').replaceAll('\n', ' ')).toContain(
    `takes ${String(Math.round(100 * (1 - (byCodes?.ratio ?? NaN))))}% less time than FAISS`,
  );
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
  expect(told).toContain(`([record](benches/results/spine-full.json), ${processorOf('spine')})`);
  expect(told).toContain(`takes ${measured('the whole demo').toFixed(1)} s`);
  expect(told).toContain(`${whole(measured('reindex through the model'))} documents/s`);
  expect(told).toContain(`takes ${measured('a question by meaning over HTTP, p50').toFixed(2)} ms`);
  expect(told).toContain(`${whole(measured('memory of the server, anonymous, peak'))} MB`);
  expect(told).toContain(`${(measured('restart until ready, median') / 1000).toFixed(2)} s after`);
});

describe('the design of the request path', () => {
  const page = read('docs/design/serving/design.md');
  const section = (title: string): string =>
    new RegExp(`^## ${title}$[^]*?(?=^## )`, 'm').exec(page)?.[0].replaceAll('\n', ' ') ?? '';
  /** Those of a line's cells that are given, in the line that begins with these words: others are of other days. */
  const cells = (start: string, ...wanted: readonly number[]): (string | undefined)[] => {
    const line = page.split('\n').find((each) => each.startsWith(`| ${start}`)) ?? '';
    const all = line.split('|').map((cell) => cell.trim());
    return wanted.map((cell) => all[cell]);
  };
  const row = (suite: string, start: string): Row => {
    const found = recordOf(suite).rows.find(({ what }) => what.startsWith(start));
    if (found === undefined) throw new Error(`the record of ${suite} has no row [${start}…]`);
    return found;
  };
  const [one, many] = [row('http', 'one client, p50'), row('http', '32 clients, requests per second')];
  const [alone, crowd, peer] = [one.detail.sparrow, many.detail.sparrow, many.detail.peer];

  it('has the processor time of the record', () => {
    const [few, full] = [alone.cpuMicrosByThread, crowd.cpuMicrosByThread];
    expect(cells('Node: HTTP', 4, 7)).toEqual([whole(full.node), whole(few.node)]);
    expect(cells('encoder: transformer', 4)).toEqual([whole(full.encoder)]);
    expect(cells('parsing, tokenizing', 4, 7)).toEqual([whole(full['sparrow-search']), whole(few['sparrow-search'])]);
    const share = (micros: number): string => `${whole((100 * micros) / crowd.serverCpuMicros)} %`;
    expect(section('Where the time went, and where it goes')).toContain(
      `encoder and search make up ${share(full.encoder + full['sparrow-search'])} of a request`,
    );
    expect(page).toContain(
      `${share(full.encoder)} of a request's CPU time with 32 clients (${whole(full.encoder)} of ${whole(crowd.serverCpuMicros)} µs`,
    );
  });

  it('has its comparison with OpenSearch', () => {
    expect(cells('one client, p50 |', 2, 3)).toEqual([threeDigits(one.sparrow), threeDigits(one.peer)]);
    expect(cells('one client, p50 |', 4)[0]).toContain(`${figure(one.ratio)} (`);
    const known = row('http', 'one client, questions asked before');
    expect(cells('one client, p50, repeated', 2)).toEqual([threeDigits(known.sparrow)]);
    expect(cells('32 clients, requests', 2, 3)).toEqual([whole(many.sparrow), whole(many.peer)]);
    expect(cells('32 clients, requests', 4)[0]).toContain(`${figure(many.ratio)} (`);
    const micros = [crowd, peer].map(({ serverCpuMicros }) => `${whole(serverCpuMicros)} µs`);
    expect(cells('CPU per request', 2, 3)).toEqual(micros);
    const memory = [crowd, peer].map(({ memory: { anonymous } }) => `${whole(anonymous / 1e6)} MB`);
    expect(cells('anonymous memory', 2, 3)).toEqual(memory);
  });

  it.each([
    ['one client, record', alone],
    ['32 clients, record', crowd],
  ])('has the delays of the event loop: %s', (name, { eventLoopDelayMs: { p50, p99 } }) => {
    const shown = cells(name, 2, 3).map((cell) => Number(cell?.replace(' ms', '')));
    // To one digit, or to a tenth of a millisecond.
    expect(shown).toEqual([p50, p99].map((delay) => Number(delay < 1 ? delay.toPrecision(1) : delay.toFixed(1))));
  });

  it('has how fast a reindex and a start are', () => {
    const { ratio, detail } = row('reindex', 'reindex of');
    const { reindex, bare } = detail.cpuMicrosPerDocument;
    const ratios = detail.rounds.map((round: any) => round.ratio as number);
    const told = section('Reindex');
    expect(told).toContain(`A reindex reaches ${figure(ratio)} of the bare encoder's documents per second`);
    expect(told).toContain(`${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}). The target`);
    expect(told).toContain(`${whole(reindex)} microseconds, and ${whole(bare)} of the bare encoder`);
    const start = (what: string): string => whole(row('start', what).sparrow);
    expect(section('Start')).toContain(`to the first response, ${start('start with')} ms pass`);
    expect(section('Start')).toContain(`uses ${start('memory after 1 ')} MB of anonymous memory`);
    expect(section('Start')).toContain(`and ${start('memory after 1000 ')} MB after`);
  });
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
