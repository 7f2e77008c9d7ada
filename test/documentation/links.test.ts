// Links and anchors inside of docs/, as GitHub makes anchors of headings; and pages that nothing leads to.
import { existsSync } from 'node:fs';
import { join, posix } from 'node:path';

import { expect, it } from 'vitest';

import { ROOT, pagesUnder, read } from './pages.js';

const { anchorOf, uniqueAnchors } = (await import(
  new URL('../../packages/site/addresses.mjs', import.meta.url).href
)) as {
  anchorOf: (heading: string) => string;
  uniqueAnchors: () => (heading: string) => string;
};

/** Markdown without blocks: `# …` in a script is no heading, and no link stands there. */
const withoutBlocks = (markdown: string): string => markdown.replaceAll(/^( *)(`{3,})[^\n]*\n[\s\S]*?^\1\2$/gm, '');

function anchorsOf(markdown: string): Set<string> {
  const anchorFor = uniqueAnchors();
  const headings = [...withoutBlocks(markdown).matchAll(/^#{1,6} (.+)$/gm)];
  return new Set(
    headings.map(([, heading = '']) =>
      anchorFor(heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll('`', '')),
    ),
  );
}

interface Link {
  readonly page: string;
  readonly path: string;
  readonly anchor: string | undefined;
}

function linksOf(page: string): Link[] {
  const text = withoutBlocks(read(page)).replaceAll(/`[^`\n]*`/g, '');
  return [...text.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, link = '']) => link)
    .filter((link) => !/^[a-z]+:/.test(link))
    .map((link) => {
      const [path = '', anchor] = link.split('#');
      return { page, path: path === '' ? page : posix.normalize(posix.join(posix.dirname(page), path)), anchor };
    });
}

const PAGES = ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'ARCHITECTURE.md', ...pagesUnder('docs')];
const links = PAGES.flatMap(linksOf);

it('every link leads to something that is there', () => {
  expect(links.length).toBeGreaterThan(200);
  expect(links.filter(({ path }) => !existsSync(join(ROOT, path)))).toEqual([]);
});

it('every anchor is that of a heading', () => {
  const withAnchor = links.filter(
    ({ anchor, path }) => anchor !== undefined && path.endsWith('.md') && existsSync(join(ROOT, path)),
  );
  expect(withAnchor.length).toBeGreaterThan(40);
  const anchors = new Map(
    [...new Set(withAnchor.map(({ path }) => path))].map((path) => [path, anchorsOf(read(path))]),
  );
  expect(withAnchor.filter(({ path, anchor = '' }) => anchors.get(path)?.has(anchor) !== true)).toEqual([]);
});

it('every page can be reached from the first one', () => {
  const reached = new Set(['docs/README.md']);
  for (const page of reached) {
    for (const { page: from, path } of links) if (from === page && path.endsWith('.md')) reached.add(path);
  }
  expect(pagesUnder('docs').filter((page) => !reached.has(page))).toEqual([]);
});

it('anchors are those of GitHub', () => {
  expect(anchorOf('"queue is full", 429: what do I do?')).toBe('queue-is-full-429-what-do-i-do');
  expect([...anchorsOf('# A\n```sh\n# no heading\n```\n## A\n## `b_c` d')]).toEqual(['a', 'a-1', 'b_c-d']);
});
