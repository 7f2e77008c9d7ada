import { constants } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';

import { type Logger, printable } from '../log.js';

/** What is kept in memory for a disk that does not take it, in bytes. */
const MOST_WAITING = 8 << 20;
/** Pause after a failure, in milliseconds. */
const RETRY_MS = 1000;
/** Readable and writable by the owner of the process alone. */
const PRIVATE = 0o600;
const NEWLINE = 0x0a;

/** One request in the audit log. */
export interface AuditEvent {
  /** Who: the key, if one was recognised. */
  readonly key?: { readonly id: string; readonly name: string };
  /** The key's id that a refused request claimed. */
  readonly claimed?: string;
  /** The action that the request needs a privilege for. */
  readonly action?: string;
  readonly method: string;
  /** The path, without its query string; escapes in it are resolved. */
  readonly path: string;
  /** The indices that the path names. */
  readonly indices?: string;
  /** Indices and aliases that the engine read in the path, the query string and the body, up to 64, where `indices` does not tell them all. */
  readonly named?: readonly string[];
  /** The address that the connection came from. */
  readonly from: string;
  readonly status: number;
  /** `in part`: parts of its body were refused. */
  readonly allowed: boolean | 'in part';
  readonly requestId: string;
  readonly opaqueId?: string;
}

/**
 * Who did what from where, and whether it was allowed: one line of JSON for each request, appended behind the answers.
 *
 * What the disk does not take is tried again until it does. A file that was moved away (by `logrotate`, say) is made anew.
 */
export class AuditLog {
  readonly #path: string;
  readonly #log: Logger;
  #file: FileHandle;
  /** Whether the file ends within a line, of a process that was killed while the disk was full. */
  #torn: boolean;
  /** Lines that wait for the disk, and their length in bytes. */
  #waiting: string[] = [];
  #waitingBytes = 0;
  /** Lines lost since the last one that was kept. */
  #lostBefore = 0;
  #lost = 0;
  /** The turn that writes, while there is one. */
  #writing: Promise<void> | undefined;
  /** Ends the pause after a failure. */
  readonly #closing = new AbortController();

  private constructor(path: string, file: FileHandle, torn: boolean, log: Logger) {
    this.#path = path;
    this.#file = file;
    this.#torn = torn;
    this.#log = log;
  }

  /**
   * Goes on with a file, or makes it for this user alone.
   *
   * @throws when it cannot be written
   */
  static async open(path: string, log: Logger): Promise<AuditLog> {
    return new AuditLog(path, await openToAppend(path), await isTorn(path), log);
  }

  /** Lines that are missing since the start, as the disk did not take them. */
  get lost(): number {
    return this.#lost;
  }

  write({ key, requestId, opaqueId, ...event }: AuditEvent): void {
    if (this.#waitingBytes > MOST_WAITING) {
      if (this.#lostBefore === 0)
        this.#log.error('lines of the audit log are being lost: they cannot be written to the disk');
      this.#lostBefore += 1;
      this.#lost += 1;
      return;
    }
    const members = {
      time: new Date().toISOString(),
      ...(key === undefined ? {} : { key: { id: key.id, name: key.name } }),
      ...event,
      request_id: requestId,
      ...(opaqueId === undefined ? {} : { opaque_id: opaqueId }),
      // How many lines are missing before this one.
      ...(this.#lostBefore === 0 ? {} : { lost: this.#lostBefore }),
    };
    const line = printable(JSON.stringify(members));
    this.#lostBefore = 0;
    this.#waiting.push(`${line}\n`);
    this.#waitingBytes += Buffer.byteLength(line) + 1;
    this.#writing ??= this.#writeWaiting();
  }

  /** Writes what waits, if the disk takes it at once. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#writing;
    await this.#file.close();
  }

  async #writeWaiting(): Promise<void> {
    let failing = false;
    while (this.#waiting.length > 0) {
      const batch = Buffer.from(this.#waiting.join(''));
      this.#waiting = [];
      let written = 0;
      while (written < batch.length) {
        try {
          await this.#followPath();
          if (this.#torn) {
            await this.#file.write('\n');
            this.#torn = false;
          }
          // What a failure half-way has written is not written again.
          written += (await this.#file.write(batch, written)).bytesWritten;
          if (failing) this.#log.info('the audit log is written again', { lost: this.#lost });
          failing = false;
        } catch (error) {
          if (!failing)
            this.#log.error('the audit log cannot be written, and is tried again', { error: String(error) });
          failing = true;
          if (this.#closing.signal.aborted) {
            this.#writing = undefined;
            return;
          }
          await sleep(RETRY_MS, undefined, { signal: this.#closing.signal }).catch(() => undefined);
        }
      }
      this.#waitingBytes -= batch.length;
    }
    // At once: a line that comes a moment later has to find that nobody writes any more.
    this.#writing = undefined;
  }

  /** Opens what the path leads to, if that is no longer the open file. */
  async #followPath(): Promise<void> {
    const [own, there] = await Promise.all([
      this.#file.stat({ bigint: true }),
      stat(this.#path, { bigint: true }).catch((error: unknown) => {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
        throw error;
      }),
    ]);
    if (there?.ino === own.ino && there.dev === own.dev) return;
    const file = await openToAppend(this.#path);
    await this.#file.close();
    this.#file = file;
    this.#torn = await isTorn(this.#path);
  }
}

/** A pipe that nobody reads is an error at once: to open it would wait for a reader, without a word. */
function openToAppend(path: string): Promise<FileHandle> {
  const { O_APPEND, O_CREAT, O_NONBLOCK, O_WRONLY } = constants;
  // Windows has none of the third, which counts as 0.
  return open(path, O_WRONLY | O_APPEND | O_NONBLOCK | O_CREAT, PRIVATE);
}

/** Whether a file that can be read does not end with the end of a line. */
async function isTorn(path: string): Promise<boolean> {
  try {
    const found = await stat(path);
    if (!found.isFile() || found.size === 0) return false;
    const file = await open(path, 'r');
    try {
      const { buffer } = await file.read(Buffer.alloc(1), 0, 1, found.size - 1);
      return buffer[0] !== NEWLINE;
    } finally {
      await file.close();
    }
  } catch {
    return false;
  }
}
