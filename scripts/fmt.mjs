// `npm run fmt`: formats Rust and TypeScript; with --check it only says whether something would change.
import { at } from './lib/paths.mjs';
import { main, run, tool } from './lib/process.mjs';
import { setUp } from './lib/setup.mjs';

await main(async (args) => {
  const check = args.includes('--check');
  await setUp({ only: ['packages'] });
  const prettier = at('node_modules', 'prettier', 'bin', 'prettier.cjs');
  const codes = [
    await run('cargo', ['fmt', '--all', ...(check ? ['--check'] : [])]),
    await tool(prettier, [check ? '--check' : '--write', '--log-level=warn', '.']),
  ];
  return Math.max(...codes);
});
