import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const MODEL = '.sparse_encoder_model_2';

let tarballs: string;
let home: string;
let server: RunningServer;

/** A PATH without any Rust tool: what a user without a toolchain has. */
function pathWithoutRust(): string {
  const directories = (process.env['PATH'] ?? '').split(delimiter);
  const kept = directories.filter((directory) => !['cargo', 'rustc'].some((tool) => existsSync(join(directory, tool))));
  return [dirname(process.execPath), ...kept].join(delimiter);
}

beforeAll(async () => {
  tarballs = await mkdtemp(join(tmpdir(), 'sparrow-tarballs-'));
  home = await mkdtemp(join(tmpdir(), 'sparrow-installed-'));
  await run(process.execPath, [join(ROOT, 'scripts', 'pack.mjs'), tarballs], { cwd: ROOT });
  const files = (await readdir(tarballs)).filter((name) => name.endsWith('.tgz')).map((name) => join(tarballs, name));
  await writeFile(join(home, 'package.json'), '{"name":"somebody","private":true}');
  // Scripts are off: nothing of ours needs one.
  await run('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', ...files], {
    cwd: home,
    env: { ...process.env, PATH: pathWithoutRust() },
  });
  server = await startServer({
    cli: join(home, 'node_modules', '@sparrow-search', 'server', 'dist', 'cli.js'),
    cwd: home,
    env: { PATH: pathWithoutRust() },
  });
}, 300_000);

afterAll(async () => {
  await server.stop();
  await rm(tarballs, { recursive: true, force: true });
  await rm(home, { recursive: true, force: true });
});

describe('the packed packages, installed into an empty directory', () => {
  it('hold the native parts in a package of their own, which the engine only may have', async () => {
    const manifest = join(home, 'node_modules', '@sparrow-search', 'engine', 'package.json');
    const { optionalDependencies } = JSON.parse(await readFile(manifest, 'utf8')) as Record<string, object>;
    const [name] = Object.keys(optionalDependencies ?? {});
    const files = await readdir(join(home, 'node_modules', name ?? ''));
    expect(files).toEqual(expect.arrayContaining(['sparrow.node', 'THIRD-PARTY.md']));
    expect(files.some((file) => file.includes('onnxruntime'))).toBe(true);
    expect(existsSync(join(home, 'node_modules', 'onnxruntime-node'))).toBe(false);
  });

  it('name no install script', async () => {
    for (const name of await readdir(join(home, 'node_modules', '@sparrow-search'))) {
      const manifest = join(home, 'node_modules', '@sparrow-search', name, 'package.json');
      expect(JSON.parse(await readFile(manifest, 'utf8'))).not.toHaveProperty('scripts');
    }
  });

  it('carry their licences, and those of what the addon is linked from', async () => {
    const scope = join(home, 'node_modules', '@sparrow-search');
    const packages = await readdir(scope);
    for (const name of packages) {
      expect(await readFile(join(scope, name, 'LICENSE'), 'utf8')).toContain('Apache License');
      if (!name.startsWith('model-')) {
        expect(await readFile(join(scope, name, 'NOTICE'), 'utf8')).toContain('Sparrow');
      }
    }
    const platform = packages.find((name) => name.startsWith('engine-')) ?? '';
    const notices = await readFile(join(scope, platform, 'THIRD-PARTY.md'), 'utf8');
    const listed = [...notices.matchAll(/^\| (\S+) \| ([\d.]\S*) \| (.*) \|$/gm)];
    expect(listed.map(([, name]) => name)).toEqual(expect.arrayContaining(['tantivy', 'tokenizers', 'ort', 'napi']));
    expect(listed.some(([, name]) => name?.startsWith('sparrow') === true)).toBe(false);
    // Each has its text, but for those that are under the Apache licence alone, which is in LICENSE.
    const headings = [...notices.matchAll(/^## (.+)$/gm)].map(([, heading = '']) => heading).join(', ');
    const bare = listed.filter(([, name, version]) => !headings.includes(`${String(name)} ${String(version)}`));
    expect(bare.map(([, , , licence]) => licence).filter((licence) => !licence?.includes('Apache-2.0'))).toEqual([]);
    expect(headings).toContain('ONNX Runtime 1.');
  });

  it('put the command on the path', async () => {
    const { stdout } = await run(join(home, 'node_modules', '.bin', 'sparrow'), ['--version']);
    expect(stdout.trim()).toMatch(/^\d+\.\d+\.\d+$/);
  });

  it('hold the console', async () => {
    const { status, text } = await server.request('GET', '/_console', undefined, { apiKey: null });
    expect(status).toBe(200);
    expect(text).toContain('<script>');
  });

  it('start, index and search by meaning', async () => {
    await server.request('PUT', '/words', { mappings: { properties: { v: { type: 'sparse_vector' } } } });
    await server.request('PUT', '/_ingest/pipeline/p', {
      processors: [{ inference: { model_id: MODEL, input_output: [{ input_field: 'text', output_field: 'v' }] } }],
    });
    const meanings = ['a person who collects postage stamps', 'fear of open spaces', 'a loaf baked from flour'];
    for (const [id, text] of meanings.entries()) {
      const written = await server.request('PUT', `/words/_doc/${String(id)}?pipeline=p&refresh=true`, { text });
      expect(written.status, written.text).toBe(201);
    }
    const found = await server.request('POST', '/words/_search', {
      query: { text_expansion: { v: { model_id: MODEL, model_text: 'philatelist' } } },
    });
    expect(found.status, found.text).toBe(200);
    expect(found.body.hits.hits[0]._id).toBe('0');
  });
});
