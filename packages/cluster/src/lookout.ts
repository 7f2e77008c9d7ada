/** How often a server looks whether another one has changed what they share, in milliseconds. */
const LOOK_MS = 1_000;

/** Looks again and again, each time a moment after the last look has ended. */
export class Lookout {
  readonly #look: () => Promise<unknown>;
  readonly #onError: (error: unknown) => void;
  #timer: NodeJS.Timeout | undefined;

  constructor(look: () => Promise<unknown>, onError: (error: unknown) => void) {
    this.#look = look;
    this.#onError = onError;
  }

  start(): void {
    this.#timer = setTimeout(() => {
      this.#look()
        .catch(this.#onError)
        .finally(() => this.#timer?.refresh());
    }, LOOK_MS);
    this.#timer.unref();
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
