/** How often the bodies are looked at while their patience lasts. */
const LOOKS = 2;

/** A body that is being read. */
export class Reading {
  /** Looks since anything of it came. */
  quiet = 0;

  constructor(
    readonly stalled: () => void,
    private readonly among: Set<Reading>,
  ) {}

  /** Something of it came. */
  came(): void {
    this.quiet = 0;
  }

  /** Nothing more is waited for. */
  over(): void {
    this.among.delete(this);
  }
}

/**
 * Finds bodies that stopped coming. One timer looks after all of them: a timer for each costs a small request more than reading
 * its body does.
 */
export class StalledBodies {
  readonly #reading = new Set<Reading>();
  #timer: NodeJS.Timeout | undefined;

  /** @param patience milliseconds in which something has to come; it may be half as many more until that is noticed */
  constructor(private readonly patience: number) {}

  /** Begins to look after a body; `stalled` is called, once, when nothing of it came in time. */
  watch(stalled: () => void): Reading {
    const reading = new Reading(stalled, this.#reading);
    this.#reading.add(reading);
    this.#timer ??= setInterval(() => {
      this.#look();
    }, this.patience / LOOKS).unref();
    return reading;
  }

  #look(): void {
    if (this.#reading.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
    for (const reading of this.#reading) {
      // The first look may come right after the body began.
      if (reading.quiet < LOOKS) {
        reading.quiet += 1;
      } else {
        reading.over();
        reading.stalled();
      }
    }
  }
}
