import { describe, expect, it } from 'vitest';

import { counted, harmless, inLine, sink } from './terminal.js';

describe('what is written to a terminal', () => {
  it.each([
    ['a title', '\u001b]0;mine\u0007', '␛]0;mine␇'],
    ['a cleared screen', 'x\u001b[2J\u001b[H', 'x␛[2J␛[H'],
    ['the clipboard', '\u001b]52;c;ZXZpbA==\u001b\\', '␛]52;c;ZXZpbA==␛\\'],
    ['a line written over', 'mine\rtheirs', 'mine␍theirs'],
    ['sequences of one character', '\u009b2J\u007f', '\ufffd2J\ufffd'],
    ['letters turned round', 'a\u202eb\u2066c', 'a\ufffdb\ufffdc'],
    ['letters without width', 'a\u200bb\ufeff', 'a\ufffdb\ufffd'],
    ['hidden text', '\u001b[8mhidden', '␛[8mhidden'],
  ])('does not steer it: %s', (_, text, shown) => {
    expect(harmless(text)).toBe(shown);
  });

  it('keeps colours, lines and letters of every script', () => {
    const text = '\u001b[1mbold\u001b[0m\n\tnaïve 東京 🙂';
    expect(harmless(text)).toBe(text);
  });
});

it('keeps a name, an id or a reason within its line', () => {
  expect(inLine('a\nb\tc\r\u2028d\u202ee\u200df')).toBe('a␊b␉c␍\ufffdd\ufffde\ufffdf');
  const text = '\u001b[1mbold\u001b[0m naïve 東京 🙂';
  expect(inLine(text)).toBe(text);
});

it('takes the usual width for a terminal that has none', () => {
  const columns = (isTTY: boolean): number => sink({ isTTY, columns: 0, write: () => true }).columns;
  expect(columns(true)).toBe(columns(false));
});

it('names one thing in the singular, and all other numbers of them in the plural', () => {
  expect([0, 1, 2, 2000].map((value) => counted(value, 'document'))).toEqual([
    ...['0 documents', '1 document', '2 documents', '2,000 documents'],
  ]);
  expect([1, 0].map((value) => counted(value, 'index', 'indices'))).toEqual(['1 index', '0 indices']);
});
