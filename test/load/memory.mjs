// Sends what asks for much to a server with a ceiling of memory, and watches its process from outside.
import { cpSync, rmSync, writeFileSync } from 'node:fs';

import { MemoryWatch, usage } from '../../scripts/lib/server-process.mjs';
import { Random } from '../crash/random.mjs';
import { Target } from '../fuzz/run.mjs';
import { sleep, untilIdle } from './idle.mjs';
import { trialOf } from './memory-requests.mjs';
import { CEILING_MIB, KEYS, WORLD } from './memory-world.mjs';

const MIB = 2 ** 20;
const LOOK_MS = 10;
/** A server that has so much more than it may have is ended, so that the machine of who tests it goes on. */
const KILL_MIB = 2 * CEILING_MIB;
/** When a client that has no answer leaves; how long the server may go on then, and what follows may take. */
export const PATIENCE_MS = 10_000;
/** Rows are to be answered: one that is not by then hangs, however slow the machine is. */
export const ROW_PATIENCE_MS = 120_000;
const STUCK_MS = 20_000;
const IDLE_MS = 5000;

/** A server with a ceiling and an index of 20,000 documents. */
export class Ceiling extends Target {
  #keys = {};
  #made = `${this.data}-made`;

  constructor() {
    super({ world: WORLD, hangMs: 60_000 });
  }

  /** Starts it; what it is about is made once and kept, so that it can be made anew soon. */
  async start() {
    await super.start();
    for (const [name, role] of Object.entries(KEYS)) {
      const { text } = await this.send({
        method: 'POST',
        path: '/_security/api_key',
        body: { name, role_descriptors: { role } },
      });
      this.#keys[name] = JSON.parse(text).encoded;
    }
    await this.send({ method: 'POST', path: '/_flush' });
    await this.stop();
    cpSync(this.data, this.#made, { recursive: true });
    await super.start(true);
  }

  async restart() {
    await this.stop();
    rmSync(this.data, { recursive: true });
    cpSync(this.#made, this.data, { recursive: true });
    await super.start(true);
  }

  async remove() {
    await super.remove();
    rmSync(this.#made, { recursive: true, force: true });
  }

  /** Sends the calls of a trial one after another; what came of each. */
  async #calls({ key, calls }, patienceMs) {
    const outcomes = [];
    for (const call of calls) {
      const request = requestOf(call, outcomes.at(-1)?.text);
      const headers = { ...request.headers, authorization: `ApiKey ${this.#keys[key]}` };
      const outcome = await this.send({ ...request, headers }, patienceMs);
      outcomes.push(outcome);
      if (outcome.status !== 200) break;
    }
    return outcomes;
  }

  /**
   * What came of a trial: its statuses, times and memory, and in `wrong` what must never be.
   *
   * @param {import('./memory-rows.mjs').Trial} trial
   */
  async attempt(trial, patienceMs = PATIENCE_MS) {
    const { key, at, calls } = trial;
    const { pid } = this;
    // The highest resident size counts from here on.
    writeFileSync(`/proc/${pid}/clear_refs`, '5');
    const watch = new MemoryWatch(pid, LOOK_MS);
    const guard = setInterval(() => {
      if (watch.peak.resident > KILL_MIB * MIB) this.kill();
    }, LOOK_MS);
    const begun = performance.now();
    const outcomes = (
      await Promise.all(Array.from({ length: at }, () => this.#calls({ key, calls }, patienceMs)))
    ).flat();
    const seconds = (performance.now() - begun) / 1000;
    // A moment for a process that dies to be dead.
    if (outcomes.some(({ status }) => status === 'cut')) await sleep(300);
    const left = outcomes.filter(({ status }) => status === 'hang').length;
    // What was left ends soon; a write is completed.
    const wentOnMs =
      left > 0 && !this.isDead ? await untilIdle(pid, key === 'read' ? IDLE_MS : STUCK_MS).catch(() => 0) : 0;
    const after = this.isDead ? undefined : await this.send(SMALL, STUCK_MS);
    clearInterval(guard);
    const peak = watch.end();
    const residentMiB = Math.round(Math.max(peak.resident, usage(pid)?.residentPeak ?? 0) / MIB);
    const statuses = [...new Set(outcomes.map(({ status }) => (status === 'hang' ? 'left' : status)))];
    const wrong = [
      ...(this.isDead ? ['the server ended'] : []),
      ...(residentMiB > CEILING_MIB ? [`${residentMiB} MiB resident`] : []),
      ...statuses.filter((status) => status >= 500 || status === 'cut').map((status) => `answer ${status}`),
      ...(trial.name !== undefined && left > 0 ? ['no answer'] : []),
      ...(key === 'read' && wentOnMs > IDLE_MS * 0.9 ? ['works on for nobody'] : []),
      ...(after !== undefined && after.status !== 200 ? [`a small search: ${after.status}`] : []),
    ];
    const errors = outcomes.map(({ text = '' }) => /"type":"(\w+_(?:exception|clauses))"/u.exec(text)?.[1]);
    return {
      statuses,
      errors: [...new Set(errors.filter((type) => type !== undefined))],
      reason: outcomes.map(({ text = '' }) => /"reason":"(.{0,200})/u.exec(text)?.[1]).find(Boolean),
      seconds,
      wentOnMs: Math.round(wentOnMs),
      residentMiB,
      anonymousMiB: Math.round(peak.anonymous / MIB),
      answerMiB: Math.round(outcomes.reduce((sum, { bytes = 0 }) => sum + bytes, 0) / MIB),
      wrong,
    };
  }
}

/** What has to be answered after everything. */
const SMALL = { method: 'POST', path: '/many/_search', body: { size: 1, query: { term: { k: 'v1' } } } };

/** A call as it is sent. What stands for an id of the answer before it is filled in. */
export function requestOf([path, body, { method = 'POST', ...headers } = {}], before = '') {
  const ids = { $scroll_id: /"_scroll_id":"([^"]+)"/u.exec(before)?.[1], $pit: /"id":"([^"]+)"/u.exec(before)?.[1] };
  const filled =
    body !== undefined && before !== '' && typeof body === 'object'
      ? JSON.parse(JSON.stringify(body).replaceAll(/\$scroll_id|\$pit/gu, (name) => ids[name] ?? name))
      : body;
  return { method, path, headers, ...(typeof filled === 'string' ? { text: filled } : { body: filled }) };
}

/** A request as one can read it: of what is long only the beginning, and how much there is. */
export function shown({ key, at, calls }) {
  const texts = calls.map(([path, body, options]) => {
    const text = body === undefined ? '' : typeof body === 'string' ? lines(body) : JSON.stringify(brief(body));
    return `${options?.method ?? 'POST'} ${brief(path)} ${text}`;
  });
  return `${at > 1 ? `${at} times at once ` : ''}with the key [${key}]: ${texts.join(', then ')}`;
}

/** Texts of more than so many characters, and lists of more than so many members, are not written out. */
const [SHOWN_TEXT, SHOWN_MEMBERS] = [60, 3];

function brief(value) {
  if (typeof value === 'string') {
    return value.length > SHOWN_TEXT ? `${value.slice(0, 20)}… (${value.length} characters)` : value;
  }
  if (value === null || typeof value !== 'object') return value;
  const all = Object.entries(value);
  const most = all.length > 12 ? SHOWN_MEMBERS : all.length;
  const few = all.slice(0, most).map(([name, one]) => [brief(name), brief(one)]);
  const more = all.length > most ? [['…', `${all.length - most} more`]] : [];
  return Array.isArray(value) ? [...few, ...more].map(([, one]) => one) : Object.fromEntries([...few, ...more]);
}

function lines(text) {
  const all = text.split('\n');
  const first = all.slice(0, 2).map((line) => (line.startsWith('{') ? JSON.stringify(brief(JSON.parse(line))) : line));
  return `${first.join('\\n')}${all.length > 3 ? `… (${all.length - 1} lines)` : ''}`;
}

/**
 * Sends trials one after another; a server with which one went wrong is made anew.
 *
 * @param {Iterable<[number: number, trial: import('./memory-rows.mjs').Trial]>} trials
 * @param {(tried: { number: number, trial: import('./memory-rows.mjs').Trial } & Record<string, any>) => void} report called with each
 */
export async function tryAll(target, trials, report, { patienceMs = PATIENCE_MS, shrinks = 0 } = {}) {
  for (const [number, trial] of trials) {
    const outcome = await target.attempt(trial, patienceMs);
    let smallest = trial;
    if (outcome.wrong.length > 0) {
      await target.restart();
      smallest = await shrunk(target, trial, patienceMs, shrinks);
    }
    report({ number, trial: smallest, ...outcome });
  }
}

/** The trial, made smaller while it still goes wrong; so many attempts. */
async function shrunk(target, trial, patienceMs, attempts) {
  let now = trial;
  let left = attempts;
  for (let at = 0; left > 0;) {
    const smaller = smallerThan(now, at);
    if (smaller === undefined) break;
    left -= 1;
    const { wrong } = await target.attempt(smaller, patienceMs);
    if (wrong.length === 0) at += 1;
    else {
      now = smaller;
      await target.restart();
    }
  }
  return now;
}

/** The `at`-th way to make a trial smaller: fewer at once, or half of the largest part of a body. */
function smallerThan(trial, at) {
  if (trial.at > 1) {
    if (at === 0) return { ...trial, at: Math.floor(trial.at / 2) };
    at -= 1;
  }
  const parts = [];
  const find = (node, path) => {
    if (node === null || typeof node !== 'object') return;
    for (const [name, value] of Object.entries(node)) {
      const size =
        typeof value === 'string'
          ? value.length
          : typeof value === 'object' && value !== null
            ? Object.keys(value).length
            : 0;
      if (size > 1)
        parts.push({ path: [...path, name], weight: typeof value === 'string' ? size : JSON.stringify(value).length });
      find(value, [...path, name]);
    }
  };
  find(trial.calls, []);
  // The path of a request and the calls themselves stay.
  const candidates = parts.filter(({ path }) => path[1] === '1').sort((a, b) => b.weight - a.weight);
  const part = candidates[at]?.path;
  if (part === undefined) return undefined;
  const calls = JSON.parse(JSON.stringify(trial.calls));
  const parent = part.slice(0, -1).reduce((node, name) => node[name], calls);
  parent[part.at(-1)] = halfOf(parent[part.at(-1)]);
  return { ...trial, calls };
}

function halfOf(value) {
  if (typeof value === 'string' && value.includes('\n')) {
    // Lines come in pairs.
    const all = value.split('\n');
    return `${all.slice(0, Math.ceil(all.length / 4) * 2).join('\n')}\n`;
  }
  if (typeof value === 'string' || Array.isArray(value)) return value.slice(0, Math.ceil(value.length / 2));
  const entries = Object.entries(value);
  return Object.fromEntries(entries.slice(0, Math.ceil(entries.length / 2)));
}

/**
 * Trials by seed.
 *
 * @returns {Generator<[number, import('./memory-rows.mjs').Trial]>}
 */
export function* generated(seed, first, count) {
  for (let number = first; number < first + count; number += 1) yield [number, trialOf(Random.of(seed, number))];
}
