// `npm start`: sets up what is missing, then serves in this very process. Options after `--` go to the server.
import { pathToFileURL } from 'node:url';

import { CLI } from './lib/paths.mjs';
import { main } from './lib/process.mjs';
import { setUp } from './lib/setup.mjs';

await main(async (args) => {
  await setUp();
  const { runCli } = await import(pathToFileURL(CLI).href);
  await runCli(args);
});
