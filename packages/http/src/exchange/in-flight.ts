import { constrainedMemory } from 'node:process';
import { totalmem } from 'node:os';

import { HttpError } from '@sparrow-search/endpoints';

import type { Logger } from '../log.js';
import { SeldomWarning } from './seldom.js';

/** Share of the memory that bodies on their way in, and answers on their way out, may take together. */
const SHARE = 0.1;

/** Bytes of one request for which there is room whatever others hold: an administrator can still raise a limit. */
const ALWAYS = 1024 * 1024;

/**
 * Bytes of one request for which there is room even where others hold all that there is for bodies and answers. So many for each of the
 * connections that there may be are 256 MiB, and clients that read nothing keep nobody from a search.
 */
const SMALL = 32 * 1024;

/** By how many bytes all bodies together change before the engine is told. */
const TOLD = 8 * 1024 * 1024;

/** Seconds after which a client that was refused may try again. */
export const RETRY_SECONDS = 1;

export interface InFlightOptions {
  /** Bytes that the process may use. */
  memory?: number;
  /** Bytes that the engine may still allocate. */
  room?: () => number;
  /** Is told of clients whose connections were ended. */
  log?: Pick<Logger, 'warn'>;
  /** Is told how many bytes of bodies are held, whenever that has changed by much. */
  keepBodies?: (bytes: number) => void;
}

/** Whose answer it is that nobody reads. */
export interface Reader {
  /** The id of the key that asked for it; undefined where none was needed. */
  readonly key: string | undefined;
  /** The address that the connection came from. */
  readonly from: string;
}

/** An answer that its client has not read yet. */
interface Unread {
  readonly bytes: number;
  readonly reader: Reader;
  /** From when on its connection is ended where others need the room, as `performance.now()` counts. */
  readonly due: number;
  readonly cut: () => void;
}

/** Bytes that bodies and answers hold between the wire and the engine. */
export class InFlight {
  readonly limit: number;
  #held = 0;
  /** Those that came first are first. */
  readonly #unread = new Set<Unread>();
  /** Bytes of the same by the keys that asked for them. */
  readonly #unreadBy = new Map<string | undefined, number>();

  readonly #room: () => number;
  readonly #keepBodies: (bytes: number) => void;
  readonly #warning: SeldomWarning;
  #bodies = 0;
  #toldBodies = 0;

  /**
   * @param maxBodyBytes the longest body, for two of which there is always room by the share of the memory
   * @param options.room bytes that the engine may still allocate
   */
  constructor(maxBodyBytes: number, options: InFlightOptions = {}) {
    const { memory = memoryOfMachine(), room = () => Infinity, keepBodies = () => undefined } = options;
    const { log = { warn: () => undefined } } = options;
    this.limit = Math.max(Math.floor(memory * SHARE), 2 * maxBodyBytes);
    this.#room = room;
    this.#keepBodies = keepBodies;
    this.#warning = new SeldomWarning(log, 'a client does not read its answer, and its connection is ended');
  }

  get held(): number {
    return this.#held;
  }

  /** What one request holds; nothing yet. */
  request(): Hold {
    return new Hold(
      (bytes, own, ofBody) => {
        this.#held += bytes;
        this.#count(ofBody);
        if (bytes <= 0 || this.#fits(own)) return true;
        this.#cutOverdue(own);
        return own <= SMALL || this.#fits(own);
      },
      (key, own) => own <= SMALL || this.#leavesToOthers(key),
    );
  }

  /**
   * Counts an answer that its client has not read yet. It is there already, and so it counts whether there is room or not.
   *
   * @param due from when on `cut` is called where others need the room, as `performance.now()` counts
   * @returns to be called when the answer was read, or is gone
   */
  unread(bytes: number, reader: Reader, due: number, cut: () => void): () => void {
    const hold = this.request();
    const count = (more: number): void => {
      const all = (this.#unreadBy.get(reader.key) ?? 0) + more;
      if (all > 0) this.#unreadBy.set(reader.key, all);
      else this.#unreadBy.delete(reader.key);
    };
    const over = (): void => {
      if (this.#unread.delete(answer)) count(-bytes);
      hold.release();
    };
    const answer: Unread = {
      bytes,
      reader,
      due,
      cut: () => {
        over();
        this.tooSlow(bytes, reader);
        cut();
      },
    };
    this.#unread.add(answer);
    count(bytes);
    hold.force(bytes);
    return over;
  }

  /** Tells the operator of a client whose connection is ended because it does not read. */
  tooSlow(bytes: number, { key, from }: Reader): void {
    this.#warning.happened({ from, ...(key === undefined ? {} : { key_id: key }), bytes });
  }

  /** Counts bytes of bodies. Those of small ones are not worth a call each. */
  #count(ofBody: number): void {
    this.#bodies += ofBody;
    if (Math.abs(this.#bodies - this.#toldBodies) < TOLD) return;
    this.#toldBodies = this.#bodies;
    this.#keepBodies(this.#bodies);
  }

  /** Whether there is room. Answers are in memory of the engine, which has taken them off its own room already. */
  #fits(own: number): boolean {
    return this.#held <= this.limit && (own <= ALWAYS || this.#bodies <= this.#room());
  }

  /**
   * Whether what is held leaves as much to others as clients of the same key have not read. Where it does not, those
   * that have had their time make room.
   */
  #leavesToOthers(key: string | undefined): boolean {
    const left = (): number => Math.min(this.limit - this.#held, this.#room() - this.#bodies);
    const leaves = (): boolean => (this.#unreadBy.get(key) ?? 0) <= left();
    if (leaves()) return true;
    const now = performance.now();
    for (const answer of this.#unread) {
      if (answer.reader.key !== key || answer.due > now) continue;
      answer.cut();
      if (leaves()) return true;
    }
    return false;
  }

  /** Ends connections of clients that have not read their answers for long enough, until there is room. */
  #cutOverdue(own: number): void {
    const now = performance.now();
    for (const answer of this.#unread) {
      if (answer.due <= now) answer.cut();
      if (this.#fits(own)) return;
    }
  }
}

/** The bytes of one request. */
export class Hold {
  #bytes = 0;
  #ofBody = 0;

  /**
   * @param add counts more bytes; whether there is room for them
   * @param leaves whether as many bytes of an answer leave enough to other keys
   */
  constructor(
    private readonly add: (bytes: number, own: number, ofBody: number) => boolean,
    private readonly leaves: (key: string | undefined, own: number) => boolean,
  ) {}

  /**
   * Takes room for more bytes of a body.
   *
   * @throws {HttpError} 429 when the bodies and answers of all requests leave no room for it
   */
  take(bytes: number): void {
    // The rest of the body is not read.
    if (!this.#grow(bytes, bytes)) throw noRoom([['Connection', 'close']]);
  }

  /**
   * Takes room for an answer.
   *
   * @param key the id of the key that asked for it
   * @throws {HttpError} 429 when the bodies and answers of all requests leave no room for it, or those that clients of this key do not read
   *   leave none to others
   */
  takeAnswer(bytes: number, key?: string): void {
    if (!this.#grow(bytes, 0)) throw noRoom([]);
    if (this.leaves(key, this.#bytes)) return;
    this.release();
    throw new HttpError('rejected', UNREAD);
  }

  /** Takes room that is needed whether there is any or not. */
  force(bytes: number): void {
    this.#bytes += bytes;
    this.add(bytes, 0, 0);
  }

  /** Gives all of it back. */
  release(): void {
    this.add(-this.#bytes, 0, -this.#ofBody);
    this.#bytes = 0;
    this.#ofBody = 0;
  }

  #grow(bytes: number, ofBody: number): boolean {
    this.#bytes += bytes;
    this.#ofBody += ofBody;
    if (this.add(bytes, this.#bytes, ofBody)) return true;
    this.release();
    return false;
  }
}

const UNREAD =
  'rejected execution: clients of this key have not read so many bytes of their answers that too little is left to others';

function noRoom(headers: readonly (readonly [string, string])[]): HttpError {
  const reason =
    'rejected execution: the bodies and answers that are on their way take all of the memory that is for them';
  return new HttpError('rejected', reason, { headers });
}

/** Bytes that the process may use: what its control group allows, or what the machine has. */
function memoryOfMachine(): number {
  const allowed = constrainedMemory();
  const installed = totalmem();
  return allowed > 0 && allowed < installed ? allowed : installed;
}
