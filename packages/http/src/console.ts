import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

import type { Exchange } from './exchange/exchange.js';
import type { Answer } from './exchange/respond.js';

let page: Answer | undefined;

/** The console: one page, built from packages/console, that asks for a key and uses the public interface. */
export function consolePage(): Answer {
  page ??= load();
  return page;
}

/** Leads a browser that asks for the server itself to the console; undefined for every other client. */
export function toConsole(exchange: Exchange): Answer | undefined {
  if (exchange.path !== '/' || exchange.method !== 'GET') return undefined;
  // Clients of the interface name JSON or nothing; only browsers name HTML.
  if (exchange.header('accept')?.includes('text/html') !== true) return undefined;
  const headers = [
    ['Location', '/_console'],
    ['Vary', 'Accept'],
  ] as const;
  return { status: 303, body: null, type: 'html', headers };
}

function load(): Answer {
  const html = readFileSync(new URL('console.html', import.meta.url), 'utf8');
  // Only the page's own style and script run, named by their hashes, and they can talk to this server alone.
  const policy = [
    "default-src 'none'",
    `script-src ${hashes(html, 'script')}`,
    `style-src ${hashes(html, 'style')}`,
    "connect-src 'self'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
  return {
    status: 200,
    body: Buffer.from(html),
    type: 'html',
    isShared: true,
    headers: [
      ['Content-Security-Policy', policy],
      ['Referrer-Policy', 'no-referrer'],
      ['Cache-Control', 'no-cache'],
    ],
  };
}

function hashes(html: string, element: 'script' | 'style'): string {
  const contents = [...html.matchAll(new RegExp(`<${element}>([\\s\\S]*?)</${element}>`, 'g'))];
  return contents.map(([, text = '']) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`).join(' ');
}
