// The engines that the conformance suite runs against: the native one always, one over a cluster where there is one to write to.
import { createHash } from 'node:crypto';

import { type Found, type Kind, startCluster } from './cluster/start.js';
import { type RunningServer, type StartOptions, startServer } from './server.js';

/** An address, the kind of cluster to start, or `none`. */
const WANTED = process.env['SPARROW_TEST_CLUSTER'] ?? 'opensearch-2';

const KINDS: readonly string[] = ['opensearch-2', 'opensearch-3', 'elasticsearch-8'] satisfies Kind[];

async function found(): Promise<Found> {
  if (/^https?:/.test(WANTED)) return { addresses: WANTED };
  if (WANTED === 'none') return { missing: 'SPARROW_TEST_CLUSTER is none' };
  if (!KINDS.includes(WANTED))
    throw new Error(`SPARROW_TEST_CLUSTER is ${WANTED}: an address, none, or ${KINDS.join(', ')}`);
  try {
    return await startCluster(WANTED as Kind);
  } catch (error) {
    // Nobody asked for it: there may be no network to fetch it from.
    if (process.env['SPARROW_TEST_CLUSTER'] === undefined) return { missing: String(error) };
    throw error;
  }
}

const FOUND = await found();

/** The address of a cluster that tests may write to. */
export const CLUSTER = 'addresses' in FOUND ? FOUND.addresses : undefined;

/** Why nothing runs over a cluster, as the name of a test that is passed over. */
export const NO_CLUSTER = 'missing' in FOUND ? FOUND.missing : '';

export interface Engine {
  readonly name: 'native' | 'cluster';
  /** A server over the engine. All of one cluster have the same owner key. */
  readonly start: (options?: StartOptions) => Promise<RunningServer>;
}

// Files of tests that run at the same time over one cluster have one owner.
const SECRET = createHash('sha256')
  .update(`${CLUSTER ?? ''} ${String(process.ppid)}`)
  .digest('base64url');
const KEY = Buffer.from(`owner:${SECRET}`).toString('base64');

export const NATIVE: Engine = { name: 'native', start: startServer };

export const OVER_CLUSTER: Engine = {
  name: 'cluster',
  start: (options = {}) =>
    startServer({
      ...options,
      args: ['--cluster', CLUSTER ?? '', ...(options.args ?? [])],
      // A cluster that is there for several runs has the owner key of the run before.
      env: { SPARROW_API_KEY: KEY, SPARROW_CLUSTER_REPLACE_OWNER_KEY: 'true', ...options.env },
    }),
};

export const ENGINES: readonly Engine[] = CLUSTER === undefined ? [NATIVE] : [NATIVE, OVER_CLUSTER];
