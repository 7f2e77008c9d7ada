// A thread that asks, twenty times in a second, whether a server is well: how long that takes is not to depend on how busy the thread
// of the other clients is.
import { parentPort, workerData } from 'node:worker_threads';

import { openLoop } from './clients.mjs';

const PER_SECOND = 20;
const HEALTH = { method: 'GET', path: '/_cluster/health', body: '', type: 'application/json' };

const [took, statuses] = [[], []];
const { server, ms } = workerData;
const { cut, unanswered } = await openLoop(server, () => HEALTH, {
  rate: PER_SECOND,
  ms,
  heard: (_planned, status, time) => {
    statuses.push(status);
    if (status === 200) took.push(time);
  },
});
const unwell = statuses.filter((status) => status !== 200).length + cut + unanswered;
parentPort.postMessage({ took, unwell });
