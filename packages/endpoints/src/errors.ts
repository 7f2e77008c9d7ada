/** What can go wrong before a request reaches the engine, each with its documented type and status. */
const ERRORS = {
  illegal_argument: { type: 'illegal_argument_exception', status: 400 },
  parse: { type: 'parse_exception', status: 400 },
  json: { type: 'x_content_parse_exception', status: 400 },
  bad_parameter: { type: 'bad_parameter_exception', status: 400 },
  validation: { type: 'action_request_validation_exception', status: 400 },
  media_type_version: { type: 'media_type_header_exception', status: 400 },
  unauthenticated: { type: 'security_exception', status: 401 },
  forbidden: { type: 'security_exception', status: 403 },
  too_many_attempts: { type: 'security_exception', status: 429 },
  not_found: { type: 'resource_not_found_exception', status: 404 },
  timeout: { type: 'status_exception', status: 408 },
  rejected: { type: 'es_rejected_execution_exception', status: 429 },
  circuit_breaking: { type: 'circuit_breaking_exception', status: 429 },
  disk_full: { type: 'cluster_block_exception', status: 429 },
  body_too_large: { type: 'content_too_long_exception', status: 413 },
  starting: { type: 'cluster_block_exception', status: 503 },
  client_closed: { type: 'task_cancelled_exception', status: 400 },
  internal: { type: 'exception', status: 500 },
} as const;

export type ErrorCode = keyof typeof ERRORS;

export interface ErrorDetails {
  /** Fields shown beside `type` and `reason`, in the root cause too. */
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly causedBy?: { readonly type: string; readonly reason: string };
  readonly headers?: readonly (readonly [string, string])[];
}

/** A refusal by the HTTP layer itself. */
export class HttpError extends Error {
  override readonly name = 'HttpError';

  constructor(
    readonly code: ErrorCode,
    readonly reason: string,
    readonly details: ErrorDetails = {},
  ) {
    super(reason);
  }

  get status(): number {
    return ERRORS[this.code].status;
  }

  /** The type of the error, as its body names it. */
  get type(): string {
    return ERRORS[this.code].type;
  }

  /** Type, reason and what belongs to them. */
  describe(): object {
    return { ...describeError(this.code, this.reason), ...this.details.metadata };
  }

  /** The documented error body. */
  toJson(): object {
    const { status } = ERRORS[this.code];
    const { causedBy } = this.details;
    const cause = this.describe();
    return {
      error: { root_cause: [cause], ...cause, ...(causedBy === undefined ? {} : { caused_by: causedBy }) },
      status,
    };
  }
}

/** Type and reason of an error, where an answer tells of so many that each had better not be thrown. */
export function describeError(code: ErrorCode, reason: string): { readonly type: string; readonly reason: string } {
  return { type: ERRORS[code].type, reason };
}

/**
 * Errors of the routing layer: there `error` is a plain sentence. The documented bodies of an unknown path have no
 * `status` in them, hence the optional field.
 */
export class RoutingError extends Error {
  override readonly name = 'RoutingError';

  constructor(
    readonly status: number,
    readonly sentence: string,
    readonly statusInBody = true,
    readonly headers: readonly (readonly [string, string])[] = [],
  ) {
    super(sentence);
  }

  toJson(): object {
    return { error: this.sentence, ...(this.statusInBody ? { status: this.status } : {}) };
  }
}

/** A file or folder that a setting of the server names cannot be used. */
export class UnusablePathError extends Error {
  override readonly name = 'UnusablePathError';
}
