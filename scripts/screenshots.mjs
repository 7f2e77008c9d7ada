// `npm run screenshots`: runs the console's test, which leaves a picture of every screen in docs/images. Needs a Chromium.
import { at } from './lib/paths.mjs';
import { removePictures } from './lib/pictures.mjs';
import { main, tool } from './lib/process.mjs';
import { setUp } from './lib/setup.mjs';

await main(async () => {
  await setUp();
  const folder = at('docs', 'images');
  removePictures(folder);
  return tool(at('node_modules', 'vitest', 'vitest.mjs'), ['run', at('test', 'e2e', 'console.test.ts')], {
    env: { CONSOLE_SCREENSHOTS: folder },
  });
});
