// A Sparrow server over a cluster that is there already, for benchmarks that compare the two.
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';

import { findApiKey } from '../../scripts/lib/api-client.mjs';
import { CLI } from '../../scripts/lib/paths.mjs';
import { startServer } from '../../scripts/lib/server-process.mjs';

/**
 * Starts such a server with a data directory of its own, and stops it when the work is done.
 *
 * @template T
 * @param {string} cluster the address of the cluster
 * @param {(server: { url: string, apiKey: string }) => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function withClusterServer(cluster, work) {
  // The cluster may have had another owner before.
  process.env.SPARROW_API_KEY = Buffer.from(`owner:${randomBytes(24).toString('base64url')}`).toString('base64');
  const data = mkdtempSync(join(tmpdir(), 'sparrow-over-cluster-'));
  try {
    const server = await startServer(process.execPath, [CLI, '--cluster', cluster], data);
    try {
      return await work({ url: server.url, apiKey: findApiKey(data) });
    } finally {
      await server.stop();
    }
  } finally {
    rmSync(data, { recursive: true, force: true });
  }
}

/** What a cluster says it is, from the body of `GET /`. */
export const productOf = ({ version }) => `${version.distribution ?? 'elasticsearch'} ${version.number}`;

/** Options as a record has them: where the cluster was says nothing to others. */
export const withoutAddress = (args, cluster) => args.map((arg) => arg.replace(cluster, 'URL'));
