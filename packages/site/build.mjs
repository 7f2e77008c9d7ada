// Builds docs/ into packages/http/dist/docs/, which the server shows at /_docs: pages without a script, one style, the pictures that
// they show. Eleventy does it; nothing is fetched.
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

import Eleventy from '@11ty/eleventy';
import { Sparrow } from '@sparrow-search/engine';
import { openapi } from '@sparrow-search/server';

import { BASE, addressOf } from './addresses.mjs';
import { extend } from './markdown.mjs';
import { sectionsOf } from './sections.mjs';
import { MENU } from './menu.mjs';
import { apiPage } from './api-page.mjs';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const ROOT = here('../../');
const DOCS = join(ROOT, 'docs');
const TARGET = here('../http/dist/docs');
const STAGING = `${TARGET}.tmp`;

/** Letters of a section that its vector is made of: what it is about stands in its heading and its first sentences. */
const MEANT = 600;

/** The first heading of a page. */
const headingOf = (text) => (/^# (.+)$/m.exec(text)?.[1] ?? '').replaceAll('`', '');
const api = apiPage(JSON.parse(openapi()));
/** Pages that are made here. The server writes what it found into the second. */
const MADE = new Map([
  ['api.md', api],
  ['search.md', '# Search the documentation\n\n<!-- found -->\n'],
]);
const textOf = (page) => MADE.get(page) ?? readFileSync(join(DOCS, page), 'utf8');
const hrefOf = (page) => `${BASE}/${addressOf(page)}`;
const menu = MENU.map(({ title, pages }) => ({
  title,
  entries: pages.map((page) => ({ title: headingOf(textOf(page)), href: hrefOf(page) })),
}));

// Eleventy takes paths from where it is started.
process.chdir(ROOT);
rmSync(STAGING, { recursive: true, force: true });
const eleventy = new Eleventy('docs', 'packages/http/dist/docs.tmp', {
  quietMode: true,
  configPath: null,
  config(configuration) {
    configuration.setUseGitIgnore(false);
    configuration.setTemplateFormats(['md']);
    configuration.setIncludesDirectory('../packages/site/layouts');
    configuration.setLayoutsDirectory('../packages/site/layouts');
    configuration.amendLibrary('md', extend);
    for (const [page, text] of MADE) configuration.addTemplate(page, text);
    configuration.addGlobalData('layout', 'page.njk');
    // The pages are plain Markdown: `{{field}}` stands in them for itself.
    configuration.addGlobalData('templateEngineOverride', 'md');
    configuration.addGlobalData('menu', menu);
    configuration.addGlobalData('eleventyComputed', {
      permalink: ({ page }) => `${addressOf(pageOf(page)) || 'index'}.html`,
      here: ({ page }) => hrefOf(pageOf(page)),
      heading: ({ page }) => headingOf(textOf(pageOf(page))),
    });
    return {
      dir: { includes: '../packages/site/layouts', layouts: '../packages/site/layouts' },
    };
  },
});
await eleventy.write();

writeFileSync(join(STAGING, 'style.css'), readFileSync(here('style.css')));
copyPictures();
await writeSections();
rmSync(TARGET, { recursive: true, force: true });
renameSync(STAGING, TARGET);

function pageOf({ inputPath }) {
  return inputPath.replace(/^(?:\.\/)?docs\//, '');
}

/** The names of the pages, as they are built. */
function builtPages() {
  const names = readdirSync(STAGING, { recursive: true, encoding: 'utf8' }).map((name) => name.replaceAll('\\', '/'));
  return names.filter((name) => name.endsWith('.html')).sort();
}

/**
 * Writes what the search of the documentation looks in: the body of a bulk request, which the server passes on unread. The vectors are
 * made here, in some seconds, as nobody who asks should have to wait for them. Whole numbers have their direction, and are short.
 */
async function writeSections() {
  const pages = builtPages().filter((name) => name !== 'search.html');
  const sections = pages.flatMap((name) => {
    const address = name === 'index.html' ? '' : name.replace(/\.html$/, '');
    return sectionsOf(address, readFileSync(join(STAGING, name), 'utf8'));
  });
  const sparrow = await Sparrow.open();
  const texts = sections.map(({ title, heading, text }) => `${title}. ${heading}. ${text}`.slice(0, MEANT));
  const vectors = await sparrow.embed(texts, { model: 'dense' });
  await sparrow.close();
  const lines = sections.map((section, at) => {
    const meaning = vectors[at].map((value) => Math.round(value * 200));
    return `{"index":{}}\n${JSON.stringify({ ...section, meaning })}\n`;
  });
  writeFileSync(join(STAGING, 'sections.ndjson.gz'), gzipSync(lines.join(''), { level: 9 }));
}

/** Copies the pictures that some page shows. */
function copyPictures() {
  const shown = builtPages().flatMap((page) =>
    [...readFileSync(join(STAGING, page), 'utf8').matchAll(/src="\/_docs\/([^"]+)"/g)].map(([, path]) => path),
  );
  for (const path of new Set(shown)) {
    // test/documentation/links.test.ts tells the same; a server is of use without a picture.
    if (!existsSync(join(DOCS, path))) {
      console.warn(`the documentation shows docs/${path}, which is not there`);
      continue;
    }
    mkdirSync(dirname(join(STAGING, path)), { recursive: true });
    cpSync(join(DOCS, path), join(STAGING, path));
  }
}
