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

const recordOf = (suite: string) => JSON.parse(read(`benches/results/${suite}-full.json`)) as Record_;
const whole = (value: number): string => Math.round(value).toLocaleString('en');
const threeDigits = (value: number) => `${figure(value)} ms`;

describe('the figures of README', () => {
  const lines = /^## Figures$[^]*?((?:^- .*\n)+)/m.exec(read('README.md'))?.[1]?.trim().split('\n') ?? [];
  const measured = (suite: string, what: string, against = ''): Row => {
    const found = recordOf(suite).rows.find((row) => row.what === what && (row.against ?? '').startsWith(against));
    if (found === undefined) throw new Error(`the record of ${suite} has no row [${what}]`);
    return found;
  };

  it('are those of the records', () => {
    const question = measured('http', 'one client, p50');
    const exact = 'exact top 10, 1,000,000 documents, p50';
    const loop = measured('sparse-search', exact, 'plain f32 loop');
    const lucene = measured('sparse-search', exact, 'Lucene 10');
    const encoded = measured('encoder', 'passages, avx512');
    expect(lines).toEqual([
      `- A question over HTTP, 200,000 passages: Sparrow encodes the question and answers in ${question.sparrow.toFixed(2)} ms; OpenSearch 2.19 takes ${question.peer.toFixed(2)} ms even when given the tokens.`,
      `- The exact sparse top 10 of a million documents, one thread: ${threeDigits(loop.sparrow)}; a plain loop over floats takes ${threeDigits(loop.peer)}, Lucene 10 takes ${threeDigits(lucene.peer)}.`,
      `- One core encodes ${whole(encoded.sparrow)} passages a second with the sparse model; onnxruntime-node encodes ${whole(encoded.peer)}. Both compute in single precision, with AVX-512.`,
    ]);
  });

  it('are all of one processor', () => {
    const processors = ['http', 'sparse-search', 'encoder'].map((suite) => recordOf(suite).machine.cpu);
    expect(new Set(processors).size).toBe(1);
  });
});

it('the cost of traces in docs/operating.md is that of the record', () => {
  const { rows } = JSON.parse(read('benches/results/tracing-quick.json')) as Record_;
  const measured = rows.filter(({ what }) => what.endsWith('processor time'));
  const lines = read('docs/operating.md').split('\n');
  const begin = lines.indexOf('| the process has | processor time of a search | ratio |') + 2;
  expect(lines.slice(begin, begin + 4).map((line) => line.split(' | ').slice(1).join(' | '))).toEqual([
    `${whole(measured[0]?.peer ?? 0)} µs | 1 |`,
    ...measured.map(({ sparrow, ratio }) => `${whole(sparrow)} µs | ${ratio.toFixed(2)} |`),
  ]);
});

it('README fits on the first screens', () => {
  expect(read('README.md').split('\n').length - 1).toBeLessThanOrEqual(150);
});

describe('the figures of docs/sizing.md and of the guide to models', () => {
  const perSecond = (suite: string, what: string): number =>
    recordOf(suite).rows.find((row) => row.what === what)?.sparrow ?? NaN;
  const [sparse, dense] = [
    perSecond('encoder', 'passages, avx512'),
    perSecond('encoder-models', 'MiniLM-L6, dense: passages'),
  ];
  const page = read('docs/sizing.md');

  it('are those of the records, or computed from them', () => {
    const [first = ''] = page.split('A document is one passage');
    const rows = rowsOf(first);
    expect(rows).toHaveLength(3);
    for (const [documents = '', disk, memory, load, question] of rows) {
      const asked = recordOf('scale').rows.find(({ what }) =>
        new RegExp(`^${documents} documents in \\d+ segments: one client, p50$`).test(what),
      );
      expect(question).toBe(threeDigits(asked?.sparrow ?? NaN));
      const passages = Number(documents.replaceAll(',', ''));
      const hours = passages / (1 / (1 / sparse + 1 / dense)) / 3600;
      const said = hours < 1 ? `${whole(hours * 60)} minutes` : `${String(Number(hours.toPrecision(2)))} hours`;
      expect(load).toBe(said);
      // One kilobyte of sparse vectors and two of dense ones, and the server's own memory.
      const gigabytes = (3 * passages) / 1e6;
      expect([disk, memory]).toEqual([`${String(gigabytes)} GB and the texts`, `${String(gigabytes + 0.3)} GB`]);
    }
    const both = whole(1 / (1 / sparse + 1 / dense));
    expect(page).toContain(
      `${whole(dense)} passages a second of a core for the dense model, and ${whole(sparse)} for the sparse one`,
    );
    expect(page).toContain(`: ${both} with both`);
  });

  it('say the same of each model', () => {
    const guide = read('docs/guides/models.md');
    const [row = []] = rowsOf(guide.slice(guide.indexOf('| | `.elser'))).filter(
      ([name]) => name === 'passages a second of a core',
    );
    expect(row.slice(1, 3).map((cell) => /^\[([^\]]+)\]/.exec(cell)?.[1])).toEqual([whole(sparse), whole(dense)]);
    const large = perSecond('encoder-models', 'SPLADE of BERT-base size, random weights: passages');
    expect(guide).toContain(`[${large.toFixed(2)} passages a second]`);
  });
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
