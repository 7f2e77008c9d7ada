// `node scripts/publish.mjs FOLDER VERSION`, run by .github/workflows/release.yml: publishes the tarballs of a folder, those that
// others need first. What the registry already has is left out, so that a publication which broke off can be taken up again;
// ONNX Runtime's packages are published only when its version changes.
//
// With `--rehearsal URL` it publishes to that registry, whatever platforms there are, and without provenance: only a workflow has any.
import { readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';

import { PLATFORMS } from './lib/platforms.mjs';
import { StepFailed, main, npm, output } from './lib/process.mjs';

await main(async (args) => {
  const { values, positionals } = parseArgs({
    args,
    options: { rehearsal: { type: 'string' } },
    allowPositionals: true,
  });
  const [folder, version] = positionals;
  if (folder === undefined || version === undefined) {
    throw new StepFailed('usage: publish.mjs FOLDER VERSION [--rehearsal URL]');
  }
  const found = readdirSync(resolve(folder))
    .filter((name) => name.endsWith('.tgz'))
    .map((name) => read(join(resolve(folder), name)));
  const packages = found.toSorted((a, b) => rank(a, found) - rank(b, found) || (a.name < b.name ? -1 : 1));
  const names = packages.map(({ name }) => name);
  const missing = PLATFORMS.map(({ name }) => `@sparrow-search/engine-${name}`).filter((name) => !names.includes(name));
  if (missing.length > 0 && values.rehearsal === undefined) {
    throw new StepFailed(`not packed: ${missing.join(', ')}`);
  }
  const wrong = packages.filter((it) => !it.name.includes('/onnxruntime') && it.version !== version);
  if (wrong.length > 0) throw new StepFailed(`not of version ${version}: ${wrong.map(({ name }) => name).join(', ')}`);
  const where = values.rehearsal === undefined ? [] : ['--registry', values.rehearsal];
  const how = values.rehearsal === undefined ? ['--provenance'] : ['--no-provenance'];
  for (const { name, version: own, path } of packages) {
    if (output('npm', ['view', `${name}@${own}`, 'version', ...where])?.trim() === own) {
      console.log(`${name}@${own} is already there`);
    } else {
      await npm(['publish', path, ...how, '--access', 'public', ...where]);
    }
  }
});

function read(path) {
  const manifest = output('tar', ['-xzOf', path, 'package/package.json']);
  if (manifest === undefined) throw new StepFailed(`cannot read ${path}`);
  const { name, version, dependencies = {}, optionalDependencies = {} } = JSON.parse(manifest);
  return { name, version, path, needs: Object.keys({ ...dependencies, ...optionalDependencies }) };
}

/** How many of the packages have to be there before this one, in the longest chain. */
function rank({ needs }, packages) {
  const needed = packages.filter(({ name }) => needs.includes(name));
  return Math.max(0, ...needed.map((one) => 1 + rank(one, packages)));
}
