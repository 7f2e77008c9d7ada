// Sparrow servers over a cluster that is there already, for benchmarks that compare the two.
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';

import { createClient } from '../../scripts/lib/api-client.mjs';
import { CLI } from '../../scripts/lib/paths.mjs';
import { startServer } from '../../scripts/lib/server-process.mjs';

/**
 * Starts servers over one cluster, each with a data directory of its own, and stops them when the work is done.
 *
 * @template T
 * @param {string} cluster the address of the cluster
 * @param {number} count how many
 * @param {(servers: { url: string, pid: number, headers: Record<string, string>, request: ReturnType<typeof createClient> }[]) => Promise<T>} work
 * @param {string[]} [node] options for Node itself
 * @returns {Promise<T>}
 */
export async function withClusterServers(cluster, count, work, node = []) {
  // The cluster may have had another owner before. All servers of one cluster have the same.
  const before = process.env.SPARROW_API_KEY;
  const apiKey = Buffer.from(`owner:${randomBytes(24).toString('base64url')}`).toString('base64');
  process.env.SPARROW_API_KEY = apiKey;
  const folder = mkdtempSync(join(tmpdir(), 'sparrow-over-cluster-'));
  const servers = [];
  try {
    for (let number = 0; number < count; number += 1) {
      const args = [...node, CLI, '--cluster', cluster];
      // In a session of its own an answer would wait at every step from one process to the next where others use the machine.
      servers.push(await startServer(process.execPath, args, join(folder, String(number)), { ownSession: false }));
    }
    return await work(
      servers.map(({ url, pid }) => ({
        url,
        pid,
        headers: { Authorization: `ApiKey ${apiKey}`, 'Content-Type': 'application/json' },
        request: createClient({ url, apiKey }),
      })),
    );
  } finally {
    for (const server of servers) await server.stop();
    rmSync(folder, { recursive: true, force: true });
    if (before === undefined) delete process.env.SPARROW_API_KEY;
    else process.env.SPARROW_API_KEY = before;
  }
}
