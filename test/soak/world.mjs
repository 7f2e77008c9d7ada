// What all clients of a soak share: the server, what was sent and answered, and the documents that should be there.
import { Agent, request as httpRequest } from 'node:http';

const ANSWER_MS = 60_000;
const SHOWN = 400;
/** Mistakes of a kind that are kept with all that was answered. */
const KEPT = 20;

export class World {
  /** When the clients end. */
  over = false;
  requests = 0;
  cut = 0;
  /** Answers of 500 and above, and requests without an answer: sentences. */
  failures = [];
  /** Answers of another status than expected: sentences. */
  unexpected = [];
  /** How long searches took since the last window, in milliseconds. */
  #times = [];
  /** By index: `n` of each document by its id. */
  documents = new Map();
  #agent = new Agent({ keepAlive: true });

  constructor({ url, apiKey }) {
    Object.assign(this, { url, apiKey });
  }

  /** Sends a request; `cutAfterMs` closes the connection after so long. Resolves with `{ status, body, text, ms }`. */
  send({ method, path, body, text, cutAfterMs }) {
    const payload = text ?? (body === undefined || typeof body === 'string' ? body : JSON.stringify(body));
    const begun = performance.now();
    this.requests += 1;
    return new Promise((resolve) => {
      const finish = (status, answer = '') => {
        const ms = performance.now() - begun;
        let read;
        try {
          read = JSON.parse(answer);
        } catch {
          // Plain text, or nothing.
        }
        resolve({ status, text: answer, body: read, ms });
      };
      const type = text === undefined ? 'application/json' : 'application/x-ndjson';
      const headers = { authorization: `ApiKey ${this.apiKey}` };
      if (payload !== undefined) {
        headers['content-type'] = type;
        headers['content-length'] = Buffer.byteLength(payload);
      }
      const agent = cutAfterMs === undefined ? this.#agent : false;
      const request = httpRequest(this.url + path, { method, headers, agent, timeout: ANSWER_MS }, (response) => {
        const chunks = [];
        response.on('data', (chunk) => chunks.push(chunk));
        response.on('error', () => finish('cut'));
        response.on('end', () => finish(response.statusCode, Buffer.concat(chunks).toString()));
      });
      request.on('timeout', () => request.destroy());
      request.on('error', () => finish('cut'));
      request.end(payload);
      if (cutAfterMs !== undefined) {
        setTimeout(() => {
          this.cut += 1;
          request.destroy();
        }, cutAfterMs);
      }
    });
  }

  /** Sends a request whose answer must have one of these statuses; what it answered, or undefined. */
  async ask(request, wanted = [200, 201]) {
    const answer = await this.send(request);
    if (wanted.includes(answer.status)) return answer;
    const list = typeof answer.status === 'number' && answer.status < 500 ? this.unexpected : this.failures;
    const sentence = `${request.method} ${request.path} answered ${answer.status} instead of ${wanted.join(' or ')}`;
    list.push(list.length < KEPT ? `${sentence}: ${answer.text.slice(0, SHOWN)}` : sentence);
    return undefined;
  }

  /** Notes what an item of a bulk was answered with, when it should not have been. */
  refused(what, item) {
    const list = item.status < 500 ? this.unexpected : this.failures;
    list.push(`${what} answered ${JSON.stringify(item).slice(0, SHOWN)}`);
  }

  /** Notes how long a search took. */
  searched(ms) {
    this.#times.push(ms);
  }

  /** How long searches took since this was last called, ascending. */
  takeTimes() {
    const times = this.#times.sort((a, b) => a - b);
    this.#times = [];
    return times;
  }

  close() {
    this.#agent.destroy();
  }
}
