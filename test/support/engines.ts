// The engines that the conformance suite runs against: the native one always, one over a cluster where there is one to write to.
import { randomBytes } from 'node:crypto';

import { type RunningServer, type StartOptions, startServer } from './server.js';

/** The address of a cluster that tests may write to. */
export const CLUSTER = process.env['SPARROW_TEST_CLUSTER'];

/** Why nothing runs over a cluster, as the name of a test that is passed over. */
export const NO_CLUSTER =
  'SPARROW_TEST_CLUSTER names no cluster: give it the address of an OpenSearch 2 or 3 or an Elasticsearch 8 to write to';

export interface Engine {
  readonly name: 'native' | 'cluster';
  /** A server over the engine. All of one cluster have the same owner key. */
  readonly start: (options?: StartOptions) => Promise<RunningServer>;
}

const KEY = Buffer.from(`owner:${randomBytes(24).toString('base64url')}`).toString('base64');

export const NATIVE: Engine = { name: 'native', start: startServer };

export const OVER_CLUSTER: Engine = {
  name: 'cluster',
  start: (options = {}) =>
    startServer({
      ...options,
      args: ['--cluster', CLUSTER ?? '', ...(options.args ?? [])],
      env: { SPARROW_API_KEY: KEY, ...options.env },
    }),
};

export const ENGINES: readonly Engine[] = CLUSTER === undefined ? [NATIVE] : [NATIVE, OVER_CLUSTER];
