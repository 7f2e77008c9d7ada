import { describe, expect, it } from 'vitest';

import { decode, edited, elements, members, rawOf, valueOf, whole } from './json.js';

/** Numbers from 0 to 1 that are the same in every run. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1664525 + 1013904223) % 2 ** 32;
    return state / 2 ** 32;
  };
}

const TEXTS = ['', 'a', '"', '\\', '\\"', 'ü{', ']}', '\n', 'x,y', 'a:b', '\u2028', '\\\\'];

function random(next: () => number, depth = 0): unknown {
  const kind = Math.floor(next() * (depth > 4 ? 4 : 6));
  if (kind === 0) return Math.round(next() * 1e6) / 1e3;
  if (kind === 1) return TEXTS[Math.floor(next() * TEXTS.length)];
  if (kind === 2) return null;
  if (kind === 3) return next() < 0.5;
  const size = Math.floor(next() * 5);
  if (kind === 4) return Array.from({ length: size }, () => random(next, depth + 1));
  return Object.fromEntries(
    Array.from({ length: size }, (_, at) => [
      `${TEXTS[Math.floor(next() * TEXTS.length)]}${at}`,
      random(next, depth + 1),
    ]),
  );
}

/** Reads a value by nothing but places in its text. */
function rebuilt(text: string, span = whole(text)): unknown {
  if (text[span.start] === '{') {
    return Object.fromEntries(members(text, span.start).map((member) => [member.name, rebuilt(text, member)]));
  }
  if (text[span.start] === '[') return elements(text, span.start).map((one) => rebuilt(text, one));
  return valueOf(text, span);
}

describe('places in JSON', () => {
  it('are those that JSON.parse sees, in 2,000 random values with any blanks', () => {
    const next = numbers(7);
    for (let round = 0; round < 2000; round += 1) {
      const value = random(next);
      for (const blanks of [0, 1, '\t\r\n ']) expect(rebuilt(JSON.stringify(value, null, blanks))).toEqual(value);
    }
  });

  it('leave numbers as they are written', () => {
    const text = '{"long": 9007199254740993, "a": {"b": 1.10}}';
    const [long] = members(text, 0);
    expect(long === undefined ? '' : rawOf(text, long)).toBe('9007199254740993');
    const inner = members(text, 0)[1];
    const edit = inner === undefined ? [] : [{ start: inner.start, end: inner.end, text: '2.50' }];
    expect(edited(text, edit)).toBe('{"long": 9007199254740993, "a": 2.50}');
  });
});

describe('the text of a body', () => {
  it('is what its bytes say, without a mark of their order, also from the middle of a buffer', () => {
    const text = '{"a":"ü 語 😀"}';
    const inside = new Uint8Array(Buffer.from(`xx\uFEFF${text}yy`)).subarray(2, -2);
    expect(decode(inside)).toBe(text);
    expect(decode(Buffer.from(text))).toBe(text);
    expect(decode(new Uint8Array(0))).toBe('');
  });

  it.each([[[0x22, 0xc3, 0x22]], [[0xed, 0xa0, 0x80]], [[0xff]]])('is refused where %j is no UTF-8', (bytes) => {
    expect(() => decode(Uint8Array.from(bytes))).toThrow(expect.objectContaining({ status: 400 }));
  });
});
