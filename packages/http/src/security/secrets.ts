/** What a secret has to hold against guessing, in bits. */
const ENOUGH_BITS = 128;

/** Different characters that a random secret of that strength has, but for one in many millions. */
const ENOUGH_VARIETY = 8;

/** Sets of characters that secrets are made of, smallest first, with the bits of one character. */
const ALPHABETS: readonly (readonly [pattern: RegExp, bits: number])[] = [
  [/^\d*$/, Math.log2(10)],
  [/^[\da-f]*$/i, 4],
  [/^[\da-z]*$/, Math.log2(36)],
  [/^[\dA-Z]*$/, Math.log2(36)],
];

/**
 * Whether a secret can be one of 128 random bits: keys are hashed fast, which is safe only for what nobody can guess. Tells
 * short and simple ones apart, not words from random letters.
 */
export function isStrong(secret: string): boolean {
  const bits = ALPHABETS.find(([pattern]) => pattern.test(secret))?.[1] ?? 6;
  return secret.length * bits >= ENOUGH_BITS && new Set(secret).size >= ENOUGH_VARIETY;
}
