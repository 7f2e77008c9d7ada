// What one thing on the server may be: a document, a setting, an alias, whether an index exists. One client writes it at a time.

/** Equal as JSON; where a document's version or sequence number is not known, any will do. */
export function sameState(possible, found) {
  if (possible === null || found === null || typeof possible !== 'object' || typeof found !== 'object') {
    return possible === found;
  }
  return Object.keys(possible).every((key) => possible[key] === undefined || possible[key] === found[key]);
}

/**
 * The states that are possible. Between operations it is one: what was acknowledged last. An operation under way adds the
 * state it would make; its answer decides, and where none comes (or none that tells) both stay possible until the
 * server is asked.
 */
export class Register {
  #states;
  #pending = [];

  constructor(state) {
    this.#states = [state];
  }

  /** An operation that would make `state` is about to be sent. */
  begin(state) {
    this.#pending.push(state);
  }

  /** The oldest operation under way was acknowledged; `details` are what its answer told. */
  acknowledge(details) {
    const state = this.#pending.shift();
    this.#states = [details === undefined ? state : { ...state, ...details }];
  }

  /** The oldest operation under way was refused and changed nothing. */
  refuse() {
    this.#pending.shift();
  }

  /** No answer tells what became of the oldest operation under way. */
  doubt() {
    this.#states.push(this.#pending.shift());
  }

  /** The server was asked. */
  adopt(state) {
    this.#states = [state];
    this.#pending = [];
  }

  /** Each state that the server may be found in. */
  get candidates() {
    return [...this.#states, ...this.#pending];
  }

  /** Whether only one state is possible. */
  get settled() {
    return this.#states.length === 1 && this.#pending.length === 0;
  }

  /** The newest state that is possible: the only one where it is settled. */
  get latest() {
    return this.candidates.at(-1);
  }

  /** What the oldest operation under way would make. */
  get oldest() {
    return this.#pending[0];
  }

  allows(found) {
    return this.candidates.some((state) => sameState(state, found));
  }
}
