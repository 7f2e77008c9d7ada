// Published collections, in small files of the same form.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { Corpus } from '../../benches/lib/corpus.mjs';
import { CsrFile, readGroundTruth, writeCsr } from '../../benches/lib/csr.mjs';
import { type Dataset, type Vectors, baseOf, openDataset } from '../../benches/lib/datasets.mjs';
import { readVectors } from '../../benches/lib/vectors.mjs';

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sparrow-datasets-'));
});

afterAll(() => {
  rmSync(folder, { recursive: true });
});

/** A folder with these files; what ends with `.gz` is zipped. */
function filled(name: string, files: Record<string, string>): string {
  const home = join(folder, name);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(home, path, '..'), { recursive: true });
    writeFileSync(join(home, path), path.endsWith('.gz') ? gzipSync(text) : text);
  }
  return home;
}

const rows = (list: object[]): string => list.map((row) => `${JSON.stringify(row)}\n`).join('');
const grades = async (dataset: Dataset): Promise<Record<string, Record<string, number>>> =>
  Object.fromEntries([...(await dataset.judgements())].map(([id, of]) => [id, Object.fromEntries(of)]));

describe('a folder of BEIR', () => {
  const corpus = rows([
    { _id: 'd1', title: 'One', text: 'first', metadata: {} },
    { _id: 'd2', title: '', text: 'second' },
    { _id: '3', text: 'third' },
  ]);
  const queries = rows([
    { _id: 'q1', text: 'only for training', metadata: {} },
    { _id: 'q2', text: 'who is second' },
    { _id: 'q3', text: 'who is third' },
  ]);
  const heading = 'query-id\tcorpus-id\tscore';

  it('has its texts, and the questions that the judgements of the tests are about', async () => {
    const home = filled('beir', {
      'corpus.jsonl': corpus,
      'queries.jsonl': queries,
      'qrels/test.tsv': `${heading}\r\nq2\td2\t2\r\nq2\td1\t0\r\nq3\t3\t1\r\n`,
      'qrels/train.tsv': `${heading}\nq1\td1\t1\n`,
    });
    const dataset = openDataset(home) as Dataset;
    expect(dataset.kind).toBe('beir');
    expect(await dataset.texts(2)).toEqual([
      { id: 'd1', title: 'One', text: 'first' },
      { id: 'd2', title: '', text: 'second' },
    ]);
    expect(await dataset.questions(1)).toEqual([{ id: 'q2', text: 'who is second' }]);
    expect(await dataset.questions(Infinity)).toHaveLength(2);
    expect(await grades(dataset)).toEqual({ q2: { d2: 2 }, q3: { '3': 1 } });
  });

  it('may be zipped, and have no judgements', async () => {
    const dataset = openDataset(
      filled('zipped', { 'corpus.jsonl.gz': corpus, 'queries.jsonl.gz': queries }),
    ) as Dataset;
    expect(await dataset.texts(Infinity)).toHaveLength(3);
    expect((await dataset.questions(Infinity)).map(({ id }) => id)).toEqual(['q1', 'q2', 'q3']);
    expect(await grades(dataset)).toEqual({});
  });
});

it('MS MARCO has a passage or question a line, and judgements as TREC has them', async () => {
  const home = filled('msmarco', {
    'collection.tsv': '0\tThe presence of\ta tab\n1\tA second passage\n2\tA third\n',
    'queries.dev.small.tsv': '1048585\twhat is a tab\n2\tnot judged\n1048586\twhat is third\n',
    'qrels.dev.small.tsv': '1048585\t0\t0\t1\n1048586\t0\t2\t1\n',
  });
  const dataset = openDataset(home) as Dataset;
  expect(dataset.kind).toBe('msmarco');
  expect(await dataset.texts(2)).toEqual([
    { id: '0', title: '', text: 'The presence of\ta tab' },
    { id: '1', title: '', text: 'A second passage' },
  ]);
  expect((await dataset.questions(Infinity)).map(({ text }) => text)).toEqual(['what is a tab', 'what is third']);
  expect(await grades(dataset)).toEqual({ '1048585': { '0': 1 }, '1048586': { '2': 1 } });
  writeFileSync(join(home, 'collection.tsv'), 'no tab\n');
  await expect((openDataset(home) as Dataset).texts(1)).rejects.toThrow('a line without a tab: no tab');
});

describe('the sparse track of big-ann-benchmarks', () => {
  /** A matrix in the form that its tools write, byte by byte. */
  function matrix(list: [number, number][][], columns: number): Buffer {
    const entries = list.flat();
    const long = (numbers: number[]): Buffer => Buffer.from(new BigInt64Array(numbers.map(BigInt)).buffer);
    const pointers = [0];
    for (const row of list) pointers.push((pointers.at(-1) ?? 0) + row.length);
    const [idx, val] = [new Int32Array(entries.map(([at]) => at)), new Float32Array(entries.map(([, value]) => value))];
    const header = long([list.length, columns, entries.length]);
    return Buffer.concat([header, long(pointers), Buffer.from(idx.buffer), Buffer.from(val.buffer)]);
  }
  const small: [number, number][][] = [
    [
      [0, 1.5],
      [4, 0.25],
    ],
    [],
    [[2, 3]],
  ];
  const larger = [...small, [[1, 0.5]] as [number, number][]];
  let home: string;

  beforeAll(() => {
    home = filled('big-ann', {});
    mkdirSync(home);
    writeFileSync(join(home, 'base_small.csr'), matrix(small, 5));
    writeFileSync(join(home, 'base_1M.csr'), matrix(larger, 5));
    writeFileSync(
      join(home, 'queries.dev.csr'),
      matrix(
        [
          [
            [2, 1],
            [4, 2],
          ],
        ],
        5,
      ),
    );
    // Two numbers, two ids, two scores.
    const truth = Buffer.alloc(24);
    [1, 2, 2, 0].forEach((number, at) => truth.writeInt32LE(number, 4 * at));
    [3, 0.5].forEach((score, at) => truth.writeFloatLE(score, 16 + 4 * at));
    writeFileSync(join(home, 'base_small.dev.gt'), truth);
  });

  it('has matrices, of which the smallest that is large enough is taken, and exact answers', () => {
    const dataset = openDataset(home) as Vectors;
    expect(dataset.kind).toBe('big-ann');
    const [few, many, most] = [3, 4, 1000].map((count) => baseOf(dataset, count));
    expect([few?.rows, many?.rows, most?.rows]).toEqual([3, 4, 4]);
    expect(few?.documents).toBe(join(home, 'base_small.csr'));
    expect(readGroundTruth(few?.truth ?? '')).toEqual({
      ids: new Int32Array([2, 0]),
      scores: new Float32Array([3, 0.5]),
      depth: 2,
    });
  });

  it('is read row by row, and written back as it was', () => {
    const file = new CsrFile(join(home, 'base_1M.csr'));
    expect([file.rows, file.columns, file.entries, file.entriesOf(2)]).toEqual([4, 5, 4, 2]);
    const read = [...file.read(3)].map(({ row, idx, val }) => ({ row, idx: [...idx], val: [...val] }));
    file.close();
    expect(read).toEqual([
      { row: 0, idx: [0, 4], val: [1.5, 0.25] },
      { row: 1, idx: [], val: [] },
      { row: 2, idx: [2], val: [3] },
    ]);
    writeCsr(join(home, 'written.csr'), read, 5);
    expect(CsrFile.rowsOf(join(home, 'written.csr'))).toBe(3);
    const again = new CsrFile(join(home, 'written.csr'));
    expect([...again.read()].map(({ row, idx, val }) => ({ row, idx: [...idx], val: [...val] }))).toEqual(read);
    again.close();
  });

  it('is refused when it is cut short', () => {
    const path = join(home, 'cut.csr');
    writeFileSync(path, matrix(small, 5).subarray(0, -1));
    expect(() => new CsrFile(path)).toThrow(/cut\.csr should have 80 bytes/);
    expect(() => readGroundTruth(path)).toThrow(/should have/);
  });

  it('gives suites its vectors, and no texts', async () => {
    const work = join(folder, 'work');
    mkdirSync(work);
    const corpus = new Corpus({ data: home, work, log: () => undefined });
    const { ptr, idx, val } = readVectors((await corpus.vectors('texts', 3)).prefix);
    expect([[...ptr], [...idx], [...val]]).toEqual([
      [0, 2, 2, 3],
      [0, 4, 2],
      [1.5, 0.25, 3],
    ]);
    expect((await corpus.vectors('questions', 1)).rows).toBe(1);
    await expect(corpus.texts(1)).rejects.toThrow('has vectors, and no texts');
    await expect(corpus.vectors('texts', 9)).rejects.toThrow('there are only 4 texts, not 9');
  });
});

it('a folder without any of them says what it could have', () => {
  expect(() => openDataset(filled('other', { 'readme.txt': '' }))).toThrow(
    /has none of: corpus\.jsonl .*collection\.tsv/,
  );
});
