// What somebody has who installs the packages from a registry: no checkout, no Rust, no compiler.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { platformName } from '@sparrow-search/engine';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';
import { type Manifest, type Registry, type Tarball, readTarballs, startRegistry } from './registry.js';

/** What npm leaves for a command line is a script of the shell on Windows. */
const shell = process.platform === 'win32';
const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const MODEL = '.sparse_encoder_model_2';
/** Has the model `odd-mlm`, which only ONNX Runtime can run. */
const MODELS = join(ROOT, 'crates', 'encoder', 'tests', 'fixtures');
/**
 * Another platform than this one, whose Node is started through a program: `SPARROW_FOREIGN='linux-arm64-gnu /path/to/program'`, the
 * program running Node for arm64 under qemu. Its packages are in SPARROW_TARBALLS then.
 */
const [FOREIGN, FOREIGN_NODE] = (process.env['SPARROW_FOREIGN'] ?? '').split(' ');
const PLATFORM = FOREIGN === undefined || FOREIGN === '' ? platformName() : FOREIGN;
const [OS = '', CPU = '', ABI] = PLATFORM.split('-');
const NODE = FOREIGN_NODE ?? process.execPath;
/** Packages that were built before, as a release does; else they are packed here, with the addon of this checkout. */
const RELEASED = process.env['SPARROW_TARBALLS'];
/** What the server is made with, from others. */
const OTHERS = [
  ...['hono', 'yaml', 'commander', 'mustache', 'undici'],
  ...['@modelcontextprotocol/server', '@modelcontextprotocol/core', 'zod'],
];
/** A build of another compiler differs by this much. */
const SIZE_TOLERANCE = 0.06;

let folder: string;
let home: string;
let tarballs: Tarball[];
let registry: Registry;
let server: RunningServer;

/** A PATH without any Rust tool: what a user without a toolchain has. */
function pathWithoutRust(): string {
  const directories = (process.env['PATH'] ?? '').split(delimiter);
  const kept = directories.filter((directory) => !['cargo', 'rustc'].some((tool) => existsSync(join(directory, tool))));
  return [dirname(process.execPath), ...kept].join(delimiter);
}

/** An npm that knows our registry only, has nothing in its cache and may run any script. */
async function npm(...args: string[]): Promise<void> {
  const target = [
    `--os=${OS}`,
    `--cpu=${CPU}`,
    ...(ABI === undefined ? [] : [`--libc=${ABI === 'gnu' ? 'glibc' : ABI}`]),
  ];
  await run('npm', [...args, ...target, '--no-audit', '--no-fund', '--no-update-notifier'], {
    shell,
    cwd: home,
    env: {
      ...process.env,
      PATH: pathWithoutRust(),
      npm_config_ignore_scripts: 'false',
      npm_config_registry: registry.url,
      npm_config_cache: join(folder, 'cache'),
      npm_config_userconfig: join(folder, 'npmrc'),
    },
  });
}

/** Starts what was installed. `SPARROW_ONNXRUNTIME` is left out: the environment of the tests may have it. */
function start(...args: string[]): Promise<RunningServer> {
  return startServer({
    node: NODE,
    cli: join(scope(), 'server', 'dist', 'cli.js'),
    cwd: home,
    env: { PATH: pathWithoutRust(), SPARROW_ONNXRUNTIME: '' },
    args,
  });
}

const scope = (): string => join(home, 'node_modules', '@sparrow-search');

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sparrow-registry-'));
  home = await mkdtemp(join(tmpdir(), 'sparrow-installed-'));
  // A release has packed them on other machines.
  const packed = RELEASED ?? join(folder, 'tarballs');
  if (RELEASED === undefined) {
    // Whatever is there already stays.
    const own = join(packed, 'staging', 'own.txt');
    await mkdir(dirname(own), { recursive: true });
    await writeFile(own, 'mine');
    await run(process.execPath, [join(ROOT, 'scripts', 'pack.mjs'), packed], { cwd: ROOT });
    expect(await readFile(own, 'utf8')).toBe('mine');
    expect((await readdir(packed)).filter((name) => name.startsWith('staging-'))).toEqual([]);
  }
  const others = OTHERS.map((name) => join(ROOT, 'node_modules', name));
  await run('npm', ['pack', '--ignore-scripts', '--pack-destination', folder, ...others], { cwd: ROOT, shell });
  tarballs = [...(await readTarballs(packed)), ...(await readTarballs(folder))];
  const { allNativeManifests } = (await import(new URL('../../scripts/lib/manifests.mjs', import.meta.url).href)) as {
    allNativeManifests: () => Manifest[];
  };
  registry = await startRegistry(tarballs, allNativeManifests());
  await writeFile(join(folder, 'npmrc'), '');
  await writeFile(join(home, 'package.json'), '{"name":"somebody","private":true}');
  await npm('install', '@sparrow-search/server');
  server = await start('--models', MODELS);
}, 300_000);

afterAll(async () => {
  await server.stop();
  await registry.close();
  await rm(folder, { recursive: true, force: true });
  await rm(home, { recursive: true, force: true });
});

describe('the packages, installed from a registry into an empty directory', () => {
  it('are the server, the engine, the models and the addon of this platform alone', () => {
    const models = ['model-minilm-l6', 'model-splade-minilm-l6', 'model-splade-tiny'];
    const parts = ['cluster', 'endpoints', 'evaluation', 'http', 'cli', 'server'];
    const ours = ['engine', `engine-${PLATFORM}`, ...models, ...parts];
    expect(registry.fetched.toSorted()).toEqual(
      [...ours.map((name) => `@sparrow-search/${name}`), ...OTHERS].toSorted(),
    );
  });

  it('name no install script', async () => {
    for (const name of await readdir(scope())) {
      expect(JSON.parse(await readFile(join(scope(), name, 'package.json'), 'utf8'))).not.toHaveProperty('scripts');
    }
  });

  it('have the one version of the repository, as its folders and crates do', async () => {
    const json = async (path: string) => JSON.parse(await readFile(join(ROOT, path), 'utf8')) as Manifest;
    const { version } = await json('package.json');
    const models = ['model-splade-tiny', 'model-minilm-l6', 'model-splade-minilm-l6', 'model-bge-small-en'];
    for (const name of ['engine', 'cluster', 'endpoints', 'evaluation', 'http', 'cli', 'server', ...models]) {
      const folder = await json(join('packages', name, 'package.json'));
      const ours = Object.entries((folder['dependencies'] ?? {}) as Record<string, string>);
      const versions = ours.filter(([it]) => it.startsWith('@sparrow-search/')).map(([, it]) => it);
      expect(new Set([folder.version, ...versions]), name).toEqual(new Set([version]));
    }
    expect(await readFile(join(ROOT, 'Cargo.toml'), 'utf8')).toContain(`[workspace.package]\nversion = "${version}"`);
    for (const { manifest } of tarballs.filter(({ manifest: { name } }) => name.startsWith('@sparrow-search/'))) {
      if (!manifest.name.includes('onnxruntime')) expect(manifest.version, manifest.name).toBe(version);
    }
  });

  it('say where they come from, and are published in public with their provenance', () => {
    for (const { manifest } of tarballs.filter(({ manifest: { name } }) => name.startsWith('@sparrow-search/'))) {
      expect(manifest, manifest.name).toMatchObject({
        description: expect.stringMatching(/\.$/) as string,
        license: /onnxruntime|model-(?:bge|multilingual)/.test(manifest.name) ? 'MIT' : 'Apache-2.0',
        homepage: expect.stringContaining('https://') as string,
        repository: { type: 'git', directory: expect.stringMatching(/^packages\//) as string },
        keywords: expect.arrayContaining(['semantic-search']) as string[],
        publishConfig: { access: 'public', provenance: true },
      });
    }
  });

  it('carry their licences, and those of what the addon is linked from', async () => {
    for (const name of await readdir(scope())) {
      expect(await readFile(join(scope(), name, 'LICENSE'), 'utf8')).toContain('Apache License');
      if (!name.startsWith('model-')) {
        expect(await readFile(join(scope(), name, 'NOTICE'), 'utf8')).toContain('Sparrow');
      }
    }
    const notices = await readFile(join(scope(), `engine-${PLATFORM}`, 'THIRD-PARTY.md'), 'utf8');
    const listed = [...notices.matchAll(/^\| (\S+) \| ([\d.]\S*) \| (.*) \|$/gm)];
    expect(listed.map(([, name]) => name)).toEqual(expect.arrayContaining(['tantivy', 'tokenizers', 'ort', 'napi']));
    expect(listed.some(([, name]) => name?.startsWith('sparrow') === true)).toBe(false);
    // Each has its text, but for those that are under the Apache licence alone, which is in LICENSE.
    const headings = [...notices.matchAll(/^## (.+)$/gm)].map(([, heading = '']) => heading).join(', ');
    const bare = listed.filter(([, name, version]) => !headings.includes(`${String(name)} ${String(version)}`));
    expect(bare.map(([, , , licence]) => licence).filter((licence) => !licence?.includes('Apache-2.0'))).toEqual([]);
  });

  it('put the command on the path', async () => {
    const command = join(home, 'node_modules', '.bin', 'sparrow');
    const { stdout } = await (FOREIGN_NODE === undefined
      ? run(command, ['--version'], { shell })
      : run(NODE, [command, '--version']));
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
      query: { text_expansion: { v: { model_id: MODEL, model_text: 'stamp collector' } } },
    });
    expect(found.status, found.text).toBe(200);
    expect(found.body.hits.hits[0]._id).toBe('0');
  });

  it('have the dense model too', async () => {
    const started = '/_ml/trained_models/.all-minilm-l6-v2/deployment/_start?wait_for=started';
    expect((await server.request('POST', started)).status).toBe(200);
    const inferred = await server.request('POST', '/_ml/trained_models/.all-minilm-l6-v2/_infer', {
      docs: [{ text_field: 'a red stamp' }],
    });
    expect(inferred.body.inference_results[0].predicted_value).toHaveLength(384);
  });

  it('take the size that docs/platforms.md says, and hold the files that it says', async (context) => {
    const page = await readFile(join(ROOT, 'docs', 'platforms.md'), 'utf8');
    const rows = [...page.matchAll(/^\| `([^`]+)` \| ([\d.]+) MB \| ([\d.]+) MB \| (.+?) \| .+ \|$/gm)];
    const table = new Map(rows.map(([, name = '', ...cells]) => [name, cells]));
    if (PLATFORM !== 'linux-x64-gnu') context.skip('the table is that of linux-x64-gnu');
    for (const { manifest, bytes, files } of tarballs) {
      const [downloaded, installed, said] = table.get(manifest.name) ?? [];
      const patterns = [...(said ?? '').matchAll(/`([^`]+)`/g)].map(([, pattern = '']) => pattern);
      const unknown = files.filter((file) => !patterns.some((pattern) => matches(file, pattern)));
      if (manifest.name.startsWith('@sparrow-search/')) expect(unknown, `files of ${manifest.name}`).toEqual([]);
      if (RELEASED !== undefined && manifest.name === `@sparrow-search/engine-${PLATFORM}`) continue;
      expect(near(bytes.length, downloaded), `${manifest.name} is ${String(bytes.length)} bytes to download`).toBe(
        true,
      );
      const path = join(home, 'node_modules', manifest.name);
      if (!existsSync(path)) continue;
      const size = await sizeOf(path);
      expect(near(size, installed), `${manifest.name} is ${String(size)} bytes when installed`).toBe(true);
    }
    const total = /(\d+) MB are downloaded, (\d+) MB are installed/.exec(page);
    const installed = await sizeOf(join(home, 'node_modules'));
    expect(near(installed, total?.[2]), `${String(installed)} bytes are installed`).toBe(true);
    const ours = tarballs.filter(({ manifest }) => registry.fetched.includes(manifest.name));
    const downloaded = ours.reduce((sum, { bytes }) => sum + bytes.length, 0);
    expect(near(downloaded, total?.[1]), `${String(downloaded)} bytes are downloaded`).toBe(true);
  });

  it('have no larger addon than docs/platforms.md says', async (context) => {
    if (RELEASED === undefined) context.skip('the addon of a checkout is compiled otherwise');
    const page = await readFile(join(ROOT, 'docs', 'platforms.md'), 'utf8');
    const [, said] = new RegExp(`^\\| \`${PLATFORM}\` \\| [^|]+ \\| ([\\d.]+) MB \\|`, 'm').exec(page) ?? [];
    if (said === undefined) context.skip(`it says no size for ${PLATFORM}`);
    const { size } = await stat(join(scope(), `engine-${PLATFORM}`, 'sparrow.node'));
    expect(size).toBeLessThanOrEqual(Number(said) * 1e6 * (1 + SIZE_TOLERANCE));
  });

  it('ask for ONNX Runtime by name where a model needs it, and use it once it is there', async (context) => {
    const deploy = '/_ml/trained_models/odd-mlm/deployment/_start?wait_for=started';
    const refused = await server.request('POST', deploy);
    expect(refused.status).toBe(500);
    const name = `@sparrow-search/onnxruntime-${OS}-${CPU}`;
    if (ABI === 'musl' || !tarballs.some(({ manifest }) => manifest.name === name)) {
      expect(refused.body.error.reason).toContain('[SPARROW_ONNXRUNTIME]');
      context.skip(`there is no ${name}`);
    }
    expect(refused.body.error.reason).toContain('[npm install @sparrow-search/onnxruntime]');

    await npm('install', '@sparrow-search/onnxruntime');
    expect(registry.fetched.slice(-2)).toEqual(expect.arrayContaining(['@sparrow-search/onnxruntime', name]));
    const again = await start('--models', MODELS, '--deploy-at-start', 'false');
    try {
      expect((await again.request('POST', deploy)).status).toBe(200);
      const docs = [{ text_field: 'old red stamps' }];
      const inferred = await again.request('POST', '/_ml/trained_models/odd-mlm/_infer', { docs });
      expect(inferred.body.inference_results).toHaveLength(1);
    } finally {
      await again.stop();
    }
  });

  it('ask for the package of a model that is not installed by default, and serve it once it is there', async () => {
    const path = '/_inference/.bge-small-en-elasticsearch';
    const refused = await server.request('POST', path, { input: 'a red stamp' });
    expect(refused.status).toBe(404);
    expect(refused.body.error.reason).toContain('[npm install @sparrow-search/model-bge-small-en]');

    await npm('install', '@sparrow-search/model-bge-small-en');
    const again = await start('--deploy-at-start', 'false');
    try {
      const made = await again.request('POST', path, { input: 'a red stamp' });
      expect(made.body.text_embedding[0].embedding).toHaveLength(384);
      expect((await again.request('GET', '/_inference/.hybrid-bge-small-en')).status).toBe(200);
    } finally {
      await again.stop();
    }
  });

  it('say what is missing where the addon was left out', async () => {
    await rm(join(scope(), `engine-${PLATFORM}`), { recursive: true });
    await expect(start()).rejects.toThrow(`npm install @sparrow-search/engine-${PLATFORM}@`);
  });
});

/** Whether a path is what a pattern says: `*` stands for anything. */
function matches(path: string, pattern: string): boolean {
  const parts = pattern.split('*').map((part) => part.replaceAll('.', '\\.'));
  return new RegExp(`^${parts.join('.*')}$`).test(path);
}

/** Whether a number of bytes is what a page says in megabytes, but for what compilers and rounding make of it. */
function near(bytes: number, megabytes: string | undefined): boolean {
  const said = Number(megabytes) * 1e6;
  return Math.abs(bytes - said) <= Math.max(60_000, said * SIZE_TOLERANCE);
}

/** Bytes of all files below a folder. */
async function sizeOf(path: string): Promise<number> {
  const entries = await readdir(path, { recursive: true, withFileTypes: true });
  const sizes = entries
    .filter((entry) => entry.isFile())
    .map(async (entry) => (await stat(join(entry.parentPath, entry.name))).size);
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}
