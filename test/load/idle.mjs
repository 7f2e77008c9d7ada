// When a process has nothing to do any more, seen from outside.
import { readFileSync, readdirSync } from 'node:fs';

/** The process is idle when it used less than this share of one core for so many milliseconds. */
const IDLE_SHARE = 0.3;
const IDLE_MS = 60;
const LOOK_MS = 5;

/** When it is no longer waited for the work to end, in milliseconds. */
const PATIENCE_MS = 60_000;

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Processor time of all threads of a process, in milliseconds: `schedstat` counts nanoseconds. */
function cpuMs(pid) {
  let sum = 0;
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    try {
      sum += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]);
    } catch {
      // A thread that has just ended.
    }
  }
  return sum / 1e6;
}

/** How long the process goes on working from now, in milliseconds; no more than `patienceMs` if it does not end. */
export async function untilIdle(pid, patienceMs = PATIENCE_MS) {
  const begun = performance.now();
  const looks = [[begun, cpuMs(pid)]];
  let last = begun;
  while (performance.now() - begun < patienceMs) {
    await sleep(LOOK_MS);
    const now = performance.now();
    looks.push([now, cpuMs(pid)]);
    const [since, used] = looks.at(-2);
    if ((looks.at(-1)[1] - used) / (now - since) > IDLE_SHARE) last = now;
    if (now - last > IDLE_MS) break;
  }
  return last - begun;
}
