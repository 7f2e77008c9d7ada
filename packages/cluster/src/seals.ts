import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

import { notOverCluster, refusal } from './errors.js';
import { type Asker, type Names, isPattern } from './names.js';
import { type Opened, partsOf, shownId } from './points-in-time.js';
import { Conflict, type SharedState } from './shared-state.js';

/** The name of the shared text with the secret of all servers. */
const ID = 'seals';
/** Bytes of a seal: nobody finds one by trying. */
const LENGTH = 16;

/**
 * Seals of what is open between requests, which the cluster gives to anybody who knows its id. A seal shows that Sparrow made the id, and
 * for which indices; so a key that may use some indices only can be told what it may go on with.
 */
export class Seals {
  readonly #state: SharedState;
  readonly #names: Names;
  #secret: Promise<string> | undefined;

  constructor(state: SharedState, names: Names) {
    this.#state = state;
    this.#names = names;
  }

  /** The id that a client gets of something that is open for indices. */
  async shown(expression: string, id: string): Promise<string> {
    return shownId({ expression, id, seal: await this.#seal(expression, id) });
  }

  /**
   * The parts of an id that a client sends.
   *
   * @throws {EngineError} 400 for one that says nothing about its indices, 403 for indices that the caller may not use, if it may use some only
   */
  async opened(asker: Asker, shown: string): Promise<Opened> {
    const opened = partsOf(shown);
    if (asker.rights === undefined) return opened;
    const { expression, id, seal } = opened;
    const own = await this.#seal(expression, id);
    const [given, made] = [Buffer.from(seal), Buffer.from(own)];
    const isOwn = given.length === made.length && timingSafeEqual(given, made);
    if (!isOwn) throw refusal(404, 'search_context_missing_exception', 'no search context has this id');
    const names = expression.split(',');
    // Which indices a pattern stood for then is not known any more.
    if (names.some((name) => isPattern(name) || name.startsWith('-')))
      throw notOverCluster('what was opened for a pattern, for a key that may use some indices only,');
    await this.#names.check(asker, names);
    return opened;
  }

  async #seal(expression: string, id: string): Promise<string> {
    this.#secret ??= this.#read();
    this.#secret.catch(() => (this.#secret = undefined));
    const hash = createHmac('sha256', await this.#secret)
      .update(JSON.stringify([expression, id]))
      .digest();
    return hash.subarray(0, LENGTH).toString('base64url');
  }

  /** The secret, which the first server that needs it makes. */
  async #read(): Promise<string> {
    const known = await this.#state.read(ID);
    if (known !== undefined) return known.text;
    const made = randomBytes(32).toString('base64url');
    try {
      await this.#state.write(ID, made, undefined);
      return made;
    } catch (error) {
      if (!(error instanceof Conflict)) throw error;
      return this.#read();
    }
  }
}
