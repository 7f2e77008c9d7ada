import { join } from 'node:path';

import { StoredFileError, parseStored, readIfPresent, replaceFile } from '../durable-file.js';
import type { Logger } from '../log.js';
import { seal } from '../sealed-file.js';

const FORMAT = 1;
const LOSS = 'without the history of tasks';

/** Most tasks that are listed, the latest ones. */
const MOST = 100;

/** The id of a task, as the answer has it that starts one. */
const STARTED = /^\{"task":"([^"\\]{1,200})"\}$/;

/** Longest answer that may be one of those. */
const MOST_BYTES = 256;

/**
 * Which tasks were started, the latest first, in memory and in `task-history.json` of the data directory. What each did, the engine keeps by
 * its id. A history that cannot be read or written is no reason to refuse anything: it is said in the log, and it begins anew.
 */
export class TaskHistory {
  readonly #path: string;
  readonly #log: Logger;
  #ids: readonly string[];
  #written: Promise<unknown> = Promise.resolve();

  private constructor(path: string, log: Logger, ids: readonly string[]) {
    this.#path = path;
    this.#log = log;
    this.#ids = ids;
  }

  static async open(data: string, log: Logger): Promise<TaskHistory> {
    const path = join(data, 'task-history.json');
    try {
      const text = await readIfPresent(path, LOSS);
      return new TaskHistory(path, log, text === undefined ? [] : parseFile(path, text));
    } catch (error) {
      log.warn('the history of tasks cannot be read; a new one is begun', { error: String(error) });
      return new TaskHistory(path, log, []);
    }
  }

  /** The ids of tasks, the latest first. */
  get ids(): readonly string[] {
    return this.#ids;
  }

  /** Notes the task that an answer says has been started, if it does. */
  note(answer: Uint8Array): void {
    if (answer.length > MOST_BYTES) return;
    const [, id] = STARTED.exec(new TextDecoder().decode(answer)) ?? [];
    if (id === undefined) return;
    this.#ids = [id, ...this.#ids.filter((one) => one !== id)].slice(0, MOST);
    this.#written = this.#written.then(() => this.#write());
  }

  /** Ends once everything is written. */
  async close(): Promise<void> {
    await this.#written;
  }

  async #write(): Promise<void> {
    try {
      await replaceFile(this.#path, seal({ format: FORMAT, tasks: this.#ids }));
    } catch (error) {
      this.#log.warn('the history of tasks cannot be written', { error: String(error) });
    }
  }
}

function parseFile(path: string, text: string): readonly string[] {
  const { tasks } = parseStored(path, text, { format: FORMAT, members: ['format', 'tasks'], loss: LOSS });
  if (Array.isArray(tasks) && tasks.every((id) => typeof id === 'string')) return tasks;
  throw StoredFileError.damaged(path, '[tasks] is not a list of ids', LOSS);
}
