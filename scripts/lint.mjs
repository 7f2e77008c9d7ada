// `npm run lint`: clippy with warnings as errors, ESLint, the types of sources and tests, the comments of the public interface,
// and the repository's own checks.
import { at } from './lib/paths.mjs';
import { main, run, tool } from './lib/process.mjs';
import { cargoEnvironment, hostTriple, setUp } from './lib/setup.mjs';

await main(async () => {
  await setUp({ only: ['packages', 'typescript'] });
  const env = cargoEnvironment();
  const cargo = (command, ...args) =>
    run('cargo', [command, '--release', '--locked', '--target', hostTriple(), ...args], { env });
  const module = (...path) => at('node_modules', ...path);
  const codes = [
    await tool(module('eslint', 'bin', 'eslint.js'), ['--max-warnings=0', '.']),
    await tool(module('typescript', 'bin', 'tsc'), ['-p', at('tsconfig.test.json')]),
    await tool(module('typescript', 'bin', 'tsc'), ['-p', at('packages', 'console')]),
    // Whatever the library exports is documented, and every link leads somewhere.
    await tool(module('typedoc', 'bin', 'typedoc'), ['--emit', 'none']),
    await cargo('clippy', '--workspace', '--all-targets', '--', '-D', 'warnings'),
    await cargo('run', '-p', 'xtask', '--', 'tidy'),
  ];
  return Math.max(...codes);
});
