import { readFileSync, readdirSync } from 'node:fs';
import { extname } from 'node:path';

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

/** The pages have no script: nothing runs, and nothing but their own style and pictures is loaded. */
const POLICY = [
  "default-src 'none'",
  "style-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'none'",
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
  return {
    status: 200,
    body: readFileSync(new URL(name, FOLDER)),
    type: 'html',
    contentType: TYPES[extname(name)] ?? 'application/octet-stream',
    headers: [
      ['Content-Security-Policy', POLICY],
      ['Referrer-Policy', 'no-referrer'],
      ['Cache-Control', 'no-cache'],
    ],
  };
}

function list(): ReadonlyMap<string, string> {
  const names = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' }).map((name) => name.replaceAll('\\', '/'));
  const found = names.filter((name) => extname(name) in TYPES);
  return new Map(found.map((name) => [name === 'index.html' ? '' : name.replace(/\.html$/, ''), name]));
}
