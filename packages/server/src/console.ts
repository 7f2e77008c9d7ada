import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

import type { Answer } from './http/respond.js';

let page: Answer | undefined;

/** The console: one page that asks for a key and searches through the public interface, its style and scripts put into it. */
export function consolePage(): Answer {
  page ??= load();
  return page;
}

function load(): Answer {
  const html = asset('page.html')
    .replace('<!-- page.css -->', () => `<style>${asset('page.css')}</style>`)
    .replaceAll(/<!-- (\w+\.js) -->/g, (_, name: string) => `<script>${asset(name)}</script>`);
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
    body: html,
    type: 'html',
    headers: [
      ['Content-Security-Policy', policy],
      ['Referrer-Policy', 'no-referrer'],
      ['Cache-Control', 'no-cache'],
    ],
  };
}

function asset(name: string): string {
  return readFileSync(new URL(`../assets/console/${name}`, import.meta.url), 'utf8');
}

function hashes(html: string, element: 'script' | 'style'): string {
  const contents = [...html.matchAll(new RegExp(`<${element}>([\\s\\S]*?)</${element}>`, 'g'))];
  return contents.map(([, text = '']) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`).join(' ');
}
