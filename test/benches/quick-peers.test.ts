// `npm run bench -- --quick-peers`: what it makes, what it draws, and that it goes on without what it cannot fetch.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';

import { writeCsr } from '../../benches/lib/csr.mjs';
import { drawCharts } from '../../benches/quick-peers/charts.mjs';
import { TITLES, fetchPeers } from '../../benches/quick-peers/fetch.mjs';
import { bm25, keptLength, wordNetPassages, wordsOf } from '../../benches/quick-peers/material.mjs';
import { denseEngines, nearest, sparseEngine } from '../../benches/quick-peers/measure.mjs';
import { quickPeers } from '../../benches/quick-peers/run.mjs';

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sparrow-quick-peers-test-'));
});

afterAll(() => {
  rmSync(folder, { recursive: true });
});

describe('the material', () => {
  it('has passages of some dozens of words, whose ids differ', () => {
    const passages = wordNetPassages(500);
    expect(new Set(passages.map(({ id }) => id)).size).toBe(500);
    const lengths = passages.map(({ text }) => text.split(' ').length);
    const mean = lengths.reduce((sum, length) => sum + length, 0) / lengths.length;
    expect(mean).toBeGreaterThan(30);
    expect(mean).toBeLessThan(80);
  });

  it('has words without signs, in lower case', () => {
    expect(wordsOf('Über 10,000 “words”—and more')).toEqual(['über', '10', '000', 'words', 'and', 'more']);
  });

  it('keeps four bits of a length above 24', () => {
    // Encoded and decoded by Lucene's SmallFloat.
    expect([0, 23, 24, 39, 40, 41, 42, 55, 56, 59, 60, 1000].map(keptLength)).toEqual([
      ...[0, 23, 24, 39, 40, 40, 42, 54, 56, 56, 60, 984],
    ]);
  });

  it('ranks by BM25', () => {
    const texts = [['a', 'b', 'a'], ['b'], [], ['c', 'a', 'd', 'e', 'f']];
    const { documents, asked, columns } = bm25(texts, [
      ['a', 'b', 'nowhere'],
      ['nowhere', 'c'],
    ]);
    expect(columns).toBe(6);
    // Three texts with words, three in the mean; two of them have an a.
    const weight = (times: number, length: number): number =>
      (Math.log(1 + (3 - 2 + 0.5) / (2 + 0.5)) * times) / (times + 1.2 * (0.25 + (0.75 * length) / 3));
    expect(documents[0]?.val[0]).toBeCloseTo(weight(2, 3), 12);
    expect(documents[3]?.val[0]).toBeCloseTo(weight(1, 5), 12);
    expect(documents[2]).toEqual({ idx: [], val: [] });
    expect(asked.map(({ idx }) => idx)).toEqual([[0, 1], [2]]);
  });

  it('knows the nearest vectors', () => {
    const vectors = new Float32Array([1, 0, 0, 1, 0.6, 0.8]);
    const { ids, scores, depth } = nearest(vectors, new Float32Array([1, 0, 0, 2]), 2);
    expect([[...ids], depth]).toEqual([[0, 2, 1, 1, 2, 0], 3]);
    expect(scores[4]).toBeCloseTo(1.6, 6);
  });
});

const search = (more: object): object => ({
  what: 'search',
  mean: 1,
  p50: 1,
  p95: 2,
  settings: {},
  answers: 'x',
  ...more,
});

describe('what launchers print', () => {
  it('gives each setting of an index, with the share that is right', () => {
    const lines = [
      { what: 'index', source: 'table', build_s: 4, bytes: 100 },
      search({ source: 'table', why: 'published 5/0.8', batch: 0.5, answers: 'one' }),
      { what: 'index', source: 'guide', build_s: 2, bytes: 200 },
      search({ source: 'guide', why: 'fastest of 0.95', answers: 'two' }),
    ];
    const { index, searches } = sparseEngine('Seismic 1', lines, 10, (path: string) => (path === 'one' ? 0.9 : 1));
    expect(index).toMatchObject({ seconds: 2, count: 10 });
    expect(searches).toMatchObject([
      { source: 'table', why: 'published 5/0.8', share: 0.9, batch: 0.5 },
      { source: 'guide', why: 'fastest of 0.95', share: 1 },
    ]);
  });

  it('gives the time at the wanted recall for each graph, and none where it is not reached', () => {
    const graph = (engine: string, recalls: number[]): object[] => [
      { engine, vectors: 5, build_s: 1 },
      ...recalls.map((recall, at) => ({ engine, width: at, recall, p50_ms: at + 1, p95_ms: 9 })),
    ];
    const lines = [...graph('faiss hnsw', [0.9, 1]), { engine: 'faiss exact', recall: 1, p50_ms: 7, bytes: 3 }];
    const found = denseEngines('FAISS 1', [...lines, ...graph('faiss hnsw int8', [0.5])]);
    expect(found).toMatchObject([
      { name: 'FAISS 1', index: { seconds: 1, count: 5 }, searches: [{ share: 0.95 }] },
      { name: 'FAISS 1 int8', searches: [] },
    ]);
    expect(found[0]?.searches[0]?.p50).toBeCloseTo(1.5, 9);
  });
});

describe('the charts', () => {
  const part = (name: string, more: object = {}): any => ({
    results: [
      {
        name: 'Sparrow',
        index: { seconds: 2, count: 100 },
        searches: [{ name: 'Sparrow', p50: 1, mean: 1.5, share: 1 }],
      },
      { name, index: { seconds: 1, count: 100 }, searches: [{ name, p50: 3, share: 0.9, ...more }] },
      { name: 'gone', skipped: 'no wheel', searches: [] },
    ],
    shape: { rows: 100, terms: 9, asked: 5, postings: 7, words: 8, dims: 2 },
  });

  it('show every engine that is there, say which is not, and what differs from what Seismic’s authors measure', () => {
    const seismic = part('Seismic', { source: 'table', why: 'published 5/0.8', batch: 0.25 });
    const hybrid = { ...part('libraries'), notes: ['with encoding'] };
    const charts = drawCharts({ sparse: seismic, words: part('Lucene'), dense: part('hnswlib'), hybrid });
    expect(charts.map(({ name }) => name)).toEqual(['sparse', 'words', 'dense', 'ingest', 'hybrid']);
    for (const { svg, notes } of charts) {
      expect(svg).toMatch(/^<svg .*>Sparrow/s);
      expect(notes).toContain('gone is not there: no wheel');
    }
    const [sparse, words, , ingest] = charts;
    expect(sparse?.svg).toContain('Seismic, table, published 5/0.8, 90.0%');
    expect(sparse?.notes.join()).toMatch(
      /touches 7 entries.*0\.25 ms \(table, published 5\/0\.8, 90\.0% right\).*1\.5 ms.*those here have 9 terms/s,
    );
    expect(words?.table).toContainEqual(['Lucene', '3 ms', '', '', '90.00%', '']);
    expect(ingest?.table.filter(([name]) => name === 'Sparrow')).toHaveLength(3);
  });

  it('are drawn but for those that could not be measured', () => {
    const none = { failed: 'no texts' };
    const charts = drawCharts({ sparse: part('BMP'), words: none, dense: none, hybrid: none });
    expect(charts.flatMap(({ name, svg }) => (svg === undefined ? [] : [name]))).toEqual(['sparse', 'ingest']);
    expect(charts[1]?.notes).toEqual(['not drawn: no texts']);
  });
});

it('goes on without what cannot be fetched, and says why', async () => {
  vi.stubEnv('PATH', join(folder, 'nothing'));
  const said: string[] = [];
  const peers = await fetchPeers(join(folder, 'cache'), (text: string) => said.push(text)).finally(() =>
    vi.unstubAllEnvs(),
  );
  expect([...peers.keys()].sort()).toEqual(Object.keys(TITLES).sort());
  expect([...peers.values()].map(({ skipped }) => skipped)).not.toContain(undefined);
  expect(peers.get('seismic')?.skipped).toBe('there is no python3');
  expect(peers.get('lunr')?.skipped).toMatch(/npm/);
  expect(said).toHaveLength(peers.size);
});

describe('a small run', () => {
  const run = (data: string | undefined, out: string): Promise<number> => {
    vi.spyOn(console, 'log').mockImplementation(() => undefined);
    return quickPeers({ data, out, smoke: true, command: 'npm run bench', cache: join(folder, 'cache') }).finally(() =>
      vi.restoreAllMocks(),
    );
  };
  const record = (out: string): any => JSON.parse(readFileSync(join(out, 'record.json'), 'utf8'));

  it('of big-ann’s form has the chart of sparse vectors, and that of building', async () => {
    const [data, out] = [join(folder, 'big-ann'), join(folder, 'big-ann-out')];
    mkdirSync(data);
    const row = (at: number, terms: number): { idx: number[]; val: number[] } => {
      const idx = Array.from({ length: terms }, (_, term) => 7 * term + ((at * (term + 3)) % 7));
      return { idx, val: idx.map((column) => 0.1 + ((at * 31 + column * 17) % 97) / 97) };
    };
    const [documents, asked] = [600, 40].map((count, many) =>
      Array.from({ length: count }, (_, at) => row(at, many ? 5 : 20)),
    );
    writeCsr(join(data, 'base_small.csr'), documents ?? [], 140);
    writeCsr(join(data, 'queries.dev.csr'), asked ?? [], 140);
    expect(await run(data, out)).toBe(0);
    expect(existsSync(join(out, 'sparse.svg')) && existsSync(join(out, 'ingest.svg'))).toBe(true);
    expect(existsSync(join(out, 'words.svg'))).toBe(false);
    expect(record(out).measured.sparse.shape).toMatchObject({ rows: 600, terms: 20, asked: 40 });
  });
});
