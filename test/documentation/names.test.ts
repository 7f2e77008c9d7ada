// A reader may try one page after another on the same server: what one page stores, no other page replaces or comes in the way of.
import { expect, it } from 'vitest';

import { fences, pagesUnder, read } from './pages.js';

/** Puts an index, a document of one, or a pipeline. The port is part of the name: another one is another server. */
const PUT = /^es -X PUT '?(localhost:\d+\/(?:_ingest\/pipeline\/[\w.-]+|[a-z0-9][\w.-]*))(?=['? ]|\/_doc\/)/gm;

/** The pages that store something, by its name. */
function writers(pages: readonly string[]): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  for (const page of pages) {
    const blocks = fences(read(page)).filter(({ language, mark }) => language === 'sh' && mark !== 'answer');
    for (const { text } of blocks) {
      for (const [, name = ''] of text.matchAll(PUT)) found.set(name, (found.get(name) ?? new Set<string>()).add(page));
    }
  }
  return found;
}

it('no two pages store an index or a pipeline of the same name', () => {
  const found = writers(['README.md', ...pagesUnder('docs')]);
  expect(found.size).toBeGreaterThan(25);
  expect([...(found.get('localhost:9200/guide') ?? [])]).toEqual(['README.md']);
  const clashes = [...found].filter(([, pages]) => pages.size > 1);
  expect(clashes.map(([name, pages]) => [name, ...pages])).toEqual([]);
});
