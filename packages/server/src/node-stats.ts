import { readFile } from 'node:fs/promises';
import process from 'node:process';

import type { Identity } from './identity.js';

/** Body of `GET /_nodes/stats`: what this process uses, engine included. */
export async function nodeStats(identity: Identity): Promise<object> {
  const { rss } = process.memoryUsage();
  const anonymous = await anonymousMemory();
  const cpu = process.cpuUsage();
  return {
    _nodes: { total: 1, successful: 1, failed: 0 },
    cluster_name: identity.clusterName,
    nodes: {
      [identity.clusterUuid]: {
        timestamp: Date.now(),
        name: identity.name,
        process: {
          cpu: { total_in_millis: Math.round((cpu.user + cpu.system) / 1000) },
          mem: {
            resident_in_bytes: rss,
            ...(anonymous === undefined ? {} : { anonymous_in_bytes: anonymous }),
          },
          uptime_in_millis: Math.round(process.uptime() * 1000),
        },
      },
    },
  };
}

/**
 * Memory that is not a mapped file. Resident memory alone says little of a server that maps its indices: the system takes
 * those pages back whenever it needs them. Only Linux tells the two apart.
 */
async function anonymousMemory(): Promise<number | undefined> {
  try {
    const status = await readFile('/proc/self/status', 'utf8');
    const kilobytes = /^RssAnon:\s+(\d+) kB$/m.exec(status)?.[1];
    return kilobytes === undefined ? undefined : Number(kilobytes) * 1024;
  } catch {
    return undefined;
  }
}
