import { HttpError } from '@sparrow-search/endpoints';
import { Turns } from '@sparrow-search/engine';

/** Who wants something done. */
export interface Sender {
  /** Those with the same name take their turns together. */
  readonly caller: string;
  /** Calls back once the client has left; the function that comes back ends that. */
  readonly onGone: (callback: () => void) => () => void;
}

export interface FairQueueOptions {
  /** What waits, as the refusal names it. */
  readonly what: string;
  /** What to do when it is refused, as the refusal says it. */
  readonly advice: string;
  /** Most that wait, with what is being done: of one caller, and of all together. */
  readonly ofCaller: number;
  readonly together: number;
}

/** Something that waits, or is being done. It never rejects. */
type Job = () => Promise<void>;

/**
 * Work that is done one after the other. Callers take turns, and within one caller first come is first served: how long anything waits
 * depends on how many callers there are, and not on how much one of them sends. Between two jobs, other requests have their turn of the
 * event loop.
 */
export class FairQueue {
  /** The jobs of each caller, with the one that is being done; the caller whose turn it is comes first. */
  readonly #jobs = new Map<string, Job[]>();
  #count = 0;
  #current: Job | undefined;
  #isBusy = false;

  constructor(private readonly options: FairQueueOptions) {}

  /**
   * Does something when it is its turn. The next turn begins once what `work` returns is settled.
   *
   * @throws {HttpError} 429 when too many wait, 400 when the client left before its turn; and what `work` rejects with
   */
  async run<T>({ caller, onGone }: Sender, work: () => Promise<T>): Promise<T> {
    this.#checkRoom(caller);
    return new Promise<T>((resolve, reject) => {
      const job = async (): Promise<void> => {
        await work().then(resolve, reject);
        stay();
      };
      this.#jobs.set(caller, [...(this.#jobs.get(caller) ?? []), job]);
      this.#count += 1;
      const stay = onGone(() => {
        // A job that has started keeps its place until it ends, so that a client cannot get more work done by leaving and coming back.
        if (job !== this.#current) this.#remove(caller, job);
        reject(new HttpError('client_closed', 'the client went away before it was the turn of its request'));
      });
      if (!this.#isBusy) void this.#doAll();
    });
  }

  #checkRoom(caller: string): void {
    const { what, advice, ofCaller, together } = this.options;
    const own = this.#jobs.get(caller)?.length ?? 0;
    if (own < ofCaller && this.#count < together) return;
    const many = own >= ofCaller ? `[${String(own)}] ${what} of this caller` : `[${String(this.#count)}] ${what}`;
    throw new HttpError('rejected', `rejected execution: ${many} wait for their turn: ${advice}`);
  }

  async #doAll(): Promise<void> {
    this.#isBusy = true;
    const turns = new Turns();
    // What is added to a map while it is walked through comes at its end.
    for (const caller of this.#jobs.keys()) {
      const job = this.#jobs.get(caller)?.[0];
      if (job === undefined) continue;
      this.#current = job;
      await job();
      this.#current = undefined;
      this.#remove(caller, job);
      // Callers that came meanwhile go before the next job of this one.
      const others = this.#jobs.get(caller);
      if (this.#jobs.delete(caller) && others !== undefined) this.#jobs.set(caller, others);
      // The queue stays busy until the next turn of the event loop: otherwise each request that is read in this turn would find it empty,
      // and all of them would be done at once.
      if (turns.isOver) await turns.next();
    }
    this.#isBusy = false;
  }

  #remove(caller: string, job: Job): void {
    const left = this.#jobs.get(caller)?.filter((other) => other !== job) ?? [];
    if (left.length === 0) this.#jobs.delete(caller);
    else this.#jobs.set(caller, left);
    this.#count -= 1;
  }
}
