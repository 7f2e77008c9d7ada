import { describe, expect, it } from 'vitest';

import { type Span, edited, rawOf } from './json.js';
import { Replacements } from './replacements.js';

/** A pseudo-random whole number below `end`. */
function numbers(seed: number): (end: number) => number {
  let state = seed;
  return (end) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff;
    return (state >>> 8) % end;
  };
}

/** Lists in lists, and where each of them lies. */
function lists(below: (end: number) => number): { readonly text: string; readonly spans: readonly Span[] } {
  const spans: Span[] = [];
  let text = '';
  const write = (depth: number): void => {
    const start = text.length;
    text += '[';
    for (let left = depth === 0 ? 8 : below(depth > 5 ? 1 : 4); left > 0; left -= 1) write(depth + 1);
    text += ']';
    spans.push({ start, end: text.length });
  };
  write(0);
  return { text, spans };
}

describe('replacements', () => {
  it('are made where they stand, the outermost ones, in 60 random texts', () => {
    for (let seed = 1; seed <= 60; seed += 1) {
      const below = numbers(seed);
      const { text, spans } = lists(below);
      const replaced = spans.filter(() => below(3) === 0).map((span, number) => ({ ...span, number }));
      const pieces = new Replacements(text);
      for (const one of [...replaced].sort((a, b) => ((a.number * 7) % 5) - ((b.number * 7) % 5)))
        pieces.add({ ...one, build: () => `<${String(one.number)}>` });
      for (const span of spans) {
        const inside = replaced.filter((it) => span.start <= it.start && it.end <= span.end);
        const outermost = inside.filter((it) => !inside.some((other) => other.start < it.start && it.end < other.end));
        const edits = outermost.map(({ start, end, number }) => {
          return { start: start - span.start, end: end - span.start, text: `<${String(number)}>` };
        });
        expect(pieces.piece(span)).toBe(edited(rawOf(text, span), edits));
      }
    }
  });

  it('can be added after a piece was made', () => {
    const pieces = new Replacements('[[1],[2]]');
    pieces.add({ start: 5, end: 8, build: () => '"two"' });
    expect(pieces.piece({ start: 0, end: 9 })).toBe('[[1],"two"]');
    pieces.add({ start: 1, end: 4, build: () => '"one"' });
    expect(pieces.piece({ start: 0, end: 9 })).toBe('["one","two"]');
    expect(pieces.piece({ start: 1, end: 4 })).toBe('"one"');
  });

  it('leave an object with two clauses as it is', () => {
    const pieces = new Replacements('[{"a":1,"b":2}]');
    for (const text of ['"a"', '"b"']) pieces.add({ start: 1, end: 14, build: () => text });
    expect(pieces.piece({ start: 0, end: 15 })).toBe('[{"a":1,"b":2}]');
  });
});
