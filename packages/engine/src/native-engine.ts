import { isMainThread } from 'node:worker_threads';

import type { NativeEngine, NativeReply } from './addon.generated.js';
import { findBinding, loadAddon } from './binding.js';
import { unwrapNative } from './errors.js';
import { askingForProfile, phasesIn, withoutProfile } from './phases.js';
import { remember } from './shape.js';
import type { Cancel, EngineReply, EngineRequest, SearchEngine } from './search-engine.js';

/** Settings of the native engine, passed to Rust as one object. */
export interface NativeEngineOptions {
  /** The data directory; created if absent. One process may have it open. */
  readonly data: string;
  /** Model directories in Hugging Face layout. More models cost start-up time only once deployed. */
  readonly models: readonly string[];
  /** The folder whose model directories requests may name; without one they may name none. */
  readonly modelsFolder?: string;
  /** The folder below which repositories of snapshots lie; `snapshots` beside the data directory without one. */
  readonly repoPath?: string;
  /** Threads that carry out requests. More let more requests run at once and cost memory each. */
  readonly threads?: number;
  /** Deploy the default sparse model when the engine opens, so that a first request needs no extra step. */
  readonly deployAtStart?: boolean;
  /** What the engine logs to standard error; `info` as JSON lines when absent. Holds for all engines of the process. */
  readonly log?: {
    /** The least severe lines that are written. */
    readonly level: 'debug' | 'info' | 'warn' | 'error' | 'silent';
    /** Whether lines are text for people; else they are JSON. */
    readonly asText: boolean;
  };
}

/** Handles are 32 bits wide in the addon. */
const MAX_HANDLE = 0xffff_ffff;

/** Longest that a timer of Node's waits. */
const NEVER_MS = 0x7fff_ffff;

/** Takes the answers of one engine to those who wait for them. */
class Waiting {
  readonly #callbacks = new Map<number, (reply: NativeReply) => void>();
  /** The addon does not keep the process alive: this does, as long as somebody waits. */
  #alive = setInterval(() => undefined, NEVER_MS).unref();
  #lastHandle = 0;
  #ended = false;

  /** A number that no other request has which still runs. */
  newHandle(): number {
    do this.#lastHandle = this.#lastHandle >= MAX_HANDLE ? 1 : this.#lastHandle + 1;
    while (this.#callbacks.has(this.#lastHandle));
    return this.#lastHandle;
  }

  /** The answer to come to a request that has been sent. */
  replyTo(handle: number): Promise<NativeReply> {
    // Who asks a closed engine waits for the refusal.
    if (this.#callbacks.size === 0 && this.#ended) this.#alive = setInterval(() => undefined, NEVER_MS);
    else if (this.#callbacks.size === 0) this.#alive.ref();
    return new Promise((resolve) => this.#callbacks.set(handle, resolve));
  }

  receive(replies: readonly NativeReply[]): void {
    for (const reply of replies) {
      const callback = this.#callbacks.get(reply.handle);
      this.#callbacks.delete(reply.handle);
      callback?.(reply);
    }
    this.#rest();
  }

  /** No request is carried out any more; those that come are refused. */
  end(): void {
    this.#ended = true;
    this.#rest();
  }

  #rest(): void {
    if (this.#callbacks.size > 0) return;
    if (this.#ended) clearInterval(this.#alive);
    else this.#alive.unref();
  }
}

/** Longest that reads answered on this thread hold up the event loop together, in milliseconds, where it gets no turn between them. */
const TURN_MS = 2;

/** Says whether a request may be answered on this thread, so that the event loop gets its turn and nobody waits who asks as well. */
class Turn {
  /** Milliseconds that reads have taken here since the event loop last had its turn. */
  #spent = 0;
  #waits = false;
  /** Whether a read has been answered here, and its caller has not been told yet: further reads that come now are queued at once. */
  #answered = false;

  isFree(): boolean {
    return !this.#answered && this.#spent < TURN_MS;
  }

  /** Notes that a read has been answered here. */
  took(ms: number): void {
    this.#spent += ms;
    if (!this.#waits) {
      this.#waits = true;
      setImmediate(() => {
        this.#waits = false;
        this.#spent = 0;
      });
    }
    this.#answered = true;
    queueMicrotask(() => {
      this.#answered = false;
    });
  }
}

/** The engine in this process: Rust behind the addon. */
export class NativeSearchEngine implements SearchEngine {
  readonly #native: NativeEngine;
  readonly #waiting: Waiting;
  readonly #turn = new Turn();

  private constructor(native: NativeEngine, waiting: Waiting) {
    this.#native = native;
    this.#waiting = waiting;
  }

  /**
   * Opens a data directory; resolves when it is ready to serve.
   *
   * @throws {BindingError} when the addon is missing, {@link EngineError} when the data directory cannot be opened.
   */
  static async open(options: NativeEngineOptions): Promise<NativeSearchEngine> {
    const binding = findBinding();
    const { NativeEngine: Native, configureLog } = loadAddon(binding);
    const { log, ...ofEngine } = options;
    if (log !== undefined) configureLog(log.level, log.asText);
    const waiting = new Waiting();
    const opened = await Native.open(JSON.stringify({ ...ofEngine, onnxRuntime: binding.onnxRuntime }), (replies) => {
      waiting.receive(replies);
    });
    return new NativeSearchEngine(unwrapNative<NativeEngine>(opened), waiting);
  }

  execute(request: EngineRequest, body?: Uint8Array, cancel?: Cancel): Promise<EngineReply> {
    const { phases, op } = request;
    if (phases === undefined || op !== 'search') return this.#carryOut(request, body, cancel);
    return this.#measured(request, phases, body, cancel);
  }

  async #measured(
    request: EngineRequest,
    tell: NonNullable<EngineRequest['phases']>,
    body?: Uint8Array,
    cancel?: Cancel,
  ): Promise<EngineReply> {
    const asking = askingForProfile(body);
    const reply = await this.#carryOut(request, asking ?? body, cancel);
    const phases = await phasesIn(reply.body);
    if (phases !== undefined) tell(phases);
    return asking === undefined ? reply : { ...reply, body: await withoutProfile(reply.body) };
  }

  async #carryOut(request: EngineRequest, body?: Uint8Array, cancel?: Cancel): Promise<EngineReply> {
    const { op, path, query, opaqueId, requestId, traceId, action, rights, named, version, concurrent } = request;
    // What is undefined is left out of the JSON; one form of object for all requests is made faster than one with what is there.
    const asked = JSON.stringify({
      op,
      path,
      query,
      opaque_id: opaqueId,
      request_id: requestId,
      trace_id: traceId,
      action,
      named: named === undefined ? undefined : true,
      version,
    });
    // The stack of a worker thread may be almost used up, and Rust's code needs some.
    const inline = isMainThread && concurrent !== true && this.#turn.isFree();
    const begun = performance.now();
    const handle = this.#waiting.newHandle();
    const atOnce = this.#native.execute(
      handle,
      // Rights are JSON already, the same with every request of a key.
      rights === undefined ? asked : `${asked.slice(0, -1)},"rights":${rights}}`,
      body === undefined ? null : Buffer.from(body.buffer, body.byteOffset, body.byteLength),
      inline,
    );
    if (atOnce !== null) {
      this.#turn.took(performance.now() - begun);
      return taken(atOnce, named);
    }
    const reply = this.#waiting.replyTo(handle);
    const end = cancel?.(() => {
      this.#native.cancel(handle);
    });
    try {
      return taken(await reply, named);
    } finally {
      end?.();
    }
  }

  room(): number {
    return this.#native.room();
  }

  keepBodies(bytes: number): void {
    this.#native.keepBodies(bytes);
  }

  async close(): Promise<void> {
    await this.#native.close();
    this.#waiting.end();
  }
}

/** The answer as the caller gets it. */
function taken(reply: NativeReply, named: EngineRequest['named']): EngineReply {
  if (reply.named !== undefined) named?.(reply.named);
  const answer: EngineReply = unwrapNative(reply);
  remember(answer.body);
  return answer;
}
