// `npm run demo:wordnet`, as a user runs it: against a server that is up, and without one.
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

const DEMO = fileURLToPath(new URL('../../scripts/demo.mjs', import.meta.url));
const LIMIT = 500;

let server: RunningServer;

beforeAll(async () => {
  server = await startServer();
});

afterAll(async () => {
  await server.stop();
});

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the demo to its end, without a terminal. */
function demo(args: readonly string[], url = server.url, data = server.data): Promise<Ended> {
  // The test runner's own environment asks for colours.
  const env = { ...process.env };
  delete env['FORCE_COLOR'];
  delete env['SPARROW_API_KEY'];
  const child = spawn(process.execPath, [DEMO, '--url', url, '--data', data, ...args], { env });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (stdout += chunk));
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (stderr += chunk));
  return new Promise((resolve) => {
    child.on('close', (code) => {
      resolve({ code, stdout, stderr });
    });
  });
}

describe('the demo', () => {
  it('plays the whole workflow, and can do so again', async () => {
    for (const round of [1, 2]) {
      const { code, stdout, stderr } = await demo(['--limit', String(LIMIT)]);
      expect(stderr, `round ${String(round)}`).toBe('');
      expect(code).toBe(0);
      for (const line of [
        /PUT \/demo-wordnet\b/,
        /POST \/demo-wordnet\/_bulk/,
        /POST \/_ml\/trained_models\/\.sparse_encoder_model_2\/deployment\/_start/,
        /PUT \/demo-dictionary\b/,
        /PUT \/_ingest\/pipeline\/demo-embed-gloss/,
        /POST \/_reindex\?wait_for_completion=false/,
        /GET \/_tasks\/[\w-]+:\d+/,
        /100% {2}500 of 500 .* docs\/s/,
        /documents +500\b/,
        /a question +\d+\.\d ms/,
        /server memory +\d+ MB/,
      ]) {
        expect(stdout).toMatch(line);
      }
      // The word that is looked for is marked, on the side of the meaning.
      const answers = stdout.slice(stdout.indexOf('“fear of open spaces”'));
      expect(answers.split('\n')[2]).toMatch(/│ ▸ +\d+\.\d {2}agoraphobia/);
      // And by words and both kinds of vectors, in one line.
      expect(answers.slice(0, answers.indexOf('“', 10))).toMatch(/\n {10}hybrid, [\s\S]*▸ +\d+\.\d+ {2}agoraphobia/);
      // Escape sequences belong to a terminal.
      expect(stdout).not.toContain('\u001b');
    }
    for (const index of ['demo-wordnet', 'demo-dictionary']) {
      const { body } = await server.request('GET', `/${index}/_count`);
      expect(body.count).toBe(LIMIT);
    }
  });

  it('asks again without building anything', async () => {
    const { code, stdout } = await demo(['--keep', 'a morbid fear of open spaces']);
    expect(code).toBe(0);
    expect(stdout).not.toContain('_reindex');
    expect(stdout).toContain('“a morbid fear of open spaces”');
    expect(stdout).toContain('agoraphobia');
  });

  it('says what to do when no server is there', async () => {
    const { code, stdout, stderr } = await demo([], 'http://127.0.0.1:1');
    expect(code).toBe(1);
    expect(stdout).toBe('');
    expect(stderr).toContain('no server answers at http://127.0.0.1:1');
    expect(stderr).toContain('npm start');
  });

  it('deletes what it left, and says so also where there is nothing', async () => {
    await demo(['--limit', '50']);
    for (const round of [1, 2]) {
      const { code, stdout, stderr } = await demo(['--remove']);
      expect([code, stdout, stderr], `round ${String(round)}`).toEqual([
        0,
        'demo-wordnet, demo-dictionary and the pipeline demo-embed-gloss are deleted\n',
        '',
      ]);
    }
    for (const path of ['/demo-wordnet', '/demo-dictionary', '/_ingest/pipeline/demo-embed-gloss']) {
      expect((await server.request('GET', path)).status, path).toBe(404);
    }
  });

  it('says which key it wants when it finds none', async () => {
    const { code, stderr } = await demo(['--limit', '5'], server.url, '/nowhere');
    expect(code).toBe(1);
    expect(stderr).toContain('SPARROW_API_KEY');
  });

  it('says what it takes', async () => {
    const { code, stdout, stderr } = await demo(['--help']);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/^Usage: npm run demo:wordnet/);
  });

  it('leads from options that it does not have to those that it has', async () => {
    for (const [option, told] of [
      ['--port', 'unknown option --port: say where the server is with --url http://127.0.0.1:PORT'],
      ['--lmit', 'unknown option --lmit'],
    ] as const) {
      const { code, stderr } = await demo([option, '9478']);
      expect([code, stderr]).toEqual([2, expect.stringContaining(`${told}\n`)]);
      expect(stderr).toContain('usage:');
    }
  });

  it('refuses a limit that is none', async () => {
    const { code, stderr } = await demo(['--limit', 'many']);
    expect(code).toBe(2);
    expect(stderr).toContain('usage:');
  });
});
