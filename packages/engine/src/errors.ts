import type { NativeReply } from './addon.generated.js';

/** A refusal by an engine: the HTTP status and the complete error body, as bytes, in the documented shape. */
export class EngineError extends Error {
  /** What tells this kind of error from others. */
  override readonly name = 'EngineError';

  #members: Readonly<Record<string, unknown>> | undefined;

  /**
   * @param status the HTTP status
   * @param body the error as the REST interface sends it, in JSON
   * @param isFull whether a queue of operations has no room for now
   */
  constructor(
    readonly status: number,
    readonly body: Uint8Array,
    readonly isFull = false,
  ) {
    super(`the engine answered ${String(status)}`);
  }

  /** The members of `error` in the body; none if the body is not of the documented shape. */
  get members(): Readonly<Record<string, unknown>> {
    this.#members ??= membersOf(this.body);
    return this.#members;
  }

  /** The first sentence of the error body, for logs and for callers without an HTTP layer. */
  get reason(): string {
    const { reason } = this.members;
    return typeof reason === 'string' ? reason : new TextDecoder().decode(this.body);
  }
}

function membersOf(body: Uint8Array): Readonly<Record<string, unknown>> {
  try {
    const { error } = JSON.parse(new TextDecoder().decode(body)) as { error?: unknown };
    return typeof error === 'object' && error !== null ? (error as Record<string, unknown>) : {};
  } catch {
    return {};
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
    throw new EngineError(value.status, value.body, value.full);
  }
  return value as T;
}
