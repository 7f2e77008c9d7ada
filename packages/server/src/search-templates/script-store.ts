import { join } from 'node:path';

import { StoredFileError, diskRefusal, parseStored, readIfPresent, replaceFile } from '../durable-file.js';
import { HttpError } from '../errors.js';
import { seal } from '../sealed-file.js';

/** A search template that is kept by its id. */
export interface StoredScript {
  readonly id: string;
  readonly source: string;
  /** Whether it came as an object, which is shown as the type of its content. */
  readonly isObject: boolean;
}

const FORMAT = 1;
const LOSS = 'without stored scripts';

/** Most scripts, and most characters of all of them: with every change the file is written anew. */
const MOST_SCRIPTS = 1000;
const MOST_CHARACTERS = 8 * 1024 * 1024;

/**
 * The stored scripts, in memory and in `scripts.json` of the data directory. As they are made of what the HTTP layer does, they live in it.
 * Changes are made one at a time: on the disk first, then in memory. One that the disk does not take is an error.
 */
export class ScriptStore {
  readonly #path: string;
  /** Replaced with every change, never changed. */
  #scripts: ReadonlyMap<string, StoredScript>;
  #changes: Promise<unknown> = Promise.resolve();
  /** Whether the file may hold a change that was refused: the directory could not be synced after it was there. */
  #isUncertain = false;

  private constructor(path: string, scripts: readonly StoredScript[]) {
    this.#path = path;
    this.#scripts = new Map(scripts.map((script) => [script.id, script]));
  }

  /** @throws {StoredFileError} when the file is not what a store wrote */
  static async open(data: string): Promise<ScriptStore> {
    const path = join(data, 'scripts.json');
    const text = await readIfPresent(path, LOSS);
    return new ScriptStore(path, text === undefined ? [] : parseFile(path, text));
  }

  get(id: string): StoredScript | undefined {
    return this.#scripts.get(id);
  }

  /** @throws {HttpError} 400 when there is no room for it, 429 when the disk has none */
  put(script: StoredScript): Promise<void> {
    return this.#change((scripts) => {
      scripts.set(script.id, script);
      const characters = [...scripts.values()].reduce((sum, { id, source }) => sum + id.length + source.length, 0);
      if (scripts.size > MOST_SCRIPTS || characters > MOST_CHARACTERS) {
        const most = `[${String(MOST_SCRIPTS)}] scripts with [${String(MOST_CHARACTERS)}] characters in all`;
        throw new HttpError('illegal_argument', `no room for the stored script [${script.id}]: at most ${most}`);
      }
    });
  }

  /** @throws {HttpError} 404 for one that is not there, 429 when the disk has no room */
  delete(id: string): Promise<void> {
    return this.#change((scripts) => {
      if (scripts.delete(id)) return;
      throw new HttpError('not_found', `stored script [${id}] does not exist and cannot be deleted`);
    });
  }

  /** Ends once changes under way are done, and writes what is in force over a change that was refused. */
  async close(): Promise<void> {
    await this.#changes;
    if (this.#isUncertain) await this.#write(this.#scripts);
  }

  #change(apply: (scripts: Map<string, StoredScript>) => void): Promise<void> {
    const made = this.#changes.then(async () => {
      const after = new Map(this.#scripts);
      apply(after);
      await this.#write(after);
      this.#scripts = after;
    });
    // Whoever asked for a change learns of its failure; the next one is made all the same.
    this.#changes = made.catch(() => undefined);
    return made;
  }

  async #write(scripts: ReadonlyMap<string, StoredScript>): Promise<void> {
    this.#isUncertain = true;
    try {
      await replaceFile(this.#path, seal({ format: FORMAT, scripts: [...scripts.values()] }));
    } catch (error) {
      throw diskRefusal(error, 'stored scripts');
    }
    this.#isUncertain = false;
  }
}

function parseFile(path: string, text: string): readonly StoredScript[] {
  const { scripts } = parseStored(path, text, { format: FORMAT, members: ['format', 'scripts'], loss: LOSS });
  if (Array.isArray(scripts) && scripts.every(isScript)) return scripts;
  throw StoredFileError.damaged(path, '[scripts] is not a list of scripts', LOSS);
}

function isScript(script: unknown): script is StoredScript {
  if (typeof script !== 'object' || script === null) return false;
  const { id, source, isObject } = script as Partial<Record<keyof StoredScript, unknown>>;
  return typeof id === 'string' && typeof source === 'string' && typeof isObject === 'boolean';
}
