import type { NativeEngine } from './addon.generated.js';
import { findBinding, loadAddon } from './binding.js';
import { unwrapNative } from './errors.js';
import type { EngineReply, EngineRequest, SearchEngine } from './search-engine.js';

/** Settings of the native engine, passed to Rust as one object. */
export interface NativeEngineOptions {
  /** The data directory; created if absent. One process may have it open. */
  readonly data: string;
  /** Model directories in Hugging Face layout. More models cost start-up time only once deployed. */
  readonly models: readonly string[];
  /** Threads that carry out requests. More let more requests run at once and cost memory each. */
  readonly threads?: number;
  /** Deploy the default sparse model when the engine opens, so that a first request needs no extra step. */
  readonly deployAtStart?: boolean;
}

/** Handles are 32 bits wide in the addon. */
const MAX_HANDLE = 0xffff_ffff;

/** The engine in this process: Rust behind the addon. */
export class NativeSearchEngine implements SearchEngine {
  readonly #native: NativeEngine;
  #lastHandle = 0;

  private constructor(native: NativeEngine) {
    this.#native = native;
  }

  /**
   * Opens a data directory; resolves when it is ready to serve.
   *
   * @throws {BindingError} when the addon is missing, {@link EngineError} when the data directory cannot be opened.
   */
  static async open(options: NativeEngineOptions): Promise<NativeSearchEngine> {
    const binding = findBinding();
    const { NativeEngine: Native } = loadAddon(binding);
    const opened = await Native.open(JSON.stringify({ ...options, onnxRuntime: binding.onnxRuntime }));
    return new NativeSearchEngine(unwrapNative<NativeEngine>(opened));
  }

  async execute(request: EngineRequest, body?: Uint8Array, signal?: AbortSignal): Promise<EngineReply> {
    const handle = this.#nextHandle();
    const { op, path, query, opaqueId } = request;
    const reply = this.#native.execute(
      handle,
      JSON.stringify({ op, path, query, opaque_id: opaqueId ?? null }),
      body === undefined ? null : Buffer.from(body.buffer, body.byteOffset, body.byteLength),
    );
    if (signal === undefined) {
      return unwrapNative(await reply);
    }
    const cancel = (): void => {
      this.#native.cancel(handle);
    };
    signal.addEventListener('abort', cancel, { once: true });
    if (signal.aborted) {
      cancel();
    }
    try {
      return unwrapNative(await reply);
    } finally {
      signal.removeEventListener('abort', cancel);
    }
  }

  async close(): Promise<void> {
    await this.#native.close();
  }

  #nextHandle(): number {
    this.#lastHandle = this.#lastHandle >= MAX_HANDLE ? 1 : this.#lastHandle + 1;
    return this.#lastHandle;
  }
}
