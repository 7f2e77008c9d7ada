import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

import { EngineError } from '../errors.js';
import { fileProblem } from '../file-problem.js';
import { embeddedModels, modelDirectories } from '../models.js';
import { type NativeEngineOptions, NativeSearchEngine } from '../native-engine.js';
import { holdsForeignFiles, makePrivateFolder } from '../foreign-files.js';
import { OPERATIONS, type Operation } from '../operations.js';
import type { SearchEngine } from '../search-engine.js';
import { amount, named, object, refuseUnknown } from './arguments.js';
import { type Call, Caller } from './caller.js';
import { type DenseVector, type EmbedOptions, type SparseVector, embed } from './embed.js';
import { SparrowError } from './error.js';
import { Index } from './typed-index.js';
import type { Json } from './types.js';

/** How an engine is opened in this process. */
export interface OpenOptions {
  /**
   * The data directory; created if it is not there. One process may have it open. Without one, the data lie in a temporary directory
   * that `close` deletes.
   */
  readonly data?: string;
  /**
   * Whether `data` may be a folder that holds other files and is no data directory yet. Such a folder is refused if nothing is said, as it
   * may have been named by mistake.
   */
  readonly amongOtherFiles?: boolean;
  /** A folder with more models, besides the embedded ones: every folder in it with a `model.safetensors` or `model.onnx` is one. */
  readonly models?: string;
  /** The folder below which repositories of snapshots lie; `snapshots` beside the data directory if nothing is said. */
  readonly repoPath?: string;
  /** Cores that the engine uses; all of them if nothing is said. */
  readonly threads?: number;
  /** What the engine writes to standard error, as text; nothing if nothing is said. Holds for all engines of the process. */
  readonly log?: 'debug' | 'info' | 'warn' | 'error' | 'silent';
  /**
   * Called with each warning about a request, such as one about a form that is deprecated, or about a field that no index has; the answer
   * is the same. Without it, each text is printed once, by `process.emitWarning`.
   */
  readonly onWarning?: (warning: string) => void;
}

const OPTIONS: Readonly<Record<keyof OpenOptions, true>> = {
  data: true,
  amongOtherFiles: true,
  models: true,
  repoPath: true,
  threads: true,
  log: true,
  onWarning: true,
};

const CALL: Readonly<Record<keyof Call, true>> = { path: true, query: true, body: true, signal: true };

/**
 * A search engine in this process: indices, documents, searches, and the models that encode texts. No server and no socket; who has
 * it may do everything.
 */
export class Sparrow implements AsyncDisposable {
  readonly #caller: Caller;
  readonly #temporary: string | undefined;
  /** Where the data directory really is, whatever links lead to it. */
  readonly #real: string | undefined;
  #closed: Promise<void> | undefined;

  private constructor(
    /** What carries out operations: bytes in, bytes out. */
    readonly engine: SearchEngine,
    /** The data directory; undefined where the engine is not in this process. */
    readonly data: string | undefined,
    temporary: string | undefined,
    real: string | undefined,
    onWarning?: (warning: string) => void,
  ) {
    // A server elsewhere looks at names by itself.
    this.#caller = new Caller(engine, onWarning, data !== undefined);
    this.#temporary = temporary;
    this.#real = real;
  }

  /**
   * Opens a data directory; resolves when it is ready.
   *
   * @throws {SparrowError} when it is in use, is no folder, holds other files or cannot be read
   * @throws {BindingError} when there is no addon for this platform
   * @throws {TypeError} for an option that there is not
   */
  static async open(options: OpenOptions = {}): Promise<Sparrow> {
    object('the options of Sparrow.open', options, "{ data: './search-data' }");
    refuseUnknown('Sparrow.open', options, OPTIONS);
    const { amongOtherFiles = false, log = 'silent', onWarning } = options;
    const models = options.models === undefined ? undefined : named('models', options.models);
    const repoPath = options.repoPath === undefined ? undefined : named('repoPath', options.repoPath);
    const threads = options.threads === undefined ? undefined : amount('threads', options.threads);
    // An empty path would be the folder that the program was started in.
    const wanted = options.data === undefined ? undefined : named('data', options.data);
    const temporary = wanted === undefined ? await mkdtemp(join(tmpdir(), 'sparrow-')) : undefined;
    // In a folder of its own: beside the data lie the snapshots.
    const data = temporary === undefined ? resolve(wanted ?? '') : join(temporary, 'data');
    const folder = models === undefined ? undefined : resolve(models);
    try {
      if (!amongOtherFiles) await refuseForeign(data);
      await makeFolder(data);
      const real = await realpath(data);
      if (openHere.has(real)) throw alreadyOpen(data, real);
      openHere.add(real);
      const settings: NativeEngineOptions = {
        data,
        models: [...embeddedModels(), ...(folder === undefined ? [] : modelDirectories(folder))],
        deployAtStart: true,
        log: { level: log, asText: true },
        ...(folder === undefined ? {} : { modelsFolder: folder }),
        ...(threads === undefined ? {} : { threads }),
        ...(repoPath === undefined ? {} : { repoPath: resolve(repoPath) }),
      };
      try {
        return new Sparrow(await NativeSearchEngine.open(settings), data, temporary, real, onWarning);
      } catch (error) {
        openHere.delete(real);
        throw isOpenElsewhere(error) ? openElsewhere(data) : error;
      }
    } catch (error) {
      if (temporary !== undefined) await rm(temporary, { recursive: true, force: true });
      throw error instanceof EngineError ? SparrowError.of(error) : error;
    }
  }

  /** The same interface over another engine, such as a server elsewhere. */
  static over(engine: SearchEngine): Sparrow {
    return new Sparrow(engine, undefined, undefined, undefined);
  }

  /**
   * An index whose documents are of the type `Doc`. Nothing is asked of the engine: the index may be there or not.
   *
   * @throws {TypeError} without a name
   */
  index<Doc extends object = Json>(name: string): Index<Doc> {
    return new Index<Doc>(this.#caller, named('the name of an index', name));
  }

  /**
   * Encodes texts with a model: by default the embedded sparse one, whose vectors are weights of tokens; with `model: 'dense'` the
   * embedded dense one, whose vectors are 384 numbers; or with any other model. The vectors come in the order of the texts.
   *
   * @throws {SparrowError} when there is no such model
   */
  embed(texts: readonly string[], options?: EmbedOptions & { readonly model?: 'sparse' }): Promise<SparseVector[]>;
  embed(texts: readonly string[], options: EmbedOptions & { readonly model: 'dense' }): Promise<DenseVector[]>;
  embed(texts: readonly string[], options: EmbedOptions): Promise<(SparseVector | DenseVector)[]>;
  embed(texts: readonly string[], options: EmbedOptions = {}): Promise<(SparseVector | DenseVector)[]> {
    return embed(this.#caller, texts, options);
  }

  /**
   * Carries out any operation of the engine by its name: everything that the REST interface does with indices, documents, searches,
   * pipelines, models and jobs. `OPERATIONS` has the names, and the documentation of the REST interface what they take.
   *
   * @throws {SparrowError} when the engine refuses it
   * @throws {TypeError} for an operation that there is not
   */
  async execute<T = unknown>(op: Operation, call: Call = {}): Promise<T> {
    refuseUnknown('execute', call, CALL);
    if (!Object.hasOwn(OPERATIONS, op))
      throw new TypeError(`there is no operation [${op}]; the names are those of OPERATIONS`);
    return this.#caller.call<T>(op, call);
  }

  /** Makes everything durable and lets the data directory go. Calls that are under way fail. */
  close(): Promise<void> {
    this.#closed ??= (async (): Promise<void> => {
      await this.engine.close();
      if (this.#real !== undefined) openHere.delete(this.#real);
      if (this.#temporary !== undefined) await rm(this.#temporary, { recursive: true, force: true });
    })();
    return this.#closed;
  }

  /** Closes the engine at the end of the block: `await using sparrow = await Sparrow.open()`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** The data directories that are open in this process: the lock of one tells only that somebody has it. */
const openHere = new Set<string>();

function alreadyOpen(data: string, real: string): SparrowError {
  const where = real === data ? '' : `, as ${real}`;
  const reason = `${data} is already open here, in this process${where}: use the Sparrow that has it open, or close that one first`;
  return new SparrowError(reason, 409, 'illegal_state_exception');
}

function isOpenElsewhere(error: unknown): boolean {
  return error instanceof EngineError && error.reason.endsWith('is in use by another process');
}

function openElsewhere(data: string): SparrowError {
  const reason = `${data} is in use by another process: if that is a server, ask it by its address instead, or stop it first`;
  return new SparrowError(reason, 409, 'illegal_state_exception');
}

/** Refuses a folder of somebody's own files, as the server does: the engine would put its own among them. */
async function refuseForeign(data: string): Promise<void> {
  // What cannot be read is told when it is opened.
  if (!(await holdsForeignFiles(data).catch(() => false))) return;
  const reason = `${data} contains other files and is not a data directory of Sparrow, so nothing was written: name an empty or a new folder; to use this one anyway, pass amongOtherFiles: true`;
  throw new SparrowError(reason, 400, 'illegal_argument_exception');
}

/** Makes a data directory unless it is there: for this user alone, as what is indexed is. */
async function makeFolder(data: string): Promise<void> {
  try {
    await makePrivateFolder(data);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const why = code === 'EEXIST' ? 'it is not a folder' : fileProblem(cause);
    throw new SparrowError(`${data} cannot be a data directory: ${why}`, 500, 'exception', undefined, { cause });
  }
}
