import { join } from 'node:path';
import { Readable } from 'node:stream';

import { HttpError } from '@sparrow-search/endpoints';

import { StoredFileError, diskRefusal, parseStored } from '../durable-file.js';
import { seal } from '../sealed-file.js';
import { type StoredText, textInFile } from '../stored-text.js';

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

/** How often a change is tried again when another server has written in between. */
const ATTEMPTS = 10;

/**
 * The stored scripts, in memory and in `scripts.json` of the data directory, or where the servers over one cluster have them in common. As they
 * are made of what the HTTP layer does, they live in it. Changes are made one at a time: where they are stored first, then in memory. A change
 * that cannot be stored is an error.
 */
export class ScriptStore {
  readonly #text: StoredText;
  /** Replaced with every change, never changed. */
  #scripts: ReadonlyMap<string, StoredScript>;
  /** What reads or writes the text, one after another. */
  #last: Promise<unknown> = Promise.resolve();
  /** Whether the file may hold a change that was refused: the directory could not be synced after it was there. */
  #isUncertain = false;

  private constructor(text: StoredText, scripts: ReadonlyMap<string, StoredScript>) {
    this.#text = text;
    this.#scripts = scripts;
  }

  /**
   * @param shared where servers have them in common; by default the file of the data directory
   * @throws {StoredFileError} when the text is not what a store wrote
   */
  static async open(data: string, shared?: StoredText): Promise<ScriptStore> {
    const text = shared ?? textInFile(join(data, 'scripts.json'), LOSS);
    return new ScriptStore(text, await readScripts(text));
  }

  /** The scripts that there are now, by their ids; also those that another server has stored. */
  async current(): Promise<ReadonlyMap<string, StoredScript>> {
    if (this.#text.isShared) await this.#inTurn(() => this.#refresh());
    return this.#scripts;
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
    await this.#last;
    if (this.#isUncertain && !this.#text.isShared) await this.#write(this.#scripts);
  }

  #change(apply: (scripts: Map<string, StoredScript>) => void): Promise<void> {
    return this.#inTurn(async () => {
      for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
        await this.#refresh();
        const after = new Map(this.#scripts);
        apply(after);
        if (await this.#write(after)) {
          this.#scripts = after;
          return;
        }
      }
      throw new HttpError('rejected', 'other servers change the stored scripts all the time: try again later');
    });
  }

  /** Does something once all that was asked before is done. */
  #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#last.then(work);
    // The request that asked for a change learns of its failure; the next change is made all the same.
    this.#last = done.catch(() => undefined);
    return done;
  }

  async #refresh(): Promise<void> {
    if (!(await this.#text.isCurrent())) this.#scripts = await readScripts(this.#text);
  }

  /** Says whether nobody had written in between. */
  async #write(scripts: ReadonlyMap<string, StoredScript>): Promise<boolean> {
    const text = seal({ format: FORMAT, scripts: [...scripts.values()] });
    this.#isUncertain = true;
    let isWritten: boolean;
    try {
      isWritten = await this.#text.replace(Readable.from([Buffer.from(text)]));
    } catch (error) {
      throw diskRefusal(error, 'stored scripts');
    }
    this.#isUncertain = false;
    return isWritten;
  }
}

async function readScripts(stored: StoredText): Promise<ReadonlyMap<string, StoredScript>> {
  const text = await stored.read();
  const scripts = text === undefined ? [] : parseFile(stored.path, text);
  return new Map(scripts.map((script) => [script.id, script]));
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
