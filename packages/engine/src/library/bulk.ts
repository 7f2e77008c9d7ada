import { refuseUnknown } from './arguments.js';
import type { CallOptions, Caller } from './caller.js';
import { SparrowError } from './error.js';
import type { Refresh } from './types.js';

/** How a stream of documents is written. */
export interface BulkOptions<Doc> extends CallOptions {
  /** The id of a document; the index makes one where this gives none. `n` counts the documents from 0. */
  readonly id?: (document: Doc, n: number) => string | undefined;
  /** `index` (the default) replaces a document that has the id already, `create` refuses the new one. */
  readonly action?: 'index' | 'create';
  /** A document as JSON, in one line; `JSON.stringify` if nothing is said. */
  readonly toJson?: (document: Doc) => string;
  /** The ingest pipeline that documents go through. */
  readonly pipeline?: string;
  /** Whether documents can be searched at the end. They can a second later anyway. */
  readonly refresh?: boolean;
  /** Most documents of one batch, 1000 if nothing is said. */
  readonly batchDocuments?: number;
  /** Bytes from which on a batch is complete, 4 MiB if nothing is said. Raising it costs memory several times over. */
  readonly batchBytes?: number;
  /**
   * Batches that are written at the same time, 1 if nothing is said. With more, two documents of the source that have the same id
   * may be written in either order.
   */
  readonly concurrency?: number;
  /**
   * Milliseconds without a new document after which a batch is written although it is not full; never if nothing is said. For
   * sources that wait for something to come.
   */
  readonly flushAfterMs?: number;
  /** How often what a full queue refused is sent again, 20 times if nothing is said. */
  readonly retries?: number;
  /** Called after each batch, in the order of the source. */
  readonly onProgress?: (progress: BulkProgress) => void;
  /** Called with each document that was refused, in the order of the source; the others are written all the same. */
  readonly onRejected?: (rejected: Rejected<Doc>) => void;
}

/** What has become of the first documents of the source. */
export interface BulkProgress {
  /** Documents that are written or refused. */
  readonly documents: number;
  /** Documents that are written. */
  readonly written: number;
  /** Those of them that took the place of a document with the same id. */
  readonly replaced: number;
  /** Documents that were refused. */
  readonly rejected: number;
  /** Bytes of JSON that were sent. */
  readonly bytes: number;
  /** Texts of which a model did not read the end. */
  readonly truncatedTexts: number;
}

/** What a bulk load came to. */
export interface BulkResult extends BulkProgress {
  /** The first hundred documents that were refused, with the reason. */
  readonly failures: readonly {
    /** The document's place in the source, from 0. */
    readonly n: number;
    /** The document's id, where the caller gave one. */
    readonly id: string | undefined;
    /** Why the document was refused. */
    readonly error: SparrowError;
  }[];
}

/** A document that was refused. */
export interface Rejected<Doc> {
  /** The document, as the source gave it. */
  readonly document: Doc;
  /** The document's place in the source, from 0. */
  readonly n: number;
  /** The id that the caller gave it, if any. */
  readonly id: string | undefined;
  /** Why it was refused. */
  readonly error: SparrowError;
}

interface Entry<Doc> {
  readonly document: Doc;
  readonly n: number;
  readonly id: string | undefined;
  readonly lines: string;
}

interface Batch<Doc> {
  readonly entries: Entry<Doc>[];
  bytes: number;
}

/** What a batch came to: the refusal of each entry that was refused. */
interface Sent<Doc> {
  readonly batch: Batch<Doc>;
  readonly refused: ReadonlyMap<Entry<Doc>, SparrowError>;
  readonly replaced: number;
  readonly truncatedTexts: number;
}

interface BulkItem {
  readonly status: number;
  readonly error?: unknown;
}

interface BulkAnswer {
  readonly truncatedTexts: number;
  /** What became of each document, in the order in which they were sent. */
  readonly items: readonly BulkItem[];
}

const OPTIONS: Readonly<Record<keyof BulkOptions<unknown>, true>> = {
  id: true,
  action: true,
  toJson: true,
  pipeline: true,
  refresh: true,
  batchDocuments: true,
  batchBytes: true,
  concurrency: true,
  flushAfterMs: true,
  retries: true,
  onProgress: true,
  onRejected: true,
  signal: true,
};

const BATCH_DOCUMENTS = 1000;
const BATCH_BYTES = 4 * 1024 * 1024;
const RETRIES = 20;
/** The type of refusals by an index that takes no documents. */
const WRITE_BLOCK = 'cluster_block_exception';
const MOST_FAILURES = 100;
/** Characters that an error shows of an answer that is not JSON. */
const MOST_SHOWN = 100;

/** How long a refused batch waits before it is sent again, in milliseconds: at first, and at most. */
const FIRST_WAIT_MS = 50;
const LONGEST_WAIT_MS = 2000;

/**
 * Writes the documents of a source in batches. The source is asked for more only when there is room: at most
 * `concurrency` batches are under way, and one more is being read.
 *
 * @throws {SparrowError} when a whole batch is refused; whatever the source throws; the reason of the signal
 */
export async function writeInBatches<Doc>(
  caller: Caller,
  index: string,
  source: Iterable<Doc> | AsyncIterable<Doc>,
  options: BulkOptions<Doc>,
): Promise<BulkResult> {
  refuseUnknown('bulk', options, OPTIONS);
  if (!isSource(source)) throw new TypeError('bulk takes an iterable or async iterable of documents');
  const { concurrency = 1, refresh = false } = options;
  // What is under way is stopped when anything goes wrong, also in the source.
  const failed = new AbortController();
  const signal = options.signal === undefined ? failed.signal : AbortSignal.any([options.signal, failed.signal]);
  const account = new Account(options);
  const underWay: Promise<void>[] = [];
  let last = Promise.resolve();
  try {
    for await (const batch of batches(source, options, signal)) {
      while (underWay.length >= Math.max(1, concurrency)) await underWay.shift();
      const sending = send(caller, index, batch, options, signal);
      last = Promise.all([sending, last]).then(([sent]) => {
        account.take(sent);
      });
      // Also where the source is waited for, which may take for ever.
      last.catch((error: unknown) => {
        failed.abort(error);
      });
      underWay.push(last);
    }
    await last;
    if (refresh && account.progress.documents > 0) await caller.call('refresh', { path: { index }, signal });
    return account.result();
  } catch (error) {
    // The first failure is the one to tell: those behind it come of it.
    const first: unknown = failed.signal.aborted ? failed.signal.reason : error;
    failed.abort(first);
    await Promise.allSettled(underWay);
    options.signal?.throwIfAborted();
    throw first;
  }
}

/** Whether documents can come of it. Characters come of a text, and they are none. */
function isSource(source: unknown): boolean {
  return typeof source === 'object' && source !== null && (Symbol.asyncIterator in source || Symbol.iterator in source);
}

/** What has become of the documents so far. */
class Account<Doc> {
  readonly #options: BulkOptions<Doc>;
  readonly #failures: { n: number; id: string | undefined; error: SparrowError }[] = [];
  progress: BulkProgress = { documents: 0, written: 0, replaced: 0, rejected: 0, bytes: 0, truncatedTexts: 0 };

  constructor(options: BulkOptions<Doc>) {
    this.#options = options;
  }

  take({ batch, refused, replaced, truncatedTexts }: Sent<Doc>): void {
    for (const entry of batch.entries) {
      const error = refused.get(entry);
      if (error === undefined) continue;
      const { document, n, id } = entry;
      if (this.#failures.length < MOST_FAILURES) this.#failures.push({ n, id, error });
      this.#options.onRejected?.({ document, n, id, error });
    }
    const { documents, written, replaced: earlier, rejected, bytes, truncatedTexts: before } = this.progress;
    this.progress = {
      documents: documents + batch.entries.length,
      written: written + batch.entries.length - refused.size,
      replaced: earlier + replaced,
      rejected: rejected + refused.size,
      bytes: bytes + batch.bytes,
      truncatedTexts: before + truncatedTexts,
    };
    this.#options.onProgress?.(this.progress);
  }

  result(): BulkResult {
    return { ...this.progress, failures: this.#failures };
  }
}

async function* batches<Doc>(
  source: Iterable<Doc> | AsyncIterable<Doc>,
  options: BulkOptions<Doc>,
  signal: AbortSignal,
): AsyncGenerator<Batch<Doc>> {
  const { batchDocuments = BATCH_DOCUMENTS, batchBytes = BATCH_BYTES, flushAfterMs } = options;
  const { toJson = JSON.stringify, action = 'index' } = options;
  const iterator = Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : source[Symbol.iterator]();
  const ended = new Ended(signal);
  let batch: Batch<Doc> = { entries: [], bytes: 0 };
  let finished = false;
  try {
    for (let n = 0; ; n += 1) {
      const coming = iterator.next();
      let came: IteratorResult<Doc>;
      // What is there already is taken at once: a race for each document of a list would cost more than writing it.
      if (!(coming instanceof Promise)) {
        came = coming;
      } else if (flushAfterMs === undefined || batch.entries.length === 0) {
        came = await ended.or(coming);
      } else if (await ended.or(within(coming, flushAfterMs))) {
        came = await coming;
      } else {
        yield batch;
        batch = { entries: [], bytes: 0 };
        came = await ended.or(coming);
      }
      signal.throwIfAborted();
      if (came.done === true) break;
      const document = came.value;
      const id = options.id?.(document, n);
      // `JSON.stringify` gives no text for what is no JSON, whatever its type says.
      const text = toJson(document) as string | undefined;
      if (text === undefined) throw new TypeError(`document ${String(n)} of the source cannot be written as JSON`);
      const lines = `${JSON.stringify({ [action]: id === undefined ? {} : { _id: id } })}\n${text}\n`;
      batch.entries.push({ document, n, id, lines });
      batch.bytes += Buffer.byteLength(lines);
      if (batch.entries.length >= batchDocuments || batch.bytes >= batchBytes) {
        yield batch;
        batch = { entries: [], bytes: 0 };
      }
    }
    finished = true;
    if (batch.entries.length > 0) yield batch;
  } finally {
    ended.forget();
    // Not waited for: a source that waits for something to come would not hear of it before that comes.
    if (!finished) void Promise.resolve(iterator.return?.()).catch(() => undefined);
  }
}

/** The end that a signal brings, for code that waits for something else. */
class Ended {
  readonly #signal: AbortSignal;
  #reject: (reason: Error) => void = () => undefined;
  readonly #listener = (): void => {
    this.#reject(reasonOf(this.#signal));
  };

  constructor(signal: AbortSignal) {
    this.#signal = signal;
    signal.addEventListener('abort', this.#listener, { once: true });
  }

  /** What a promise gives. Rejects when the signal is aborted before. */
  or<T>(promise: Promise<T>): Promise<T> {
    if (this.#signal.aborted) return Promise.reject(reasonOf(this.#signal));
    return new Promise((resolve, reject) => {
      this.#reject = reject;
      promise.then(resolve, reject);
    });
  }

  forget(): void {
    this.#signal.removeEventListener('abort', this.#listener);
  }
}

/** Whether a promise settles within so many milliseconds. */
function within(promise: Promise<unknown>, ms: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms, false);
    const settled = (): void => {
      clearTimeout(timer);
      resolve(true);
    };
    promise.then(settled, settled);
  });
}

function reasonOf(signal: AbortSignal): Error {
  return signal.reason instanceof Error ? signal.reason : new Error(String(signal.reason));
}

async function send<Doc>(
  caller: Caller,
  index: string,
  batch: Batch<Doc>,
  { pipeline, retries = RETRIES }: BulkOptions<Doc>,
  signal: AbortSignal,
): Promise<Sent<Doc>> {
  const refused = new Map<Entry<Doc>, SparrowError>();
  let entries = batch.entries;
  let truncatedTexts = 0;
  let replaced = 0;
  for (let attempt = 0; ; attempt += 1) {
    const body = entries.map(({ lines }) => lines).join('');
    let answer: BulkAnswer | undefined;
    try {
      const came = await caller.call('bulk', { path: { index }, query: { pipeline }, body, signal });
      answer = readAnswer(came, entries.length);
    } catch (error) {
      if (!(error instanceof SparrowError) || !isFullQueue(error) || attempt >= retries) throw error;
    }
    const again = answer === undefined ? entries : sort(answer, entries, refused, attempt < retries);
    truncatedTexts += answer?.truncatedTexts ?? 0;
    // What is new is 201.
    replaced += answer?.items.filter(({ status }) => status === 200).length ?? 0;
    if (again.length === 0) return { batch, refused, replaced, truncatedTexts };
    entries = again;
    await wait(Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** attempt), signal);
  }
}

/**
 * Reads the answer to a batch: only one that tells what became of every document says that any of them is written.
 *
 * @throws {SparrowError} when something else came, as from a proxy before the server
 */
function readAnswer(came: unknown, sent: number): BulkAnswer {
  const { items, truncated_texts: truncated } = (came ?? {}) as { items?: unknown; truncated_texts?: unknown };
  const read = Array.isArray(items) ? items.map(itemOf) : [];
  if (read.length !== sent || !read.every((item) => item !== undefined)) {
    const reason = `the answer does not tell what became of the ${String(sent)} documents that were sent: ${excerpt(came)}`;
    throw new SparrowError(reason, 502, 'malformed_answer');
  }
  return { items: read, truncatedTexts: typeof truncated === 'number' ? truncated : 0 };
}

/** What became of one document; undefined where that is not told. */
function itemOf(item: unknown): BulkItem | undefined {
  const [result] = Object.values((item ?? {}) as Readonly<Record<string, Partial<BulkItem> | null>>);
  const { status, error } = result ?? {};
  return typeof status === 'number' && Number.isInteger(status) ? { status, error } : undefined;
}

/** The first characters of what came, without any that are not seen. */
function excerpt(came: unknown): string {
  try {
    return JSON.stringify(came)
      .slice(0, MOST_SHOWN)
      .replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, '\ufffd');
  } catch {
    // Nested too deeply.
    return 'what came cannot be shown';
  }
}

/** Notes what was refused; gives what is to be sent again, as a queue was full. */
function sort<Doc>(
  { items }: BulkAnswer,
  entries: readonly Entry<Doc>[],
  refused: Map<Entry<Doc>, SparrowError>,
  mayRetry: boolean,
): Entry<Doc>[] {
  return entries.filter((entry, at) => {
    const item = items[at];
    if (item === undefined || (item.error === undefined && item.status < 400)) return false;
    const error = SparrowError.ofPart(item.status, item.error);
    if (mayRetry && isFullQueue(error)) return true;
    refused.set(entry, error);
    return false;
  });
}

/** Whether there will be room by itself. A disk that is nearly full is a 429 as well, but somebody has to make room there. */
function isFullQueue({ status, type }: SparrowError): boolean {
  return status === 429 && type !== WRITE_BLOCK;
}

function wait(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (): void => {
      clearTimeout(timer);
      reject(reasonOf(signal));
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', end);
      resolve();
    }, ms);
    signal.addEventListener('abort', end, { once: true });
  });
}

/** The parameter of a write that says when it can be searched. */
export function refreshParameter(refresh: Refresh | undefined): string | undefined {
  return refresh === undefined ? undefined : String(refresh);
}
