import type { EngineReply } from '@sparrow-search/engine';

import { refusal } from './errors.js';
import { isObject } from './json.js';
import { InTurn } from './in-turn.js';
import { Conflict, type SharedState, TRIES, type Version, sameVersion } from './shared-state.js';

/** Definitions of one kind, by their ids. */
export type Definitions = Record<string, unknown>;

/** The copy of definitions that the native engine of a server has. */
export interface NativeCopy {
  read(): Promise<Definitions>;
  put(id: string, definition: unknown): Promise<unknown>;
  remove(id: string): Promise<unknown>;
  /** Tries again what could not be put before. Absent where everything can be put. */
  retry?(): Promise<void>;
}

/**
 * Definitions of one kind, such as pipelines: kept in the cluster for all of Sparrow's servers, and used by the native engine of each, which
 * has a copy. The cluster's are the true ones.
 */
export class SharedDefinitions {
  readonly #state: SharedState;
  readonly #kind: string;
  readonly #copy: NativeCopy;
  #known: Version | undefined;
  #isKnown = false;
  /** The copy changes one step at a time. */
  readonly #steps = new InTurn();

  /** @param kind what they are, as the name of the shared text that holds them, and of the member in it */
  constructor(state: SharedState, kind: string, copy: NativeCopy) {
    this.#state = state;
    this.#kind = kind;
    this.#copy = copy;
  }

  /** Gives the cluster the definitions of this server if it has none: they were made before servers shared them. */
  async adopt(): Promise<void> {
    if ((await this.#state.version(this.#kind)) !== undefined) return;
    const own = await this.#copy.read();
    if (Object.keys(own).length === 0) return;
    try {
      await this.#state.write(this.#kind, this.#textOf(own), undefined);
    } catch (error) {
      if (!(error instanceof Conflict)) throw error;
    }
  }

  /**
   * Makes the copy what the cluster has, if it is not.
   *
   * @returns whether the copy was older
   */
  async sync(): Promise<boolean> {
    const version = await this.#state.version(this.#kind);
    const isCurrent = this.#isKnown && sameVersion(version, this.#known);
    if (isCurrent && this.#copy.retry === undefined) return false;
    await this.#steps.run(async () => {
      if (!isCurrent) await this.#syncNow();
      await this.#copy.retry?.();
    });
    return !isCurrent;
  }

  /**
   * Changes the copy, and keeps for all servers what comes of it.
   *
   * @param apply carries out the change in the native engine, which checks it; called again where another server came in between
   */
  change(apply: () => Promise<EngineReply>): Promise<EngineReply> {
    return this.#steps.run(async () => {
      for (let attempt = 1; ; attempt += 1) {
        await this.#syncNow();
        const reply = await apply();
        try {
          const text = this.#textOf(await this.#copy.read());
          this.#known = await this.#state.write(this.#kind, text, this.#known);
          return reply;
        } catch (error) {
          // The copy has what the cluster has not.
          this.#isKnown = false;
          if (!(error instanceof Conflict) || attempt >= TRIES) throw error;
        }
      }
    });
  }

  async #syncNow(): Promise<void> {
    const shared = await this.#state.read(this.#kind);
    if (this.#isKnown && sameVersion(shared?.version, this.#known)) return;
    const wanted = shared === undefined ? {} : this.#parsed(shared.text);
    const have = await this.#copy.read();
    for (const id of Object.keys(have)) if (!Object.hasOwn(wanted, id)) await this.#copy.remove(id);
    for (const [id, definition] of Object.entries(wanted)) {
      if (JSON.stringify(have[id]) !== JSON.stringify(definition)) await this.#copy.put(id, definition);
    }
    this.#known = shared?.version;
    this.#isKnown = true;
  }

  #textOf(definitions: Definitions): string {
    return JSON.stringify({ format: 1, [this.#kind]: definitions });
  }

  #parsed(text: string): Definitions {
    const { format, [this.#kind]: definitions } = JSON.parse(text) as Definitions;
    if (format === 1 && isObject(definitions)) return { ...definitions };
    throw refusal(
      503,
      'cluster_state_exception',
      `the ${this.#kind} in the cluster have format version ${String(format)}, this version reads 1: start the version that wrote them`,
    );
  }
}
