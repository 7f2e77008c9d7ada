// node test/load/cancel.mjs [options]
//
// Sends each of the expensive requests, and of those that take long, stops it while it is worked on, and prints how long the process went
// on working, and how long one turn of its event loop was held at most. A request that is answered before is not counted.
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';

import { at } from '../../scripts/lib/paths.mjs';
import { testCommand } from '../../scripts/lib/test-command.mjs';
import { Target } from '../fuzz/run.mjs';
import { ROWS, prepare } from './expensive-requests.mjs';
import { sleep } from './idle.mjs';
import { STOPS, stopped } from './long-requests.mjs';
import { requestOf } from './memory.mjs';
import { WORLD } from './memory-world.mjs';

const WITHOUT_ANSWER_MS = 60_000;

/** What {@link ROWS} are about. */
const prepared = (target) =>
  prepare((method, path, body) => target.send(requestOf([path, body, { method }]), WITHOUT_ANSWER_MS));

async function measure(name, call, way, times, isLong) {
  const folder = mkdtempSync(join(tmpdir(), 'sparrow-cancel-'));
  const watch = join(folder, 'turns');
  process.env.EVENT_LOOP_WATCH = watch;
  const under = ['--import', at('test', 'load', 'loop-watch.mjs')];
  const target = new Target({ under, hangMs: WITHOUT_ANSWER_MS, world: isLong ? WORLD : [] });
  await target.start();
  try {
    if (!isLong) await prepared(target);
    await sleep(300);
    const begun = Date.now();
    const [worked, seen] = [[], []];
    for (const ms of times) {
      const found = await stopped(target, call(), way, ms);
      if (found.answered) break;
      worked.push(found.wentOnMs);
      if (found.seen !== undefined) seen.push(found.seen);
    }
    // Whole, so that reading a long body and writing a long answer are seen too.
    if (way === 'leave') await target.send(requestOf(call()));
    await sleep(50);
    const turns = (existsSync(watch) ? readFileSync(watch, 'utf8') : '').split('\n').filter(Boolean);
    const held = turns.map((line) => line.split(' ').map(Number)).filter(([when]) => when >= begun);
    return { name, way, worked, seen, turnMs: Math.max(0, ...held.map(([, ms]) => ms)) };
  } finally {
    await target.remove();
    rmSync(folder, { recursive: true, force: true });
  }
}

await testCommand({
  suite: 'cancel',
  title: 'expensive requests that were stopped: how long the process went on, and the longest turn of its event loop',
  command: 'node test/load/cancel.mjs',
  options: {
    after: { type: 'string', default: '50,300,1000', value: 'MS,…', help: 'when the connection is closed' },
    only: { type: 'string', default: '', value: 'TEXT', help: 'those with this in their names' },
  },
  run: async ({ after, only }) => {
    const rows = [];
    const times = after.split(',').map(Number);
    for (const [name, way, call, isLong] of [
      ...ROWS.map(([name, call]) => [name, 'leave', call, false]),
      ...STOPS.map((stop) => [...stop, true]),
    ].filter(([name]) => name.includes(only))) {
      // A task is looked for when the request has run for a second.
      const measured = await measure(
        name,
        call,
        way,
        isLong ? [...(way === 'leave' ? times : []), undefined] : times,
        isLong,
      );
      rows.push(measured);
      const worked = measured.worked.map((ms) => ms.toFixed(0)).join(', ');
      console.log(
        `${name} (${way}): went on for ${worked || '-'} ms; a turn of the event loop ${measured.turnMs.toFixed(1)} ms` +
          `${measured.seen.includes(false) ? '; no task' : ''}`,
      );
    }
    const worked = rows.flatMap((row) => row.worked);
    const [longest, turn] = [Math.max(0, ...worked), Math.max(0, ...rows.map(({ turnMs }) => turnMs))];
    const counts = {
      requests: rows.length,
      stopped: worked.length,
      unseen: rows.filter(({ seen }) => seen.includes(false)).length,
    };
    const closing =
      `cancel: ${worked.length} requests stopped, went on for at most ${longest.toFixed(0)} ms, ${counts.unseen} without a task; ` +
      `longest turn ${turn.toFixed(1)} ms`;
    // It only measures: how long is too long, `test/e2e/cancellation.test.ts` says.
    return { counts, closing, failures: [], rows };
  },
});
