import { randomBytes } from 'node:crypto';

import { HttpError } from '@sparrow-search/endpoints';
import { freeAnswer } from '@sparrow-search/engine';

import type { Hold } from '../exchange/in-flight.js';
import type { Answer } from '../exchange/respond.js';

/** Most searches that are kept, and most bytes of their results. A restricted key leaves to others as much as it takes. */
const MOST_SEARCHES = 1000;
const MOST_BYTES = 64 * 1024 * 1024;

/** How often searches are looked for whose time is over. */
const SWEEP_MS = 1000;

/** Who may see a search: a key, as long as it may do what it could when it began. */
export interface Holder {
  readonly key: string;
  /** The id of the key that its share is counted for. */
  readonly root: string;
  /** What it may do to which indices; undefined for one that may do everything. */
  readonly rights: string | undefined;
}

/** What has come of a search. */
export interface Outcome {
  readonly answer: Answer;
  readonly completed: number;
}

/** What a search is started with. */
export interface Started {
  readonly holder: Holder;
  /** How long it is kept from now on, in milliseconds. */
  readonly keepAlive: number;
  /** What its body and its result take of the memory for both, and the bytes of the body. */
  readonly hold: Hold;
  readonly bodyBytes: number;
  /** Carries it out; what is given takes the function that stops it. It answers errors too. */
  readonly run: (cancel: (stop: () => void) => () => void) => Promise<Answer>;
}

/** A search that runs on without its request. */
export class AsyncSearch {
  readonly id = randomBytes(24).toString('base64url');
  readonly started = Date.now();
  expires: number;
  outcome: Outcome | undefined;
  /** Resolves when it has ended, or is given up. */
  readonly ended: Promise<void>;
  bytes = 0;
  isGone = false;
  #stop: (() => void) | undefined;

  constructor(
    readonly holder: Holder,
    readonly hold: Hold,
    { keepAlive, run }: Pick<Started, 'keepAlive' | 'run'>,
    keep: (search: AsyncSearch, answer: Answer) => Answer,
  ) {
    this.expires = this.started + keepAlive;
    const cancel = (stop: () => void): (() => void) => {
      this.#stop = stop;
      return () => (this.#stop = undefined);
    };
    this.ended = run(cancel).then((answer) => {
      // The body is not needed any more.
      this.hold.release();
      if (this.isGone) return;
      this.outcome = { answer: keep(this, answer), completed: Date.now() };
    });
  }

  /** Gives it up: stops it, and gives back what it holds. */
  giveUp(): void {
    this.isGone = true;
    this.#stop?.();
    this.#stop = undefined;
    if (this.outcome !== undefined) this.hold.release();
    this.outcome = undefined;
  }
}

/** The searches that run on without their requests, and those whose results are kept. They are in memory only. */
export class AsyncSearches {
  readonly #searches = new Map<string, AsyncSearch>();
  #sweep: NodeJS.Timeout | undefined;

  /**
   * Starts a search.
   *
   * @throws {HttpError} 429 when too many are kept, or there is no room for its body
   */
  start({ holder, hold, bodyBytes, ...begun }: Started): AsyncSearch {
    const most = this.#shareOf(holder, MOST_SEARCHES, () => 1);
    if (most.own >= most.share) {
      throw new HttpError('rejected', `too many asynchronous searches are kept: at most [${String(most.share)}]`);
    }
    hold.take(bodyBytes);
    const search = new AsyncSearch(holder, hold, begun, (ended, answer) => this.#keep(ended, answer));
    this.#searches.set(search.id, search);
    this.#sweep ??= setInterval(() => {
      this.#endOverdue();
    }, SWEEP_MS).unref();
    return search;
  }

  /**
   * A search of a key.
   *
   * @throws {HttpError} 404 for one that is not there, or is another key's
   */
  get(id: string, { key, rights }: Holder): AsyncSearch {
    const search = this.#searches.get(id);
    const isTheirs = search?.holder.key === key && search.holder.rights === rights;
    if (search === undefined || !isTheirs || search.expires <= Date.now()) throw new HttpError('not_found', id);
    return search;
  }

  /** Ends a search: it is stopped if it runs, and its result is gone. */
  end(search: AsyncSearch): void {
    this.#searches.delete(search.id);
    search.giveUp();
    if (this.#searches.size > 0) return;
    clearInterval(this.#sweep);
    this.#sweep = undefined;
  }

  /** Ends all, and resolves when none uses the engine any more. */
  async close(): Promise<void> {
    const all = [...this.#searches.values()];
    for (const search of all) this.end(search);
    await Promise.all(all.map(({ ended }) => ended));
  }

  /** The result of a search as it is kept, or a refusal where there is no room for it. */
  #keep(search: AsyncSearch, answer: Answer): Answer {
    const { body } = answer;
    const bytes = Buffer.byteLength(body ?? '');
    const { own, share } = this.#shareOf(search.holder, MOST_BYTES, (one) => one.bytes);
    try {
      if (own + bytes > share) {
        throw new HttpError(
          'rejected',
          `the result of [${String(bytes)}] bytes cannot be kept: the results of this key may have [${String(share)}] bytes`,
        );
      }
      search.hold.takeAnswer(bytes);
      search.bytes = bytes;
      return { ...answer, body: Buffer.from(body ?? '') };
    } catch (error) {
      if (!(error instanceof HttpError)) throw error;
      return { status: error.status, body: JSON.stringify(error.toJson()) };
    } finally {
      // What the engine gave is copied, as it may be sent more than once.
      if (body instanceof Uint8Array) freeAnswer(body);
    }
  }

  /** What a key holds with all that it has made, and what they may hold at most: all that others leave, or half of it for a restricted key. */
  #shareOf(
    holder: Holder,
    most: number,
    sizeOf: (search: AsyncSearch) => number,
  ): { readonly own: number; readonly share: number } {
    let [own, others] = [0, 0];
    for (const search of this.#searches.values()) {
      if (search.holder.root === holder.root) own += sizeOf(search);
      else others += sizeOf(search);
    }
    const room = Math.max(most - others, 0);
    return { own, share: holder.rights === undefined ? room : Math.ceil(room / 2) };
  }

  #endOverdue(): void {
    const now = Date.now();
    for (const search of this.#searches.values()) if (search.expires <= now) this.end(search);
  }
}
