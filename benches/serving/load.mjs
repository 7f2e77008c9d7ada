// node load.mjs PLAN.json: sends requests to a server as a number of clients, each waiting for its answer before it asks again,
// and prints one JSON object: latencies, rate, and how long a trivial request took meanwhile. A process of its own, so that the
// server's event loop and the client's are not one. Of an answer it looks at the status alone, as reading it would take the server's
// processor time on the same machine: the suites compare answers beside this.
import { readFileSync } from 'node:fs';
import process from 'node:process';

import { summarize } from '../lib/statistics.mjs';
import { Connection } from './wire.mjs';

/** A trivial request is sent this often beside the load. */
const PROBE_EVERY_MS = 20;

/** url, or urls that share the clients; path, headers, bodies (array of strings), warm (requests before the clock runs), count (requests), clients, probe (path) */
const plan = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const urls = plan.urls ?? [plan.url];
const connections = await Promise.all(
  Array.from({ length: plan.clients }, (_, number) => Connection.open(urls[number % urls.length])),
);
const messages = plan.bodies.map((body) => connections[0].encode('POST', plan.path, plan.headers, body));

const latencies = new Float64Array(plan.count);
let next = 0;
let bytes = 0;

async function client(connection, until, note) {
  while (next < until) {
    const number = next;
    next += 1;
    const begun = performance.now();
    const { status, body } = await connection.send(messages[number % messages.length]);
    const took = performance.now() - begun;
    if (status !== 200) throw new Error(`${status} ${body.toString()}`);
    if (note) {
      latencies[number - plan.warm] = took;
      bytes += body.length;
    }
  }
}

await Promise.all(connections.map((connection) => client(connection, plan.warm, false)));
// The starter reads the server's clocks between the two.
if (process.send) {
  process.send('warm');
  await new Promise((resolve) => process.once('message', resolve));
}
next = plan.warm;
const probes = [];
let done = false;
const probing = plan.probe === undefined ? Promise.resolve() : probe();
const cpu = process.cpuUsage();
const begun = performance.now();
await Promise.all(connections.map((connection) => client(connection, plan.warm + plan.count, true)));
const seconds = (performance.now() - begun) / 1000;
const { user, system } = process.cpuUsage(cpu);
done = true;
await probing;
connections.forEach((connection) => connection.close());

const result = {
  clients: plan.clients,
  requests: plan.count,
  seconds,
  perSecond: plan.count / seconds,
  ms: spread(latencies),
  ...(probes.length === 0 ? {} : { probeMs: spread(probes) }),
  bytesPerAnswer: bytes / plan.count,
  clientCpuMicros: (user + system) / plan.count,
};
if (process.send) process.send(result, () => process.disconnect());
else console.log(JSON.stringify(result));

async function probe() {
  const connection = await Connection.open(plan.url);
  const message = connection.encode('GET', plan.probe, plan.headers, '');
  while (!done) {
    const asked = performance.now();
    await connection.send(message);
    probes.push(performance.now() - asked);
    await new Promise((resolve) => setTimeout(resolve, PROBE_EVERY_MS));
  }
  connection.close();
}

/** What `summarize` says of milliseconds, to the microsecond. */
function spread(values) {
  const { mean, p50, p95, p99, max } = summarize(values);
  return { mean: round(mean), p50: round(p50), p95: round(p95), p99: round(p99), max: round(max) };
}

function round(value) {
  return Math.round(value * 1000) / 1000;
}
