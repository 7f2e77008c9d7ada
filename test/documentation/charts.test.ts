// The charts of docs/charts.md and the tables beside them are those of the records.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';

import { expect, it } from 'vitest';

import { ROOT, read } from './pages.js';

const { charts } = (await import(new URL('../../benches/charts.mjs', import.meta.url).href)) as {
  charts: () => Map<string, string>;
};

const made = charts();

it.each([...made])('%s is what `node benches/charts.mjs` writes', (path, content) => {
  expect(read(path)).toBe(content);
});

it('every chart is shown, with its table', () => {
  const page = read('docs/charts.md');
  const pictures = readdirSync(join(ROOT, 'docs', 'charts'));
  expect(pictures.toSorted()).toEqual(
    [...made.keys()]
      .filter((path) => path.endsWith('.svg'))
      .map((path) => path.slice(12))
      .toSorted(),
  );
  expect(pictures.filter((name) => !page.includes(`](charts/${name})`))).toEqual([]);
  expect(page.match(/<!-- chart: [\w-]+ -->\n\|/g)).toHaveLength(pictures.length);
});
