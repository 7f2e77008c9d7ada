// The examples do what their pages say, as somebody runs them: each a process of its own, from the root of the repository.
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { findChromium, launch, violations } from '../support/browser.js';
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

  it('says where it needs a key', async () => {
    const env = { ...process.env, SPARROW_URL: server.url };
    const script = join(ROOT, 'examples/rag/rag.mjs');
    const asked = promisify(execFile)(process.execPath, [script, 'why?'], { cwd: folder, env });
    await expect(asked).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^there is no data\/owner\.key here/),
    });
  });

  it('gives a language model the passages with their numbers', async () => {
    const prompt = await ask('--prompt', 'how long may I keep a book?');
    expect(prompt).toMatch(/\[1\] lending\.md, Borrowing\nA loan lasts four weeks/);
    expect(prompt).toMatch(/Question: how long may I keep a book\?\nAnswer:\n$/);
  });

  it('cuts a text at its headings, and nowhere within a block of code', async () => {
    const texts = join(folder, 'headings');
    await mkdir(texts);
    await writeFile(
      join(texts, 'pump.md'),
      '# Pump\n\n### Starting\n\n```sh\n# open the valve\npump start\n```\n\nThe pump starts when its valve is open.\n\n### Stopping ###\n\nClose the valve slowly.\n\n## Empty',
    );
    const prompt = await ask('--prompt', '--texts', texts, 'how is the pump started?');
    expect(prompt).toContain('pump.md, Pump › Starting\n');
    expect(prompt).toContain('pump.md, Pump › Stopping\n');
    expect(prompt).not.toContain('Empty');
    expect(prompt).toContain('open the valve\npump start');
  });

  it('gives whole paragraphs, each once, however the index has cut them', async () => {
    const texts = join(folder, 'wrapped');
    await mkdir(texts);
    const filler = (about: string): string =>
      Array.from({ length: 12 }, (_, n) => `Line ${String(n)} of the report is about ${about}`).join(',\nand ');
    const paragraph = `${filler('tea')}. The ship sank because water came in\nthrough a hole in its hull. ${filler('coffee')}.`;
    await writeFile(
      join(texts, 'report.md'),
      `# Report\n\n${filler('bread')}.\n\n${paragraph}\n\n${filler('salt')}.\n`,
    );
    const prompt = await ask('--prompt', '--texts', texts, 'why did the vessel go under?');
    expect(prompt.split(paragraph)).toHaveLength(2);
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

/** An example that serves: a process that prints its address once it listens, and ends well when it is asked to. */
class Served {
  readonly #script: string;
  #running: ChildProcess | undefined;
  #data = '';
  url = '';

  constructor(script: string) {
    this.#script = script;
  }

  async start(): Promise<void> {
    if (this.#data === '') this.#data = await mkdtemp(join(tmpdir(), 'sparrow-example-'));
    const running = spawn(process.execPath, [this.#script], {
      cwd: ROOT,
      env: { ...process.env, PORT: '0', DATA: this.#data },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.#running = running;
    const lines = createInterface({ input: running.stdout });
    this.url = await new Promise((resolve, reject) => {
      lines.once('line', resolve);
      running.once('exit', (code) => {
        reject(new Error(`the example ended with ${String(code)}`));
      });
    });
  }

  async stop(): Promise<void> {
    const ended = new Promise((resolve) => this.#running?.once('exit', resolve));
    this.#running?.kill('SIGTERM');
    expect(await ended).toBe(0);
  }

  async remove(): Promise<void> {
    this.#running?.kill('SIGKILL');
    await rm(this.#data, { recursive: true, force: true });
  }

  async json(path: string): Promise<any> {
    return (await fetch(`${this.url}${path}`)).json();
  }
}

describe('examples/hono', () => {
  const example = new Served('examples/hono/server.mjs');
  beforeAll(() => example.start());
  afterAll(() => example.remove());

  const write = async (text: unknown): Promise<Response> =>
    fetch(`${example.url}/notes`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ text }),
    });
  const find = async (question: string): Promise<string[]> => {
    const found = (await (await fetch(`${example.url}/notes?q=${encodeURIComponent(question)}`)).json()) as {
      text: string;
    }[];
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
    expect(await (await fetch(`${example.url}/notes/${id}`)).json()).toMatchObject({ text: SORE });
    for (const bad of ['', 7, undefined, 'x'.repeat(10_001)]) expect((await write(bad)).status).toBe(400);
    expect((await fetch(`${example.url}/notes/nobody`)).status).toBe(404);
  });

  it('has a page with a form, which shows texts as texts', async () => {
    const page = await (await fetch(`${example.url}/?q=volcano`)).text();
    expect(page).toContain('&lt;b&gt;Lava&lt;/b&gt;');
    expect(page).toContain('value="volcano"');
    const form = new URLSearchParams({ text: 'Whales sing.' });
    const answer = await fetch(`${example.url}/`, { method: 'POST', body: form, redirect: 'manual' });
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/']);
    expect((await find('music of the sea'))[0]).toBe('Whales sing.');
  });

  it('keeps the notes when it is stopped and started again, and deletes what it is told', async () => {
    await example.stop();
    await example.start();
    expect((await find('how to avoid pain after running'))[0]).toBe(SORE);
    const notes = (await (await fetch(`${example.url}/notes?q=pain`)).json()) as { id: string; text: string }[];
    const id = notes.find(({ text }) => text === SORE)?.id ?? '';
    expect((await fetch(`${example.url}/notes/${id}`, { method: 'DELETE' })).status).toBe(204);
    expect((await fetch(`${example.url}/notes/${id}`, { method: 'DELETE' })).status).toBe(404);
    expect(await find('how to avoid pain after running')).not.toContain(SORE);
  });
});

describe('examples/nextjs', () => {
  const example = new Served('examples/nextjs/server.mjs');
  beforeAll(() => example.start());
  afterAll(() => example.remove());
  const post = (body: string): Promise<Response> =>
    fetch(`${example.url}/api/search`, { method: 'POST', headers: { 'content-type': 'application/json' }, body });

  it('finds by what is meant, keeps what is written, and refuses what is none', async () => {
    for (const text of [
      'Bread rises because yeast makes gas.',
      'Sore muscles recover with rest, water and stretching.',
    ])
      expect((await post(JSON.stringify({ text }))).status).toBe(201);
    for (const bad of ['', '{}', '{"text":7}', '{"text":" "}']) expect((await post(bad)).status).toBe(400);
    const question = '/api/search?q=how+to+avoid+pain+after+running';
    expect((await example.json(question))[0]).toMatchObject({ text: expect.stringContaining('Sore muscles') });
    await example.stop();
    await example.start();
    expect((await example.json(question))[0]).toMatchObject({ text: expect.stringContaining('Sore muscles') });
    expect((await fetch(`${example.url}/api/search`)).status).toBe(400);
    expect((await fetch(`${example.url}/api/search?q=x`, { method: 'DELETE' })).status).toBe(405);
  });
});

describe('examples/ai-sdk', () => {
  it('answers with what the engine finds, which the model has asked for', async () => {
    const args = ['examples/ai-sdk/ask.mjs', 'what does it cost when I am too late?'];
    const { stdout, stderr } = await promisify(execFile)(process.execPath, args, { cwd: ROOT });
    expect(stderr).toBe('');
    // No word of the question is in the passage.
    expect(stdout).toMatch(/^Each overdue day costs twenty cents[^]*\[lending\.md, When something comes back late\]\n/);
    expect(stdout).toContain('\nSeen: lending.md, When something comes back late; ');
  });
});

const CHROMIUM = findChromium();

describe('examples/search-ui', () => {
  const example = new Served('examples/search-ui/server.mjs');
  beforeAll(() => example.start());
  afterAll(() => example.remove());
  const PAIN = 'how to avoid pain after running';

  it('completes, finds with facets, and says why', async () => {
    expect(await example.json('/suggest?q=so')).toEqual(
      expect.arrayContaining(['Sore muscles', 'Sourdough', 'Soup stock']),
    );
    expect(await example.json('/suggest?q=blue+wh')).toEqual(['The blue whale']);
    expect(await example.json('/suggest?q=')).toEqual([]);
    const found = await example.json(`/search?q=${encodeURIComponent(PAIN)}`);
    expect(found.hits[0]).toMatchObject({ title: 'Sore muscles' });
    const counts = found.topics.map(({ count }: { count: number }) => count);
    expect(counts.reduce((all: number, one: number) => all + one, 0)).toBe(found.hits.length);
    const money = await example.json(`/search?q=${encodeURIComponent(PAIN)}&topic=money`);
    expect(money.hits.map(({ topic }: { topic: string }) => topic)).toEqual(['money', 'money']);
    expect(money.topics).toEqual(found.topics);
    const [words, sparse] = await example.json(`/why?q=muscles&id=${found.hits[0].id as string}`);
    expect([words, sparse]).toMatchObject([
      { list: 'words', matched: true },
      { list: 'sparse', matched: true },
    ]);
    expect(JSON.stringify(sparse.explanation)).toContain('muscles');
  });

  it.skipIf(CHROMIUM === undefined)(`is a page for people`, async () => {
    const browser = await launch(CHROMIUM ?? '');
    try {
      const page = await browser.newPage();
      page.setDefaultTimeout(30_000);
      const asked = new Set<string>();
      page.on('request', (request) => asked.add(new URL(request.url()).origin));
      await page.goto(example.url);
      for (const scheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme: scheme });
        for (const size of [
          { width: 1280, height: 800 },
          { width: 390, height: 844 },
        ]) {
          await page.setViewportSize(size);
          await page.getByLabel('What do you want to know?').fill('');
          await page.locator('#hits li').first().waitFor({ state: 'detached' });
          await page.getByLabel('What do you want to know?').fill('sore muscles');
          await page.locator('#suggestions option[value="Sore muscles"]').waitFor({ state: 'attached' });
          await page.locator('mark', { hasText: 'muscles' }).first().waitFor();
          await page.getByRole('button', { name: /^health/ }).click();
          await page.getByRole('button', { name: /^health/, pressed: true }).waitFor();
          await page.getByText('3 articles').waitFor();
          await page.getByRole('link', { name: 'Why was Sore muscles found?' }).click();
          await page.getByText('By sparse:').waitFor();
          expect(await violations(page), `${scheme}, ${String(size.width)}`).toEqual([]);
          const wide = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
          expect(await page.evaluate(wide)).toBeLessThanOrEqual(0);
          await picture(page, `search-ui-${scheme}-${String(size.width)}`);
          await page.getByRole('button', { name: /^health/ }).click();
          await page.getByRole('button', { name: /^health/, pressed: false }).waitFor();
        }
      }
      expect([...asked].filter((origin) => origin !== 'null')).toEqual([example.url]);
    } finally {
      await browser.close();
    }
  });
});

/** A picture to look at, where EXAMPLE_SCREENSHOTS names a folder. */
async function picture(page: Page, name: string): Promise<void> {
  const folder = process.env['EXAMPLE_SCREENSHOTS'];
  if (folder !== undefined) await page.screenshot({ path: join(folder, `${name}.png`) });
}
