// Three nodes of OpenSearch 2, each a process of its own, over the jars that the launcher of the peer has fetched.
import { execFile, spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const PLUGINS = 'org.opensearch.knn.plugin.KNNPlugin,org.opensearch.neuralsearch.plugin.NeuralSearch';
const START_MS = 380_000;

/** Where the launcher keeps the jars, or undefined before its first use. */
export async function openSearchJars() {
  const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'sparrow-peers', 'opensearch-2');
  const stamp = await readFile(join(cache, 'stamp')).catch(() => undefined);
  return stamp === undefined ? undefined : join(cache, 'lib/*');
}

/**
 * Starts the nodes, and resolves once they are one cluster. They live no longer than they are told to: `stop` kills them.
 *
 * @param {{ peers: string, libraries: string, folder: string, port: number, heap: string }} options `folder` keeps their data, `port` and
 *   the two behind it, and those 100 higher, are free
 * @returns {Promise<{ urls: string[], pids: number[], stop: () => Promise<void> }>}
 */
export async function startThreeNodes({ peers, libraries, folder, port, heap }) {
  const { stdout } = await run('bash', ['-c', '. "$0"/common.sh; find_java 17 23', peers]);
  const bin = join(stdout.trim(), 'bin');
  const classes = join(folder, 'classes');
  // Once, and not by each of the nodes while it starts.
  const source = join(dirname(fileURLToPath(import.meta.url)), 'ClusterNode.java');
  await run(join(bin, 'javac'), ['-cp', libraries, '-d', classes, source]);
  const data = join(folder, 'data');
  const nodes = [0, 1, 2].map((node) =>
    spawn(
      join(bin, 'java'),
      [
        ...[`-Xms${heap}`, `-Xmx${heap}`, '--add-modules=jdk.incubator.vector', `-Dplugins=${PLUGINS}`],
        ...['--add-opens=java.base/java.nio.file=ALL-UNNAMED', `-Dnode=${node}`, '-Dnodes=3', `-Dhttp.base=${port}`],
        ...[`-Dbase=${join(data, String(node))}`, `-Drepo=${join(data, 'repo')}`],
        ...['-cp', `${classes}:${libraries}`, 'ClusterNode'],
      ],
      // Each stands for a machine: a session of its own has as much of the processor as the others have.
      { detached: true, stdio: ['ignore', 'inherit', 'inherit'] },
    ),
  );
  const gone = Promise.all(nodes.map((node) => new Promise((resolve) => node.once('exit', resolve))));
  const stop = async () => {
    for (const node of nodes) node.kill('SIGKILL');
    await gone;
  };
  const health = `http://127.0.0.1:${port}/_cluster/health?wait_for_nodes=3&timeout=2s`;
  for (const end = Date.now() + START_MS; Date.now() < end;) {
    const isReady = await fetch(health).then(
      ({ ok }) => ok,
      () => false,
    );
    if (isReady) {
      const urls = [0, 1, 2].map((node) => `http://127.0.0.1:${port + node}`);
      return { urls, pids: nodes.map(({ pid }) => pid), stop };
    }
    if (nodes.some(({ exitCode }) => exitCode !== null)) break;
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
  await stop();
  throw new Error('the three nodes did not come to one cluster');
}
