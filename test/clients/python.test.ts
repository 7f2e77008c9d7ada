// The official Python client, elasticsearch-dsl, and the stores of LangChain, LlamaIndex and Haystack, unchanged, and what Dify and Open
// WebUI send, in a virtual environment made here, or in the one of the interpreter that SPARROW_TEST_PYTHON names.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { PASSAGES_FILE } from '../support/passages.js';
import { type RunningServer, startServer } from '../support/server.js';
import { ReaderFolder, examplesIn } from './page.js';

const SCRIPTS = fileURLToPath(new URL('./python', import.meta.url));
const DENSE_MODEL = 'all-minilm-l6-v2';
const SUITES = ['test_official_client', 'test_langchain', 'test_llama_index', 'test_haystack', 'test_dsl', 'test_dify'];

interface Ran {
  readonly code: number | string | null;
  readonly output: string;
}

function run(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  cwd: string = SCRIPTS,
): Promise<Ran> {
  return new Promise((resolve) => {
    const options = { cwd, env: { ...process.env, ...env }, maxBuffer: 1 << 24 };
    execFile(command, [...args], options, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : (error.code ?? null), output: stdout + stderr });
    });
  });
}

/** The interpreter of an environment with the pinned packages, or why there is none. Kept until the pins change. */
async function environment(requirements: string): Promise<{ readonly python: string } | { readonly missing: string }> {
  const file = join(SCRIPTS, requirements);
  const given = process.env['SPARROW_TEST_PYTHON'];
  if (given !== undefined && given !== '' && requirements === 'requirements.txt') return { python: given };
  const version = await run('python3', ['-c', 'import sys, venv, ensurepip; print(sys.version_info >= (3, 10))']);
  if (version.code !== 0 || !version.output.startsWith('True')) {
    return { missing: 'no Python 3.10 or newer with venv on this machine' };
  }
  const pins = createHash('sha256').update(readFileSync(file)).digest('hex').slice(0, 12);
  const folder = fileURLToPath(new URL(`../../node_modules/.sparrow-python-${pins}`, import.meta.url));
  const python = join(folder, 'bin', 'python');
  const complete = join(folder, 'complete');
  if (existsSync(complete)) return { python };
  rmSync(folder, { recursive: true, force: true });
  await run('python3', ['-m', 'venv', folder]);
  const installed = await run(python, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '-r', file]);
  if (installed.code !== 0)
    return { missing: `the Python packages could not be installed: ${installed.output.slice(-400)}` };
  writeFileSync(complete, '');
  return { python };
}

/** Frameworks pin version 8 of the client, so that version 9 has an environment of its own. */
describe.each([
  ['requirements.txt', SUITES],
  ['requirements-9.txt', ['test_official_client', 'test_open_webui']],
])('Python clients of %s', async (requirements, suites) => {
  const found = await environment(requirements);
  if ('missing' in found) {
    console.warn(`skipped: Python clients of ${requirements}: ${found.missing}`);
    it.skip('are not installed', () => undefined);
    return;
  }
  let server: RunningServer;

  beforeAll(async () => {
    server = await startServer();
    await server.request('POST', `/_ml/trained_models/${DENSE_MODEL}/deployment/_start?wait_for=started`);
  });

  afterAll(async () => {
    await server.stop();
  });

  it.each(suites)('%s.py', async (script) => {
    const env = {
      SPARROW_URL: server.url,
      SPARROW_API_KEY: server.apiKey,
      SPARROW_DENSE_MODEL: DENSE_MODEL,
      SPARROW_PASSAGES: PASSAGES_FILE,
      PYTHONDONTWRITEBYTECODE: '1',
    };
    const ran = await run(found.python, ['-m', 'unittest', '-v', script], env);
    if (ran.code !== 0) throw new Error(ran.output);
  });

  // The frameworks of the page pin version 8.
  const examples = requirements === 'requirements.txt' ? examplesIn('python') : [];
  it.each(examples.map((example) => [example.title, example] as const))(
    'runs the example of the page: %s',
    async (_, example) => {
      const reader = new ReaderFolder(server);
      const file = reader.write(example, join(reader.path, 'example.py'));
      const ran = await run(found.python, ['-W', 'ignore', file], { HAYSTACK_TELEMETRY_ENABLED: 'False' }, reader.path);
      reader.remove();
      expect(ran.output.trim()).toBe(example.answer);
    },
  );
});
