import type { EngineError } from '../errors.js';

/** The members of an error, as Elasticsearch writes it. */
interface ErrorBody {
  readonly type?: unknown;
  readonly reason?: unknown;
  readonly caused_by?: ErrorBody | null;
  readonly root_cause?: readonly { readonly reason?: unknown }[];
}

/** A refusal, as a caller of the library sees it: the message is the reason, a sentence. */
export class SparrowError extends Error {
  /** What tells this kind of error from others. */
  override readonly name = 'SparrowError';

  /**
   * @param reason what is wrong, as a sentence
   * @param status the HTTP status that the REST interface answers with in the same case
   * @param type what kind of error it is, such as `index_not_found_exception`
   * @param body the whole error as the REST interface shows it, where there is one
   */
  constructor(
    reason: string,
    readonly status: number,
    readonly type: string,
    readonly body?: unknown,
    options?: ErrorOptions,
  ) {
    super(reason, options);
  }

  /** What is wrong, as a sentence; the same as `message`. */
  get reason(): string {
    return this.message;
  }

  /** Reads an engine's refusal. `cause` is the error below it, where the engine names one. */
  static of({ status, body, reason }: EngineError): SparrowError {
    let parsed: unknown;
    try {
      parsed = JSON.parse(new TextDecoder().decode(body));
    } catch {
      return new SparrowError(reason, status, 'unknown');
    }
    const { error } = (parsed ?? {}) as { error?: ErrorBody | null };
    return error === undefined || error === null
      ? new SparrowError(reason, status, 'unknown', parsed)
      : fromBody(error, status, parsed);
  }

  /** Reads the error of one part of an answer, such as a document of a bulk load. */
  static ofPart(status: number, error: unknown): SparrowError {
    return fromBody(error ?? {}, status, error);
  }
}

/** Causes below causes that are read: more come of no engine. */
const MOST_CAUSES = 20;

function fromBody(error: ErrorBody | string, status: number, body: unknown, depth = 0): SparrowError {
  const told: ErrorBody = typeof error === 'string' ? {} : error;
  const { type, caused_by: causedBy } = told;
  // That all shards failed is no reason: what each of them says is.
  const root = type === 'search_phase_execution_exception' ? told.root_cause?.[0]?.reason : undefined;
  const reason = root ?? told.reason ?? error;
  const isCaused = typeof causedBy === 'object' && causedBy !== null && depth < MOST_CAUSES;
  const cause = isCaused ? fromBody(causedBy, status, causedBy, depth + 1) : undefined;
  return new SparrowError(
    typeof reason === 'string' ? reason : `status ${String(status)}`,
    status,
    typeof type === 'string' ? type : 'unknown',
    body,
    cause === undefined ? undefined : { cause },
  );
}
