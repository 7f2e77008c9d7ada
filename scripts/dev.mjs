// npm run dev -- COMMAND CRATE [ARGUMENTS…]
//
// Runs one command of cargo for one crate, with the profile, target, features and environment of `npm test`, so that what that has
// compiled is used: `npm run dev -- test postings`, `npm run dev -- test engine snapshots::`, `npm run dev -- clippy query`.
import { existsSync, readdirSync } from 'node:fs';

import { at } from './lib/paths.mjs';
import { StepFailed, main, run } from './lib/process.mjs';
import {
  cargoEnvironment,
  hostTriple,
  onnxRuntimeEnvironment,
  packageOptions,
  setUp,
  testEnvironment,
} from './lib/setup.mjs';

const COMMANDS = {
  // Examples are programs of their own, and no crate has examples in its documentation.
  test: ['--tests'],
  bench: [],
  build: [],
  check: ['--all-targets'],
  clippy: ['--all-targets'],
  doc: ['--no-deps'],
};

await main(async ([command, crate, ...rest]) => {
  const targets = COMMANDS[command];
  if (targets === undefined || crate === undefined) {
    throw new StepFailed(`usage: npm run dev -- ${Object.keys(COMMANDS).join('|')} CRATE [ARGUMENTS…]`);
  }
  if (!existsSync(at('crates', crate, 'Cargo.toml'))) {
    throw new StepFailed(`there is no crate [${crate}]; there are ${readdirSync(at('crates')).join(', ')}`);
  }
  await setUp({ only: ['packages'] });
  const profile = command === 'bench' ? [] : ['--release'];
  const chosen = ['--locked', '--target', hostTriple(), ...packageOptions(`sparrow-${crate}`)];
  return run('cargo', [command, ...profile, ...chosen, ...targets, ...rest], {
    env: { ...cargoEnvironment(), ...(command === 'test' ? testEnvironment() : onnxRuntimeEnvironment()) },
  });
});
