import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

import { isObject } from './json.js';
import { Conflict, type Shared, type SharedState } from './shared-state.js';

/** The name of the shared text that says whose turn it is. */
const ID = 'turns';

/** After this, a turn is over, whatever became of the server that had it. */
const LONGEST_MS = 20_000;

/** How soon somebody who waits looks again: a little later each time, and not all at the same moment. */
const FIRST_WAIT_MS = 20;
const LONGEST_WAIT_MS = 500;

/** Whose turn it is, by what it is about. */
type Held = Readonly<Record<string, { readonly holder: string; readonly until: number }>>;

/**
 * Lets one server at a time change a mapping: a cluster merges fields that are put at the same moment, but of what Sparrow has written down
 * about them it keeps only what came last.
 */
export class Turns {
  readonly #state: SharedState;

  constructor(state: SharedState) {
    this.#state = state;
  }

  /**
   * Does some work while no other server, and nobody else in this one, does any about the same.
   *
   * @param about names an index
   */
  async alone<T>(about: string, work: () => Promise<T>): Promise<T> {
    const holder = randomUUID();
    for (let wait = FIRST_WAIT_MS; !(await this.#taken(about, holder)); wait = Math.min(wait * 2, LONGEST_WAIT_MS))
      await sleep(wait * (0.5 + Math.random()));
    try {
      return await work();
    } finally {
      // It ends by itself if the cluster does not answer now.
      await this.#changed((held) => without(held, about, holder)).catch(() => undefined);
    }
  }

  async #taken(about: string, holder: string): Promise<boolean> {
    let isMine = false;
    await this.#changed((held) => {
      const now = Date.now();
      const going = Object.fromEntries(Object.entries(held).filter(([, { until }]) => until > now));
      isMine = !(about in going);
      return isMine ? { ...going, [about]: { holder, until: now + LONGEST_MS } } : undefined;
    });
    return isMine;
  }

  /** Changes who has turns, as nobody else did in between; undefined leaves it as it is. */
  async #changed(change: (held: Held) => Held | undefined): Promise<void> {
    for (;;) {
      const before = await this.#state.read(ID);
      const after = change(heldIn(before));
      if (after === undefined) return;
      try {
        await this.#state.write(ID, JSON.stringify(after), before?.version);
        return;
      } catch (error) {
        if (!(error instanceof Conflict)) throw error;
      }
    }
  }
}

function heldIn(shared: Shared | undefined): Held {
  const held: unknown = shared === undefined ? {} : JSON.parse(shared.text);
  return isObject(held) ? (held as Held) : {};
}

function without(held: Held, about: string, holder: string): Held | undefined {
  if (held[about]?.holder !== holder) return undefined;
  return Object.fromEntries(Object.entries(held).filter(([name]) => name !== about));
}
