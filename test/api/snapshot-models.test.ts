// Uploaded models in snapshots, and who may read a repository, against the real engine.
import { readFileSync } from 'node:fs';
import { mkdtemp, readdir, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

const FIXTURES = fileURLToPath(new URL('../../crates/encoder/tests/fixtures/plain-mlm/', import.meta.url));
const WAIT = '?wait_for_completion=true';
const MODELS = '/_ml/trained_models';
const ONNX = readFileSync(join(FIXTURES, 'model.onnx'));
const tokenizer = JSON.parse(readFileSync(join(FIXTURES, 'tokenizer.json'), 'utf8')) as {
  model: { vocab: Record<string, number> };
};
const VOCABULARY = Object.keys(tokenizer.model.vocab);

let repositories: string;
let server: RunningServer;

async function start(): Promise<RunningServer> {
  const started = await startServer({ args: ['--deploy-at-start', 'false', '--repo-path', repositories] });
  const settings = { location: 'models' };
  expect((await started.request('PUT', '/_snapshot/models', { type: 'fs', settings })).status).toBe(200);
  return started;
}

async function upload(on: RunningServer, id: string, description: string): Promise<void> {
  const config = {
    model_type: 'pytorch',
    description,
    input: { field_names: ['body'] },
    inference_config: { text_expansion: { tokenization: { bert: { max_sequence_length: 16 } } } },
  };
  const part = { total_definition_length: ONNX.length, total_parts: 1, definition: ONNX.toString('base64') };
  for (const [path, body] of [
    ['', config],
    ['/definition/0', part],
    ['/vocabulary', { vocabulary: VOCABULARY }],
  ] as const) {
    const answer = await on.request('PUT', `${MODELS}/${id}${path}`, body);
    expect(answer.status, answer.text).toBe(200);
  }
}

/** What a model makes of a text; it is started and stopped for it. */
async function infer(on: RunningServer, id: string): Promise<unknown> {
  const started = await on.request('POST', `${MODELS}/${id}/deployment/_start?wait_for=fully_allocated&timeout=50s`);
  expect(started.status, started.text).toBe(200);
  const answer = await on.request('POST', `${MODELS}/${id}/_infer`, {
    docs: [{ body: VOCABULARY.slice(5).join(' ') }],
  });
  expect(answer.status, answer.text).toBe(200);
  await on.request('POST', `${MODELS}/${id}/deployment/_stop`);
  return answer.body.inference_results;
}

const shown = async (on: RunningServer, id: string): Promise<[number, string]> => {
  const answer = await on.request('GET', `${MODELS}/${id}?include=definition_status`);
  const { fully_defined: whole, description } = answer.body.trained_model_configs?.[0] ?? {};
  return [answer.status, answer.status === 200 ? `${String(whole)} ${String(description)}` : answer.body.error.type];
};

beforeAll(async () => {
  repositories = await mkdtemp(join(tmpdir(), 'sparrow-repositories-'));
  server = await start();
  await upload(server, 'small', 'of the first server');
  await upload(server, 'other', 'of the first server');
  await server.request('PUT', `${MODELS}/half`, {
    ...{ model_type: 'pytorch', inference_config: { text_expansion: {} } },
  });
  await server.request('PUT', '/books/_doc/1', { x: 1 });
  for (const [name, body] of [
    ['with', { include_models: true }],
    ['without', {}],
  ] as const) {
    const made = await server.request('PUT', `/_snapshot/models/${name}${WAIT}`, body);
    expect(made.status, made.text).toBe(200);
  }
});

afterAll(async () => {
  await server.stop();
});

describe('models in snapshots', () => {
  it('come back where both sides ask for them, and work as before', async () => {
    const answers = await infer(server, 'small');
    const other = await start();
    try {
      const restore = async (snapshot: string, include: boolean, target: string): Promise<void> => {
        const answer = await other.request('POST', `/_snapshot/models/${snapshot}/_restore${WAIT}`, {
          include_models: include,
          rename_pattern: '.+',
          rename_replacement: target,
        });
        expect(answer.status, answer.text).toBe(200);
      };
      await restore('with', false, 'a');
      await restore('without', true, 'b');
      expect(await shown(other, 'small')).toEqual([404, 'resource_not_found_exception']);
      await upload(other, 'other', 'of the second server');
      await restore('with', true, 'c');
      expect(await shown(other, 'small')).toEqual([200, 'true of the first server']);
      expect(await shown(other, 'other'), 'a model that is there stays').toEqual([200, 'true of the second server']);
      expect(await shown(other, 'half'), 'what was never complete is in no snapshot').toEqual([
        404,
        'resource_not_found_exception',
      ]);
      expect(await infer(other, 'small')).toEqual(answers);
      for (const index of ['a', 'b', 'c']) expect((await other.request('GET', `/${index}/_doc/1`)).status).toBe(200);
    } finally {
      await other.kill();
    }
    const again = await startServer({ data: other.data, args: ['--deploy-at-start', 'false'] });
    try {
      expect(await infer(again, 'small'), 'after a crash').toEqual(answers);
    } finally {
      await again.stop();
    }
  });

  it.skipIf(process.platform === 'win32')('are for nobody else to read, as all of a repository', async () => {
    const root = join(repositories, 'models');
    const entries = await readdir(root, { recursive: true, withFileTypes: true });
    expect(entries.filter((entry) => entry.isFile()).length).toBeGreaterThan(5);
    for (const path of [root, ...entries.map((entry) => join(entry.parentPath, entry.name))]) {
      expect(((await stat(path)).mode & 0o077).toString(8), path).toBe('0');
    }
  });
});
