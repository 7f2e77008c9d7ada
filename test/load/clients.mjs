// Connections that carry one request at a time, as cheaply as Node can: thousands of them share one thread with nothing else.
import { connect } from 'node:net';

const HEAD_END = Buffer.from('\r\n\r\n');

/** One connection. Its user waits for the answer before sending the next request. */
export class Connection {
  #socket;
  #head;
  #held = Buffer.alloc(0);
  #ended = false;

  /**
   * @param {{hostname: string, port: number, apiKey: string}} server
   * @param {{opened: () => void, heard: (status: number, retryAfter: number | undefined) => void, cut: () => void}} listener
   *   `retryAfter` in seconds, where the answer has such a header; `cut`: the connection ended, and not by `end()`
   */
  constructor({ hostname, port, apiKey }, { opened, heard, cut }) {
    this.#head = `HTTP/1.1\r\nHost: x\r\nAuthorization: ApiKey ${apiKey}\r\nContent-Type: `;
    this.#socket = connect({ host: hostname, port, noDelay: true });
    this.#socket.on('connect', opened);
    this.#socket.on('data', (chunk) => this.#read(chunk, heard));
    for (const event of ['error', 'close']) {
      this.#socket.on(event, () => {
        if (this.#ended) return;
        this.end();
        cut();
      });
    }
  }

  /** @param {{method: string, path: string, body: string, type: string}} request */
  send({ method, path, body, type }) {
    this.#socket.write(
      `${method} ${path} ${this.#head}${type}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    );
  }

  end() {
    this.#ended = true;
    this.#socket.destroy();
  }

  #read(chunk, heard) {
    this.#held = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    const head = this.#held.indexOf(HEAD_END);
    if (head < 0) return;
    const text = this.#held.toString('latin1', 0, head);
    const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0);
    if (this.#held.length < head + HEAD_END.length + length) return;
    this.#held = Buffer.alloc(0);
    const later = /retry-after: (\d+)/i.exec(text)?.[1];
    heard(Number(text.slice(9, 12)), later === undefined ? undefined : Number(later));
  }
}

/**
 * One client: asks `next()` for a request, sends it, waits for the whole answer, and so on until `isOver()`. Told to come again
 * later, it waits for as long as it was told if it is patient.
 *
 * @param {{hostname: string, port: number, apiKey: string}} server
 * @param {() => {method: string, path: string, body: string, type: string}} next
 * @param {{isOver: () => boolean, patient: boolean, random: () => number, heard: (status: number, ms: number, retryAfter?: number) => void}} options
 * @returns a promise of how it ended: `done`, or `cut` when the server closed the connection
 */
export function runClient(server, next, { isOver, patient, random, heard }) {
  return new Promise((resolve) => {
    let begun = 0;
    const ask = () => {
      if (isOver()) {
        connection.end();
        resolve('done');
        return;
      }
      const request = next();
      begun = performance.now();
      connection.send(request);
    };
    const connection = new Connection(server, {
      opened: ask,
      heard: (status, later) => {
        heard(status, performance.now() - begun, later);
        if (status === 429 && patient && later > 0) setTimeout(ask, later * 1000 * (0.5 + random()));
        else ask();
      },
      cut: () => resolve('cut'),
    });
  });
}

/** How often requests are looked for whose time has come, in milliseconds. */
const TICK_MS = 1;

/** Connections that may be open at once: the server takes 8,192. */
const MOST_CONNECTIONS = 6000;

/** How long an answer is waited for after the last arrival, in milliseconds. */
const PATIENCE_MS = 30_000;

/**
 * Sends requests at a fixed rate, whatever becomes of those before: each on a connection that is idle, or else on a new one.
 *
 * @param {{hostname: string, port: number, apiKey: string}} server
 * @param {() => {method: string, path: string, body: string, type: string}} next
 * @param {object} options
 * @param {number} options.rate arrivals in a second
 * @param {number} options.ms for how long requests arrive
 * @param {(planned: number, status: number, ms: number, retryAfter?: number) => void} options.heard `planned`: when the request was
 *   to arrive, in milliseconds since the first; `ms`: the time from then to the whole answer, so that what waits in the client counts
 * @returns how many were cut off or had no connection, how many were not answered in the end, and by how many milliseconds
 *   each was sent too late
 */
export async function openLoop(server, next, { rate, ms, heard }) {
  const idle = [];
  const late = [];
  const counts = { cut: 0, unanswered: 0 };
  let [open, waiting] = [0, 0];
  const all = new Set();
  const begun = performance.now();

  const send = (planned) => {
    if (idle.length === 0 && open >= MOST_CONNECTIONS) {
      counts.cut += 1;
      return;
    }
    waiting += 1;
    late.push(performance.now() - begun - planned);
    const request = next();
    const carrier = idle.pop();
    if (carrier !== undefined) {
      carrier.planned = planned;
      carrier.connection.send(request);
      return;
    }
    open += 1;
    const made = { planned };
    made.connection = new Connection(server, {
      opened: () => made.connection.send(request),
      heard: (status, later) => {
        waiting -= 1;
        heard(made.planned, status, performance.now() - begun - made.planned, later);
        made.planned = undefined;
        idle.push(made);
      },
      cut: () => {
        open -= 1;
        all.delete(made);
        if (made.planned === undefined) idle.splice(idle.indexOf(made), 1);
        else {
          waiting -= 1;
          counts.cut += 1;
        }
      },
    });
    all.add(made);
  };

  const total = Math.floor((ms * rate) / 1000);
  for (let sent = 0; sent < total;) {
    const now = performance.now() - begun;
    for (; sent < total && (sent * 1000) / rate <= now; sent += 1) send((sent * 1000) / rate);
    await new Promise((resolve) => setTimeout(resolve, TICK_MS));
  }
  const end = performance.now() + PATIENCE_MS;
  while (waiting > 0 && performance.now() < end) await new Promise((resolve) => setTimeout(resolve, 10));
  counts.unanswered = waiting;
  for (const { connection } of all) connection.end();
  return { ...counts, late };
}
