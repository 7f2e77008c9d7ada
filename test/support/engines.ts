// The engines that the conformance suite runs against: the native one always, one over a cluster where there is one to write to.
import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { type Found, type Kind, startCluster } from './cluster/start.js';
import { type RunningServer, type StartOptions, startServer } from './server.js';

/** An address, the kind of cluster to start, or `none`. */
const WANTED = process.env['SPARROW_TEST_CLUSTER'] ?? 'opensearch-2';

const KINDS: readonly string[] = [
  'opensearch-2',
  'opensearch-2-three-nodes',
  'opensearch-3',
  'elasticsearch-8',
] satisfies Kind[];

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

/** The addresses of a cluster that tests may write to, with commas between them. */
export const CLUSTER = 'addresses' in FOUND ? FOUND.addresses : undefined;

/** One of its nodes, for a test that asks past Sparrow; nothing where there is no cluster. */
export const [NODE = ''] = (CLUSTER ?? '').split(',');

/** Whether it is an Elasticsearch; the one of the peers has only some of its modules: no `_reindex`, scripts, or `_rank_eval`. */
export const IS_ELASTICSEARCH = CLUSTER !== undefined && (await versionOf(NODE)).startsWith('8.');

async function versionOf(node: string): Promise<string> {
  const answer = await fetch(`${node}/_nodes?filter_path=nodes.*.version`);
  const { nodes } = (await answer.json()) as { nodes: Readonly<Record<string, { version: string }>> };
  return Object.values(nodes)[0]?.version ?? '';
}

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

/**
 * Removes what files and pages before have left in a cluster, and leaves the owner key where the command line looks for it: over a
 * cluster, only the first of all servers has it in its data directory.
 */
export async function emptied(server: RunningServer): Promise<void> {
  await writeFile(join(server.data, 'owner.key'), `${server.apiKey}\n`, { mode: 0o600 });
  // A copy that goes on would make its index again.
  await server.request('POST', '/_tasks/_cancel?actions=*reindex');
  const { body: indices } = await server.request('GET', '/_cat/indices?format=json&h=index');
  for (const { index } of indices as { index: string }[]) {
    if (!index.startsWith('.')) await server.request('DELETE', `/${encodeURIComponent(index)}`);
  }
  const { body: pipelines } = await server.request('GET', '/_ingest/pipeline');
  for (const id of Object.keys(pipelines as object)) await server.request('DELETE', `/_ingest/pipeline/${id}`);
  const { body: inference } = await server.request('GET', '/_inference');
  for (const { inference_id: id } of (inference as { endpoints: { inference_id: string }[] }).endpoints) {
    if (!id.startsWith('.')) await server.request('DELETE', `/_inference/${id}?force=true`);
  }
  const { body: repositories } = await server.request('GET', '/_snapshot');
  for (const name of Object.keys(repositories as object)) {
    await server.request('DELETE', `/_snapshot/${name}/*`);
    await server.request('DELETE', `/_snapshot/${name}`);
  }
  const { body: keys } = await server.request('GET', '/_security/api_key?active_only=true');
  const [owner] = Buffer.from(server.apiKey, 'base64').toString().split(':');
  const ids = (keys as { api_keys: { id: string }[] }).api_keys.map(({ id }) => id).filter((id) => id !== owner);
  if (ids.length > 0) await server.request('DELETE', '/_security/api_key', { ids });
}
