import { describe, expect, it } from 'vitest';

import { growth } from '../../../test/support/effort.js';
import { matchesGlob } from './glob.js';

describe('a pattern', () => {
  it.each([
    ['', '', true],
    ['*', '', true],
    ['**', 'a', true],
    ['a*', 'a', true],
    ['a*c', 'abcbc', true],
    ['*b*', 'abc', true],
    ['a*b*c', 'a-b-b-c', true],
    ['a*b', 'abc', false],
    ['a.c', 'abc', false],
    ['a', '*', false],
    ['*\n*', 'x\ny', true],
    ['(', '(', true],
  ])('%j on %j: %s', (pattern, text, expected) => {
    expect(matchesGlob(pattern, text)).toBe(expected);
  });

  it('may have marks for single characters, which are no stars', () => {
    expect(matchesGlob('a?c*', 'abcd', '?')).toBe(true);
    expect(matchesGlob('a?c', 'a*c', '?')).toBe(false);
    expect(matchesGlob('a?', 'a', '?')).toBe(false);
    expect(matchesGlob('a?c', 'abc')).toBe(false);
  });

  it('of many stars does not take for ever', async () => {
    const match = (stars: number): void => {
      expect(matchesGlob(`${'*a'.repeat(stars)}b`, 'a'.repeat(10 * stars))).toBe(false);
    };
    // Its length times that of the text; each star that is tried at each place would be for ever.
    expect(await growth(match, 250, 1000)).toBeLessThan(60);
  });

  it('means what a regular expression with .* means', () => {
    const letters = ['a', 'b', '*'];
    const words = (length: number, from: readonly string[]): string[] =>
      length === 0 ? [''] : words(length - 1, from).flatMap((word) => from.map((letter) => word + letter));
    for (const pattern of words(4, letters)) {
      const expression = new RegExp(`^${pattern.replaceAll('*', '.*')}$`);
      for (const text of words(5, ['a', 'b'])) expect(matchesGlob(pattern, text)).toBe(expression.test(text));
    }
  });
});
