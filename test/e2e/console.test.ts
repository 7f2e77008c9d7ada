// The console in a real browser, as somebody uses it for the first time: every screen, without a mouse where that matters, in light,
// dark and on a phone. Where a cluster can be started, the same over it. CONSOLE_SCREENSHOTS=DIR leaves a picture of each there
// (`npm run screenshots`: docs/images).
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';

import { findChromium, launch, violations } from '../support/browser.js';
import { ENGINES, emptied } from '../support/engines.js';
import type { RunningServer } from '../support/server.js';
import { sparrow } from '../cli/support.js';

const CHROMIUM = findChromium();
const PICTURES = process.env['CONSOLE_SCREENSHOTS'];
const WIDE = { width: 1280, height: 800 };
/** How long a page may take on a busy machine. */
const WAITED = { timeout: 30_000, interval: 200 };
const PHONE = { width: 390, height: 844 };
/** A window beside another one. */
const HALF = { width: 1000, height: 800 };

const CSV = `title,year,plot
The Lighthouse,1999,"A keeper lives alone on an island, until a ship runs aground in a storm."
Second Harvest,2004,"Two farmers who do not speak to each other must share a tractor."
The Long Signal,2011,"Astronomers hear a message from a distant star and argue about the answer."
`;
/** Documents with a column of every kind, as the same values in three files. */
const SHOP = [
  {
    name: 'Waterproof hiking boots',
    brand: 'Alpin',
    price: 149.5,
    stock: 3,
    sold: true,
    added: '2026-03-01',
    sku: 'A-1',
  },
  { name: 'Light running shoes', brand: 'Fleet', price: 110, stock: 0, sold: false, added: '2026-05-12', sku: 'B-7' },
  { name: 'Warm woollen socks', brand: 'Alpin', price: 18, stock: 40, sold: true, added: '2025-10-20', sku: 'C-3' },
];
const SHOP_FILES: Readonly<Record<string, string>> = {
  'shop.csv': [Object.keys(SHOP[0] ?? {}), ...SHOP.map((one) => Object.values(one))]
    .map((row) => `${row.join(',')}\n`)
    .join(''),
  'shop.json': JSON.stringify(SHOP, null, 2),
  'shop.ndjson': SHOP.map((one) => `${JSON.stringify(one)}\n`).join(''),
};
const GERMAN = JSON.stringify([{ text: 'Der Hund ist nicht im Haus und das ist gut für die Katze.' }]);

/** Placeholders that their fields are too narrow for, and words of tables and titles that lie on two lines. Run in the page. */
const CUT = `(() => {
  const found = [];
  const pen = document.createElement('canvas').getContext('2d');
  for (const field of document.querySelectorAll('input[placeholder]')) {
    const style = getComputedStyle(field);
    pen.font = style.font;
    const room = field.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    if (field.clientWidth > 0 && pen.measureText(field.placeholder).width > room + 1) found.push(field.placeholder);
  }
  for (const cell of document.querySelectorAll('td, td code, .hit-title')) {
    const text = cell.firstChild;
    if (text?.nodeType !== Node.TEXT_NODE) continue;
    for (const { 0: word, index } of text.data.matchAll(/(?<![^\\s])[A-Za-z]{2,20}(?![^\\s])/g)) {
      const range = document.createRange();
      range.setStart(text, index);
      range.setEnd(text, index + word.length);
      if (new Set([...range.getClientRects()].map(({ top }) => top)).size > 1) found.push(word);
    }
  }
  return found;
})()`;

describe.skipIf(CHROMIUM === undefined).each(ENGINES)(
  `the console in Chromium, $name${CHROMIUM === undefined ? ' (skipped: there is none)' : ''}`,
  (engine) => {
    const isNative = engine.name === 'native';
    let server: RunningServer;
    let browser: Browser;
    let context: BrowserContext;
    let page: Page;
    /** What the browser complained of, and whatever it asked of anybody but the server. */
    const wrong: string[] = [];

    beforeAll(async () => {
      server = await engine.start();
      if (!isNative) await emptied(server);
      browser = await launch(CHROMIUM ?? '');
      context = await browser.newContext({ viewport: WIDE, colorScheme: 'light', reducedMotion: 'reduce' });
      await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: server.url });
      page = await context.newPage();
      page.setDefaultTimeout(30_000);
      page.on('pageerror', (error) => wrong.push(error.message));
      page.on('console', (message) => {
        // A refused key, and an index that is not there yet, are answers.
        const isAnswer = /status of (?:401|404|400)/.test(message.text());
        if (message.type() === 'error' && !isAnswer) wrong.push(message.text());
      });
      page.on('request', (request) => {
        if (!/^(?:data|blob):/.test(request.url()) && new URL(request.url()).origin !== server.url)
          wrong.push(request.url());
      });
    });
    afterAll(async () => {
      // What failed before this may have left nothing to close.
      await (browser as Browser | undefined)?.close();
      await (server as RunningServer | undefined)?.stop();
    });

    /** Looks at a screen in light, dark and on a phone: axe finds nothing, nothing sticks out, and a picture is taken if wanted. */
    async function look(name: string, isShown = true): Promise<void> {
      // Whatever finds the hits, they are shown alike.
      if (!isNative) return;
      for (const [kind, scheme, size] of [
        ['light', 'light', WIDE],
        ['dark', 'dark', WIDE],
        ['phone', 'light', PHONE],
        ['half', 'light', HALF],
      ] as const) {
        await page.emulateMedia({ colorScheme: scheme });
        await page.setViewportSize(size);
        // Two frames: one for the layout, one for what is drawn after it.
        await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))');
        expect(await violations(page), `${name}, ${kind}`).toEqual([]);
        const sticksOut = await page.evaluate(
          'document.documentElement.scrollWidth - document.documentElement.clientWidth',
        );
        expect(sticksOut, `${name}, ${kind}: wider than the screen`).toBeLessThanOrEqual(0);
        expect(await page.evaluate(CUT), `${name}, ${kind}: cut or broken`).toEqual([]);
        if (PICTURES !== undefined && isShown && size !== HALF) await picture(`${name}-${kind}`);
      }
      await page.emulateMedia({ colorScheme: 'light' });
      await page.setViewportSize(WIDE);
    }

    /** WebP, which Playwright itself does not write: a third of the size of a PNG. */
    async function picture(name: string): Promise<void> {
      const session = await context.newCDPSession(page);
      const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: 78 });
      mkdirSync(PICTURES ?? '', { recursive: true });
      writeFileSync(join(PICTURES ?? '', `console-${name}.webp`), Buffer.from(data, 'base64'));
      await session.detach();
    }

    const titles = (kind: string): Promise<string[]> => page.locator(`.column.${kind} .hit-title`).allInnerTexts();
    const open = async (letter: string, title: string): Promise<void> => {
      await page.evaluate('document.activeElement?.blur()');
      await page.keyboard.press('g');
      await page.keyboard.press(letter);
      await page.locator('h1', { hasText: title }).waitFor();
    };

    it('asks for a key, and says of a wrong one where the right one is', async () => {
      await page.goto(server.url);
      expect(page.url()).toBe(`${server.url}/_console`);
      await look('sign-in', false);
      await page.getByLabel('API key').fill('d3Jvbmc6a2V5');
      await page.keyboard.press('Enter');
      await page.getByText('owner.key of the data directory').waitFor();
      await page.getByLabel('API key').fill(server.apiKey);
      await page.keyboard.press('Enter');
      await page.getByText('This server holds nothing yet').waitFor();
      expect(await page.evaluate('[Object.values(localStorage), document.cookie]')).toEqual([[], '']);
      await look('welcome');
      // Every screen can be gone to on a phone without knowing that the bar could be swiped.
      await page.setViewportSize(PHONE);
      const last = await page.getByRole('link', { name: 'Requests' }).boundingBox();
      expect((last?.x ?? Infinity) + (last?.width ?? 0)).toBeLessThanOrEqual(PHONE.width);
      await page.setViewportSize(WIDE);
    });

    it('shows an example on an empty server, in four ways side by side', async () => {
      await page.getByRole('button', { name: /Try an example/ }).click();
      await page.locator('.column.hybrid .hit').first().waitFor();
      expect((await titles('hybrid'))[0]).toBe('Sore muscles');
      expect((await titles('meaning'))[0]).toBe('Sore muscles');
      expect((await titles('words'))[0]).not.toBe('Sore muscles');
      expect(await page.locator('.lines path').count()).toBeGreaterThan(3);
      // What explains the scores comes after the hits.
      await page.locator('.column.meaning .stack-fill i').nth(10).waitFor({ state: 'attached' });
      if (isNative) {
        // Over a cluster, words are marked that the question has, and none by their meaning.
        await page.locator('.column.hybrid .hit').first().locator('mark').first().waitFor();
        expect(await page.locator('.column.meaning mark').count()).toBeGreaterThan(0);
      }
      // Neither signs nor words that every text has are marked, or named where meaning was searched for.
      const marks = await page.locator('.column mark, .column.meaning .hit:first-of-type .token').allInnerTexts();
      expect(marks.filter((mark) => /^(?:\W*|the|to|and|of|how|after)$/i.test(mark))).toEqual([]);
      // The names of all options stand in one line.
      const tops = await page.evaluate(
        '[...document.querySelectorAll(".search-options .field > span, .segments legend")].map((one) => one.getBoundingClientRect().top)',
      );
      expect(new Set((tops as number[]).map(Math.round)).size, String(tops)).toBe(1);
      const request = page.locator('.column.hybrid details', { hasText: 'The request' });
      await request.locator('summary').click();
      expect(await request.locator('pre').innerText()).toContain(
        '"linear": {\n      "query": "how to avoid pain after running"',
      );
      await request.locator('summary').click();
      const times = page.locator('.column.hybrid .phases');
      await times.locator('summary').click();
      expect(await times.innerText()).not.toContain('explaining');
      await times.locator('summary').click();
      await page.evaluate('scrollTo(0, 0)');
      await look('search');
    });

    it('opens a hit from the keyboard, says why it was found, and gives the focus back', async () => {
      await page.locator('.column.meaning [data-hit]').first().focus();
      await page.keyboard.press('ArrowDown');
      await page.keyboard.press('ArrowUp');
      await page.keyboard.press('Enter');
      await page.locator('dialog .why tbody tr').first().waitFor();
      expect(await page.locator('dialog').innerText()).toContain('pain');
      if (isNative) expect(await page.locator('dialog .whole mark').count()).toBeGreaterThan(0);
      await look('hit');
      await page.keyboard.press('Escape');
      await page.locator('dialog').waitFor({ state: 'detached' });
      expect(await page.evaluate('document.activeElement?.closest(".column")?.className')).toContain('meaning');
    });

    it('searches while one types, filters, and keeps to one way', async () => {
      await page.keyboard.press('/');
      await page.keyboard.press('Control+a');
      await page.keyboard.type('heart attack first aid');
      await page.locator('.column.meaning .hit-title', { hasText: 'Cardiac arrest' }).first().waitFor();
      await page.getByLabel('Only where').fill('topic:money');
      await page.keyboard.press('Enter');
      await page.locator('.column.meaning .hit-title', { hasText: 'Cardiac arrest' }).waitFor({ state: 'detached' });
      await page.locator('.column.meaning .hit-title', { hasText: 'Mortgages' }).waitFor();
      await page.getByLabel('Only where').fill('topik:money');
      await page.keyboard.press('Enter');
      await page.getByText('has no field topik, so nothing is found by it').waitFor();
      await page.getByLabel('Only where').fill('topic:');
      await page.keyboard.press('Enter');
      await page.getByText('The filter “topic:” ends too early').waitFor();
      await page.getByLabel('Only where').fill('');
      await page.keyboard.press('Enter');
      // A facet filters with one click, and no longer does with another.
      const facets = page.getByRole('region', { name: 'Facets' });
      const money = facets.getByRole('button', { name: /^money/ });
      await page.locator('[data-search]').fill('what to pay first');
      await money.click();
      await vi.waitFor(async () => {
        expect(await page.getByLabel('Only where').inputValue()).toBe('topic:"money"');
      }, WAITED);
      await page.locator('.column.words .none, .column.words .hit').first().waitFor();
      const topics = async (): Promise<unknown> => {
        // Read at one moment: a hit that goes while the list is read would be waited for until the test is over.
        const keys: string[] = await page.evaluate(
          '[...document.querySelectorAll(".column.meaning [data-key]")].map(({ dataset }) => dataset.key)',
        );
        const ids = keys.map((key) => key.split('/')[1]);
        const found = await server.request('POST', '/sparrow-example/_search', {
          size: 50,
          query: { ids: { values: ids } },
        });
        return [...new Set(found.body.hits.hits.map(({ _source }: any) => _source.topic))];
      };
      await vi.waitFor(async () => {
        expect(await topics()).toEqual(['money']);
      }, WAITED);
      await facets.getByRole('button', { name: 'money ×', pressed: true }).waitFor();
      await look('facets', false);
      await facets.getByRole('button', { name: 'money ×' }).click();
      await vi.waitFor(async () => {
        expect(await page.getByLabel('Only where').inputValue()).toBe('');
      }, WAITED);
      await vi.waitFor(async () => {
        expect(await topics()).not.toEqual(['money']);
      }, WAITED);
      await page.getByRole('radio', { name: 'Sparse' }).check({ force: true });
      await page.locator('.columns-1').waitFor();
      await page.keyboard.press('/');
      await page.keyboard.press('Control+a');
      await page.keyboard.type('Wie kann ich Schmerzen nach dem Laufen vermeiden?');
      await page.getByText('This looks like German').waitFor();
    });

    it('shows all of a long question, on a phone too, and clears it', async () => {
      const long =
        'what should somebody eat and drink the day before a long run so that the muscles do not hurt afterwards';
      const box = page.locator('[data-search]');
      await page.setViewportSize(PHONE);
      await box.fill(long);
      await page.locator('.column .hit').first().waitFor();
      const hidden =
        'document.querySelector("[data-search]").scrollHeight - document.querySelector("[data-search]").clientHeight';
      expect(await page.evaluate(hidden)).toBeLessThanOrEqual(0);
      expect((await box.boundingBox())?.height ?? 0).toBeGreaterThan(80);
      await look('long-question', false);
      // Several pasted lines become one question, and Enter asks it instead of beginning a new line.
      await box.fill('how to avoid\n\npain after running');
      await page.keyboard.press('Enter');
      expect(await box.inputValue()).toBe('how to avoid pain after running');
      await page.getByRole('button', { name: 'Clear the question' }).click();
      expect(await box.inputValue()).toBe('');
      expect(await page.evaluate('document.activeElement?.matches("[data-search]")')).toBe(true);
      await box.fill(long);
      await page.keyboard.press('Escape');
      expect(await box.inputValue()).toBe('');
    });

    it('makes a file searchable', { timeout: 120_000 }, async () => {
      await open('a', 'Add data');
      await look('add');
      await page
        .locator('input[type=file]')
        .setInputFiles({ name: 'pasted.json', mimeType: 'application/json', buffer: Buffer.from(GERMAN) });
      await page.getByText('These texts look like German').waitFor();
      // The link of the screen begins it anew.
      await page.getByRole('navigation').getByRole('link', { name: 'Add data' }).click();
      await page.getByText('Drop files here').waitFor();
      const note = (name: string): { name: string; mimeType: string; buffer: Buffer } => ({
        name,
        mimeType: 'text/markdown',
        buffer: Buffer.from(`---\ntitle: ${name}\ntags: [a]\n---\nWhat the note says.\n`),
      });
      await page.locator('input[type=file]').setInputFiles([note('one.md'), note('two.md')]);
      await page.getByText('2 files').waitFor();
      await page.getByText('2 documents, read as text').waitFor();
      await page.getByText('"file": "two.md"').waitFor();
      await page.getByRole('button', { name: 'Another file' }).click();
      await page
        .locator('input[type=file]')
        .setInputFiles({ name: 'Films 2024.csv', mimeType: 'text/csv', buffer: Buffer.from(CSV) });
      await page.getByText('3 documents, read as CSV').waitFor();
      expect(await page.getByLabel('Into the index').inputValue()).toBe('films-2024');
      await page.getByLabel('Id of a document').selectOption('title');
      await look('prepare');
      await page.getByRole('button', { name: 'Add 3 documents' }).click();
      await page.getByText('Done: 3 of 3 documents').waitFor();
      await page.getByText('The same from your own program').click();
      await page.getByRole('button', { name: 'Python' }).click();
      await page.getByText('urllib.request.Request(').first().waitFor();
      await look('added', false);
      await page.getByRole('link', { name: 'Search films-2024' }).click();
      await page.locator('[data-search]').fill('a call from another galaxy');
      await page.locator('.column.meaning .hit').first().waitFor();
      expect((await titles('meaning'))[0]).toBe('The Long Signal');
      expect(await page.locator('.column').count()).toBe(4);
      // A fused list ends with hits of score 0, for which nothing speaks: they are not shown.
      const fused = await server.request('POST', '/films-2024/_search', {
        retriever: { linear: { query: 'a call from another galaxy' } },
      });
      const scores = fused.body.hits.hits.map(({ _score }: any) => _score as number);
      expect(scores).toContain(0);
      const shown = scores.filter((score: number) => score > 0).length;
      expect(await titles('hybrid')).toHaveLength(shown);
      expect(await page.locator('.column.hybrid header').innerText()).toContain(`${String(shown)} found`);
      // All of a card opens it, wherever the pointer is.
      await page
        .locator('.column.meaning .hit')
        .first()
        .click({ position: { x: 20, y: 60 } });
      await page.locator('dialog .why').first().waitFor();
      await page.keyboard.press('Escape');
      expect((await server.request('GET', '/films-2024/_doc/The%20Long%20Signal')).status).toBe(200);
      const { body } = await server.request('GET', '/films-2024/_mapping');
      expect(body['films-2024'].mappings.properties).toMatchObject({
        plot: { type: 'text', copy_to: ['meaning'] },
        meaning: { type: 'semantic_text', inference_id: '.hybrid' },
        year: { type: 'long' },
      });
      // The file that is added to the index has one column more, which is searched by meaning as well.
      await open('a', 'Add data');
      const more =
        'title,plot,review\nThe Kite,"Two brothers build a kite.","One of the most touching films of the decade."\n';
      await page
        .locator('input[type=file]')
        .setInputFiles({ name: 'Films 2024.csv', mimeType: 'text/csv', buffer: Buffer.from(more) });
      await page.getByText('There is an index films-2024 already').waitFor();
      const ticked = ['title', 'plot', 'review'].map((name) =>
        page.getByRole('checkbox', { name: new RegExp(`^${name}`) }),
      );
      expect(await Promise.all(ticked.map((box) => box.isDisabled()))).toEqual([true, true, false]);
      expect(await Promise.all(ticked.map((box) => box.isChecked()))).toEqual([true, true, true]);
      await look('prepare-more', false);
      await page.getByRole('button', { name: 'Add 1 document' }).click();
      await page.getByText('Done: 1 of 1 document').waitFor();
      const after = await server.request('GET', '/films-2024/_mapping');
      expect(after.body['films-2024'].mappings.properties).toMatchObject({
        plot: { type: 'text', copy_to: ['meaning'] },
        review: { type: 'text', copy_to: ['meaning'] },
        meaning: { type: 'semantic_text', inference_id: '.hybrid' },
      });
    });

    it('reads Latin-1, and says how many documents were refused', async () => {
      // Over a cluster, an index takes a field that is searched by meaning only if it was made with one.
      const meaning = isNative ? {} : { meaning: { type: 'semantic_text', inference_id: '.hybrid' } };
      await server.request('PUT', '/years', { mappings: { properties: { year: { type: 'long' }, ...meaning } } });
      await open('s', 'Search');
      await page.locator('[data-search]').waitFor();
      await open('a', 'Add data');
      const text = 'title,year\nCaf\u00e9 au lait,many\nTea with milk,1999\n';
      await page
        .locator('input[type=file]')
        .setInputFiles({ name: 'years.csv', mimeType: 'text/csv', buffer: Buffer.from(text, 'latin1') });
      await page.getByText('was read as Latin-1').waitFor();
      await page.getByText('Caf\u00e9 au lait').first().waitFor();
      await page.getByRole('button', { name: 'Add 2 documents' }).click();
      await page.getByText('Done: 1 added, 1 refused').waitFor();
      await server.request('DELETE', '/years');
    });

    it('makes of a file what the command line makes of it', async () => {
      const folder = mkdtempSync(join(tmpdir(), 'sparrow-same-'));
      try {
        for (const [name, text] of Object.entries(SHOP_FILES)) {
          const [mine, other] = [`by-console-${name}`, `by-command-${name}`];
          // From another screen, as this one still shows what was added before.
          await open('s', 'Search');
          await page.locator('[data-search]').waitFor();
          await open('a', 'Add data');
          const buffer = Buffer.from(text);
          await page.locator('input[type=file]').setInputFiles({ name, mimeType: 'text/plain', buffer });
          await page.getByLabel('Into the index').fill(mine);
          await page.getByRole('button', { name: 'Add 3 documents' }).click();
          await page.getByText('Done: 3 of 3 documents').waitFor();
          const path = join(folder, name);
          writeFileSync(path, text);
          const args = ['--index', other, '--url', server.url, '--data', server.data];
          const { code, stdout } = await sparrow(['import', path, ...args]);
          expect([code, stdout]).toEqual([0, expect.stringContaining(', searched by meaning in name\n')]);
          const { body } = await server.request('GET', `/${mine},${other}/_mapping`);
          expect(body[mine].mappings.properties, name).toEqual(body[other].mappings.properties);
          const types = Object.entries<{ type: string }>(body[mine].mappings.properties);
          expect(Object.fromEntries(types.map(([field, { type }]) => [field, type])), name).toEqual({
            ...{ name: 'text', meaning: 'semantic_text', brand: 'keyword', price: 'double', stock: 'long' },
            ...{ sold: 'boolean', added: 'date', sku: 'text' },
          });
          const [found, wanted] = await Promise.all(
            [mine, other].map(async (index) => {
              const retriever = { linear: { query: 'something to jog in' } };
              const answer = await server.request('POST', `/${index}/_search`, { retriever });
              return answer.body.hits.hits.map(({ _score, _source }: any) => [_score, _source]);
            }),
          );
          expect(found, name).toEqual(wanted);
          expect(found[0][1], name).toMatchObject({ name: 'Light running shoes', price: 110, sold: false });
          await server.request('DELETE', `/${mine},${other}`);
        }
      } finally {
        rmSync(folder, { recursive: true });
      }
    });

    it('shows documents, mapping and size, and deletes an index only when it is sure', async () => {
      await open('d', 'Documents');
      await page.locator('.list button', { hasText: 'films-2024' }).click();
      await page.locator('.documents li').nth(2).waitFor();
      await page.locator('.documents button').first().click();
      expect(await page.locator('.documents pre').innerText()).toContain('A keeper lives alone');
      await look('documents');
      await page.getByRole('tab', { name: 'Mapping' }).click();
      expect(await page.locator('.mapping').innerText()).toContain('searched by meaning');
      await page.getByRole('tab', { name: 'Size' }).click();
      await page.getByText('segments').waitFor();
      await page.getByRole('button', { name: 'Delete' }).click();
      await page.getByRole('button', { name: 'Yes' }).click();
      await page.locator('.list button', { hasText: 'films-2024' }).waitFor({ state: 'detached' });
      expect((await server.request('HEAD', '/films-2024')).status).toBe(404);
    });

    it('draws how the model expands a text', async () => {
      await open('e', 'Encoder');
      await page.locator('.shared li').first().waitFor();
      expect(await page.locator('.expansion li.said').count()).toBeGreaterThan(0);
      expect(await page.locator('.expansion li.added').count()).toBeGreaterThan(0);
      await page.getByLabel('A text').fill('Agoraphobia makes people avoid wide squares and crowds.');
      await page.getByText('-ob').first().waitFor();
      // The model knows this word of the text in pieces only.
      expect(await page.locator('.expansion li.said .name').allInnerTexts()).toEqual(
        expect.arrayContaining(['ago', '-ob', '-ia']),
      );
      await look('encoder');
      await page.getByLabel('A text').fill('x');
      await page.getByText('The model makes no token of this text').waitFor();
    });

    it('shows a task with its progress, cancels it, and shows its end', async () => {
      // Two documents a second: it runs for as long as anybody looks.
      const path = '/_reindex?wait_for_completion=false&requests_per_second=2';
      const { body } = await server.request('POST', path, {
        source: { index: 'sparrow-example', size: 1 },
        dest: { index: 'slow-copy' },
      });
      expect(body.task).toBeTypeOf('string');
      await open('t', 'Tasks');
      await page.locator('.task progress').waitFor();
      // A cluster has tasks of its own.
      await page.locator('.task', { hasText: 'sparrow-example' }).waitFor();
      await look('tasks');
      await page.getByRole('button', { name: 'Cancel' }).click();
      await page.getByRole('button', { name: 'Yes' }).click();
      await page.getByRole('heading', { name: 'History' }).waitFor();
      await page.getByText('What it answered').waitFor();
    });

    it('shows models at work, and gives one another worker', async () => {
      await open('m', 'Models');
      await page.locator('.deployment').first().waitFor();
      const sparse = page.locator('.model', { hasText: '.sparse_encoder_model_2' });
      const workers = Number(/(\d+) worker/.exec(await sparse.innerText())?.[1]);
      // Endpoints name the model as Elasticsearch calls it.
      expect(await sparse.innerText()).toContain('Also known as .elser_model_2');
      await page.getByText('.elser_model_2, an alias of .sparse_encoder_model_2').waitFor();
      await sparse.getByRole('button', { name: 'Add a worker' }).click();
      await sparse.getByText(`${String(workers + 1)} workers`).waitFor();
      await page.locator('.sparkline polyline').first().waitFor({ state: 'attached' });
      await look('models');
    });

    it('makes a key, shows it once, and ends it', async () => {
      await open('k', 'Keys');
      await page.getByRole('textbox', { name: 'Name' }).fill('shop');
      await page.getByRole('textbox', { name: 'Indices' }).fill('sparrow-*');
      await page.getByRole('button', { name: 'Create' }).click();
      const key = await page.locator('.secret code').innerText();
      const apiKey = { apiKey: key };
      expect((await server.request('GET', '/sparrow-example/_search', undefined, apiKey)).status).toBe(200);
      expect((await server.request('PUT', '/sparrow-example/_doc/1', {}, apiKey)).status).toBe(403);
      await page.locator('.key-card', { hasText: 'shop' }).waitFor();
      // The secret is no picture for documentation.
      await open('s', 'Search');
      // The question takes the focus once the indices are known, and the letters with it.
      await page.locator('[data-search]').waitFor();
      await open('k', 'Keys');
      const shop = page.locator('.key-card', { hasText: 'shop' });
      await shop.getByText('May: read, view_index_metadata on sparrow-*.').waitFor();
      await page.locator('.key-card', { hasText: 'owner' }).getByText('May do everything.').waitFor();
      await look('keys');
      // A user who may only see the keys is offered nothing that would be refused.
      const made = await server.request('POST', '/_security/api_key', {
        name: 'auditor',
        role_descriptors: { audit: { cluster: ['read_security'] } },
      });
      const signIn = async (secret: string): Promise<void> => {
        await page.getByRole('button', { name: 'Forget the key' }).click();
        await page.getByLabel('API key').fill(secret);
        await page.keyboard.press('Enter');
        await page.locator('.key-card', { hasText: 'used in this tab' }).waitFor();
      };
      await signIn(made.body.encoded);
      await shop.waitFor();
      expect(await page.getByRole('button', { name: /Revoke|Create/ }).count()).toBe(0);
      await signIn(server.apiKey);
      await shop.getByRole('button', { name: 'Revoke' }).click();
      await shop.getByRole('button', { name: 'Yes' }).click();
      await shop.waitFor({ state: 'detached' });
      expect((await server.request('GET', '/sparrow-example/_search', undefined, apiKey)).status).toBe(401);
    });

    it('sends requests as they are, completes them, remembers and copies them', async () => {
      await open('r', 'Requests');
      const [line, box] = [
        page.getByRole('combobox', { name: 'Method and path' }),
        page.getByLabel('Body', { exact: true }),
      ];
      await line.fill('');
      await line.pressSequentially('GET /sparrow-example/_sea');
      await page.getByRole('option', { name: 'GET /sparrow-example/_search', exact: true }).waitFor();
      await page.keyboard.press('Tab');
      expect(await line.inputValue()).toBe('GET /sparrow-example/_search');
      await box.fill('');
      await box.pressSequentially('{"query": {"match": {"te');
      await page.getByRole('option', { name: 'text', exact: true }).waitFor();
      await page.keyboard.press('Enter');
      expect(await box.inputValue()).toBe('{"query": {"match": {"text');
      await box.pressSequentially('": "whales"}}}');
      await page.getByText('A browser cannot send a body with GET').waitFor();
      await page.keyboard.press('Control+Enter');
      await page.locator('.answer pre').waitFor();
      expect(await page.locator('.answer').innerText()).toContain('Sent as POST.');
      expect(JSON.parse(await page.locator('.answer pre').innerText()).hits.hits[0]._source.title).toBe(
        'The blue whale',
      );
      expect(await page.locator('.answer .json-name').count()).toBeGreaterThan(3);
      await look('requests');
      // The body of before is still in the box, and says that it stays there.
      await line.fill('DELETE /slow-copy');
      await page.getByText('DELETE /{index} takes no body').waitFor();
      await page.keyboard.press('Control+Enter');
      await page.locator('.answer pre', { hasText: 'acknowledged' }).waitFor();
      await page.locator('.past code', { hasText: 'GET /sparrow-example/_search' }).first().click();
      expect(await box.inputValue()).toContain('whales');
      await page.getByRole('button', { name: 'Copy as curl' }).click();
      await page.getByRole('button', { name: 'Copied' }).waitFor();
      const copied = await page.evaluate('navigator.clipboard.readText()');
      expect(copied).toContain(`curl -sS -g -X GET '${server.url}/sparrow-example/_search'`);
      expect(copied).not.toContain(server.apiKey);
      await line.fill('POST /sparrow-example/_search');
      await box.fill('{"query": {"match": {"texd": "whales"}}}');
      await page.keyboard.press('Control+Enter');
      await page.locator('.answer .note', { hasText: 'has a field [texd]' }).waitFor();
      await box.fill('');
      await line.fill('GET /nowhere/_search');
      await page.keyboard.press('Control+Enter');
      await page.locator('.answer .note.bad', { hasText: 'no such index [nowhere]' }).waitFor();
    });

    it('shows the keys of the keyboard, changes its colours, and forgets the key', async () => {
      await page.evaluate('document.activeElement?.blur()');
      await page.keyboard.press('?');
      await page.getByRole('dialog', { name: 'Keyboard' }).waitFor();
      await look('keyboard', false);
      await page.keyboard.press('Escape');
      await page.getByRole('button', { name: /^Colours/ }).click();
      await page.locator('html[data-theme=dark]').waitFor();
      expect(await page.evaluate('getComputedStyle(document.body).backgroundColor')).toBe('rgb(24, 21, 19)');
      await page.getByRole('button', { name: 'Forget the key' }).click();
      await page.getByLabel('API key').waitFor();
      expect(await page.evaluate('sessionStorage.getItem("sparrow-key")')).toBeNull();
    });

    it('leads to the documentation, which leads back to the same search, still signed in', async () => {
      await page.getByLabel('API key').fill(server.apiKey);
      await page.keyboard.press('Enter');
      await page.getByRole('link', { name: 'Search' }).click();
      await page.locator('[data-search]').fill('how to avoid pain after running');
      await page.locator('.column.meaning .hit').first().waitFor();
      const place = page.url();
      await page.getByRole('link', { name: 'Docs' }).click();
      await page.getByRole('heading', { name: 'Documentation', level: 1 }).waitFor();
      await page.setViewportSize(PHONE);
      await page.getByRole('main').getByRole('link', { name: 'tutorial' }).first().click();
      const heading = page.getByRole('heading', { name: /^Tutorial/, level: 1 });
      await heading.waitFor();
      // On a phone one sees the page, and not the list of all pages first.
      expect((await heading.boundingBox())?.y ?? Infinity).toBeLessThan(PHONE.height / 2);
      expect(await violations(page)).toEqual([]);
      await page.getByRole('link', { name: 'All pages' }).click();
      await page.getByRole('link', { name: 'Hybrid search' }).first().click();
      await page.getByRole('heading', { name: 'Hybrid search', level: 1 }).waitFor();
      // Nothing of the longest page stands beside the screen.
      await page.goto(`${server.url}/_docs/api`);
      const beside =
        '[document.documentElement, ...document.querySelectorAll(".wide")].filter((one) => one.scrollWidth > one.clientWidth).length';
      expect(await page.evaluate(beside)).toBe(0);
      await page.goBack();
      await page.setViewportSize(WIDE);
      await page.getByText('JavaScript', { exact: true }).nth(1).click();
      expect(await page.locator('.tab[data-language=js]').nth(1).innerText()).toContain('await client.indices.create');
      expect(await page.locator('.tab[data-language=sh]').nth(1).isVisible()).toBe(false);
      for (let step = 0; step < 4; step += 1) await page.goBack();
      await page.locator('.column.meaning .hit').first().waitFor();
      expect(page.url()).toBe(place);
      await page.goto(`${server.url}/_docs`);
      await page.getByRole('link', { name: 'Console', exact: true }).click();
      await page.locator('[data-search]').waitFor();
    });

    it('never asked anybody else, and its policy was never broken', () => {
      expect(wrong).toEqual([]);
    });
  },
);
