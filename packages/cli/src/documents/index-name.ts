/**
 * A name with only those characters that the name of an index may have: letters of every script in lower case, digits, `.`, `_` and `-`.
 * Each run of others is one hyphen. What it may begin with is not looked at.
 */
export function asIndexName(name: string): string {
  return (
    name
      // Names of files on macOS may have their accents as characters of their own.
      .normalize('NFC')
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{M}\p{N}._-]+/gu, '-')
  );
}
