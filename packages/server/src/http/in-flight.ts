import { constrainedMemory } from 'node:process';
import { totalmem } from 'node:os';

import { HttpError } from '../errors.js';

/** Share of the memory that bodies on their way in, and answers on their way out, may take together. */
const SHARE = 0.1;

/** Seconds after which a client that was refused may try again. */
export const RETRY_SECONDS = 1;

/** Bytes that bodies and answers hold between the wire and the engine. */
export class InFlight {
  readonly limit: number;
  #held = 0;

  /** @param maxBodyBytes the longest body, for two of which there is always room */
  constructor(maxBodyBytes: number, memory = memoryOfMachine()) {
    this.limit = Math.max(Math.floor(memory * SHARE), 2 * maxBodyBytes);
  }

  get held(): number {
    return this.#held;
  }

  /** What one request holds; nothing yet. */
  request(): Hold {
    return new Hold((bytes) => {
      this.#held += bytes;
      return this.#held <= this.limit;
    });
  }
}

/** The bytes of one request. */
export class Hold {
  #bytes = 0;

  constructor(private readonly add: (bytes: number) => boolean) {}

  /**
   * Takes room for more bytes.
   *
   * @throws {HttpError} 429 when there is none
   */
  take(bytes: number): void {
    this.#bytes += bytes;
    if (this.add(bytes)) return;
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
    this.add(bytes);
  }

  /** Gives all of it back. */
  release(): void {
    this.add(-this.#bytes);
    this.#bytes = 0;
  }
}

/** Bytes that the process may use: what its control group allows, or what the machine has. */
function memoryOfMachine(): number {
  const allowed = constrainedMemory();
  const installed = totalmem();
  return allowed > 0 && allowed < installed ? allowed : installed;
}
