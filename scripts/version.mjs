// `node scripts/version.mjs X.Y.Z`: gives the repository, its packages and its crates that version, lock files included. The one
// that counts is in package.json; test/packaging holds the others equal to it.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';

import { at } from './lib/paths.mjs';
import { StepFailed, main, mustRun, npm } from './lib/process.mjs';

await main(async ([version]) => {
  if (!/^\d+\.\d+\.\d+(?:-[\w.]+)?$/.test(version ?? '')) throw new StepFailed('usage: version.mjs X.Y.Z');
  const folders = readdirSync(at('packages')).filter((name) => name !== 'npm');
  for (const path of ['package.json', ...folders.map((name) => `packages/${name}/package.json`)]) {
    const manifest = JSON.parse(readFileSync(at(path), 'utf8'));
    manifest.version = version;
    for (const name of Object.keys(manifest.dependencies ?? {})) {
      if (name.startsWith('@sparrow-search/')) manifest.dependencies[name] = version;
    }
    writeFileSync(at(path), `${JSON.stringify(manifest, null, 2)}\n`);
  }
  const crates = readFileSync(at('Cargo.toml'), 'utf8');
  const written = crates.replace(/^(\[workspace\.package\]\nversion = )"[^"]+"/m, `$1"${version}"`);
  writeFileSync(at('Cargo.toml'), written);
  await npm(['install', '--package-lock-only', '--ignore-scripts', '--no-audit', '--no-fund']);
  await mustRun('cargo', ['update', '--workspace', '--offline']);
});
