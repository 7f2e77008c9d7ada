// `npm run lint`: formatting, clippy with warnings as errors, ESLint, the types of sources and tests, the comments of the public
// interface, and the repository's own checks.
import { at } from './lib/paths.mjs';
import { main, run, tool } from './lib/process.mjs';
import { cargoEnvironment, hostTriple, setUp } from './lib/setup.mjs';

await main(async () => {
  await setUp({ only: ['packages', 'typescript'] });
  // Tools of Node.js use one thread, and so does clippy for its last crates: beside each other they leave no core idle.
  const [rust, node] = await Promise.all([checkRust(), checkTypeScript()]);
  for (const line of node.lines) console.log(line);
  return Math.max(rust, node.code);
});

async function checkRust() {
  const env = cargoEnvironment();
  const cargo = (command, ...args) =>
    run('cargo', [command, '--release', '--locked', '--target', hostTriple(), ...args], { env });
  return Math.max(
    await cargo('clippy', '--workspace', '--all-targets', '--', '-D', 'warnings'),
    await cargo('run', '-p', 'xtask', '--', 'tidy'),
  );
}

/** What the tools find comes as lines, so that it is not mixed with cargo's. */
async function checkTypeScript() {
  const module = (...path) => at('node_modules', ...path);
  const tsc = module('typescript', 'bin', 'tsc');
  const lines = [];
  let code = 0;
  for (const [file, ...args] of [
    [at('scripts', 'fmt.mjs'), '--check'],
    [module('eslint', 'bin', 'eslint.js'), '--max-warnings=0', '.'],
    [tsc, '-p', at('tsconfig.test.json')],
    [tsc, '-p', at('packages', 'console')],
    // Whatever the library exports is documented, and every link leads somewhere.
    [module('typedoc', 'bin', 'typedoc'), '--emit', 'none'],
  ]) {
    code = Math.max(code, await tool(file, args, { quiet: true, onLine: (line) => lines.push(line) }));
  }
  return { code, lines };
}
