import { describe, expect, it } from 'vitest';

import { SealError, seal, sealPieces, unseal } from './sealed-file.js';

const MEMBERS = ['format', 'clusterUuid'];
const SEALED = seal({ format: 1, clusterUuid: 'abc_DEF-123' });

describe('sealed files', () => {
  it('give back what was written, also without a checksum as older versions wrote it', () => {
    expect(unseal(SEALED, MEMBERS)).toEqual({ format: 1, clusterUuid: 'abc_DEF-123' });
    expect(unseal('{"format":1,"clusterUuid":"x"}\n', MEMBERS)).toEqual({ format: 1, clusterUuid: 'x' });
  });

  it('are the same in pieces', async () => {
    for (const texts of [['{"a":1'], ['{"a":[', '"ä€😀"', ',', `"${'ö'.repeat(200_000)}"`, ',"x"]']]) {
      const pieces: Buffer[] = [];
      for await (const piece of sealPieces(texts)) pieces.push(piece);
      expect(Buffer.concat(pieces).toString('utf8')).toBe(seal(JSON.parse(`${texts.join('')}}`) as object));
    }
  });

  it('show each changed bit and each cut', () => {
    const bytes = Buffer.from(SEALED);
    for (let at = 0; at < bytes.length; at += 1) {
      for (let bit = 0; bit < 8; bit += 1) {
        const damaged = Buffer.from(bytes);
        damaged[at] = (damaged[at] ?? 0) ^ (1 << bit);
        expect(() => unseal(damaged.toString('utf8'), MEMBERS), `bit ${bit} of ${at}`).toThrow(SealError);
      }
      expect(() => unseal(bytes.subarray(0, at).toString('utf8'), MEMBERS), `cut ${at}`).toThrow(SealError);
    }
  });
});
