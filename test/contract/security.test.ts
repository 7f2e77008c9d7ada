// Keeps docs/security.md true: each line names a test that is there.
import { readFileSync } from 'node:fs';

import { expect, it } from 'vitest';

const ROOT = new URL('../../', import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, ROOT), 'utf8');

it('every line of docs/security.md names a test that is there', () => {
  const rows = read('docs/security.md')
    .split('\n')
    .filter((line) => /^\| (?!threat |---)/.test(line));
  expect(rows.length).toBeGreaterThan(15);
  let last = '';
  for (const row of rows) {
    const cell = row.slice(2, -2).split(' | ').at(-1)?.trim() ?? '';
    const named = cell === 'the same' ? last : cell;
    const [, file = '', title = ''] = /^`([^`]+)` `([^`]+)`$/.exec(named) ?? [];
    expect(file, row).not.toBe('');
    const source = read(file);
    const isThere = file.endsWith('.rs') ? source.includes(`fn ${title}()`) : source.includes(`'${title}'`);
    expect([row, isThere]).toEqual([row, true]);
    last = named;
  }
});
