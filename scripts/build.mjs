// `npm run build`: packages, addon and TypeScript, without starting anything.
import { main } from './lib/process.mjs';
import { setUp } from './lib/setup.mjs';

await main(async () => {
  await setUp();
  console.log('sparrow: everything is built');
});
