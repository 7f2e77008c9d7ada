import { readFileSync } from 'node:fs';

import { expect, it } from 'vitest';

const read = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8');

it('docs/specification.md and the tests of the specification name each other', () => {
  const rows = read('../../docs/specification.md').matchAll(/^\|[^|]*\|[^|]*\| `(.+)` \|$/gm);
  const named = [...rows].map((row) => row[1]).sort();
  const tests = read('./specification.test.ts').matchAll(/^ {2}it\('(.+)', async/gm);
  const titles = [...tests].map((test) => test[1]).sort();
  expect(named.length).toBeGreaterThan(30);
  expect(named).toEqual(titles);
});
