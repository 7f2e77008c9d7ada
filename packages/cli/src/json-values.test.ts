import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';

import { jsonValues } from './json-values.js';

async function valuesOf(text: string, size = text.length || 1): Promise<readonly (readonly [string, number])[]> {
  const bytes = Buffer.from(text);
  const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
    bytes.subarray(at * size, (at + 1) * size),
  );
  const values: (readonly [string, number])[] = [];
  for await (const { text: value, line } of jsonValues(Readable.from(pieces), 1000, () => new Error('too long'))) {
    values.push([value, line]);
  }
  return values;
}

describe('the values of a JSON file', () => {
  it.each([1, 3, 100])('are those of a list, with their lines, in pieces of %d bytes', async (size) => {
    const values = await valuesOf('[\n {"a": "],{"},\n\n [1, 2], 3\n]\n', size);
    expect(values).toEqual([
      ['{"a": "],{"}', 2],
      ['[1, 2]', 4],
      ['3', 4],
    ]);
  });

  it('are told apart from those of a list', async () => {
    const listed: boolean[] = [];
    for (const text of ['[1]', '1', ' {"a":[1]}\n{}']) {
      for await (const { isListed } of jsonValues(
        Readable.from([Buffer.from(text)]),
        1000,
        () => new Error('too long'),
      ))
        listed.push(isListed);
    }
    expect(listed).toEqual([true, false, false, false]);
  });

  it.each([
    ['[]', []],
    ['[ ]\n', []],
    ['[1,,2]', ['1', '', '2']],
    ['[,1]', ['', '1']],
    ['[1,\n]', ['1', '']],
  ])('of %j have no place without one that is passed over', async (text, expected) => {
    expect((await valuesOf(text)).map(([value]) => value)).toEqual(expected);
  });
});
