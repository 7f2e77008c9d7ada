// The examples do what their pages say, as somebody runs them: each a process of its own, from the root of the repository.
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

describe('examples/rag', () => {
  let server: RunningServer;
  let folder: string;
  beforeAll(async () => {
    server = await startServer();
    folder = await mkdtemp(join(tmpdir(), 'sparrow-texts-'));
  });
  afterAll(async () => {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  });
  const ask = async (...args: string[]): Promise<string> => {
    const env = { ...process.env, SPARROW_URL: server.url, SPARROW_API_KEY: server.apiKey };
    const { stdout, stderr } = await promisify(execFile)(process.execPath, ['examples/rag/rag.mjs', ...args], {
      cwd: ROOT,
      env,
    });
    expect(stderr).toBe('');
    return stdout;
  };

  it('answers from the texts with the source, and says when they say nothing', async () => {
    const kept = await ask('how long may I keep a book?');
    expect(kept).toContain('A loan lasts four weeks. [1]');
    expect(kept).toContain('[1] lending.md, Borrowing');
    // No word of the question but "I" is in the answer.
    expect(await ask('what does it cost when I am too late?')).toContain('Each overdue day costs twenty cents');
    expect(await ask('who invented the telephone?')).toBe('The texts do not say.\n');
    const { body } = await server.request('GET', '/rag-texts/_mapping');
    expect(body['rag-texts'].mappings.properties.text.fields.semantic).toMatchObject({
      type: 'semantic_text',
      inference_id: '.hybrid',
    });
  });

  it('gives a language model the passages with their numbers', async () => {
    const prompt = await ask('--prompt', 'how long may I keep a book?');
    expect(prompt).toMatch(/\[1\] lending\.md, Borrowing\nA loan lasts four weeks/);
    expect(prompt).toMatch(/Question: how long may I keep a book\?\nAnswer:\n$/);
  });

  it('reads a folder again only when its texts have changed', async () => {
    await writeFile(
      join(folder, 'a.md'),
      '# Lava\n\nThe crater glows red at night, and the molten rock flows to the sea.\n',
    );
    const args = ['--texts', folder, '--index', 'own', 'where does the hot stone go?'];
    expect(await ask(...args)).toContain('[1] a.md, Lava');
    const made = async (): Promise<string> =>
      (await server.request('GET', '/own/_settings')).body.own.settings.index.uuid as string;
    const before = await made();
    await ask(...args);
    expect(await made()).toBe(before);
    await writeFile(join(folder, 'b.txt'), 'Whales sing to each other over hundreds of miles in the deep ocean.\n');
    expect(await ask('--texts', folder, '--index', 'own', 'music of sea animals')).toContain('[1] b.txt');
    expect(await made()).not.toBe(before);
  });
});

describe('examples/hono', () => {
  let data: string;
  let running: ChildProcess;
  let url: string;

  const start = async (): Promise<void> => {
    running = spawn(process.execPath, ['examples/hono/server.mjs'], {
      cwd: ROOT,
      env: { ...process.env, PORT: '0', DATA: data },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const lines = createInterface({ input: running.stdout as NodeJS.ReadableStream });
    url = await new Promise((resolve, reject) => {
      lines.once('line', resolve);
      running.once('exit', (code) => {
        reject(new Error(`the example ended with ${String(code)}`));
      });
    });
  };
  const stop = async (): Promise<void> => {
    const ended = new Promise((resolve) => running.once('exit', resolve));
    running.kill('SIGTERM');
    expect(await ended).toBe(0);
  };
  beforeAll(async () => {
    data = await mkdtemp(join(tmpdir(), 'sparrow-notes-'));
    await start();
  });
  afterAll(async () => {
    running.kill('SIGKILL');
    await rm(data, { recursive: true, force: true });
  });

  const write = async (text: unknown): Promise<Response> =>
    fetch(`${url}/notes`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ text }),
    });
  const find = async (question: string): Promise<string[]> => {
    const found = (await (await fetch(`${url}/notes?q=${encodeURIComponent(question)}`)).json()) as { text: string }[];
    return found.map(({ text }) => text);
  };
  const SORE = 'Sore muscles recover faster with rest, water and gentle stretching.';

  it('writes notes, finds them by what they mean, and refuses what is none', async () => {
    const { id } = (await (await write(SORE)).json()) as { id: string };
    for (const text of ['Bread rises because yeast makes gas.', '<b>Lava</b> is rock so hot that it flows.']) {
      expect((await write(text)).status).toBe(201);
    }
    expect((await find('how to avoid pain after running'))[0]).toBe(SORE);
    expect((await find(''))[0]).toContain('Lava');
    expect(await (await fetch(`${url}/notes/${id}`)).json()).toMatchObject({ text: SORE });
    for (const bad of ['', 7, undefined, 'x'.repeat(10_001)]) expect((await write(bad)).status).toBe(400);
    expect((await fetch(`${url}/notes/nobody`)).status).toBe(404);
  });

  it('has a page with a form, which shows texts as texts', async () => {
    const page = await (await fetch(`${url}/?q=volcano`)).text();
    expect(page).toContain('&lt;b&gt;Lava&lt;/b&gt;');
    expect(page).toContain('value="volcano"');
    const form = new URLSearchParams({ text: 'Whales sing.' });
    const answer = await fetch(`${url}/`, { method: 'POST', body: form, redirect: 'manual' });
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/']);
    expect((await find('music of the sea'))[0]).toBe('Whales sing.');
  });

  it('keeps the notes when it is stopped and started again, and deletes what it is told', async () => {
    await stop();
    await start();
    expect((await find('how to avoid pain after running'))[0]).toBe(SORE);
    const notes = (await (await fetch(`${url}/notes?q=pain`)).json()) as { id: string; text: string }[];
    const id = notes.find(({ text }) => text === SORE)?.id ?? '';
    expect((await fetch(`${url}/notes/${id}`, { method: 'DELETE' })).status).toBe(204);
    expect((await fetch(`${url}/notes/${id}`, { method: 'DELETE' })).status).toBe(404);
    expect(await find('how to avoid pain after running')).not.toContain(SORE);
  });
});
