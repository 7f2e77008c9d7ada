// Sends bad requests to a real server and counts what must never be: an answer of 500 or above, a request without an answer, and
// the end of the process.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

import { corpus, requestOf } from './requests.mjs';
import { WORLD } from './seeds.mjs';

const CLI = fileURLToPath(new URL('../../packages/server/dist/cli.js', import.meta.url));
const KEY = Buffer.from('fuzz:a-secret-for-this-test-alone').toString('base64');
/** Milliseconds without an answer that count as a hang. */
export const HANG_MS = 10_000;
/** Inputs after which the indices are removed and made anew. */
const ROUND = 1500;
const CLIENTS = 8;

/** How much of an answer is kept. */
const SHOWN_BYTES = 16_384;

/** A server, and what is sent to it. */
export class Target {
  #world;
  #hangMs;
  #under;
  #child;
  #exited;
  #agent;
  #url = '';
  #log = [];
  data = mkdtempSync(join(tmpdir(), 'sparrow-fuzz-'));

  /**
   * @param {{ world?: object[], hangMs?: number, under?: string[] }} [options] requests that make what is there, when an answer counts as
   *   missing, and options of Node
   */
  constructor({ world = WORLD, hangMs = HANG_MS, under = [] } = {}) {
    this.#world = world;
    this.#hangMs = hangMs;
    this.#under = under;
    // An interrupted run leaves no server behind.
    process.once('exit', () => this.#child?.kill('SIGKILL'));
  }

  get isDead() {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  get pid() {
    return this.#child.pid;
  }

  /** The last lines that it wrote. */
  get log() {
    return this.#log;
  }

  /** Starts it; `isMade` says that what it is about is in its data already. */
  async start(isMade = false) {
    this.#agent = new Agent({ keepAlive: true, maxSockets: CLIENTS * 2 });
    const args = [
      ...this.#under,
      CLI,
      '--port',
      '0',
      '--data',
      join(this.data, 'data'),
      '--repo-path',
      join(this.data, 'repos'),
      '--deploy-at-start',
      'false',
    ];
    this.#child = spawn(process.execPath, args, {
      env: { ...process.env, SPARROW_API_KEY: KEY },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    this.#exited = new Promise((resolve) => this.#child.once('exit', (code, signal) => resolve(signal ?? code)));
    await new Promise((resolve, reject) => {
      createInterface({ input: this.#child.stderr }).on('line', (line) => {
        this.#log.push(line);
        if (this.#log.length > 200) this.#log.shift();
        if (line.includes('"msg":"ready"')) {
          this.#url = JSON.parse(line).url;
          resolve();
        }
      });
      void this.#exited.then((how) => reject(new Error(`the server ended with ${how}:\n${this.#log.join('\n')}`)));
    });
    if (!isMade) for (const one of this.#world) await this.send(one);
  }

  /** Ends it as a power failure would. */
  kill() {
    this.#child.kill('SIGKILL');
  }

  /** Ends it; how it ended. */
  async stop() {
    this.#agent.destroy();
    this.kill();
    return this.#exited;
  }

  async restart() {
    await this.stop();
    rmSync(this.data, { recursive: true, force: true });
    this.data = mkdtempSync(join(tmpdir(), 'sparrow-fuzz-'));
    await this.start();
  }

  async remove() {
    await this.stop();
    rmSync(this.data, { recursive: true, force: true });
  }

  /** Whether it answers a good request as it should. */
  async isWell() {
    const { status } = await this.send({ method: 'GET', path: '/_security/_authenticate' });
    return status === 200;
  }

  /** Removes all indices and makes those that the seeds are about. */
  async renew() {
    const names = await this.send({ method: 'GET', path: '/_cat/indices?h=index&expand_wildcards=all' });
    for (const name of (names.text ?? '')
      .split('\n')
      .map((line) => line.trim())
      .filter(Boolean)) {
      await this.send({ method: 'DELETE', path: `/${encodeURIComponent(name)}` });
    }
    const nothing = {
      'search.max_buckets': null,
      'action.destructive_requires_name': null,
      'action.auto_create_index': null,
      'cluster.max_shards_per_node': null,
      'search.max_open_scroll_context': null,
    };
    await this.send({ method: 'PUT', path: '/_cluster/settings', body: { persistent: nothing, transient: nothing } });
    await this.send({ method: 'DELETE', path: '/_search/scroll/_all' });
    await this.send({ method: 'POST', path: '/_tasks/_cancel' });
    for (const one of this.#world) await this.send(one);
  }

  /**
   * Sends a request as it is and leaves where no answer comes in time; what came of it: a status, `hang`, `cut` for a connection that ended without an answer, or `unsent` for
   * what cannot be sent over HTTP. `onHead` is called when an answer begins to arrive.
   */
  send({ method, path, headers = {}, body, text }, hangMs = this.#hangMs, onHead = () => {}) {
    const payload =
      text ?? (body === undefined || Buffer.isBuffer(body) || typeof body === 'string' ? body : JSON.stringify(body));
    const began = performance.now();
    return new Promise((resolve) => {
      const finish = (outcome) => resolve({ ...outcome, ms: performance.now() - began });
      let request;
      try {
        request = httpRequest(
          this.#url,
          {
            agent: this.#agent,
            method,
            path,
            headers: {
              authorization: `ApiKey ${KEY}`,
              ...(payload === undefined
                ? {}
                : {
                    'content-type': text === undefined ? 'application/json' : 'application/x-ndjson',
                    'content-length': Buffer.byteLength(payload),
                  }),
              ...headers,
            },
          },
          (response) => {
            onHead();
            let [text, bytes] = ['', 0];
            response.on('data', (chunk) => {
              if (bytes < SHOWN_BYTES) text += chunk.toString('utf8', 0, SHOWN_BYTES - bytes);
              bytes += chunk.length;
            });
            response.on('error', () => finish({ status: 'cut' }));
            response.on('end', () => finish({ status: response.statusCode, text, bytes }));
          },
        );
      } catch {
        finish({ status: 'unsent' });
        return;
      }
      const late = setTimeout(() => {
        finish({ status: 'hang' });
        request.destroy();
      }, hangMs);
      request.on('error', () => finish({ status: 'cut' }));
      request.on('close', () => clearTimeout(late));
      request.end(payload);
    });
  }
}

/** Errors that have a status of 500 or above in Elasticsearch too: the recorded exchanges have some. */
const DOCUMENTED = /snapshot_restore_exception|repository_exception/;

/** Whether an answer of 500 or above is that of Elasticsearch. One that is filtered may show no more than the family that it is of. */
export function isDocumented({ status, text = '' }, { path }) {
  if (typeof status !== 'number' || status < 500) return false;
  return DOCUMENTED.test(text) || (/^\/_snapshot\/[^?]*\?.*filter_path/.test(path) && !text.includes('"type"'));
}

/** Whether what came of a request must never be. */
export function isMistake(outcome, request) {
  const { status } = outcome;
  if (status === 'hang' || status === 'cut') return true;
  return typeof status === 'number' && status >= 500 && !isDocumented(outcome, request);
}

/**
 * Sends bad requests until a number of them, or a time, is over.
 *
 * @param {{ seed: number, first?: number, inputs?: number, minutes?: number, report?: (mistake: any) => void }} options
 *   `report` is called with each mistake: `{ number, kind, request, outcome, log }`
 * @returns counts: tried, statuses, fiveHundreds, hangs, cuts, deaths, slowest
 */
export async function fuzz({ seed, first = 0, inputs = Infinity, minutes = Infinity, report = () => undefined }) {
  const good = corpus();
  const target = new Target();
  /** @type {{ [name: string]: any }} */
  const counts = {
    tried: 0,
    unsent: 0,
    statuses: {},
    documented: 0,
    fiveHundreds: 0,
    hangs: 0,
    cuts: 0,
    deaths: 0,
    slowest: 0,
  };
  const end = Date.now() + minutes * 60_000;
  await target.start();
  try {
    for (let round = first; counts.tried < inputs && Date.now() < end; round += ROUND) {
      if (round > first) {
        if (target.isDead || !(await target.isWell())) await target.restart();
        else await target.renew();
      }
      let next = round;
      const stop = Math.min(round + ROUND, first + inputs);
      const client = async () => {
        while (next < stop && Date.now() < end && !target.isDead) {
          const number = next++;
          const request = requestOf(good, seed, number);
          const outcome = await target.send(request);
          counts.tried += 1;
          counts.slowest = Math.max(counts.slowest, outcome.ms);
          const shown = typeof outcome.status === 'number' ? `${Math.floor(outcome.status / 100)}xx` : outcome.status;
          counts.statuses[shown] = (counts.statuses[shown] ?? 0) + 1;
          if (outcome.status === 'unsent') counts.unsent += 1;
          if (isDocumented(outcome, request)) counts.documented += 1;
          if (!isMistake(outcome, request)) continue;
          // A moment for a process that dies to be dead.
          if (outcome.status === 'cut') await new Promise((resolve) => setTimeout(resolve, 300));
          const kind = target.isDead
            ? 'death'
            : outcome.status === 'hang'
              ? 'hang'
              : outcome.status === 'cut'
                ? 'cut'
                : 'fiveHundred';
          if (kind !== 'death') counts[`${kind}s`] += 1;
          report({ number, kind, request, outcome, log: target.log.slice(-5) });
        }
      };
      await Promise.all(Array.from({ length: CLIENTS }, client));
      if (target.isDead) {
        counts.deaths += 1;
        report({ number: next, kind: 'end', log: target.log.slice(-20) });
      }
    }
  } finally {
    await target.remove();
  }
  return counts;
}
