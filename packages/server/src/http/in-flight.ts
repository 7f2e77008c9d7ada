import { constrainedMemory } from 'node:process';
import { totalmem } from 'node:os';

import { HttpError } from '../errors.js';

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
  /** Is told how many bytes of bodies are held, whenever that has changed by much. */
  keepBodies?: (bytes: number) => void;
}

/** An answer that its client has not read yet. */
interface Unread {
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

  readonly #room: () => number;
  readonly #keepBodies: (bytes: number) => void;
  #bodies = 0;
  #toldBodies = 0;

  /**
   * @param maxBodyBytes the longest body, for two of which there is always room by the share of the memory
   * @param options.room bytes that the engine may still allocate
   */
  constructor(maxBodyBytes: number, options: InFlightOptions = {}) {
    const { memory = memoryOfMachine(), room = () => Infinity, keepBodies = () => undefined } = options;
    this.limit = Math.max(Math.floor(memory * SHARE), 2 * maxBodyBytes);
    this.#room = room;
    this.#keepBodies = keepBodies;
  }

  get held(): number {
    return this.#held;
  }

  /** What one request holds; nothing yet. */
  request(): Hold {
    return new Hold((bytes, own, ofBody) => {
      this.#held += bytes;
      this.#count(ofBody);
      if (bytes <= 0 || this.#fits(own)) return true;
      this.#cutOverdue(own);
      return own <= SMALL || this.#fits(own);
    });
  }

  /**
   * Counts an answer that its client has not read yet. It is there already, and so it counts whether there is room or not.
   *
   * @param due from when on `cut` is called where others need the room, as `performance.now()` counts
   * @returns to be called when the answer was read, or is gone
   */
  unread(bytes: number, due: number, cut: () => void): () => void {
    const hold = this.request();
    const over = (): void => {
      this.#unread.delete(answer);
      hold.release();
    };
    const answer = {
      due,
      cut: () => {
        over();
        cut();
      },
    };
    this.#unread.add(answer);
    hold.force(bytes);
    return over;
  }

  /** Counts bytes of bodies. Those of small ones are not worth a call each. */
  #count(ofBody: number): void {
    this.#bodies += ofBody;
    if (Math.abs(this.#bodies - this.#toldBodies) < TOLD) return;
    this.#toldBodies = this.#bodies;
    this.#keepBodies(this.#bodies);
  }

  #fits(own: number): boolean {
    return this.#held <= this.limit && (own <= ALWAYS || this.#held <= this.#room());
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

  constructor(private readonly add: (bytes: number, own: number, ofBody: number) => boolean) {}

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
   * @throws {HttpError} 429 when the bodies and answers of all requests leave no room for it
   */
  takeAnswer(bytes: number): void {
    if (!this.#grow(bytes, 0)) throw noRoom([]);
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
