import { type WriteStream, createWriteStream } from 'node:fs';
import { open } from 'node:fs/promises';

import type { Logger } from '../log.js';

/** What is kept in memory for a disk that does not take it, in bytes. */
const MOST_WAITING = 8 << 20;

/** One request in the audit log. */
export interface AuditEvent {
  /** Who: the key, if one was recognised. */
  readonly key?: { readonly id: string; readonly name: string };
  /** The key's id that a refused request claimed. */
  readonly claimed?: string;
  /** The action that the request needs a privilege for. */
  readonly action?: string;
  readonly method: string;
  /** The path as it was sent, without its query string. */
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

/** Who did what from where, and whether it was allowed: one line of JSON for each request. */
export class AuditLog {
  readonly #stream: WriteStream;
  readonly #log: Logger;
  #lost = 0;

  private constructor(stream: WriteStream, log: Logger) {
    this.#stream = stream;
    this.#log = log;
    stream.on('error', (error) => {
      log.error('the audit log cannot be written', { error: String(error) });
    });
  }

  /**
   * Goes on with a file, or makes it for this user alone.
   *
   * @throws when it cannot be written
   */
  static async open(path: string, log: Logger): Promise<AuditLog> {
    // Told at the start, and not with the first request.
    await (await open(path, 'a', 0o600)).close();
    return new AuditLog(createWriteStream(path, { flags: 'a', mode: 0o600 }), log);
  }

  write({ key, requestId, opaqueId, ...event }: AuditEvent): void {
    if (this.#stream.writableLength > MOST_WAITING || this.#stream.destroyed) {
      if (this.#lost === 0) this.#log.error('lines of the audit log are lost: the disk does not take them');
      this.#lost += 1;
      return;
    }
    const line = {
      time: new Date().toISOString(),
      ...(key === undefined ? {} : { key: { id: key.id, name: key.name } }),
      ...event,
      request_id: requestId,
      ...(opaqueId === undefined ? {} : { opaque_id: opaqueId }),
      // How many lines are missing before this one.
      ...(this.#lost === 0 ? {} : { lost: this.#lost }),
    };
    this.#lost = 0;
    this.#stream.write(`${JSON.stringify(line)}\n`);
  }

  /** Writes what is left. */
  close(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#stream.destroyed) resolve();
      else this.#stream.end(resolve);
    });
  }
}
