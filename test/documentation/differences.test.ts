// The list of what differs over a cluster is short enough to be read, and each difference names the test that shows it.
import { existsSync } from 'node:fs';
import { join } from 'node:path';

import { expect, it } from 'vitest';

import { ROOT, read, rowsOf } from './pages.js';

/** A screen, and how many letters of the middle column fit on one of its lines. */
const LINES = 40;
const LETTERS = 130;

/** What the last column calls by other names than those of files in `test/contract`. */
const FILES: Readonly<Record<string, string>> = {
  examples: 'test/documentation/examples.test.ts',
  console: 'test/e2e/console.test.ts',
};

const [, section = ''] = /^## Differences\n([^]*?)\n## /m.exec(read('docs/cluster.md')) ?? [];
const rows = rowsOf(section.slice(section.indexOf('|')));

it('what differs over a cluster fits on one screen', () => {
  expect(rows.length).toBeGreaterThan(10);
  const lines = rows.map(([, difference = '']) => Math.ceil(difference.length / LETTERS));
  expect(lines.reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(LINES);
});

it.each(rows)('the difference of %s is shown by a test: %s', (_, __, shown = '') => {
  const names = shown.split(', ').map((name) => name.replaceAll('`', ''));
  for (const name of names) {
    const file = FILES[name] ?? `${name.includes('/') ? name : `test/contract/${name}`}.test.ts`;
    expect(existsSync(join(ROOT, file)), file).toBe(true);
  }
});
