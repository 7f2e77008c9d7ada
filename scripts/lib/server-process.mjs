// A server of a script's own, and what the system knows of its process.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import process from 'node:process';
import { createInterface } from 'node:readline';

import { ROOT } from './paths.mjs';

/** The kernel counts processor time in these (sysconf(_SC_CLK_TCK) is 100 on every Linux that Node runs on). */
const TICKS_PER_SECOND = 100;

/** The environment without the benchmarks' own settings: the server refuses variables that it does not know. */
function serverEnvironment() {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('SPARROW_BENCH_')));
}

/** A line of the log, or an empty event for any other; the last line of a killed server may be torn. */
function eventOf(line) {
  try {
    return line.startsWith('{') ? JSON.parse(line) : {};
  } catch {
    return {};
  }
}

/**
 * Starts a server without waiting for it, in a process group of its own: `npm start` has children, and all of them are to end. Such a group
 * is a session: Linux shares a full machine out between sessions, so that an answer waits for those of others at each step from one to
 * another.
 *
 * @param {string} command
 * @param {string[]} args what starts it, without --port and --data
 * @param {string} data
 * @param {{ ownSession?: boolean }} [options] false: in the session of who starts it, for a program without children
 * @returns `ready` resolves with its address and the milliseconds it took, or rejects where it ends before; `exited` with its exit code
 */
export function spawnServer(command, args, data, { ownSession = true } = {}) {
  const begun = performance.now();
  const child = spawn(command, [...args, '--port', '0', '--data', data], {
    cwd: ROOT,
    env: serverEnvironment(),
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: ownSession,
  });
  let output = '';
  const exited = new Promise((resolve) => child.on('exit', resolve));
  const ready = new Promise((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on('line', (line) => {
        output += `${line}\n`;
        const event = eventOf(line);
        if (event.msg === 'ready') resolve({ url: event.url, readyMs: performance.now() - begun });
      });
    }
    child.on('error', reject);
    exited.then((code) => reject(new Error(`the server ended with ${code}:\n${output}`)));
  });
  const running = () => child.exitCode === null && child.signalCode === null;
  return { pid: child.pid, ready, exited, running, output: () => output };
}

/** Starts a server as {@link spawnServer} does and waits until it says that it is ready. */
export async function startServer(command, args, data, { ownSession = true } = {}) {
  const { pid, ready, exited, output } = spawnServer(command, args, data, { ownSession });
  const { url, readyMs } = await ready;
  return {
    pid,
    url,
    readyMs,
    output,
    async stop() {
      process.kill(ownSession ? -pid : pid, 'SIGTERM');
      await exited;
    },
  };
}

/** Memory and processor time of a process from /proc, or undefined where there is none. */
export function usage(pid) {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const bytes = (field) => 1024 * Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1] ?? 0);
    // The name in parentheses may hold spaces; user and system time are the 12th and 13th field after it.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1).split(' ');
    const cpuMs = ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS_PER_SECOND;
    return { anonymous: bytes('RssAnon'), resident: bytes('VmRSS'), residentPeak: bytes('VmHWM'), cpuMs };
  } catch {
    return undefined;
  }
}

/** Watches a process' memory until it is told to end. */
export class MemoryWatch {
  peak = { anonymous: 0, resident: 0 };
  #timer;

  constructor(pid, everyMs = 50) {
    this.#timer = setInterval(() => this.#sample(pid), everyMs);
    this.#sample(pid);
  }

  #sample(pid) {
    const now = usage(pid);
    if (now === undefined) return;
    this.peak.anonymous = Math.max(this.peak.anonymous, now.anonymous);
    // The kernel keeps the highest resident size itself.
    this.peak.resident = Math.max(this.peak.resident, now.resident, now.residentPeak);
  }

  end() {
    clearInterval(this.#timer);
    return this.peak;
  }
}
