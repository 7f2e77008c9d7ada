import type { NativeReply } from './addon.generated.js';

/** A refusal by an engine: the HTTP status and the complete error body, as bytes, in the documented shape. */
export class EngineError extends Error {
  /** What tells this kind of error from others. */
  override readonly name = 'EngineError';

  /**
   * @param status the HTTP status
   * @param body the error as the REST interface sends it, in JSON
   */
  constructor(
    readonly status: number,
    readonly body: Uint8Array,
  ) {
    super(`the engine answered ${String(status)}`);
  }

  /** The first sentence of the error body, for logs and for callers without an HTTP layer. */
  get reason(): string {
    const text = new TextDecoder().decode(this.body);
    try {
      const parsed = JSON.parse(text) as { error?: { reason?: unknown } };
      return typeof parsed.error?.reason === 'string' ? parsed.error.reason : text;
    } catch {
      return text;
    }
  }
}

/** The addon or one of the libraries it needs is not installed, or does not fit this package. */
export class BindingError extends Error {
  /** What tells this kind of error from others. */
  override readonly name = 'BindingError';
}

/** Turns what the addon resolved with into a value or an {@link EngineError}. The only place that does. */
export function unwrapNative<T extends object>(value: T | NativeReply): T {
  if ('ok' in value && !value.ok) {
    throw new EngineError(value.status, value.body);
  }
  return value as T;
}
