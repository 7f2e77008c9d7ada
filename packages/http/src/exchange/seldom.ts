import type { Logger } from '../log.js';

/** Milliseconds in which there is at most one line. */
const QUIET_MS = 60_000;

/** Warns of what a client can bring about as often as it likes: at most once a minute, with how often it was since the last time. */
export class SeldomWarning {
  #said = -Infinity;
  #times = 0;

  /** @param log is told `message` */
  constructor(
    private readonly log: Pick<Logger, 'warn'>,
    private readonly message: string,
  ) {}

  /** It has happened; `fields` are those of this time. */
  happened(fields: Readonly<Record<string, unknown>>): void {
    this.#times += 1;
    const now = performance.now();
    if (now - this.#said < QUIET_MS) return;
    this.log.warn(this.message, { ...fields, times: this.#times });
    this.#said = now;
    this.#times = 0;
  }
}
