import { describe, expect, it } from 'vitest';

import { SealError, seal, unseal } from './sealed-file.js';

const MEMBERS = ['format', 'clusterUuid'];
const SEALED = seal({ format: 1, clusterUuid: 'abc_DEF-123' });

describe('sealed files', () => {
  it('give back what was written, also without a checksum as older versions wrote it', () => {
    expect(unseal(SEALED, MEMBERS)).toEqual({ format: 1, clusterUuid: 'abc_DEF-123' });
    expect(unseal('{"format":1,"clusterUuid":"x"}\n', MEMBERS)).toEqual({ format: 1, clusterUuid: 'x' });
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
