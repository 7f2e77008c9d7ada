// `npm start`: sets up what is missing, then serves in this very process. Options after `--` go to the server.
import process from 'node:process';
import { pathToFileURL } from 'node:url';

import { CLI } from './lib/paths.mjs';
import { main } from './lib/process.mjs';
import { setUp } from './lib/setup.mjs';

/** How often to look whether npm is still there. */
const WATCH_MS = 500;

await main(async (args) => {
  await setUp();
  const { runCli } = await import(pathToFileURL(CLI).href);
  stopWithNpm();
  await runCli(args);
});

/**
 * npm starts scripts through a shell, which takes a SIGTERM for itself and leaves us running, with the port and the data
 * directory. Ending `npm start` is meant to end the server.
 */
function stopWithNpm() {
  if (process.env.npm_lifecycle_event === undefined) return;
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watch);
    process.kill(process.pid, 'SIGTERM');
  }, WATCH_MS);
  watch.unref();
}
