import { HttpError } from '@sparrow-search/endpoints';
import { type Operation, OPERATIONS } from '@sparrow-search/engine';

/** Reads at once that are always admitted. */
const ALWAYS = 128;

/** How long a read may be expected to take in seconds, if there are more. */
const MOST_SECONDS = 0.5;

/** How long answered reads are counted while there are so many, in milliseconds: at first, and from then on. */
const FIRST_MS = 500;
const NEXT_MS = 100;

/** How long a rate says something after there were so many, in milliseconds. */
const KNOWN_MS = 5000;

/** How often it is looked how long a turn of the event loop takes, and how long one may take, in milliseconds. */
const TICK_MS = 50;
const TURN_MS = 100;

/** How the share of refused reads grows with each turn that took too long, and shrinks with each other one. */
const MORE = 0.15;
const LESS = 0.05;
const MOST_REFUSED = 0.9;

/** How long it counts that the engine has refused a read, in milliseconds. */
const FULL_MS = 50;

/** Reads: what comes in such numbers that the event loop, and not the engine, is what it waits for. */
const READS: ReadonlySet<string> = new Set(
  (Object.keys(OPERATIONS) as Operation[]).filter((op) => OPERATIONS[op].shed),
);

/** A request that was admitted. */
export class Place {
  /** Whether it is one of those that wait for the server. */
  isCounted = true;
  /** Ticks since its body was begun. */
  ticks = 0;

  /** @param key the id of the key that its request counts for */
  constructor(
    private readonly admission: Admission,
    readonly key: string | undefined,
  ) {}

  /**
   * Waits for the body. A client that sends it slowly is not counted meanwhile: it waits for itself, and as many of them as there are
   * reads at once would keep everybody else out.
   *
   * @throws {HttpError} 429 when it came late, and there are too many by now
   */
  async whileReading<T>(body: Promise<T>): Promise<T> {
    this.admission.began(this);
    try {
      const read = await body;
      if (!this.isCounted) this.admission.back(this);
      return read;
    } finally {
      this.admission.ended(this);
    }
  }

  /** It is answered. */
  leave(): void {
    this.admission.left(this);
  }
}

/**
 * Refuses reads that would wait too long: how long is as many as there are, by as many as are answered in a second. The
 * engine's queues know nothing of those that wait for the event loop on both of their ways.
 */
export class Admission {
  #active = 0;
  /** The same by keys. */
  readonly #activeBy = new Map<string | undefined, number>();
  #answered = 0;
  /** Answered reads in a millisecond while there are many, the later ones counting more. Fewer say nothing of what could be. */
  #rate: number | undefined;
  /** When counting began; undefined while there are few. */
  #since: number | undefined;
  #known = 0;
  /** Reads that came since the last tick: those of one turn of the event loop, when turns are long. */
  #arrived = 0;
  /** Share of the reads that is refused because turns take too long. */
  #share = 0;
  #owed = 0;
  #isWatching = false;
  /** Those whose bodies have not come. */
  readonly #reading = new Set<Place>();
  /** Until when the engine counts as full, and with how many reads under way it is. */
  #fullUntil = 0;
  #fits = 0;

  /**
   * Admits a request for an operation; undefined for one that is not counted. What comes back is to be left when it is answered.
   *
   * @param key the id of the key that the request counts for
   * @throws {HttpError} 429 when it would wait too long
   */
  admit(op: string, key?: string): Place | undefined {
    if (!READS.has(op)) return undefined;
    this.#arrived += 1;
    if (!this.#isWatching) this.#watch();
    this.#owed += this.#share;
    if (this.#owed >= 1) {
      this.#owed -= 1;
      if (!this.#isOfOthers(key))
        throw new HttpError('rejected', 'rejected execution: reads come in faster than they can be answered');
    }
    this.#count(key);
    return new Place(this, key);
  }

  /** Counts one more, if there is room, or if this key is not the reason that there is no room. */
  #count(key: string | undefined): void {
    const now = performance.now();
    if (now < this.#fullUntil && this.#active >= this.#fits) {
      if (!this.#isOfOthers(key))
        throw new HttpError('rejected', `rejected execution: there is room for [${String(this.#fits)}] reads`);
    }
    if (this.#active < ALWAYS) this.#since = undefined;
    else if (this.#active > this.#look(now) * MOST_SECONDS * 1000 && !this.#isOfOthers(key)) {
      throw new HttpError('rejected', `rejected execution: [${String(this.#active)}] reads are under way`);
    }
    this.#active += 1;
    this.#activeBy.set(key, (this.#activeBy.get(key) ?? 0) + 1);
  }

  #discount({ key }: Place): void {
    this.#active -= 1;
    const left = (this.#activeBy.get(key) ?? 0) - 1;
    if (left > 0) this.#activeBy.set(key, left);
    else this.#activeBy.delete(key);
  }

  /**
   * Whether it is because of the reads of other keys that there are too many: this one has fewer than the others on average, and fewer than
   * its part of those that are always admitted. One that has all of them never has.
   */
  #isOfOthers(key: string | undefined): boolean {
    const own = this.#activeBy.get(key) ?? 0;
    const keys = this.#activeBy.size + (own === 0 ? 1 : 0);
    return own * keys < this.#active && own * keys < ALWAYS;
  }

  /** The body of one is being read. */
  began(place: Place): void {
    this.#reading.add(place);
  }

  /** The body of one has come, late. */
  back(place: Place): void {
    this.#count(place.key);
    place.isCounted = true;
  }

  /** The body of one is not waited for any more. */
  ended(place: Place): void {
    this.#reading.delete(place);
  }

  /** One is answered, or its client is gone. */
  left(place: Place): void {
    if (!place.isCounted) return;
    this.#discount(place);
    this.#answered += 1;
  }

  /** Those whose bodies take more than a whole tick are not counted until they are there. */
  #leaveOut(): void {
    for (const place of this.#reading) {
      place.ticks += 1;
      if (place.ticks < 2 || !place.isCounted) continue;
      place.isCounted = false;
      this.#discount(place);
    }
  }

  /**
   * The engine has refused an operation that was admitted, and is not answered yet: for a moment no more are admitted than there are
   * besides. To refuse them here takes a fraction of the time, and so others are answered while very many come.
   */
  refused(op: string): void {
    if (!READS.has(op)) return;
    const now = performance.now();
    // One at least: it is how the server learns that there is room again.
    const others = Math.max(1, this.#active - 1);
    this.#fits = now < this.#fullUntil ? Math.min(this.#fits, others) : others;
    this.#fullUntil = now + FULL_MS;
  }

  /** Looks at the turns of the event loop for as long as reads come: a request waits for one before anybody knows of it. */
  #watch(): void {
    this.#isWatching = true;
    let last = performance.now();
    const timer = setInterval(() => {
      const now = performance.now();
      this.turned(now - last - TICK_MS);
      last = now;
      this.#leaveOut();
      if (this.#share === 0 && this.#arrived === 0 && this.#reading.size === 0) {
        clearInterval(timer);
        this.#isWatching = false;
      }
      this.#arrived = 0;
    }, TICK_MS);
    timer.unref();
  }

  /** A turn of the event loop took so long, in milliseconds. If few reads came with it, it was not because of them. */
  turned(took: number): void {
    if (this.#arrived >= ALWAYS && took > TURN_MS) this.#share = Math.min(MOST_REFUSED, this.#share + MORE);
    else this.#share = Math.max(0, this.#share - LESS);
  }

  /** Reads that are answered in a millisecond; without a bound as long as nobody knows. */
  #look(now: number): number {
    if (this.#rate !== undefined && now - this.#known > KNOWN_MS) this.#rate = undefined;
    if (this.#since === undefined) {
      this.#since = now;
      this.#answered = 0;
    }
    const passed = now - this.#since;
    if (passed >= (this.#rate === undefined ? FIRST_MS : NEXT_MS)) {
      const rate = this.#answered / passed;
      this.#rate = this.#rate === undefined ? rate : 0.7 * this.#rate + 0.3 * rate;
      this.#known = now;
      this.#since = now;
      this.#answered = 0;
    }
    return this.#rate ?? Number.POSITIVE_INFINITY;
  }
}
