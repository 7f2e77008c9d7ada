// `npm run eval -- DIR [options]`: sets up what is missing, then measures as `sparrow eval` does; `--help` lists the options.
import { pathToFileURL } from 'node:url';

import { CLI } from './lib/paths.mjs';
import { main } from './lib/process.mjs';
import { setUp } from './lib/setup.mjs';

await main(async (args) => {
  await setUp({ only: ['packages', 'typescript'] });
  const { runCli } = await import(pathToFileURL(CLI).href);
  await runCli(['eval', ...args]);
});
