// One measurement: a load in a process of its own, and the server's clocks around it.
import { fork } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { usage } from '../../scripts/lib/server-process.mjs';
import { threadCpu } from './servers.mjs';

const LOAD = fileURLToPath(new URL('load.mjs', import.meta.url));

/** Milliseconds of processor time that all threads of all processes of a server have had. */
export const processorTime = ({ pid, pids = [pid] }) =>
  pids.flatMap((one) => [...threadCpu(one).values()]).reduce((sum, nanoseconds) => sum + nanoseconds / 1e6, 0);

/**
 * @param {{ work: string }} context
 * @param {object} server one of `servers.mjs`; with `urls` and `pids` of several that are alike, all of them share the clients
 * @param {{ text: string, tokens?: Record<string, number> }[]} requests
 * @param {{ clients: number, count: number, warm: number, probe?: string }} plan
 */
export async function ask(context, server, requests, plan) {
  const folder = mkdtempSync(join(context.work, 'load-'));
  const file = join(folder, 'plan.json');
  const bodies = requests.slice(0, plan.count + plan.warm).map((request) => JSON.stringify(server.query(request)));
  const { url, urls, path, headers } = server;
  writeFileSync(file, JSON.stringify({ ...plan, url, urls, path, headers, bodies }));
  try {
    const child = fork(LOAD, [file]);
    let before;
    const result = await new Promise((resolve, reject) => {
      child.on('message', async (message) => {
        if (message !== 'warm') return resolve(message);
        await server.eventLoopDelay?.();
        before = { process: processorTime(server), threads: threadCpu(server.pid) };
        child.send('go');
      });
      child.on('exit', (code) => reject(new Error(`the load ended with ${code}`)));
    });
    const cpuMicros = ((processorTime(server) - before.process) * 1000) / plan.count;
    const { anonymous, resident } = usage(server.pid);
    const threads = {};
    for (const [name, spent] of threadCpu(server.pid)) {
      const micros = (spent - (before.threads.get(name) ?? 0)) / 1000 / plan.count;
      if (micros >= 1) threads[name] = Math.round(micros);
    }
    const delay = await server.eventLoopDelay?.();
    return {
      ...result,
      serverCpuMicros: Math.round(cpuMicros),
      ...(server.name === 'Sparrow' ? { cpuMicrosByThread: threads, eventLoopDelayMs: delay } : {}),
      memory: { anonymous, resident },
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
