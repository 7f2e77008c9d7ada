/** The part of nspell that is used; it comes without types. */
declare module 'nspell' {
  interface Spelling {
    correct(word: string): boolean;
    add(word: string): Spelling;
  }
  export default function nspell(dictionary: { readonly aff: Uint8Array; readonly dic: Uint8Array }): Spelling;
}
