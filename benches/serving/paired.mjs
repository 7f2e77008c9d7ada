// The same request once to the bare cluster in its own form and once through Sparrow, in turn, so that a disturbance of the machine
// meets both. Who comes first changes: what comes second finds warmer caches.
import { Connection } from './wire.mjs';

const JSON_TYPE = { 'Content-Type': 'application/json' };
/** A server may close a connection that nothing came over for some seconds. */
const FRESH_MS = 1000;
const LINES = { 'Content-Type': 'application/x-ndjson' };

/** Something to ask: the cluster itself, or a Sparrow server over it. */
export class Side {
  #url;
  #headers;
  #connection;
  #used = -Infinity;

  /** @param {{ url: string, headers?: Record<string, string> }} server */
  constructor({ url, headers = {} }) {
    this.#url = url;
    this.#headers = headers;
  }

  /** Sends a body, a string of lines or an object; resolves with the milliseconds until the whole answer was there, and the answer. */
  async post(path, body) {
    const [type, text] = typeof body === 'string' ? [LINES, body] : [JSON_TYPE, JSON.stringify(body)];
    if (performance.now() - this.#used > FRESH_MS) {
      this.close();
      this.#connection = await Connection.open(this.#url);
    }
    const message = this.#connection.encode('POST', path, { ...this.#headers, ...type }, text);
    const begun = performance.now();
    const answer = await this.#connection.send(message);
    this.#used = performance.now();
    const ms = this.#used - begun;
    const shown = answer.body.toString();
    if (answer.status !== 200) throw new Error(`POST ${path}: ${answer.status} ${shown.slice(0, 300)}`);
    return { ms, answer: JSON.parse(shown) };
  }

  close() {
    this.#connection?.close();
  }
}

/**
 * Asks both sides the same, `count` times.
 *
 * @param {{ bare: Side, sparrow: Side }} sides
 * @param {number} count
 * @param {(side: 'bare' | 'sparrow', round: number) => [path: string, body: object | string]} requestOf
 * @param {(bare: any, sparrow: any, round: number) => void} check the two answers; throws where they differ
 * @returns {Promise<{ bare: number[], sparrow: number[] }>} milliseconds
 */
export async function inTurns(sides, count, requestOf, check) {
  const ms = { bare: [], sparrow: [] };
  for (let round = 0; round < count; round += 1) {
    const answers = {};
    for (const side of round % 2 === 0 ? ['bare', 'sparrow'] : ['sparrow', 'bare']) {
      const found = await sides[side].post(...requestOf(side, round));
      ms[side].push(found.ms);
      answers[side] = found.answer;
    }
    check(answers.bare, answers.sparrow, round);
  }
  return ms;
}
