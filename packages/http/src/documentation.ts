import { readFileSync, readdirSync } from 'node:fs';
import { extname } from 'node:path';

import { RoutingError } from '@sparrow-search/endpoints';

import { type Answered, MARK, UNMARK, searchSections } from './documentation-search.js';
import type { Sender } from './exchange/fair-queue.js';
import type { Answer } from './exchange/respond.js';

/** Built from docs/ by packages/site. */
const FOLDER = new URL('docs/', import.meta.url);

/** The parts of all pages, as a reader sees them; written with the pages. */
const SECTIONS = new URL('sections.ndjson.gz', FOLDER);

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=UTF-8',
  '.css': 'text/css; charset=UTF-8',
  '.svg': 'image/svg+xml',
  '.webp': 'image/webp',
};

/** The pages have no script: nothing runs, nothing but their own style and pictures is loaded, and their form asks this server. */
const POLICY = [
  "default-src 'none'",
  "style-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ');

/** Files by their address: pages without `.html`, everything else by its name. */
let files: ReadonlyMap<string, string> | undefined;

/**
 * A page or picture of the documentation. `address` is what follows `/_docs/`, and is only ever looked up. The name of a page's
 * Markdown file, as links in the repository have it, leads to the page.
 *
 * @throws {RoutingError} 404 if there is no such page
 */
export function documentation(address: string): Answer {
  files ??= list();
  const name = files.get(address);
  const page = address.replace(/(?:^|\/)README\.md$|(?<=[^/])\.md$/, '');
  if (name === undefined && page !== address && files.get(page)?.endsWith('.html') === true) {
    return { status: 301, body: null, headers: [['Location', page === '' ? '/_docs' : `/_docs/${page}`]] };
  }
  if (name === undefined) throw new RoutingError(404, `no page [${address}] in the documentation: see /_docs`);
  let bytes = read.get(name);
  if (bytes === undefined) read.set(name, (bytes = readFileSync(new URL(name, FOLDER))));
  return { ...shown(bytes, TYPES[extname(name)] ?? 'application/octet-stream'), isShared: true };
}

/** Files that somebody has asked for, a few megabytes in all: nobody needs a key, and so each stays there once for all of them. */
const read = new Map<string, Buffer>();

/** Longest question that is looked for, in letters: longer ones are cut. */
const MOST_LETTERS = 200;
/** Where the page of what was found has its place for that. */
const PLACE = '<!-- found -->';

/**
 * The page with the sections of the documentation that answer a question; without a question it has only the form.
 *
 * @param data tells the data directory, beside whose files those of the search are
 * @throws {HttpError} 429 when too many questions wait, and what `data` throws
 * @throws {SparrowError} what the engine of the documentation refuses
 */
export async function documentationFor(asked: string | undefined, data: () => string, sender: Sender): Promise<Answer> {
  const question = (asked ?? '').slice(0, MOST_LETTERS).trim();
  const answered = question === '' ? undefined : await searchSections(question, SECTIONS, data(), sender);
  const page = readFileSync(new URL('search.html', FOLDER), 'utf8');
  // A function, as a text may have signs that a replacement would mean something by.
  const body = page
    .replace(PLACE, () => (answered === undefined ? '' : listed(question, answered)))
    .replace('name="q"', () => `name="q" value="${escaped(question)}"`);
  return shown(body, TYPES['.html'] ?? '');
}

function shown(body: Uint8Array | string, contentType: string): Answer {
  return {
    ...{ status: 200, body, type: 'html', contentType },
    headers: [
      ['Content-Security-Policy', POLICY],
      ['Referrer-Policy', 'no-referrer'],
      ['Cache-Control', 'no-cache'],
    ],
  };
}

function listed(question: string, { found, hasWords }: Answered): string {
  const note = hasWords
    ? ''
    : `<p>No page mentions “${escaped(question)}”. These sections come closest in meaning:</p>`;
  const items = found.map(({ address, title, heading, passage }) => {
    const marked = escaped(passage).replaceAll(MARK, '<mark>').replaceAll(UNMARK, '</mark>');
    const where = title === heading ? '' : `<span>${escaped(title)}</span> `;
    return `<li><a href="/_docs/${escaped(address)}">${where}${escaped(heading)}</a><p>${marked}</p></li>`;
  });
  return `${note}<ol class="found">${items.join('')}</ol>`;
}

function escaped(text: string): string {
  return text.replaceAll(/[&<>"]/g, (sign) => `&#${String(sign.charCodeAt(0))};`);
}

function list(): ReadonlyMap<string, string> {
  const names = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' }).map((name) => name.replaceAll('\\', '/'));
  const found = names.filter((name) => extname(name) in TYPES);
  return new Map(found.map((name) => [name === 'index.html' ? '' : name.replace(/\.html$/, ''), name]));
}
