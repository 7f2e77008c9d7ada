import { constrainedMemory } from 'node:process';
import { totalmem } from 'node:os';

import { HttpError } from '../errors.js';

/** Share of the memory that bodies on their way in, and answers on their way out, may take together. */
const SHARE = 0.1;

/** Bytes of one request for which there is room whatever others hold: an administrator can still raise a limit. */
const ALWAYS = 1024 * 1024;

/** Seconds after which a client that was refused may try again. */
export const RETRY_SECONDS = 1;

export interface InFlightOptions {
  /** Bytes that the process may use. */
  memory?: number;
  /** Bytes that the engine may still allocate. */
  room?: () => number;
}

/** Bytes that bodies and answers hold between the wire and the engine. */
export class InFlight {
  readonly limit: number;
  #held = 0;

  readonly #room: () => number;

  /**
   * @param maxBodyBytes the longest body, for two of which there is always room by the share of the memory
   * @param options.room bytes that the engine may still allocate
   */
  constructor(maxBodyBytes: number, { memory = memoryOfMachine(), room = () => Infinity }: InFlightOptions = {}) {
    this.limit = Math.max(Math.floor(memory * SHARE), 2 * maxBodyBytes);
    this.#room = room;
  }

  get held(): number {
    return this.#held;
  }

  /** What one request holds; nothing yet. */
  request(): Hold {
    return new Hold((bytes, own) => {
      this.#held += bytes;
      return this.#held <= this.limit && (own <= ALWAYS || this.#held <= this.#room());
    });
  }
}

/** The bytes of one request. */
export class Hold {
  #bytes = 0;

  constructor(private readonly add: (bytes: number, own: number) => boolean) {}

  /**
   * Takes room for more bytes.
   *
   * @throws {HttpError} 429 when there is none
   */
  take(bytes: number): void {
    this.#bytes += bytes;
    if (this.add(bytes, this.#bytes)) return;
    this.release();
    throw new HttpError(
      'rejected',
      'rejected execution: the bodies and answers that are on their way take all of the memory that is for them',
      // The rest of the body is not read.
      { headers: [['Connection', 'close']] },
    );
  }

  /** Takes room that is needed whether there is any or not. */
  force(bytes: number): void {
    this.#bytes += bytes;
    this.add(bytes, 0);
  }

  /** Gives all of it back. */
  release(): void {
    this.add(-this.#bytes, 0);
    this.#bytes = 0;
  }
}

/** Bytes that the process may use: what its control group allows, or what the machine has. */
function memoryOfMachine(): number {
  const allowed = constrainedMemory();
  const installed = totalmem();
  return allowed > 0 && allowed < installed ? allowed : installed;
}
