// node --import THIS ... with EVENT_LOOP_WATCH=FILE
//
// Writes down every turn of a process's event loop that took longer than a few milliseconds: when it ended, and for how long the
// thread held it. Time in which the thread waited for a processor is not counted: it belongs to whatever else the machine does.
import { setImmediate } from 'node:timers';
import { appendFileSync, readFileSync } from 'node:fs';
import process from 'node:process';

const FILE = process.env.EVENT_LOOP_WATCH;

/** Turns shorter than this are not written down, in milliseconds. */
const SHORT_MS = 5;

/** How long this thread has waited for a processor, in milliseconds. */
const waited = () => Number(readFileSync('/proc/self/schedstat', 'utf8').split(' ')[1]) / 1e6;

if (FILE !== undefined) {
  let [last, lastWaited] = [performance.now(), waited()];
  const turn = () => {
    const now = performance.now();
    if (now - last > SHORT_MS) {
      const held = now - last - (waited() - lastWaited);
      if (held > SHORT_MS) appendFileSync(FILE, `${performance.timeOrigin + now} ${held}\n`);
    }
    [last, lastWaited] = [performance.now(), waited()];
    setImmediate(() => setTimeout(turn, 1).unref());
  };
  turn();
}
