// `node benches/charts.mjs`: draws the charts of docs/charts/ and writes the tables of docs/charts.md, from the records in benches/results/.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { bars, figure, lines } from './lib/svg.mjs';

const ROOT = new URL('../', import.meta.url);
const record = (name) => JSON.parse(readFileSync(new URL(`benches/results/${name}.json`, ROOT), 'utf8'));
const BLOCK = /<!-- chart: ([\w-]+) -->\n[\s\S]*?<!-- end -->/g;

/** A row of a record by its name and what it is held against. */
function row(suite, what, against) {
  const found = suite.rows.find((it) => it.what === what && (against === undefined || it.against?.startsWith(against)));
  if (found === undefined) throw new Error(`${suite.suite} has no row [${what}] against [${against}]`);
  return found;
}

const head = (cells) => [
  `| ${cells.join(' | ')} |`,
  `|---|${cells
    .slice(1)
    .map(() => '--:|')
    .join('')}`,
];
const line = (cells) => `| ${cells.join(' | ')} |`;
const from = (...names) =>
  `Records: ${names.map((name) => `[\`${name}\`](../benches/results/${name}.json)`).join(', ')}.`;

function speed() {
  const [http, encoder] = [record('http-full'), record('encoder-full')];
  const single = row(http, 'one client, p50');
  const many = row(http, '32 clients, requests per second');
  const wide = row(encoder, 'passages, avx512');
  const narrow = row(encoder, 'passages, avx2');
  const pair = ({ sparrow, peer }, unit, name) => [
    { name: 'Sparrow, encoding included', value: sparrow, unit, colour: 0 },
    { name, value: peer, unit, colour: 1 },
  ];
  const other = 'OpenSearch 2.19, tokens given';
  const panels = [
    {
      title: 'A question over HTTP, one client',
      note: 'median time; shorter is better',
      bars: pair(single, 'ms', other),
    },
    { title: 'The same, 32 clients', note: 'questions a second; longer is better', bars: pair(many, '/s', other) },
    {
      title: 'Encoding passages',
      note: 'texts for each second of one core; longer is better',
      bars: [
        { name: 'Sparrow, AVX-512', value: wide.sparrow, unit: '/s', colour: 0 },
        { name: 'Sparrow, AVX2', value: narrow.sparrow, unit: '/s', colour: 0 },
        { name: 'onnxruntime-node, fp32', value: wide.peer, unit: '/s', colour: 1 },
      ],
    },
  ];
  return {
    svg: bars('Speed', panels),
    table: [
      ...head(['what', 'Sparrow', 'instead', 'of it']),
      line([
        'a question over HTTP, one client, p50',
        `${figure(single.sparrow)} ms`,
        `${figure(single.peer)} ms`,
        other,
      ]),
      line(['the same, 32 clients', `${figure(many.sparrow)} /s`, `${figure(many.peer)} /s`, other]),
      line([
        'encoding, AVX-512',
        `${figure(wide.sparrow)} texts/CPU-s`,
        `${figure(wide.peer)} texts/CPU-s`,
        'onnxruntime-node, fp32',
      ]),
      line([
        'encoding, AVX2',
        `${figure(narrow.sparrow)} texts/CPU-s`,
        `${figure(narrow.peer)} texts/CPU-s`,
        'onnxruntime-node, fp32',
      ]),
      '',
      from('http-full', 'encoder-full'),
    ],
  };
}

function growth() {
  const suite = record('sparse-search-full');
  const sizes = [10_000, 100_000, 1_000_000];
  const rowOf = (size, against) =>
    suite.rows.find(
      (it) =>
        it.what === `exact top 10, ${size.toLocaleString('en-US')} documents, p50` && it.against.startsWith(against),
    );
  const peers = [
    ['Lucene 10', 1],
    ['BMP', 2],
    ['plain f32 loop', 3],
  ];
  const pointsOf = (against) =>
    sizes
      .map((size) => [size, rowOf(size, against)])
      .filter(([, it]) => it !== undefined)
      .map(([size, it]) => [size, it.peer]);
  const series = [
    { name: 'Sparrow', colour: 0, points: sizes.map((size) => [size, rowOf(size, 'Lucene 10').sparrow]) },
    ...peers.map(([name, colour]) => ({ name, colour, points: pointsOf(name) })),
  ];
  const cell = (size, against) => {
    const it = rowOf(size, against);
    return it === undefined ? 'not run' : `${figure(it.peer)} ms`;
  };
  return {
    svg: lines('Exact sparse top 10, one thread: time by documents', {
      x: 'documents',
      y: 'ms, p50',
      log: true,
      series,
    }),
    table: [
      ...head(['documents', 'Sparrow', ...peers.map(([name]) => name)]),
      ...sizes.map((size) =>
        line([
          size.toLocaleString('en-US'),
          `${figure(rowOf(size, 'Lucene 10').sparrow)} ms`,
          ...peers.map(([name]) => cell(size, name)),
        ]),
      ),
      '',
      from('sparse-search-full'),
    ],
  };
}

const SEARCHES = [
  ['words', 'words'],
  ['sparse', 'sparse'],
  ['dense', 'dense'],
  ['words and sparse', 'words and sparse'],
  ['rrf', 'hybrid: all three'],
];

function quality() {
  const collections = [
    ['SciFact, 300 claims', record('eval-scifact')],
    ['SQuAD, 10,529 questions', record('eval-squad')],
  ];
  const of = (evaluated, search) => evaluated.table.find((it) => it.search === search)?.['nDCG@10'];
  const panels = collections.map(([title, evaluated]) => ({
    title,
    note: 'nDCG@10; longer is better',
    bars: SEARCHES.flatMap(([search, name]) => {
      const value = of(evaluated, search);
      return value === undefined
        ? []
        : [{ name, value, unit: '', colour: search === 'words and sparse' || search === 'rrf' ? 0 : 1 }];
    }),
  }));
  return {
    svg: bars('Quality', panels),
    table: [
      ...head(['nDCG@10', ...SEARCHES.map(([, name]) => name)]),
      ...collections.map(([title, evaluated]) =>
        line([title, ...SEARCHES.map(([search]) => of(evaluated, search)?.toFixed(3) ?? 'not run')]),
      ),
      '',
      from('eval-scifact', 'eval-squad'),
    ],
  };
}

function reliability() {
  const [soak, crash] = [record('soak'), record('crash-full')];
  const minutes = ({ seconds }) => seconds / 60;
  const { windows } = soak;
  const series = [
    { name: 'anonymous memory, MB', colour: 0, points: windows.map((it) => [minutes(it), it.anonymousBytes / 1e6]) },
    { name: 'heap of JavaScript, MB', colour: 2, points: windows.map((it) => [minutes(it), it.heapBytes / 1e6]) },
    { name: 'p99 of searches, ms', colour: 3, points: windows.map((it) => [minutes(it), it.p99]) },
  ];
  const shown = { anonymousBytes: ['MB', 1e6], diskPerDocument: ['bytes', 1], p99: ['ms', 1] };
  const growth = soak.growth.map(({ figure: name, name: what, first, last, limit }) => {
    const [unit, by] = shown[name] ?? ['', 1];
    return line([what, ...[first, last, limit].map((value) => `${figure(value / by)} ${unit}`.trim())]);
  });
  return {
    svg: lines('A server used in every way at once: memory and latency over time', {
      x: 'minutes',
      y: 'MB, ms',
      log: false,
      series,
    }),
    table: [
      ...head(['an hour of everything at once', 'at its beginning', 'at its end', 'allowed']),
      ...growth,
      '',
      ...head(['kills under load, each compared with a model', 'number']),
      line(['rounds', figure(crash.rounds)]),
      line(['kills at a random moment', figure(crash.kills)]),
      line(['documents written', figure(crash.documents)]),
      line(['acknowledged writes lost', figure(crash.lost)]),
      line(['wrong answers afterwards', figure(crash.wrong)]),
      '',
      from('soak', 'crash-full'),
    ],
  };
}

const CHARTS = { speed, growth, quality, reliability };

/** Every file as it should be, by its path in the repository. */
export function charts() {
  const made = new Map(Object.entries(CHARTS).map(([name, make]) => [name, make()]));
  const page = readFileSync(new URL('docs/charts.md', ROOT), 'utf8').replace(
    BLOCK,
    (_, name) => `<!-- chart: ${name} -->\n${made.get(name).table.join('\n')}\n<!-- end -->`,
  );
  return new Map([['docs/charts.md', page], ...[...made].map(([name, { svg }]) => [`docs/charts/${name}.svg`, svg])]);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  mkdirSync(new URL('docs/charts/', ROOT), { recursive: true });
  for (const [path, content] of charts()) writeFileSync(new URL(path, ROOT), content);
}
