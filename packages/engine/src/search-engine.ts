import type { Operation } from './operations.js';
import type { Phases } from './phases.js';

/** One request to an engine: what to do and with which parameters. The body travels beside it, as bytes. */
export interface EngineRequest {
  /** What to do. */
  readonly op: Operation;
  /** Values taken from the path: `index`, `id`, `pipeline`, `task`, `model`, `inference_id`. */
  readonly path: Readonly<Record<string, string>>;
  /** The query string's parameters that the operation knows. */
  readonly query: Readonly<Record<string, string>>;
  /** The caller's `X-Opaque-Id`, kept in the headers of a task that the request starts. */
  readonly opaqueId?: string | undefined;
  /** The number of the request, which stands in what the engine logs for it. */
  readonly requestId?: string | undefined;
  /** The trace that the request is part of, which stands there too. */
  readonly traceId?: string | undefined;
  /** The version of Elasticsearch's interface that the request speaks; 8 without it. */
  readonly version?: number | undefined;
  /** The action on indices that the operation is, where the caller is restricted. */
  readonly action?: string | undefined;
  /** What a restricted caller may do to which indices, as JSON that the engine reads. Absent: everything. */
  readonly rights?: string | undefined;
  /**
   * Told the indices and aliases that the request came to, its body too, before it is answered or refused: up to 64 names, after
   * date math, patterns as they are.
   */
  readonly named?: ((names: readonly string[]) => void) | undefined;
  /**
   * Told how long the parts of a search took, before it is answered; never where that cannot be told. Such a search is measured as with
   * `profile`, so its lists are made one after another.
   */
  readonly phases?: ((phases: Phases) => void) | undefined;
  /**
   * Whether others are about to ask too. They would have to wait if the engine answered on this thread, as it may do otherwise when
   * a read is short.
   */
  readonly concurrent?: boolean | undefined;
}

/** An engine's answer. The body is ready to be sent. */
export interface EngineReply {
  /** The HTTP status. */
  readonly status: number;
  /** The answer, in JSON or as plain text. */
  readonly body: Uint8Array;
  /** Whether the body is plain text; else it is JSON. */
  readonly text?: boolean;
  /** Sentences about deprecated forms that the request used. */
  readonly warnings?: readonly string[] | undefined;
  /** Index, id and, if it has one, routing of the document that the request created. */
  readonly created?: readonly string[] | undefined;
  /** Whether parts of a request that was carried out were refused, as its key may not use the indices that they name. */
  readonly refusedParts?: boolean | undefined;
  /** Tokens that a model has read for the request, where it asks for nothing but that. */
  readonly tokens?: number | undefined;
}

/**
 * Lets a caller stop a request: called once with a function that stops it, which may be used at any time until the function
 * that comes back is called. (An `AbortSignal` costs more than the way of a request to the engine and back.)
 */
export type Cancel = (stop: () => void) => () => void;

/**
 * What the HTTP layer needs of an engine. {@link NativeSearchEngine} is the first implementation; no route knows which one
 * it talks to.
 */
export interface SearchEngine {
  /**
   * Carries out one request. `body` must not be changed until the promise settles. What `cancel` is given asks the engine
   * to stop the work, not only to stop waiting for it.
   *
   * @throws {EngineError} when the engine refuses the request.
   */
  execute(request: EngineRequest, body?: Uint8Array, cancel?: Cancel): Promise<EngineReply>;

  /**
   * Bytes that the process may still allocate by the limit of the settings, not counting bodies and answers on their way; absent
   * where the work is done in another process.
   */
  room?(): number;

  /** Is told how many bytes of bodies are kept for requests now, also for those that have not come whole. */
  keepBodies?(bytes: number): void;

  /** Makes everything durable and releases what the engine holds. */
  close(): Promise<void>;
}
