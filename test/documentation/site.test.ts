// The documentation as the server shows it at /_docs.
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { ENDPOINTS } from '@sparrow-search/server';
import { afterAll, beforeAll, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';
import { ROOT, pagesUnder, read } from './pages.js';

const { BASE, addressOf } = (await import(new URL('../../packages/site/addresses.mjs', import.meta.url).href)) as {
  BASE: string;
  addressOf: (page: string) => string;
};
const BUILT = join(ROOT, 'packages', 'http', 'dist', 'docs');
/** Bytes of all files together, above which they would be too much for the package. */
const MOST_BYTES = 3_200_000;

let server: RunningServer;
const get = (path: string) => server.request('GET', path, undefined, { apiKey: null });
const pages = pagesUnder('docs').map((page) => page.replace('docs/', ''));
const pathOf = (page: string) => `${BASE}/${addressOf(page)}`.replace(/\/$/, '');

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
});
afterAll(async () => {
  await server.stop();
});

it('shows every page without a key', async () => {
  expect(new Set(pages.map(pathOf)).size).toBe(pages.length);
  for (const page of [...pages, 'api.md']) {
    const { status, headers, text } = await get(pathOf(page));
    expect([page, status, headers['content-type']]).toEqual([page, 200, 'text/html; charset=UTF-8']);
    if (page === 'api.md') continue;
    const heading = /^# (.+)$/m.exec(read(`docs/${page}`))?.[1]?.replaceAll('`', '') ?? '';
    expect(text.replaceAll(/<\/?code>/g, ''), page).toContain(
      `>${heading.replaceAll('&', '&amp;').replaceAll('"', '&quot;')}</h1>`,
    );
  }
});

it('lets a browser run nothing and load nothing foreign', async () => {
  const { headers, text } = await get('/_docs/start');
  const policy = headers['content-security-policy'] as string;
  expect(policy).toContain("default-src 'none'");
  expect(policy).not.toMatch(/script-src|unsafe|https?:/);
  expect(text).not.toMatch(
    /<script|<style|\sstyle="|\son\w+="|(?:src|href)="(?:https?:)?\/\/[^"]*\.(?:js|css|woff2?)"/,
  );
});

it('every link of a page leads to a page, a picture or a heading that is there', async () => {
  const answers = new Map<string, string>();
  const fetched = async (path: string): Promise<string> => {
    const known = answers.get(path);
    if (known !== undefined) return known;
    const { status, text } = await get(path);
    expect([path, status]).toEqual([path, 200]);
    answers.set(path, text);
    return text;
  };
  let links = 0;
  for (const page of [...pages, 'api.md']) {
    const text = await fetched(pathOf(page));
    for (const [, link = ''] of text.matchAll(/(?:href|src)="([^"]+)"/g)) {
      if (/^[a-z]+:/.test(link)) continue;
      const [path = '', anchor] = link.split('#');
      const target = path === '' ? text : await fetched(path);
      if (anchor !== undefined)
        expect(target.includes(`id="${decodeURIComponent(anchor)}"`), `${page}: ${link}`).toBe(true);
      links += 1;
    }
  }
  expect(links).toBeGreaterThan(1000);
});

it('answers a question with the sections that say most about it', async () => {
  const linksOf = async (question: string): Promise<string[]> => {
    const { status, headers, text } = await get(`/_docs/search?q=${encodeURIComponent(question)}`);
    expect([status, headers['content-type']]).toEqual([200, 'text/html; charset=UTF-8']);
    expect(headers['content-security-policy']).toContain("form-action 'self'");
    return [...text.matchAll(/<li><a href="(\/_docs\/[^"]*#[^"]*)">/g)].map(([, link = '']) => link);
  };
  for (const [question, wanted] of [
    ['how do I back up', '/_docs/guides/running-a-server#back-it-up'],
    ['ssl certificate', '/_docs/operating#tls'],
    ['find the passage of a long text', '/_docs/guides/long-texts#find-the-passage'],
    // The sections that answer these share no telling word with them.
    ['keep my documents private', '/_docs/guides/securing-a-server#5-protect-the-files'],
    ['chatbot', '/_docs/mcp#agents'],
  ] as const) {
    const links = await linksOf(question);
    expect(links.slice(0, 3), question).toContain(wanted);
    expect(new Set(links).size).toBe(links.length);
  }
  // What it answers with leads somewhere.
  for (const link of await linksOf('highlight')) {
    const [path = '', anchor = ''] = link.split('#');
    expect((await get(path)).text, link).toContain(`id="${decodeURIComponent(anchor)}"`);
  }
  expect((await get('/_docs/search?q=chatbot')).text).toContain('No page mentions “chatbot”.');
  expect((await get('/_docs/search?q=backup')).text).not.toContain('No page mentions');
  const { text } = await get(`/_docs/search?q=${encodeURIComponent('"><script>$& x')}`);
  expect(text).toContain('value="&#34;&#62;&#60;script&#62;$&#38; x"');
  expect(text).not.toContain('<script');
  expect((await get('/_docs/search')).text).not.toContain('class="found"');
  expect((await get(`/_docs/search?q=${'x'.repeat(5000)}`)).status).toBe(200);
  // It is nobody's index.
  const { body } = await server.request('GET', '/_cat/indices?format=json&expand_wildcards=all');
  expect(body).toEqual([]);
});

it('answers some questions at once, refuses others, and answers everybody else', async () => {
  const asked = Array.from({ length: 200 }, (_, at) => get(`/_docs/search?q=backup%20${String(at)}`));
  const others = await Promise.all(Array.from({ length: 20 }, () => server.request('GET', '/_cat/indices')));
  expect(others.map(({ status }) => status)).toEqual(others.map(() => 200));
  const answers = await Promise.all(asked);
  const refused = answers.filter(({ status }) => status !== 200);
  expect(refused.length).toBeGreaterThan(0);
  expect(refused.length).toBeLessThan(answers.length);
  for (const { status, headers, body } of refused) {
    expect([status, body.error?.type]).toEqual([429, 'es_rejected_execution_exception']);
    expect(Number(headers['retry-after'])).toBeGreaterThan(0);
  }
  // A reader who asks one question after the other is answered.
  expect((await get('/_docs/search?q=backup')).status).toBe(200);
});

it('leaves nothing of its search behind', async () => {
  const temporary = mkdtempSync(join(tmpdir(), 'sparrow-temporary-'));
  const other = await startServer({ args: ['--deploy-at-start', 'false'], env: { TMPDIR: temporary } });
  const folder = join(other.data, 'documentation');
  const ask = async (running: RunningServer): Promise<void> => {
    const { status, text } = await running.request('GET', '/_docs/search?q=backup', undefined, { apiKey: null });
    expect([status, text.includes('class="found"')]).toEqual([200, true]);
  };
  const before = readdirSync(temporary);
  await ask(other);
  expect(readdirSync(temporary)).toEqual(before);
  expect(readdirSync(folder)).not.toEqual([]);
  await other.kill();
  // What a killed one leaves is in the way of nobody, and does not become more.
  const again = await startServer({ args: ['--deploy-at-start', 'false'], data: other.data });
  await ask(again);
  expect(await again.stop()).toBe(0);
  expect(existsSync(folder)).toBe(false);
  rmSync(temporary, { recursive: true });
});

it('and the console lead to each other', async () => {
  expect((await get('/_docs')).text).toContain('href="/_console"');
  const { text } = await get('/_console');
  expect(text).toMatch(/href:\s*[`"']\/_docs[`"']/);
});

it('leads from the name of a Markdown file to its page', async () => {
  for (const [path, page] of [
    ['/_docs/start.md', '/_docs/start'],
    ['/_docs/guides/securing-a-server.md', '/_docs/guides/securing-a-server'],
    ['/_docs/README.md', '/_docs'],
  ] as const) {
    const { status, headers } = await get(path);
    expect([path, status, headers['location']]).toEqual([path, 301, page]);
    expect((await get(page)).status).toBe(200);
  }
});

it('knows only its own files', async () => {
  for (const path of [
    '/_docs/nothing',
    '/_docs/nothing.md',
    '/_docs/.md',
    '/_docs/style.css.md',
    '/_docs/..%2fcli',
    '/_docs/guides/..%2f..%2fcli.js',
    '/_docs/start.html',
    '/_docs/style',
  ]) {
    const { status } = await get(path);
    expect([path, status >= 400 && status < 500]).toEqual([path, true]);
  }
});

it('has the same example in several languages behind tabs, one of them open', async () => {
  const { text } = await get('/_docs/start');
  expect(text.match(/<div class="tabs">/g)).toHaveLength(1);
  expect(text.match(/<label for="tabs-1-\w+">/g)).toHaveLength(3);
  expect(text.match(/type="radio"[^>]* checked/g)).toHaveLength(1);
});

it('describes every endpoint with its parameters', async () => {
  const { text } = await get('/_docs/api');
  const plain = text.replaceAll(/<[^>]+>/g, '').replaceAll('&amp;', '&');
  const missing = ENDPOINTS.filter(({ method, path }) => method !== 'HEAD' && !plain.includes(`${method} ${path}`));
  expect(missing.map(({ method, path }) => `${method} ${path}`)).toEqual([]);
  // It begins with what a new reader looks for.
  const main = text.slice(text.indexOf('<main'));
  const [family, first] = [...main.matchAll(/<h[23][^>]*>(.*?)<\/h[23]>/g)].map(([, title = '']) =>
    title.replaceAll(/<[^>]+>/g, ''),
  );
  expect([family, first]).toEqual(['Search', expect.stringMatching(/^Search/)]);
});

it('is small enough for the package', () => {
  const files = readdirSync(BUILT, { recursive: true, encoding: 'utf8' }).map((name) => statSync(join(BUILT, name)));
  const bytes = files.filter((file) => file.isFile()).reduce((sum, { size }) => sum + size, 0);
  expect(bytes).toBeGreaterThan(100_000);
  expect(bytes).toBeLessThan(MOST_BYTES);
});
