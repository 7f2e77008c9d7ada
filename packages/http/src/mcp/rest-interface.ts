/** What a request to the REST interface has besides method and path. */
export interface AskOptions {
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  /** A list is sent as one JSON text a line. */
  readonly body?: object | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * The REST interface as the tools use it: over HTTP, or inside the server. Each caller has a key of its own, so that no tool can do or
 * show what the key may not.
 */
export interface RestInterface {
  /**
   * Sends a request and reads its answer.
   *
   * @throws {SparrowError} when it is refused, or what it asks for is not there
   */
  request<T = unknown>(method: string, path: string, options?: AskOptions): Promise<T>;
}

/** What a model is told when a tool cannot do what it asked: one or two sentences, with what to do next. */
export class ToolError extends Error {
  override readonly name = 'ToolError';
}

/** The path of something of an index; the name may be a pattern, or several separated by commas. */
export function pathOf(index: string, ...rest: readonly string[]): string {
  return `/${[index, ...rest].map(encodeURIComponent).join('/')}`;
}
