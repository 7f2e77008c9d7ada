// node test/load/cancel.mjs [options]
//
// Sends each of the expensive requests, closes its connection while it is worked on, and prints how long the process went on
// working, and how long one turn of its event loop was held at most. A request that is answered before is not counted.
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';

import { findApiKey } from '../../scripts/lib/api-client.mjs';
import { CLI, at } from '../../scripts/lib/paths.mjs';
import { startServer } from '../../scripts/lib/server-process.mjs';
import { testCommand } from '../../scripts/lib/test-command.mjs';
import { createSender } from '../rest-suites/client.mjs';
import { ROWS, prepare } from './expensive-requests.mjs';

/** The process is idle when it used less than this share of one core for so many milliseconds. */
const IDLE_SHARE = 0.3;
const IDLE_MS = 60;
const LOOK_MS = 5;

/** When it is no longer waited for the work to end, in milliseconds. */
const PATIENCE_MS = 60_000;

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Processor time of all threads of a process, in milliseconds: `schedstat` counts nanoseconds. */
function cpuMs(pid) {
  let sum = 0;
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    try {
      sum += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]);
    } catch {
      // A thread that has just ended.
    }
  }
  return sum / 1e6;
}

/** How long the process goes on working from now, in milliseconds. */
async function untilIdle(pid) {
  const begun = performance.now();
  const looks = [[begun, cpuMs(pid)]];
  let last = begun;
  while (performance.now() - begun < PATIENCE_MS) {
    await sleep(LOOK_MS);
    const now = performance.now();
    looks.push([now, cpuMs(pid)]);
    const [since, used] = looks.at(-2);
    if ((looks.at(-1)[1] - used) / (now - since) > IDLE_SHARE) last = now;
    if (now - last > IDLE_MS) break;
  }
  return last - begun;
}

/** Sends a request and closes its connection after so many milliseconds; whether it was still worked on. */
async function abandon({ url, apiKey }, [path, body], ms) {
  const { hostname, port } = new URL(url);
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const type = typeof body === 'string' ? 'application/x-ndjson' : 'application/json';
  const socket = connect(Number(port), hostname);
  let isAnswered = false;
  socket.on('error', () => undefined);
  socket.on('data', () => (isAnswered = true));
  await new Promise((resolve) =>
    socket.write(
      `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: ApiKey ${apiKey}\r\nContent-Type: ${type}\r\n` +
        `Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
      resolve,
    ),
  );
  await sleep(ms);
  socket.destroy();
  return !isAnswered;
}

async function measure([name, call], times) {
  const data = mkdtempSync(join(tmpdir(), 'sparrow-cancel-'));
  const watch = join(data, 'turns');
  process.env.EVENT_LOOP_WATCH = watch;
  const args = ['--import', at('test', 'load', 'loop-watch.mjs'), CLI, '--deploy-at-start', 'false'];
  const server = await startServer(process.execPath, args, join(data, 'data'));
  try {
    const apiKey = findApiKey(join(data, 'data'));
    const send = createSender({ url: server.url, apiKey });
    await prepare((method, path, body) =>
      send({
        method,
        path,
        body: typeof body === 'string' ? body : JSON.stringify(body),
        contentType: typeof body === 'string' ? 'application/x-ndjson' : 'application/json',
      }),
    );
    await sleep(300);
    const begun = Date.now();
    const worked = [];
    for (const ms of times) {
      if (!(await abandon({ url: server.url, apiKey }, call(), ms))) break;
      worked.push(await untilIdle(server.pid));
    }
    // Whole, so that reading a long body and writing a long answer are seen too.
    const [path, body] = call();
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const contentType = typeof body === 'string' ? 'application/x-ndjson' : 'application/json';
    await send({ method: 'POST', path, body: text, contentType });
    await sleep(50);
    const turns = (existsSync(watch) ? readFileSync(watch, 'utf8') : '').split('\n').filter(Boolean);
    const held = turns.map((line) => line.split(' ').map(Number)).filter(([when]) => when >= begun);
    return { name, worked, turnMs: Math.max(0, ...held.map(([, ms]) => ms)) };
  } finally {
    await server.stop();
    rmSync(data, { recursive: true, force: true });
  }
}

await testCommand({
  suite: 'cancel',
  title:
    'expensive requests whose connection was closed: how long the process went on, and the longest turn of its event loop',
  command: 'node test/load/cancel.mjs',
  options: {
    after: { type: 'string', default: '50,300,1000', value: 'MS,…', help: 'when the connection is closed' },
    only: { type: 'string', default: '', value: 'TEXT', help: 'those with this in their names' },
  },
  run: async ({ after, only }) => {
    const rows = [];
    for (const row of ROWS.filter(([name]) => name.includes(only))) {
      const measured = await measure(row, after.split(',').map(Number));
      rows.push(measured);
      const worked = measured.worked.map((ms) => ms.toFixed(0)).join(', ');
      console.log(
        `${measured.name}: went on for ${worked || '-'} ms; a turn of the event loop ${measured.turnMs.toFixed(1)} ms`,
      );
    }
    const worked = rows.flatMap((row) => row.worked);
    const [longest, turn] = [Math.max(0, ...worked), Math.max(0, ...rows.map(({ turnMs }) => turnMs))];
    const counts = { requests: rows.length, closed: worked.length };
    const closing = `cancel: ${worked.length} connections closed, went on for at most ${longest.toFixed(0)} ms; longest turn ${turn.toFixed(1)} ms`;
    // It only measures: how long is too long, `test/e2e/cancellation.test.ts` says.
    return { counts, closing, failures: [], rows };
  },
});
