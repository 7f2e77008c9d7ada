// `sparrow models calibrate`: the calibration of a model directory, which a search with [calibrated] then reads.
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { Sparrow } from '@sparrow-search/engine';
import { afterAll, beforeAll, expect, it } from 'vitest';

import { type Ended, sparrow } from './support.js';

const FIXTURES = fileURLToPath(new URL('../../crates/encoder/tests/fixtures', import.meta.url));
const PACKAGES = fileURLToPath(new URL('../../packages', import.meta.url));
let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sparrow-calibrate-'));
});
afterAll(() => {
  rmSync(folder, { recursive: true });
});

/** A copy of an embedded model under another name, without its calibration. */
function copyOf(name: string, as: string): string {
  const place = join(folder, as);
  cpSync(join(PACKAGES, name), place, { recursive: true });
  rmSync(join(place, 'calibration.json'));
  return place;
}

function calibrated(place: string, ...args: string[]): Promise<Ended> {
  return sparrow(['models', 'calibrate', place, ...args]);
}

const read = (place: string): any => JSON.parse(readFileSync(join(place, 'calibration.json'), 'utf8'));

it('gives a copy of the embedded sparse model the calibration that the model has', async () => {
  const place = copyOf('model-splade-tiny', 'sparse');
  const { stdout, stderr } = await calibrated(place);
  expect(stderr).toBe('');
  expect(stdout).toMatch(
    /calibration\.json is written: slope 1\.\d+, intercept -\d\.\d+\nOf 599 words asked of 1,000 /,
  );
  const embedded = read(join(PACKAGES, 'model-splade-tiny'));
  const made = read(place);
  expect(made).toMatchObject({ feature: 'unit_query', fitted_by: 'sparrow models calibrate' });
  expect(made.slope).toBeCloseTo(embedded.slope, 2);
  expect(made.intercept).toBeCloseTo(embedded.intercept, 2);
  // A calibration that exists is not replaced unless that is asked for: it may have been made by hand.
  const again = await calibrated(place);
  expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('is there: --force replaces it')]);
  // With a damaged one, the model itself cannot be used.
  writeFileSync(join(place, 'calibration.json'), '{');
  expect(await calibrated(place, '--force')).toMatchObject({ code: 0, stderr: '' });
  expect(read(place)).toEqual(made);
  expect(existsSync(join(place, 'calibration.json.before'))).toBe(false);
}, 120_000);

it('makes scores of another model probabilities, which a search without it refuses, naming the command', async () => {
  // Of its 384 numbers the first 32: other cosines, and a model that knows less.
  const place = copyOf('model-minilm-l6', 'short');
  writeFileSync(join(place, 'config_sentence_transformers.json'), JSON.stringify({ truncate_dim: 32 }));
  const ask = async (): Promise<any> => {
    await using search = await Sparrow.open({ models: folder });
    const service_settings = { model_id: 'short', num_allocations: 1, num_threads: 1 };
    const put = {
      op: 'put_inference' as const,
      path: { task_type: 'text_embedding', inference_id: 'shortened' },
      query: {},
    };
    await search.engine.execute(put, Buffer.from(JSON.stringify({ service: 'elasticsearch', service_settings })));
    const index = search.index('notes');
    await index.create({ mappings: { properties: { text: { type: 'semantic_text', inference_id: 'shortened' } } } });
    await index.bulk([{ text: 'Bread rises because yeast turns sugar into gas.' }, { text: 'Lava flows.' }], {
      refresh: true,
    });
    const retriever = { linear: { query: 'why does bread rise', fields: ['text'], normalizer: 'calibrated' as const } };
    return index.search({ retriever }).then(
      ({ hits }) => hits.hits.map(({ _score }) => _score),
      (error: unknown) => (error as Error).message,
    );
  };
  expect(await ask()).toContain('make one with [sparrow models calibrate FOLDER]');
  const { stdout } = await calibrated(place, '--json');
  const made = JSON.parse(stdout);
  expect(made).toMatchObject({ feature: 'cosine', questions: 599, texts: 1000, file: join(place, 'calibration.json') });
  expect(made.telling).toBeGreaterThan(0.6);
  expect(made.telling).toBeLessThan(1);
  const embedded = read(join(PACKAGES, 'model-minilm-l6'));
  // Fewer numbers make cosines of what has nothing in common higher: an even chance is at a higher one.
  expect(-made.intercept / made.slope).toBeGreaterThan(-embedded.intercept / embedded.slope);
  const [first, second] = (await ask()) as number[];
  expect(first).toBeLessThan(1);
  expect(first).toBeGreaterThan(second ?? 1);
  expect(second).toBeGreaterThan(0);
}, 120_000);

it('writes nothing for what cannot be calibrated', async () => {
  const cross = join(folder, 'cross');
  cpSync(join(FIXTURES, 'cross-bert'), cross, { recursive: true });
  for (const [place, reason] of [
    [cross, 'the model is a cross-encoder, whose scores [calibrated] does not read'],
    [join(folder, 'gone'), 'cannot read the folder'],
  ] as const) {
    const { code, stderr } = await calibrated(place);
    expect([code, stderr]).toEqual([1, expect.stringContaining(reason)]);
    expect(existsSync(join(place, 'calibration.json'))).toBe(false);
  }
}, 60_000);
