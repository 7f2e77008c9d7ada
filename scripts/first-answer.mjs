// `node scripts/first-answer.mjs FOLDER`: how long it takes from `npm install` in an empty directory to a first semantic answer, with
// the packages of FOLDER (`npm run pack:all -- FOLDER`) in a registry of their own, an empty cache, and no Rust on the PATH. What is
// carried out are the lines of packages/server/README.md. The registry is verdaccio; it asks npm's for other packages.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';

import { at } from './lib/paths.mjs';
import { StepFailed, main, mustRun } from './lib/process.mjs';

const VERDACCIO = '6.2.4';

/** One of its packages asks for a tag of another one, which not every mirror of npm's registry has. */
const OVERRIDES = { 'node-fetch': '2.7.0' };

await main(async ([tarballs]) => {
  if (tarballs === undefined) throw new StepFailed('usage: first-answer.mjs FOLDER');
  const folder = mkdtempSync(join(tmpdir(), 'sparrow-first-'));
  const processes = [];
  try {
    const registry = await startRegistry(folder, processes);
    const { version } = JSON.parse(readFileSync(at('package.json'), 'utf8'));
    const userconfig = join(folder, 'npmrc');
    writeFileSync(userconfig, `${registry.replace('http:', '')}:_authToken=anybody\n`);
    const publish = [at('scripts', 'publish.mjs'), resolve(tarballs), version, '--rehearsal', registry];
    await mustRun(process.execPath, publish, { env: { npm_config_userconfig: userconfig }, quiet: true });
    await measure(folder, registry, userconfig, processes);
  } finally {
    for (const child of processes) {
      if (child.exitCode === null) process.kill(-child.pid, 'SIGTERM');
    }
    await sleep(500);
    rmSync(folder, { recursive: true, force: true });
  }
});

async function startRegistry(folder, processes) {
  const config = join(folder, 'verdaccio.yaml');
  const rights = { access: '$all', publish: '$all' };
  const packages = { '@sparrow-search/*': rights, '**': { ...rights, proxy: 'npmjs' } };
  const upstream = spawnSync('npm', ['config', 'get', 'registry'], { encoding: 'utf8' }).stdout.trim();
  const settings = {
    storage: join(folder, 'storage'),
    uplinks: { npmjs: { url: upstream } },
    packages,
    max_body_size: '200mb',
    log: { type: 'stdout', format: 'json', level: 'error' },
  };
  // YAML reads JSON.
  writeFileSync(config, JSON.stringify(settings));
  const port = await freePort();
  const url = `http://127.0.0.1:${String(port)}/`;
  const manifest = { private: true, dependencies: { verdaccio: VERDACCIO }, overrides: OVERRIDES };
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
  await mustRun('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: folder, quiet: true });
  const program = join(folder, 'node_modules', 'verdaccio', 'bin', 'verdaccio');
  const args = [program, '--config', config, '--listen', `127.0.0.1:${String(port)}`];
  processes.push(spawn(process.execPath, args, { cwd: folder, stdio: 'inherit', detached: true }));
  await until(async () => (await fetch(`${url}-/ping`)).ok, 120_000, 'the registry');
  return url;
}

async function measure(folder, registry, userconfig, processes) {
  const home = join(folder, 'empty');
  mkdirSync(home);
  const page = readFileSync(at('packages', 'server', 'README.md'), 'utf8');
  const [, first = '', second = ''] = /^```sh\n(.*?)^```$.*?^```sh\n(.*?)^```$/ms.exec(page) ?? [];
  const [install, serve] = first.trim().split('\n');
  const port = String(await freePort());
  const env = {
    ...process.env,
    PATH: pathWithoutRust(),
    SPARROW_PORT: port,
    npm_config_registry: registry,
    npm_config_userconfig: userconfig,
    npm_config_cache: join(folder, 'cache'),
    npm_config_ignore_scripts: 'false',
  };
  const shell = (line) => spawnSync('bash', ['-ec', line], { cwd: home, env, encoding: 'utf8' });
  const begun = performance.now();
  const seconds = () => ((performance.now() - begun) / 1000).toFixed(1);

  const { status, stderr } = shell(install);
  if (status !== 0) throw new StepFailed(`${install}: ${stderr}`);
  console.log(`installed after ${seconds()} s`);
  processes.push(spawn('bash', ['-ec', serve], { cwd: home, env, stdio: 'ignore', detached: true }));
  const ready = async () =>
    existsSync(join(home, 'data', 'owner.key')) && (await fetch(`http://127.0.0.1:${port}/`)).status === 401;
  await until(ready, 60_000, 'the server');
  console.log(`serves after ${seconds()} s`);
  const answers = shell(second.replaceAll('localhost:9200', `127.0.0.1:${port}`))
    .stdout.trim()
    .split('\n');
  const { hits } = JSON.parse(answers.at(-1));
  if (hits?.hits[0]?._id !== '2') throw new StepFailed(`no semantic answer: ${answers.join('\n')}`);
  console.log(`the first semantic answer after ${seconds()} s: ${JSON.stringify(hits.hits[0])}`);
}

/** Waits until something is true; what it throws counts as false. */
async function until(isSo, ms, what) {
  for (const end = performance.now() + ms; performance.now() < end; await sleep(50)) {
    if (await isSo().catch(() => false)) return;
  }
  throw new StepFailed(`${what} did not come up within ${String(ms / 1000)} s`);
}

/** A PATH without any Rust tool. */
function pathWithoutRust() {
  const kept = (process.env.PATH ?? '')
    .split(delimiter)
    .filter((directory) => !['cargo', 'rustc'].some((name) => existsSync(join(directory, name))));
  return [dirname(process.execPath), ...kept].join(delimiter);
}

function freePort() {
  return new Promise((done, fail) => {
    const server = createServer();
    server.on('error', fail);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => done(port));
    });
  });
}
