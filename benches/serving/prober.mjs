// node prober.mjs PLAN.json: asks a server now and then beside something else, until it is told to end, and says how long each answer took. A
// process of its own, so that what else goes on in its parent is not measured.
import { readFileSync } from 'node:fs';
import process from 'node:process';

import { Connection } from './wire.mjs';

/** url, path, headers, bodies (array of strings), everyMs (from one answer to the next question) */
const plan = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const latencies = [];
let isOver = false;
process.once('message', () => (isOver = true));
const connection = await Connection.open(plan.url);
const messages = plan.bodies.map((body) => connection.encode('POST', plan.path, plan.headers, body));
for (let number = 0; !isOver; number += 1) {
  const asked = performance.now();
  const { status, body } = await connection.send(messages[number % messages.length]);
  if (status !== 200) throw new Error(body.toString());
  latencies.push(performance.now() - asked);
  if (number === 0) process.send('ready');
  await new Promise((resolve) => setTimeout(resolve, plan.everyMs));
}
connection.close();
process.send(latencies, () => process.disconnect());
