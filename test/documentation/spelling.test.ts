// The words of docs/ are English, or in the list of those that are ours.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import dictionary from 'dictionary-en';
import nspell from 'nspell';
import { expect, it } from 'vitest';

import { ROOT, pagesUnder, read } from './pages.js';

const WORDS = join(ROOT, 'test', 'documentation', 'words.txt');

const spelling = nspell({ aff: Buffer.from(dictionary.aff), dic: Buffer.from(dictionary.dic) });
const ours = readFileSync(WORDS, 'utf8')
  .split('\n')
  .filter((word) => word !== '');
for (const word of ours) spelling.add(word);

/** What a page says in words: without blocks, code, addresses, comments and what is generated from records. */
function prose(markdown: string): string {
  return (
    markdown
      .replaceAll(/<!-- bench: [\s\S]*?<!-- end -->/g, ' ')
      .replaceAll(/<!--[\s\S]*?-->/g, ' ')
      .replaceAll(/^( *)(`{3,})[^\n]*\n[\s\S]*?^\1\2$/gm, ' ')
      .replaceAll(/`[^`\n]*`/g, ' ')
      .replaceAll(/\]\([^)]*\)/g, '] ')
      .replaceAll(/<?https?:\/\/\S+/g, ' ')
      // Names of files, hosts and settings, and numbers with units.
      .replaceAll(/[\w-]*[\w][._/@\d][\w./@-]*\w/g, ' ')
  );
}

function wordsOf(markdown: string): string[] {
  return [...prose(markdown).matchAll(/\p{Letter}+(?:['’]\p{Letter}+)?/gu)].map(([word]) => word.replace('’', "'"));
}

const isRight = (word: string): boolean =>
  word.length < 3 || spelling.correct(word) || spelling.correct(word.replace(/'s?$/, ''));

const pages = pagesUnder('docs');

it.each(pages)('%s is spelled right', (page) => {
  expect([...new Set(wordsOf(read(page)))].filter((word) => !isRight(word))).toEqual([]);
});

it('the list has only words that are used and that no dictionary knows, in order', () => {
  const used = new Set(pages.flatMap((page) => wordsOf(read(page))));
  const plain = nspell({ aff: Buffer.from(dictionary.aff), dic: Buffer.from(dictionary.dic) });
  const forms = (word: string): string[] => [word, word.charAt(0).toUpperCase() + word.slice(1), `${word}'s`];
  expect(ours.filter((word) => !forms(word).some((form) => used.has(form)))).toEqual([]);
  expect(ours.filter((word) => plain.correct(word))).toEqual([]);
  expect(ours).toEqual(ours.toSorted((one, other) => one.localeCompare(other, 'en')));
});

it('a misspelt word is found', () => {
  expect(wordsOf('A `codde` in [a lnik](x.md).').filter((word) => !isRight(word))).toEqual(['lnik']);
});
