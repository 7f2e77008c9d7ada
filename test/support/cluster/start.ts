// Clusters for tests: started where there is what starts one, and shared by all files of a run.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Clusters that can be started. */
export type Kind = 'opensearch-2' | 'opensearch-3' | 'elasticsearch-8' | 'opensearch-2-three-nodes';

/** A cluster that answers; or why there is none. */
export type Found = { readonly addresses: string } | { readonly missing: string };

/** Launchers of real clusters; they are no part of the repository. */
const PEERS = process.env['SPARROW_TEST_PEERS'] ?? fileURLToPath(new URL('../../../../shared/peers', import.meta.url));

/** The first start of a kind fetches it. */
const START_MS = 400_000;

/** Says why no cluster can be started here; undefined where one can. */
export function whyNone(): string | undefined {
  if (!existsSync(join(PEERS, 'opensearch/opensearch.sh'))) {
    return 'there are no launchers of clusters: SPARROW_TEST_CLUSTER can name an OpenSearch 2 or 3 or an Elasticsearch 8 to write to';
  }
  for (const program of ['mvn', 'java', 'curl', 'bash']) {
    if (spawnSync('which', [program]).status !== 0) return `starting a cluster needs ${program}`;
  }
  return undefined;
}

/** Whether tests may write to a cluster: one that is named, or one that can be started here. */
export function mayStartCluster(): boolean {
  const wanted = process.env['SPARROW_TEST_CLUSTER'];
  return wanted === undefined ? whyNone() === undefined : wanted !== 'none';
}

/** Starts a cluster that lives as long as this run of tests; the second who asks for it gets the same. */
export async function startCluster(kind: Kind): Promise<Found> {
  const missing = whyNone();
  if (missing !== undefined) return { missing };
  // Workers are children of the process that runs the tests.
  const state = join(tmpdir(), `sparrow-test-${kind}-${process.ppid}`);
  if (mkdirSync(state, { recursive: true }) !== undefined) {
    const log = openSync(join(state, 'keeper.log'), 'a');
    const keeper = fileURLToPath(new URL('keep.mjs', import.meta.url));
    const args = [keeper, kind, state, String(process.ppid), PEERS];
    spawn(process.execPath, args, { detached: true, stdio: ['ignore', log, log] }).unref();
  }
  for (const end = Date.now() + START_MS; Date.now() < end;) {
    const addresses = textOf(join(state, 'address'));
    if (addresses !== undefined) return { addresses };
    const failed = textOf(join(state, 'failed'));
    if (failed !== undefined) throw new Error(`the cluster ${kind} did not start: ${failed}`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  throw new Error(`the cluster ${kind} did not start in ${START_MS / 1000} s`);
}

function textOf(file: string): string | undefined {
  const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
  return text === '' ? undefined : text;
}
