// LangChain and LlamaIndex for JavaScript, Mastra, the AI SDK, elasticdump, OpenAI's client, OpenSearch's and version 9 of the official one,
// unchanged, installed here beside the repository's own packages; and what Logstash sends.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { PASSAGES_FILE } from '../support/passages.js';
import { type RunningServer, startServer } from '../support/server.js';
import { type Package, officialClient } from './official-client.js';
import { ReaderFolder, examplesIn } from './page.js';

const SCRIPTS = fileURLToPath(new URL('./node', import.meta.url));

const CROSS_ENCODER = fileURLToPath(new URL('../../crates/encoder/tests/fixtures/cross-bert', import.meta.url));

interface Ran {
  readonly code: number | string | null;
  readonly output: string;
}

function run(command: string, args: readonly string[], cwd: string, env: Record<string, string> = {}): Promise<Ran> {
  return new Promise((resolve) => {
    const options = { cwd, env: { ...process.env, NODE_OPTIONS: '', ...env }, maxBuffer: 1 << 24 };
    execFile(command, [...args], options, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : (error.code ?? null), output: stdout + stderr });
    });
  });
}

/** A folder with the packages of the lock file, or why there is none. Kept until the lock file changes. */
async function environment(): Promise<{ readonly folder: string } | { readonly missing: string }> {
  const lock = readFileSync(join(SCRIPTS, 'package-lock.json'));
  const pins = createHash('sha256').update(lock).digest('hex').slice(0, 12);
  const folder = fileURLToPath(new URL(`../../node_modules/.sparrow-node-clients-${pins}`, import.meta.url));
  const complete = join(folder, 'complete');
  if (!existsSync(complete)) {
    rmSync(folder, { recursive: true, force: true });
    cpSync(SCRIPTS, folder, { recursive: true });
    const installed = await run('npm', ['ci', '--no-progress'], folder);
    if (installed.code !== 0)
      return { missing: `the packages could not be installed: ${installed.output.slice(-400)}` };
    writeFileSync(complete, '');
  }
  cpSync(SCRIPTS, folder, { recursive: true });
  return { folder };
}

const found = await environment();
if ('missing' in found) console.warn(`skipped: clients for Node.js: ${found.missing}`);

if ('folder' in found) {
  const nine = (await import(join(found.folder, 'node_modules/elasticsearch-9/index.js'))) as {
    readonly default: Package;
  };
  describe('@elastic/elasticsearch 9', () => {
    officialClient(nine.default, 9);
  });
}

describe.skipIf('missing' in found)('clients for Node.js', () => {
  const folder = 'folder' in found ? found.folder : '';
  let server: RunningServer;
  let files: string;
  let reader: ReaderFolder;

  beforeAll(async () => {
    const models = await mkdtemp(join(tmpdir(), 'sparrow-node-models-'));
    cpSync(CROSS_ENCODER, join(models, 'cross'), { recursive: true });
    server = await startServer({ args: ['--models', models] });
    files = await mkdtemp(join(tmpdir(), 'sparrow-elasticdump-'));
    reader = new ReaderFolder(server);
  });
  afterAll(async () => {
    await server.stop();
    await rm(files, { recursive: true, force: true });
    reader.remove();
  });

  it.each([
    ['LangChain', 'langchain.mjs'],
    ['Mastra', 'mastra.mjs'],
    ['OpenAI’s client', 'openai.mjs'],
    ['the AI SDK', 'ai-sdk.mjs'],
    ['LlamaIndex', 'llama-index.mjs'],
    ['OpenSearch’s client', 'opensearch.mjs'],
    ['the requests of Logstash', 'logstash.mjs'],
  ])('%s', async (_, script) => {
    const env = { SPARROW_URL: server.url, SPARROW_API_KEY: server.apiKey, SPARROW_PASSAGES: PASSAGES_FILE };
    const ran = await run(process.execPath, ['--test', script], folder, env);
    if (ran.code !== 0) throw new Error(ran.output);
    expect(ran.output).toMatch(/# pass [1-9]/);
  });

  it.each(examplesIn('js', 'sh').map((example) => [example.title, example] as const))(
    'runs the example of the page: %s',
    async (_, example) => {
      let ran: Ran;
      if (example.language === 'sh') {
        const path = [join(folder, 'node_modules', '.bin'), process.env['PATH']].join(delimiter);
        ran = await run('bash', [reader.write(example, join(reader.path, 'example.sh'))], reader.path, { PATH: path });
      } else {
        // OpenAI's client is installed under a name with its version.
        const text = example.text.replace("from 'openai'", "from 'openai-7'");
        ran = await run(
          process.execPath,
          [reader.write({ ...example, text }, join(folder, 'example.mjs'))],
          reader.path,
        );
      }
      expect(ran.output.trim()).toBe(example.answer);
    },
  );

  it('elasticdump copies an index into files and back, and from index to index', async () => {
    const send = async (method: string, path: string, body?: unknown): Promise<any> => {
      const answer = await server.request(method, path, body);
      expect(answer.status, answer.text).toBeLessThan(300);
      return answer.body;
    };
    const mappings = {
      properties: {
        title: { type: 'text', fields: { semantic: { type: 'semantic_text', inference_id: '.hybrid' } } },
        n: { type: 'integer' },
        tokens: { type: 'sparse_vector' },
        point: { type: 'dense_vector', dims: 2 },
      },
    };
    await send('PUT', '/dump-from', { mappings, settings: { 'index.refresh_interval': '5s' } });
    const lines = Array.from({ length: 250 }, (_, n) => [
      { index: { _id: `d${String(n)}` } },
      { title: `Number ${String(n)} – ünïcode "quoted"`, n, tokens: { a: n + 1 }, point: [1, n] },
    ]).flat();
    await send('POST', '/dump-from/_bulk?refresh=true', `${lines.map((line) => JSON.stringify(line)).join('\n')}\n`);

    const dump = async (from: string, to: string, type: string, more: readonly string[] = []): Promise<string> => {
      const headers = JSON.stringify({ Authorization: `ApiKey ${server.apiKey}` });
      const program = join(folder, 'node_modules', 'elasticdump', 'bin', 'elasticdump');
      const options = [
        `--input=${from}`,
        `--output=${to}`,
        `--type=${type}`,
        `--headers=${headers}`,
        '--limit=60',
        ...more,
      ];
      const ran = await run(process.execPath, [program, ...options], files);
      expect(ran.code, ran.output).toBe(0);
      expect(ran.output).not.toMatch(/Error Emitted|error:/i);
      return ran.output;
    };
    const index = (name: string): string => `${server.url}/${name}`;
    for (const type of ['settings', 'mapping', 'data']) {
      await dump(index('dump-from'), join(files, `${type}.json`), type);
      await dump(join(files, `${type}.json`), index('dump-to'), type);
    }
    // By a point in time, which it closes by a path of its own.
    const opened = async (): Promise<number> =>
      (await send('GET', '/dump-from/_stats/search')).indices['dump-from'].total.search.open_contexts as number;
    const before = await opened();
    await dump(index('dump-from'), join(files, 'pit.json'), 'data', ['--searchAfter=true', '--pit=true']);
    expect(readFileSync(join(files, 'pit.json'), 'utf8').trim().split('\n')).toHaveLength(250);
    expect(await opened()).toBe(before);
    await dump(index('dump-from'), index('dump-copy'), 'mapping');
    await dump(index('dump-from'), index('dump-copy'), 'data');
    await send('POST', '/_refresh');

    const all = async (name: string): Promise<unknown> =>
      (await send('POST', `/${name}/_search`, { size: 1000, sort: ['n'] })).hits.hits.map(
        ({ _id, _source }: { _id: string; _source: unknown }) => [_id, _source],
      );
    const wanted = await all('dump-from');
    expect(wanted).toHaveLength(250);
    const from = (await send('GET', '/dump-from/_mapping'))['dump-from'].mappings;
    for (const name of ['dump-to', 'dump-copy']) {
      expect(await all(name)).toEqual(wanted);
      expect((await send('GET', `/${name}/_mapping`))[name].mappings).toEqual(from);
      // The passages were encoded anew: the copy is found by meaning.
      const query = { semantic: { field: 'title.semantic', query: 'number 42' } };
      expect((await send('POST', `/${name}/_search`, { query })).hits.total.value).toBeGreaterThan(0);
    }
  }, 120_000);
});
