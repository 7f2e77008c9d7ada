import { HttpError } from '@sparrow-search/endpoints';
import { Turns } from '@sparrow-search/engine';

import type { Sender } from './exchange/fair-queue.js';

/** Work on the event loop that takes at most so many steps, lets others have their turns, and stops when its client has left. */
export class BoundedWork {
  readonly #turns = new Turns();
  #left: number;
  #isGone = false;
  readonly #stay: () => void;

  /**
   * @param steps how many it may take
   * @param refusal what is said when it would take more, which says what to do
   * @param sender whose client it is for
   */
  constructor(
    steps: number,
    private readonly refusal: string,
    { onGone }: Pick<Sender, 'onGone'>,
  ) {
    this.#left = steps;
    this.#stay = onGone(() => (this.#isGone = true));
  }

  /** How many more steps it may take. */
  get left(): number {
    return this.#left;
  }

  /**
   * Counts steps.
   *
   * @throws {HttpError} 400 when there are too many
   */
  spend(steps: number): void {
    this.#left -= steps;
    if (this.#left < 0) throw new HttpError('illegal_argument', this.refusal);
  }

  /** Whether others are to have a turn: then {@link next} is awaited. */
  get isOver(): boolean {
    return this.#turns.isOver;
  }

  /**
   * Lets others have a turn.
   *
   * @throws {HttpError} 400 when the client has left meanwhile
   */
  async next(): Promise<void> {
    await this.#turns.next();
    this.check();
  }

  /** @throws {HttpError} 400 when the client has left */
  readonly check = (): void => {
    if (this.#isGone) throw new HttpError('client_closed', 'the client went away before its request was answered');
  };

  /** It is done; nobody has to tell it any more that its client has left. */
  end(): void {
    this.#stay();
  }
}
