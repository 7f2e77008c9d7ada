// Where a page of docs/ lies on the site.
import { posix } from 'node:path';

/** Everything of the site begins with this. */
export const BASE = '/_docs';

/** Where others read what is in the repository and not on the site. */
const REPOSITORY = 'https://github.com/sparrow-search/sparrow/blob/main';

/**
 * The address of a page, relative to `/_docs/` and without an ending: of one folder at most, as the server's routes have it. The first
 * page has none, and a README is its folder.
 */
export function addressOf(page) {
  const parts = page
    .replace(/\.md$/, '')
    .split('/')
    .filter((part) => part !== 'README');
  return parts.length <= 2 ? parts.join('/') : `${parts[0]}/${parts.slice(1).join('-')}`;
}

/** What a link of a page leads to on the site. `page` and the link are paths in docs/; others lead to the repository. */
export function linkFrom(page, link) {
  if (/^[a-z]+:|^#/.test(link)) return link;
  const [path = '', anchor] = link.split('#');
  const target = posix.join('docs', posix.dirname(page), path);
  const behind = anchor === undefined ? '' : `#${anchor}`;
  if (!target.startsWith('docs/')) return `${REPOSITORY}/${target}${behind}`;
  const inside = target.slice('docs/'.length);
  if (inside.endsWith('.md')) return `${BASE}/${addressOf(inside)}`.replace(/\/$/, '') + behind;
  if (/^(?:images|charts)\/./.test(inside)) return `${BASE}/${inside}`;
  return `${REPOSITORY}/${target}${behind}`;
}

/** The anchor of a heading, as GitHub makes it. */
export function anchorOf(heading) {
  return heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{Letter}\p{Number}\s_-]/gu, '')
    .replaceAll(' ', '-');
}

/** Anchors of the headings of one page, each unlike those before it, as GitHub makes them: what comes back takes them in their order. */
export function uniqueAnchors() {
  const taken = new Set();
  return (heading) => {
    const anchor = anchorOf(heading);
    let unique = anchor;
    for (let number = 1; taken.has(unique); number += 1) unique = `${anchor}-${number}`;
    taken.add(unique);
    return unique;
  };
}
