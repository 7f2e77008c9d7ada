import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';

import { Attempts, MOST_FAILURES, WINDOW_MS } from './attempts.js';
import { isStrong } from './secrets.js';

describe('a secret', () => {
  it.each(['secret', 'a secret of mine', 'a'.repeat(40), '0123456789'.repeat(3), 'abcdefghijkl', 'ab'.repeat(30)])(
    'like [%s] is too weak',
    (secret) => {
      expect(isStrong(secret)).toBe(false);
    },
  );

  it('of 128 random bits is strong, however it is written', () => {
    for (let round = 0; round < 200; round += 1) {
      // Fixed bytes: about one in 300,000 random secrets has only digits and letters of one case in Base64, and counts as weak.
      const bytes = createHash('sha256').update(String(round)).digest().subarray(0, 16);
      for (const form of ['hex', 'base64', 'base64url'] as const)
        expect(isStrong(bytes.toString(form)), form).toBe(true);
    }
  });
});

describe('failed attempts', () => {
  it('are counted by address, for a while', () => {
    const attempts = new Attempts();
    for (let n = 1; n <= MOST_FAILURES; n += 1) {
      expect(attempts.wait('10.0.0.1', 0)).toBe(0);
      expect(attempts.failed('10.0.0.1', 0)).toBe(n);
    }
    expect(attempts.wait('10.0.0.1', 1)).toBe(WINDOW_MS / 1000);
    expect(attempts.wait('10.0.0.2', 1)).toBe(0);
    expect(attempts.wait('10.0.0.1', WINDOW_MS)).toBe(0);
    expect(attempts.failed('10.0.0.1', WINDOW_MS)).toBe(1);
  });

  it('of one IPv6 network are those of one caller', () => {
    const attempts = new Attempts();
    for (let n = 0; n < MOST_FAILURES; n += 1) attempts.failed(`2001:db8:1:2:${String(n)}::1`, 0);
    expect(attempts.wait('2001:db8:1:2::ff', 1)).toBeGreaterThan(0);
    expect(attempts.wait('2001:db8:1:3::ff', 1)).toBe(0);
  });

  it.each([
    ['::1', '::2', true],
    ['::1', '0:0:0:0:1::', true],
    ['::1', '0:0:0:1::1', false],
    ['2001:db8::1', '2001:db8:0:0:ffff::2', true],
    ['2001:db8::1', '2001:0db8:0000:0000::2', true],
    ['2001:db8::1', '2001:db8:1::1', false],
    ['2001:db8:0:1::1', '2001:db8:0:2::1', false],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::', true],
    ['fe80::1%eth0', 'fe80::2', true],
    ['::ffff:10.0.0.1', '10.0.0.1', true],
    ['::FFFF:a00:1', '10.0.0.1', true],
    ['::ffff:10.0.0.1', '::ffff:10.0.0.2', false],
    ['::ffff:10.0.0.1', '::1', false],
    ['64:ff9b::10.0.0.1', '64:ff9b::10.0.0.2', true],
  ])('from %s and %s are those of one caller: %s', (one, other, same) => {
    const attempts = new Attempts();
    for (let n = 0; n < MOST_FAILURES; n += 1) attempts.failed(one, 0);
    expect(attempts.wait(other, 1) > 0).toBe(same);
  });

  it('are remembered of so many addresses at most', () => {
    const attempts = new Attempts();
    for (let n = 0; n < MOST_FAILURES; n += 1) attempts.failed('first', 0);
    for (let n = 0; n < 9_999; n += 1) attempts.failed(`a${String(n)}`, 0);
    expect(attempts.wait('first', 1)).toBeGreaterThan(0);
    attempts.failed('one more', 0);
    expect(attempts.wait('first', 1)).toBe(0);
  });
});
