import { deflateSync, gzipSync } from 'node:zlib';

import { HttpError } from '@sparrow-search/endpoints';
import { zstdCompress } from '@sparrow-search/engine';
import { describe, expect, it } from 'vitest';

import { decode } from './encodings.js';

const MIB = 1024 * 1024;
const MUCH = Buffer.alloc(4 * MIB, 'abcdefgh');

const tooLarge = (): HttpError => new HttpError('body_too_large', 'too long');

describe('a body that is longer than what came', () => {
  it.each([
    ['gzip', gzipSync(MUCH)],
    ['deflate', deflateSync(MUCH)],
    ['zstd', zstdCompress(MUCH, 3)],
  ])('is counted piece by piece as it is decompressed: %s', async (encoding, packed) => {
    const bytes = await packed;
    let taken = 0;
    let longest = 0;
    const whole = await decode(bytes, encoding, MUCH.length, tooLarge, (length) => {
      taken += length;
      longest = Math.max(longest, length);
    });
    expect(MUCH.equals(whole)).toBe(true);
    expect([taken, longest]).toEqual([MUCH.length, 256 * 1024]);

    let room = MIB;
    const refused = decode(bytes, encoding, MUCH.length, tooLarge, (length) => {
      room -= length;
      if (room < 0) throw new HttpError('rejected', 'no room');
    });
    await expect(refused).rejects.toMatchObject({ code: 'rejected' });
    // Nothing was decompressed beyond what there was no room for.
    expect(room).toBe(-256 * 1024);
    await expect(decode(bytes, encoding, MIB, tooLarge, () => undefined)).rejects.toMatchObject({
      code: 'body_too_large',
    });
  });
});
