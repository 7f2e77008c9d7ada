import process from 'node:process';

import { foundNothing, holdsMappings, unknownEndpoints, unknownFields } from '../diagnostics/index.js';
import { EngineError } from '../errors.js';
import type { Operation } from '../operations.js';
import type { Cancel, EngineReply, EngineRequest, SearchEngine } from '../search-engine.js';
import { SparrowError } from './error.js';

/** What every call of the library takes. */
export interface CallOptions {
  /** Ends the call: the engine stops its work, and the call rejects with the reason of the signal. */
  readonly signal?: AbortSignal | undefined;
}

/** The parts of one operation: what the REST interface has in its path, its query string and its body. */
export interface Call extends CallOptions {
  /** Values of the path: `index`, `id`, `model`, … */
  readonly path?: Readonly<Record<string, string>>;
  /** Parameters of the query string; those that are undefined are left out. */
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  /** An object is sent as JSON; a string and bytes are sent as they are. */
  readonly body?: object | string | undefined;
}

/** Warnings that are kept so that none is printed twice. */
const MOST_TOLD = 1000;

/** Carries out operations of an engine for callers that think in objects. */
export class Caller {
  readonly #encoder = new TextEncoder();
  readonly #decoder = new TextDecoder();

  /** Texts that were told already: a warning comes with every request that deserves it. */
  readonly #told = new Set<string>();

  /**
   * @param onWarning is told each warning; without it, Node prints each once
   * @param looksAtNames whether to look for fields and endpoints that are not there, as a server does by itself
   */
  constructor(
    readonly engine: SearchEngine,
    readonly onWarning?: (warning: string) => void,
    readonly looksAtNames = true,
  ) {}

  /**
   * Carries out one operation and reads its answer.
   *
   * @throws {SparrowError} when the engine refuses it; the reason of the signal when that ended it
   */
  async call<T = unknown>(op: Operation, { path = {}, query = {}, body, signal }: Call = {}): Promise<T> {
    signal?.throwIfAborted();
    const parameters = Object.entries(query).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, String(value)] as const],
    );
    const request = { op, path, query: Object.fromEntries(parameters) };
    const sent = this.#bytes(body);
    try {
      const reply = await this.engine.execute(request, sent, signal && cancelled(signal));
      for (const warning of reply.warnings ?? []) this.#warn(warning);
      if (this.looksAtNames && holdsMappings(op))
        for (const warning of await unknownEndpoints(this.engine, sent, true)) this.#warn(warning);
      if (this.looksAtNames && foundNothing(op, reply)) {
        const fieldCaps = (asked: EngineRequest): Promise<EngineReply> => this.engine.execute(asked);
        for (const warning of await unknownFields(fieldCaps, request, sent, reply.body)) this.#warn(warning);
      }
      const text = this.#decoder.decode(reply.body);
      return (reply.text === true ? text : JSON.parse(text)) as T;
    } catch (error) {
      // An operation that was told to stop says so in an error of its own.
      signal?.throwIfAborted();
      throw error instanceof EngineError ? SparrowError.of(error) : error;
    }
  }

  #warn(warning: string): void {
    if (this.onWarning !== undefined) {
      this.onWarning(warning);
      return;
    }
    if (this.#told.has(warning) || this.#told.size === MOST_TOLD) return;
    this.#told.add(warning);
    process.emitWarning(warning, 'SparrowWarning');
  }

  #bytes(body: Call['body']): Uint8Array | undefined {
    if (body === undefined || body instanceof Uint8Array) return body;
    return this.#encoder.encode(typeof body === 'string' ? body : JSON.stringify(body));
  }
}

function cancelled(signal: AbortSignal): Cancel {
  return (stop) => {
    signal.addEventListener('abort', stop, { once: true });
    return () => {
      signal.removeEventListener('abort', stop);
    };
  };
}
