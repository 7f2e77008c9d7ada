import { readFileSync, readdirSync } from 'node:fs';
import { extname } from 'node:path';

import { type Found, MARK, type Section, UNMARK, searchSections } from './documentation-search.js';
import { RoutingError } from './errors.js';
import type { Answer } from './http/respond.js';

/** Built from docs/ by packages/site. */
const FOLDER = new URL('docs/', import.meta.url);

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
 * @throws {RoutingError} 404 if there is none
 */
export function documentation(address: string): Answer {
  files ??= list();
  const name = files.get(address);
  const page = address.replace(/(?:^|\/)README\.md$|(?<=[^/])\.md$/, '');
  if (name === undefined && page !== address && files.get(page)?.endsWith('.html') === true) {
    return { status: 301, body: null, headers: [['Location', page === '' ? '/_docs' : `/_docs/${page}`]] };
  }
  if (name === undefined) throw new RoutingError(404, `no page [${address}] in the documentation: see /_docs`);
  return shown(readFileSync(new URL(name, FOLDER)), TYPES[extname(name)] ?? 'application/octet-stream');
}

/** Longest question that is looked for, in letters: longer ones are cut. */
const MOST_LETTERS = 200;
/** Where the page of what was found has its place for that. */
const PLACE = '<!-- found -->';

/**
 * The page of what the documentation says about a question, which only begins where there is none.
 *
 * @throws {SparrowError} 429 when more is asked at once than can be done
 */
export async function documentationFor(asked: string | undefined): Promise<Answer> {
  const page = readFileSync(new URL('search.html', FOLDER), 'utf8');
  const question = (asked ?? '').slice(0, MOST_LETTERS).trim();
  const found = question === '' ? undefined : await searchSections(question, sections);
  // A function, as a text may have signs that a replacement would mean something by.
  const body = page
    .replace(PLACE, () => (found === undefined ? '' : listed(question, found)))
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

function listed(question: string, found: readonly Found[]): string {
  if (found.length === 0) return `<p>Nothing is found for “${escaped(question)}”. Try fewer or other words.</p>`;
  const items = found.map(({ address, title, heading, passage }) => {
    const marked = escaped(passage).replaceAll(MARK, '<mark>').replaceAll(UNMARK, '</mark>');
    const where = title === heading ? '' : `<span>${escaped(title)}</span> `;
    return `<li><a href="/_docs/${escaped(address)}">${where}${escaped(heading)}</a><p>${marked}</p></li>`;
  });
  return `<ol class="found">${items.join('')}</ol>`;
}

/** The parts of all pages, as a reader sees them. */
function sections(): Section[] {
  files ??= list();
  const pages = [...files].filter(([address, name]) => name.endsWith('.html') && address !== 'search');
  return pages.flatMap(([address, name]) => {
    const html = readFileSync(new URL(name, FOLDER), 'utf8');
    const main = html.slice(html.indexOf('<main'), html.indexOf('</main>'));
    let title = '';
    return main.split(/(?=<h[1-3] )/).flatMap((part) => {
      const [opening, level, anchor = '', inside = ''] =
        /^<h([1-3])[^>]* id="([^"]*)"[^>]*>(.*?)<\/h\1>/s.exec(part) ?? [];
      if (opening === undefined) return [];
      const heading = plain(inside);
      if (level === '1') title = heading;
      return [{ address: `${address}#${anchor}`, title, heading, text: plain(part.slice(opening.length)) }];
    });
  });
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&#39;': "'",
  '&amp;': '&',
};

function plain(html: string): string {
  const text = html
    .replaceAll(/<[^>]+>/g, ' ')
    .replaceAll(/&(?:lt|gt|quot|#39|amp);/g, (name) => ENTITIES[name] ?? name);
  return text.replaceAll(/\s+/g, ' ').trim();
}

function escaped(text: string): string {
  return text.replaceAll(/[&<>"]/g, (sign) => `&#${String(sign.charCodeAt(0))};`);
}

function list(): ReadonlyMap<string, string> {
  const names = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' }).map((name) => name.replaceAll('\\', '/'));
  const found = names.filter((name) => extname(name) in TYPES);
  return new Map(found.map((name) => [name === 'index.html' ? '' : name.replace(/\.html$/, ''), name]));
}
