// `npm run bench -- --quick-peers`, small, over texts: encodes them, starts servers, and checks the answers of all five charts.
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, expect, it, vi } from 'vitest';

import { wordNetPassages } from '../../benches/quick-peers/material.mjs';
import { quickPeers } from '../../benches/quick-peers/run.mjs';

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sparrow-quick-peers-test-'));
});

afterAll(() => {
  rmSync(folder, { recursive: true });
});

it('a small run over a folder of BEIR’s form checks all answers, draws five charts and says how good they are', async () => {
  const [data, out] = [join(folder, 'beir'), join(folder, 'beir-out')];
  mkdirSync(join(data, 'qrels'), { recursive: true });
  const passages = wordNetPassages(300);
  const lines = (list: object[]): string => list.map((row) => JSON.stringify(row)).join('\n');
  writeFileSync(join(data, 'corpus.jsonl'), lines(passages.map(({ id, text }) => ({ _id: id, text }))));
  const questions = passages.slice(0, 150).map(({ id, text }) => ({ _id: `q${id}`, text: text.slice(0, 60) }));
  writeFileSync(join(data, 'queries.jsonl'), lines(questions));
  const judged = passages.slice(0, 150).map(({ id }) => `q${id}\t${id}\t1`);
  writeFileSync(join(data, 'qrels', 'test.tsv'), ['query-id\tcorpus-id\tscore', ...judged].join('\n'));
  vi.spyOn(console, 'log').mockImplementation(() => undefined);
  const cache = join(folder, 'cache');
  const code = await quickPeers({ data, out, smoke: true, command: 'npm run bench', cache });
  vi.restoreAllMocks();
  const record = JSON.parse(readFileSync(join(out, 'record.json'), 'utf8'));
  const parts = Object.values<{ failed?: string }>(record.measured);
  expect(parts.flatMap(({ failed }) => failed ?? [])).toEqual([]);
  expect(code).toBe(0);
  expect(readdirSync(out).sort()).toEqual([
    ...['dense.svg', 'hybrid.svg', 'index.md', 'ingest.svg', 'record.json', 'sparse.svg', 'words.svg'],
  ]);
  const page = readFileSync(join(out, 'index.md'), 'utf8');
  expect(page).toContain('![Words: any of a question](words.svg)');
  // Each question is how its passage begins.
  const [, words] = /nDCG@10, words: (\S+) \(150 of 150 judged/.exec(page) ?? [];
  expect(Number(words)).toBeGreaterThan(0.8);
  expect(record.measured.sparse.results[0].searches[0].share).toBeGreaterThan(0.995);
  expect(record.corpus.files[0].name).toBe('corpus.jsonl');
}, 600_000);
