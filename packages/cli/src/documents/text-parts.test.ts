import { expect, it } from 'vitest';

import { TextParts } from './text-parts.js';

function partsOf(text: string, file?: string): (readonly [line: number, text: string])[] {
  const parts = new TextParts(file);
  const all = [...text.split('\n').flatMap((line) => parts.add(line)), ...parts.end()];
  expect(parts.open).toBe(0);
  expect(all.map(({ document }) => document.part)).toEqual(all.map((_, at) => at + 1));
  return all.map(({ line, document }) => [line, document.text]);
}

const LONG = 'A sentence of five words. '.repeat(39).trim();
const SHORT = 'One of eleven words, which is too long for a heading.';

it('joins a heading of a plain text to what follows it, not to what comes before it', () => {
  expect(partsOf(`${SHORT}\n\nCHAPTER II.\n\nThe Pool of Tears\n\n${LONG}\n\n${LONG}`)).toEqual([
    [1, SHORT],
    [3, `CHAPTER II.\n\nThe Pool of Tears\n\n${LONG}`],
    [9, LONG],
  ]);
  // Nor is it a part alone where the paragraph behind it is a part by itself.
  const longer = `${LONG} And some more.`;
  expect(partsOf(`CHAPTER I.\n\n${longer} ${longer}`)).toEqual([[1, `CHAPTER I.\n\n${longer} ${longer}`]]);
});

it('puts no more lines together than a heading may have', () => {
  const lines = Array.from({ length: 100 }, (_, at) => `Line ${String(at)} of it.`);
  const parts = partsOf(lines.join('\n\n'));
  expect(parts.map(([line]) => line)).toEqual([1, 95, 189]);
  expect(parts.map(([, text]) => text).join('\n\n')).toBe(lines.join('\n\n'));
});

it('takes no comment in code for a heading', () => {
  expect(partsOf('# Shell ##\n```sh\n\n# install\nnpm i\n```\n\nDone.')).toEqual([
    [2, 'Shell\n\n```sh\n\n# install\nnpm i\n```\n\nDone.'],
  ]);
});

it('takes no line of a plain text for a heading of Markdown', () => {
  expect(partsOf('# install\nnpm i\n', 'book.TXT')).toEqual([[1, '# install\nnpm i']]);
  expect(partsOf('---\nFrom: a\n---\nText.', 'mail.txt')).toEqual([[1, '---\nFrom: a\n---\nText.']]);
  expect(partsOf('# Install\nnpm i\n', 'book.md')).toEqual([[2, 'Install\n\nnpm i']]);
});

it('joins the lines of a paragraph that was broken to fit a page, and no others', () => {
  const wrapped = [
    'It was a bright cold day in the north, and all the clocks of',
    'the town were striking at once, for the third time.',
  ];
  expect(partsOf(wrapped.join('\r\n'))).toEqual([[1, wrapped.join(' ')]]);
  const kept = [
    // Verses, a list, a table, a quote, and code.
    'The sea is calm tonight.\nThe tide is full, the moon lies fair',
    `- ${wrapped.join('\n- ')}`,
    `| ${wrapped.join('\n| ')}`,
    `> ${wrapped.join('\n> ')}`,
    `\`\`\`\n${wrapped.join('\n')}\n\`\`\``,
    `    ${wrapped.join('\n    ')}`,
  ];
  for (const text of kept) expect(partsOf(text)).toEqual([[1, text.trim()]]);
});

it('takes the title from front matter, and nothing else of it', () => {
  const front = '---\ntitle: "Clocks"\ntags:\n  - town\n\ndraft: false\n---';
  expect(partsOf(`${front}\n\n${SHORT}`)).toEqual([[9, `Clocks\n\n${SHORT}`]]);
  expect(partsOf(`${front}\n# Bells\n${SHORT}`)).toEqual([[9, `Bells\n\n${SHORT}`]]);
  // The lines of hyphens of a text are no front matter.
  const talk = 'She said: go.\n---';
  expect(partsOf(`---\n${talk}`)).toEqual([[1, `---\n${talk}`]]);
  expect(partsOf('---\ntitle: open')).toEqual([[1, '---\ntitle: open']]);
});
