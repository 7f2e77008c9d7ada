// `sparrow models test`: a model directory without a server. The models have random weights; what they make of texts is what
// Transformers computes (crates/encoder/tests/fixtures).
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type Ended, begin, sparrow } from './support.js';

const FIXTURES = fileURLToPath(new URL('../../crates/encoder/tests/fixtures', import.meta.url));
const PACKAGES = fileURLToPath(new URL('../../packages', import.meta.url));
const expected = JSON.parse(readFileSync(join(FIXTURES, 'expected-checkpoints.json'), 'utf8')) as Record<
  string,
  object[]
>;
let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sparrow-model-'));
});
afterAll(() => {
  rmSync(folder, { recursive: true });
});

/** A copy of a fixture with what it is to make of texts. */
function model(name: string, reference?: unknown): string {
  const place = join(folder, name);
  rmSync(place, { recursive: true, force: true });
  cpSync(join(FIXTURES, name), place, { recursive: true });
  if (reference !== undefined) writeFileSync(join(place, 'reference.json'), JSON.stringify(reference));
  return place;
}

function run(...args: string[]): Promise<Ended> {
  const texts = args.includes('--texts') ? [] : ['--texts', '0'];
  return sparrow(['models', 'test', ...args, '--seconds', '1', '--words', '6', ...texts]);
}

async function report(place: string, ...args: string[]): Promise<any> {
  const { stdout, stderr } = await run(place, '--json', ...args);
  expect(stderr).toBe('');
  return JSON.parse(stdout);
}

it('tries the packaged head itself, and not the model that it is on', async () => {
  const found = await report(join(PACKAGES, 'model-splade-minilm-l6'));
  expect(found.kind).toMatch(/sparse/u);
});

it('says what is recognised, how fast and large it is, and whether it agrees with its reference', async () => {
  const found = await report(model('checkpoint-matryoshka', expected['checkpoint-matryoshka']));
  expect(found).toMatchObject({
    kind: 'dense encoder',
    recognised: {
      ...{ weights: 'model.safetensors', architecture: 'roberta', layers: 2, width: 32, heads: 1 },
      ...{ pooling: 'last token', dimensions: 8, normalized: true, max_tokens: 16 },
      ...{ query_prompt: 'query: ', document_prompt: 'passage: ' },
    },
  });
  const { passages, tokens, seconds, passages_per_second: speed } = found.speed;
  expect(passages).toBeGreaterThanOrEqual(32);
  expect(tokens).toBeGreaterThan(passages);
  expect(speed).toBeCloseTo(passages / seconds);
  expect(found.memory.loaded).toBeGreaterThan(0);
}, 60_000);

it('tries a head with the model beside it that it is on', async () => {
  model('checkpoint-bert');
  const { agreement, ...found } = await report(model('checkpoint-head', expected['checkpoint-head']));
  expect(found).toMatchObject({ kind: 'sparse encoder', recognised: { layers: 3, trunk: 'checkpoint-bert' } });
  expect(agreement.difference).toBeLessThan(1e-5);
}, 60_000);

it('looks at the head that is named, also where the model beside it is a head', async () => {
  model('checkpoint-bert');
  const [below, above] = [model('checkpoint-head'), join(folder, 'head-on-a-head')];
  cpSync(below, above, { recursive: true });
  const said = JSON.parse(readFileSync(join(above, 'sparrow.json'), 'utf8')) as { trunk: object };
  writeFileSync(
    join(above, 'sparrow.json'),
    JSON.stringify({ ...said, trunk: { ...said.trunk, model: 'checkpoint-head' } }),
  );
  const { code, stderr } = await run(above);
  expect([code, stderr]).toEqual([1, expect.stringMatching(/^sparrow: model \[head-on-a-head\] cannot be used.*\n$/)]);
}, 60_000);

it.each([
  ['checkpoint-bert', 'dense encoder', 'bert'],
  ['checkpoint-splade', 'sparse encoder', 'bert'],
  ['checkpoint-modernbert', 'dense encoder', 'modernbert'],
  ['cross-modernbert', 'cross-encoder', 'modernbert'],
])(
  '%s agrees with what Transformers computes',
  async (name, kind, architecture) => {
    const { agreement, ...found } = await report(model(name, expected[name]));
    expect([found.kind, found.recognised.architecture]).toEqual([kind, architecture]);
    expect(agreement.entries).toBe((expected[name] as object[]).length);
    expect(agreement.difference).toBeLessThan(1e-5);
    if (kind === 'cross-encoder') expect(agreement.cosine).toBeUndefined();
    else expect(agreement.cosine.least).toBeGreaterThan(0.999999);
  },
  60_000,
);

it('is shown to people, with what is not as it should be', async () => {
  const [first, ...others] = expected['cross-bert'] as { question: string; text: string; score: number }[];
  const wrong = [{ ...first, score: (first?.score ?? 0) + 2 }, ...others];
  const { stdout } = await run(model('cross-bert', wrong));
  expect(stdout).toMatch(/^kind +cross-encoder\nrecognised +weights model\.safetensors, architecture bert, layers 2/);
  expect(stdout).toMatch(/\nspeed +[\d.]+ passages\/s, [\d,]+ tokens\/s \(one worker, 1[0-6] tokens a passage/);
  expect(stdout).toMatch(/\nagreement +6 entries: largest difference 2\.0e\+0\n$/);
  const { stdout: alone } = await run(model('cross-bert'));
  expect(alone).toContain('not looked at: there is no reference.json');
  const said = model('checkpoint-bert');
  expect((await run(said)).stdout).not.toContain('assumed');
  rmSync(join(said, '1_Pooling'), { recursive: true });
  expect((await run(said)).stdout).toContain('pooling mean over tokens (assumed, as there is no 1_Pooling');
}, 60_000);

describe('the quality', () => {
  it.each([
    ['model-splade-tiny', '.sparse_encoder_model_2'],
    ['model-minilm-l6', '.all-minilm-l6-v2'],
  ])(
    'of %s is what is shown beside other models',
    async (name, id) => {
      const { quality } = await report(join(PACKAGES, name), '--texts', '2000');
      expect(quality).toMatchObject({ task: 'definitions', queries: 298, texts: 2000 });
      // Other processors round in other places.
      expect(Math.abs(quality.ndcg - quality.embedded[id])).toBeLessThan(0.01);
      expect(quality.baseline).toBeCloseTo(0.245, 3);
      expect(quality.ndcg).toBeGreaterThan(quality.baseline + 0.05);
    },
    120_000,
  );

  it.each(['checkpoint-bert', 'checkpoint-splade', 'checkpoint-matryoshka'])(
    'of %s, whose weights are random, is poor',
    async (name) => {
      const { quality } = await report(model(name), '--texts', '300');
      expect(quality).toMatchObject({ task: 'definitions', queries: 45, texts: 300 });
      expect(quality.ndcg).toBeLessThan(quality.baseline);
      expect(quality.embedded).toBeUndefined();
    },
    60_000,
  );

  it('of a cross-encoder with random weights is about that of a random order', async () => {
    const { quality } = await report(model('cross-bert'), '--texts', '2000');
    expect(quality).toMatchObject({ task: 'candidates', queries: 100, texts: 2000 });
    // One definition of twenty has 0.227 on average; some words have two.
    expect(quality.baseline).toBeGreaterThan(0.227);
    expect(quality.baseline).toBeLessThan(0.25);
    expect(Math.abs(quality.ndcg - quality.baseline)).toBeLessThan(0.1);
  }, 60_000);

  it('is shown to people, with what it can be compared with', async () => {
    const { stdout } = await run(model('checkpoint-bert'), '--texts', '200');
    expect(stdout).toMatch(
      /\nquality +nDCG@10 0\.\d{3} for \d+ words and 200 definitions \(by words: 0\.\d{3}; not comparable with a run on all 2,000 definitions\)\n$/,
    );
  }, 60_000);
});

it('refuses what is no model, by name', async () => {
  const empty = join(folder, 'empty');
  mkdirSync(empty);
  const foreign = model('checkpoint-bert');
  writeFileSync(join(foreign, 'config.json'), JSON.stringify({ model_type: 'mpnet' }));
  const refusals: [string, string][] = [
    [join(folder, 'gone'), 'cannot read the folder'],
    [empty, 'is not a model directory: it has no weights'],
    [foreign, '[mpnet] is not an architecture that is computed from a checkpoint'],
    [model('cross-bert', { text: 'red' }), 'reference.json is not a list of {"text", "vector"}'],
    [model('cross-distilbert', [{ text: 'red', vector: [1] }]), 'has entries that a cross-encoder does not make'],
  ];
  for (const [place, reason] of refusals) {
    const { code, stderr } = await run(place);
    expect([code, stderr], place).toEqual([1, expect.stringContaining(reason)]);
  }
}, 60_000);

it('removes its folder also where it is interrupted', async () => {
  const temporary = mkdtempSync(join(folder, 'temporary-'));
  const args = ['models', 'test', model('checkpoint-bert'), '--seconds', '60', '--words', '6', '--texts', '0'];
  const { process: child, ended } = begin(args, { TMPDIR: temporary });
  await expect.poll(() => readdirSync(temporary), { timeout: 20_000 }).toHaveLength(1);
  child.kill('SIGINT');
  expect((await ended).code).toBe(130);
  expect(readdirSync(temporary)).toEqual([]);
});
