// `npm run bench`, `npm run eval`: sets up, then runs one of the project's tools with the remaining arguments.
import { existsSync } from 'node:fs';

import { at } from './lib/paths.mjs';
import { StepFailed, main, tool } from './lib/process.mjs';
import { setUp } from './lib/setup.mjs';

await main(async ([file, ...args]) => {
  if (file === undefined || !existsSync(at(file))) throw new StepFailed(`there is no ${file}`);
  await setUp();
  return tool(at(file), args);
});
