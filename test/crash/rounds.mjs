// Rounds: load, a kill at a random moment, a restart, a comparison; then on with the same data.
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';

import { findApiKey } from '../../scripts/lib/api-client.mjs';
import { CLI } from '../../scripts/lib/paths.mjs';
import { spawnServer } from '../../scripts/lib/server-process.mjs';
import { createSender } from '../rest-suites/client.mjs';
import { Client } from './clients.mjs';
import { compareCatalogue, compareDocuments } from './compare.mjs';
import { makeQueries, PROPERTIES } from './documents.mjs';
import { finishTasks } from './job-operations.mjs';
import { IndexModel, Model } from './model.mjs';
import { observeCatalogue, observeDocuments } from './observe.mjs';
import { plantOldIndex } from './old-format.mjs';
import { Random } from './random.mjs';
import { Register } from './register.mjs';
import { SWITCHED_OFF } from './switched-off.mjs';
import { World } from './world.mjs';

const CLIENTS = 5;
const SHARED_INDICES = 3;
/** Rounds after which a fresh data directory is taken. */
const ROUNDS_PER_DIRECTORY = 20;
const MAX_LOAD_MS = 1500;
/** Problems of a round whose log is printed; all are in the report. */
const LOGS_SHOWN = 5;
const READY_BOUND_MS = 30_000;
const SERVER_ARGS = [CLI, '--deploy-at-start', 'false', '--shutdown-seconds', '3'];

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** A server on a data directory, killed and started again. */
class Server {
  constructor(data) {
    this.data = data;
  }

  /** Ends the server at once where the harness itself is ended. */
  endWithHarness = () => {
    if (this.child?.running()) process.kill(-this.child.pid, 'SIGKILL');
  };

  /** Starts and waits until it is ready. */
  async start() {
    this.child = spawnServer(process.execPath, SERVER_ARGS, this.data);
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(
        () => reject(new Error(`not ready after ${READY_BOUND_MS} ms:\n${this.child.output()}`)),
        READY_BOUND_MS,
      );
    });
    const { url } = await Promise.race([this.child.ready, late]).finally(() => clearTimeout(timer));
    const send = createSender({ url, apiKey: findApiKey(this.data) });
    this.send = (method, path, body) =>
      send({
        method,
        path,
        body: body === undefined || typeof body === 'string' ? body : JSON.stringify(body),
        contentType: typeof body === 'string' ? 'application/x-ndjson' : 'application/json',
      });
    const health = await this.send('GET', '/_health');
    if (health.status !== 200) throw new Error(`/_health answers ${health.status}: ${health.text}`);
  }

  /** Starts and kills after some milliseconds, ready or not. */
  async startAndKill(afterMs) {
    this.child = spawnServer(process.execPath, SERVER_ARGS, this.data);
    this.child.ready.catch(() => {});
    await Promise.race([pause(afterMs), this.child.exited]);
    await this.end('SIGKILL');
  }

  async end(signal) {
    try {
      process.kill(-this.child.pid, signal);
    } catch (error) {
      if (error.code !== 'ESRCH') throw error;
    }
    await this.child.exited;
  }
}

/** A data directory, its server, its model and its clients, for some rounds. */
class Life {
  constructor(random) {
    this.data = mkdtempSync(join(tmpdir(), 'sparrow-crash-'));
    this.model = new Model();
    this.clients = Array.from({ length: CLIENTS }, (_, number) => new Client(number, CLIENTS, this.model));
    this.server = new Server(this.data);
    this.random = random;
    this.rounds = 0;
    this.planted = 0;
  }

  async begin() {
    this.plant();
    await this.server.start();
    const { send } = this.server;
    const must = async (...request) => {
      const answer = await send(...request);
      if (answer.status !== 200)
        throw new Error(`${request[0]} ${request[1]} answered ${answer.status}: ${answer.text}`);
    };
    await must('PUT', '/_cluster/settings', { persistent: { 'action.auto_create_index': 'false' } });
    for (let n = 0; n < SHARED_INDICES; n += 1) {
      const index = this.model.add(new IndexModel(`shared-${n}`, { owner: n % CLIENTS, ordinal: n }));
      await must('PUT', `/${index.name}`, {
        settings: { number_of_replicas: 0, refresh_interval: '100ms' },
        mappings: { properties: PROPERTIES },
      });
    }
    for (const { number } of this.clients) {
      const index = `shared-${number % SHARED_INDICES}`;
      await must('POST', '/_aliases', { actions: [{ add: { index, alias: `alias-${number}` } }] });
      this.model.aliases.set(`alias-${number}`, new Register(index));
    }
  }

  /** Adds an index of the old format where none is left. The server must not be running. */
  plant() {
    if (this.model.live.some(({ shape, upgraded }) => shape === 'old' && !upgraded)) return;
    this.planted += 1;
    // The older ones are deleted by their owners sooner or later.
    this.model.add(plantOldIndex(this.data, `old-${this.planted}`, this.random.below(CLIENTS)));
  }
}

/**
 * Runs rounds until there are enough, or too many problems.
 *
 * @param {object} options
 * @param {number} options.rounds
 * @param {number} options.seed
 * @param {number} [options.maxProblems] rounds with a problem after which no other begins
 * @param {number} [options.milliseconds] after which no other round begins
 * @param {Set<string>} [options.off] names of operations that are left out
 * @param {(line: string) => void} [options.say] told of each problem
 * @param {(data: string) => void} [options.damage] what a test does to the data directory before each restart
 */
export async function runRounds({
  rounds,
  seed,
  maxProblems = 5,
  milliseconds = Infinity,
  off = new Set(SWITCHED_OFF.keys()),
  say = () => {},
  damage = () => {},
}) {
  const random = Random.of(seed);
  const counts = { rounds: 0, kills: 0, terminations: 0, operations: 0, documents: 0, searches: 0, upgrades: 0 };
  const report = { seed, ...counts, lost: 0, wrong: 0, seconds: 0, failures: /** @type {object[]} */ ([]) };
  const begun = performance.now();
  let life;
  while (report.rounds < rounds && report.failures.length < maxProblems && performance.now() - begun < milliseconds) {
    if (life === undefined) {
      life = new Life(random);
      process.once('exit', life.server.endWithHarness);
      await life.begin();
    }
    const world = new World(life.model, life.server.send, { round: report.rounds, off });
    try {
      await oneRound(life, world, report, { seed, damage });
    } catch (error) {
      world.fail('round broken', { answer: error.message });
    }
    report.rounds += 1;
    life.rounds += 1;
    report.operations += world.operations;
    if (world.problems.length > 0) {
      await life.server.end('SIGKILL');
      recordProblems(life, world, report, say);
      life = undefined;
    } else if (life.rounds >= ROUNDS_PER_DIRECTORY || report.rounds >= rounds) {
      await life.server.end('SIGKILL');
      removeData(life);
      life = undefined;
    }
  }
  if (life !== undefined) {
    await life.server.end('SIGKILL');
    removeData(life);
  }
  report.seconds = Math.round((performance.now() - begun) / 1000);
  return report;
}

function removeData({ data, server }) {
  process.off('exit', server.endWithHarness);
  for (const folder of [data, beforeRestart(data)]) rmSync(folder, { recursive: true, force: true });
}

/** Where the data directory is kept as the kill left it: a restart replays its logs. */
const beforeRestart = (data) => `${data}-before-restart`;

function recordProblems(life, world, report, say) {
  for (const problem of world.problems) {
    if (/lost/.test(problem.kind)) report.lost += 1;
    else report.wrong += 1;
  }
  report.failures.push({ seed: report.seed, round: world.round, data: life.data, problems: world.problems });
  say(`\nseed ${report.seed}, round ${world.round}: ${world.problems.length} problems; data: ${life.data}`);
  say(`  as the kill left it: ${beforeRestart(life.data)}`);
  const where = ({ index, id }) => [index, id].filter((part) => part !== undefined).join(' / ');
  for (const problem of world.problems) {
    const details = { ...problem, kind: undefined, index: undefined, id: undefined, round: undefined, log: undefined };
    say(`  ${problem.kind}: ${where(problem)} ${JSON.stringify(details)}`);
  }
  for (const problem of world.problems.slice(0, LOGS_SHOWN)) {
    say(`\n  ${problem.kind}: ${where(problem)}: what was sent and answered`);
    for (const line of problem.log) say(`    ${line}`);
  }
}

async function oneRound(life, world, report, { seed, damage }) {
  const { server, clients, model, random } = life;
  const working = clients.map((client) => client.work(world, seed));
  const crashed = server.child.exited.then((code) => {
    if (world.stopping) return;
    world.stopping = true;
    world.fail('the server ended by itself', { answer: `${code}: ${server.child.output()}` });
  });
  await Promise.race([pause(random.below(MAX_LOAD_MS)), crashed]);
  const signal = random.chance(0.9) ? 'SIGKILL' : 'SIGTERM';
  world.stopping = true;
  await server.end(signal);
  report[signal === 'SIGKILL' ? 'kills' : 'terminations'] += 1;
  await Promise.all(working);
  if (random.chance(0.3)) life.plant();
  rmSync(beforeRestart(life.data), { recursive: true, force: true });
  cpSync(life.data, beforeRestart(life.data), { recursive: true });
  damage(life.data);
  // While it starts and replays, too.
  while (random.chance(0.15)) {
    await server.startAndKill(random.below(900));
    report.kills += 1;
  }
  await server.start();
  world.stopping = false;
  world.send = server.send;
  let checked = false;
  server.child.exited.then((code) => {
    if (!checked) world.fail('the server ended by itself', { answer: `${code}: ${server.child.output()}` });
  });
  try {
    await check(life, world, report);
  } finally {
    checked = true;
  }
  report.upgrades += model.live.filter((index) => index.upgraded && index.shape === 'old' && !index.counted).length;
  for (const index of model.live) if (index.upgraded) index.counted = true;
}

/** Compares all that the server has with the model, which adopts what it finds. */
async function check({ server, clients, model, random }, world, report) {
  const { send } = server;
  const fail = (kind, details) => world.fail(kind, details);
  await finishTasks(clients, send);
  compareCatalogue(model, await observeCatalogue(send), fail);
  for (const index of model.live) await makeUsable(index, send, fail);
  await send('POST', '/_refresh');
  for (const index of model.live) {
    const queries = makeQueries(random, index.shape);
    const observed = await observeDocuments(send, index.name, [...index.docs.keys()], queries);
    const { documents, searches } = compareDocuments(index, observed, fail);
    report.documents += documents;
    report.searches += searches;
  }
}

/** Opens what was closed and lifts blocks, so that the next round finds work. */
async function makeUsable(index, send, fail) {
  if (!index.open.latest) {
    const answer = await send('POST', `/${index.name}/_open`);
    if (answer.status !== 200) fail('closed index does not open', { index, answer: answer.text });
    index.open.adopt(true);
  }
  if (index.blocked.latest === 'true') {
    const answer = await send('PUT', `/${index.name}/_settings`, { 'index.blocks.write': null });
    if (answer.status !== 200) fail('block is not lifted', { index, answer: answer.text });
    index.blocked.adopt('false');
  }
}

/** One line that says what was done and found. */
export function closingLine({
  rounds,
  kills,
  terminations,
  operations,
  documents,
  searches,
  upgrades,
  lost,
  wrong,
  seconds,
}) {
  const n = (count) => count.toLocaleString('en-US');
  return (
    `${n(rounds)} rounds, ${n(kills)} kills, ${n(terminations)} shutdowns, ${n(upgrades)} upgrades, ` +
    `${n(operations)} operations acknowledged, ${n(documents)} documents compared, ${n(searches)} searches compared, ` +
    `${n(lost)} lost, ${n(wrong)} wrong, ${n(seconds)} s`
  );
}
