/** The same request in other languages; undefined where a block does more than to call `es`. */
export function translated(text: string): { readonly js: string; readonly python: string } | undefined;
