// node keep.mjs KIND STATE PID PEERS: a cluster for the tests of the process PID, stopped and removed when that process is gone.
//
// The folder STATE gets `address` once the cluster answers, or `failed` with what went wrong. The launchers of PEERS fetch with Maven
// what they have not yet.
import { execFile } from 'node:child_process';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { openSearchJars, startThreeNodes } from './three-nodes.mjs';

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

/** Starts three nodes of OpenSearch 2; the jars are fetched by the first start of one. */
async function threeNodes(port) {
  if ((await openSearchJars()) === undefined) await (await oneNode(port))();
  const libraries = await openSearchJars();
  return (await startThreeNodes({ peers, libraries, folder: state, port, heap: '512m' })).stop;
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
