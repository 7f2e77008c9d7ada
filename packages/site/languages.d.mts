/** The same request in other languages; undefined where a block does more than to call `es`. */
export function translated(text: string): { readonly js: string; readonly python: string } | undefined;

/** What a call of `es` sends, and to which port of this machine. */
export interface ShownRequest {
  readonly port: string;
  readonly method: string;
  readonly path: string;
  readonly body?: object;
}

/** What the calls of a block send; undefined where it does more than to call `es`. */
export function requestsOf(text: string): readonly ShownRequest[] | undefined;
