// `npm run bench`, `npm run test:soak` and others: sets up, then runs one of the project's tools with the remaining arguments. `--help`
// is answered by the tool at once: nobody waits for a build to read what the options are.
import { existsSync } from 'node:fs';

import { at } from './lib/paths.mjs';
import { StepFailed, main, tool } from './lib/process.mjs';
import { setUp } from './lib/setup.mjs';

await main(async ([file, ...args]) => {
  if (file === undefined || !existsSync(at(file))) throw new StepFailed(`there is no ${file}`);
  if (!args.some((arg) => arg === '--help' || arg === '-h')) await setUp();
  return tool(at(file), args);
});
