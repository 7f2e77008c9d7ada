// What all clients of a run share, and how each of their operations is sent and judged.

/** Refusals that say that an index is closed, blocked or not there: nothing was changed. */
const UNAVAILABLE = new Set(['index_closed_exception', 'cluster_block_exception', 'index_not_found_exception']);
const MAX_SHOWN = 300;

/** The type of an error in an answer or in an item of a bulk. */
export const errorType = (body) => body?.error?.type;

export class World {
  /** Whether the server was told to end: connections may break and answers of 500 and above may come. */
  stopping = false;
  /** @type {object[]} */
  problems = [];
  operations = 0;
  started = performance.now();

  /** @param {import('./model.mjs').Model} model */
  constructor(model, send, { round = 0, off = new Set() } = {}) {
    Object.assign(this, { model, send, round, off });
  }

  /** Records what should not have happened. */
  fail(kind, { index, id, ...details }) {
    this.problems.push({ kind, round: this.round, index: index?.name, id, ...details, log: index?.logOf(id) ?? [] });
  }

  /**
   * Sends one operation.
   *
   * @param {object} operation
   * @param {import('./register.mjs').Register[]} operation.registers what it changes, begun by the caller, in order
   * @param {import('./model.mjs').IndexModel[]} operation.indices which it works on
   * @param {(answer: object) => void} operation.settle decides for the registers after a success; without it they are acknowledged
   * @param {boolean} operation.writes whether a write block and a closed index must refuse it
   * @param {(answer: object) => boolean} operation.refusal which other refusals are as they should be
   * @returns whether it was done
   */
  async perform(client, operation) {
    const { method, path, body, registers = [], indices = [], ids, settle, writes = false, refusal } = operation;
    const before = indices.map((index) => ({
      index,
      epoch: index.epoch,
      available: index.available,
      live: index.live,
    }));
    const text = body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body);
    const entry = { ids };
    const what = `${method} ${path} ${text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text}`.trimEnd();
    const at = () => `r${this.round} ${Math.round(performance.now() - this.started)}ms c${client.number}`;
    entry.text = `${at()} ${what}`;
    for (const index of indices) {
      index.users.add(operation);
      index.note(entry);
    }
    let answer;
    try {
      answer = await this.send(method, path, body);
    } catch (error) {
      answer = { status: 0, text: error.message, body: undefined };
    }
    const shown = answer.text.length > MAX_SHOWN ? `${answer.text.slice(0, MAX_SHOWN)}…` : answer.text;
    entry.text += `\n      -> ${at()} ${answer.status} ${shown}`;
    for (const index of indices) index.users.delete(operation);
    const disturbed = before.some(
      ({ index, epoch, available }) => !available || index.epoch !== epoch || !index.available,
    );
    if (answer.status === 0 || answer.status >= 500) {
      for (const register of registers) register.doubt();
      if (!this.stopping)
        this.fail('unexpected answer', { index: indices[0], request: what, answer: shown, status: answer.status });
      return false;
    }
    if (answer.status < 300 || (answer.status === 404 && answer.body?.result === 'not_found')) {
      this.operations += 1;
      if (writes) this.#checkBlocks(before, what, shown);
      if (settle === undefined) for (const register of registers) register.acknowledge();
      else settle(answer, disturbed);
      return true;
    }
    if (disturbed && isCutShort(answer.body)) {
      // A job over several documents that met a block, or the end of the index, half-way.
      for (const register of registers) register.doubt();
      return false;
    }
    for (const register of registers) register.refuse();
    const expected =
      (disturbed && UNAVAILABLE.has(errorType(answer.body))) || answer.status === 429 || refusal?.(answer);
    if (!expected)
      this.fail('unexpected answer', { index: indices[0], request: what, answer: shown, status: answer.status });
    return false;
  }

  /** An index that was blocked or closed all the time must not have taken a write. */
  #checkBlocks(before, request, answer) {
    for (const { index, epoch, live, available } of before) {
      if (live && !available && index.epoch === epoch && index.open.settled && index.blocked.settled) {
        this.fail('written through an acknowledged block', { index, request, answer });
      }
    }
  }
}

/** Whether a job tells only of documents whose index was blocked, closed or gone when their turn came. */
function isCutShort(body) {
  const failures = body?.failures ?? [];
  return failures.length > 0 && failures.every(({ cause }) => UNAVAILABLE.has(cause?.type));
}
