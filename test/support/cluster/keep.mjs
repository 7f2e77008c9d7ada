// node keep.mjs KIND STATE PID PEERS: a cluster for the tests of the process PID, stopped and removed when that process is gone.
//
// The folder STATE gets `address` once the cluster answers, or `failed` with what went wrong. The launchers of PEERS fetch with Maven
// what they have not yet.
import { execFile, spawn } from 'node:child_process';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const [kind = '', state = '', pid = '', peers = ''] = process.argv.slice(2);
const data = join(state, 'data');
const HEAP = '640m';

/** A port P such that P to P+2 and P+100 to P+102 are free. */
async function freePorts() {
  for (let attempt = 0; attempt < 50; attempt += 1) {
    const base = 21_000 + 200 * Math.floor(Math.random() * 40);
    const free = await Promise.all([0, 1, 2, 100, 101, 102].map((more) => isFree(base + more)));
    if (free.every(Boolean)) return base;
  }
  throw new Error('no free ports');
}

function isFree(port) {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

/** Starts one node by the launcher of the peer; resolves with how to stop it. */
async function oneNode(port) {
  const [script, ...options] =
    kind === 'elasticsearch-8'
      ? ['elasticsearch/elasticsearch.sh']
      : ['opensearch/opensearch.sh', '--version', kind.endsWith('3') ? '3' : '2'];
  const launcher = (...args) =>
    run(join(peers, script), args, { maxBuffer: 1 << 24, env: { PEERS_WAIT: '300', ...process.env } });
  if (kind.startsWith('opensearch')) {
    // Snapshots need a folder that the node knows; the launcher leaves a configuration alone that is there.
    await mkdir(join(data, 'node_1/config'), { recursive: true });
    await writeFile(join(data, 'node_1/config/opensearch.yml'), `path.repo: ${JSON.stringify([join(data, 'repo')])}\n`);
  }
  await launcher('start', ...options, '--port', String(port), '--heap', HEAP, '--data', data);
  return () => launcher('stop', '--port', String(port));
}

/** Starts three nodes of OpenSearch 2, each a process of its own, over the jars of the peer. */
async function threeNodes(port) {
  const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'sparrow-peers', 'opensearch-2');
  if ((await readFile(join(cache, 'stamp')).catch(() => undefined)) === undefined) await (await oneNode(port))();
  const { stdout } = await run('bash', ['-c', '. "$0"/common.sh; find_java 17 23', peers]);
  const bin = join(stdout.trim(), 'bin');
  const [libraries, classes] = [join(cache, 'lib/*'), join(state, 'classes')];
  // Once, and not by each of the nodes while it starts.
  await run(join(bin, 'javac'), [
    '-cp',
    libraries,
    '-d',
    classes,
    join(dirname(fileURLToPath(import.meta.url)), 'ClusterNode.java'),
  ]);
  const plugins = 'org.opensearch.knn.plugin.KNNPlugin,org.opensearch.neuralsearch.plugin.NeuralSearch';
  const nodes = [0, 1, 2].map((node) =>
    spawn(
      join(bin, 'java'),
      [
        ...['-Xms512m', '-Xmx512m', '--add-modules=jdk.incubator.vector', `-Dplugins=${plugins}`],
        ...['--add-opens=java.base/java.nio.file=ALL-UNNAMED', `-Dnode=${node}`, '-Dnodes=3', `-Dhttp.base=${port}`],
        ...[`-Dbase=${join(data, String(node))}`, `-Drepo=${join(data, 'repo')}`],
        ...['-cp', `${classes}:${libraries}`, 'ClusterNode'],
      ],
      { stdio: ['ignore', 'inherit', 'inherit'] },
    ),
  );
  const gone = Promise.all(nodes.map((node) => new Promise((resolve) => node.once('exit', resolve))));
  const stop = async () => {
    for (const node of nodes) node.kill('SIGKILL');
    await gone;
  };
  for (const end = Date.now() + 380_000; Date.now() < end;) {
    const health = `http://127.0.0.1:${port}/_cluster/health?wait_for_nodes=3&timeout=2s`;
    if (
      await fetch(health).then(
        ({ ok }) => ok,
        () => false,
      )
    )
      return stop;
    if (nodes.some(({ exitCode }) => exitCode !== null)) break;
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
  await stop();
  throw new Error('the three nodes did not come to one cluster');
}

function lives() {
  try {
    process.kill(Number(pid), 0);
    return true;
  } catch {
    return false;
  }
}

let stop;
try {
  await mkdir(data, { recursive: true });
  const port = await freePorts();
  const isThree = kind.endsWith('-nodes');
  stop = await (isThree ? threeNodes : oneNode)(port);
  const all = (isThree ? [0, 1, 2] : [0]).map((node) => `http://127.0.0.1:${port + node}`);
  await writeFile(join(state, 'address'), all.join(','), { flag: 'wx' });
} catch (error) {
  await writeFile(join(state, 'failed'), String(error?.stderr || error?.message || error));
}
while (lives()) await new Promise((resolve) => setTimeout(resolve, 500));
await stop?.();
await rm(state, { recursive: true, force: true });
