// `node scripts/try-library.mjs FOLDER PLATFORM [NODE]`: whether the packages of FOLDER (`npm run pack:all -- FOLDER`) for a platform index
// and search as a library, with both models and after a restart. NODE is a program that runs that platform's Node
// (scripts/foreign-node.mjs). For Windows under wine, whose Node cannot connect to a socket.
import { spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import process from 'node:process';

import { StepFailed, main, mustRun } from './lib/process.mjs';

const PROGRAM = `
import { Sparrow } from '@sparrow-search/engine';
const text = { type: 'text', fields: { semantic: { type: 'semantic_text', inference_id: '.hybrid' } } };
const first = async (index, body) => (await index.search({ size: 1, ...body })).hits.hits[0]?._id;
let sparrow = await Sparrow.open({ data: 'data' });
const facts = sparrow.index('facts');
await facts.ensure({ mappings: { properties: { text } } });
await facts.put('lava', { text: 'Lava is rock so hot that it flows.' });
await facts.put('whales', { text: 'Blue whales are the largest animals that ever lived.' }, { refresh: true });
const found = [await first(facts, { query: { match: { text: 'flows' } } })];
found.push(await first(facts, { retriever: { rrf: { query: 'the biggest creature' } } }));
await sparrow.close();
sparrow = await Sparrow.open({ data: 'data' });
found.push(await first(sparrow.index('facts'), { query: { semantic: { field: 'text.semantic', query: 'molten stone' } } }));
await sparrow.close();
console.log(process.platform + ' ' + process.arch + ' ' + process.version + ': ' + found.join(' '));
`;

await main(async ([folder, platform, node = process.execPath]) => {
  if (platform === undefined) throw new StepFailed('usage: try-library.mjs FOLDER PLATFORM [NODE]');
  const place = mkdtempSync(join(tmpdir(), 'sparrow-library-'));
  try {
    const models = ['model-splade-tiny', 'model-minilm-l6', 'model-splade-minilm-l6'];
    for (const name of ['engine', `engine-${platform}`, ...models]) {
      const tarball = readdirSync(folder).find((file) => new RegExp(`^sparrow-search-${name}-\\d.*\\.tgz$`).test(file));
      if (tarball === undefined) throw new StepFailed(`${folder} has no package ${name}`);
      const target = join(place, 'node_modules', '@sparrow-search', name);
      mkdirSync(target, { recursive: true });
      await mustRun('tar', ['-xzf', resolve(folder, tarball), '-C', target, '--strip-components', '1']);
    }
    writeFileSync(join(place, 'try.mjs'), PROGRAM);
    // Node for Windows knows no pipe of Linux.
    const output = join(place, 'output');
    const descriptor = openSync(output, 'w');
    const env = { ...process.env, ORT_DISABLE_TELEMETRY: '1' };
    spawnSync(resolve(node), ['try.mjs'], { cwd: place, env, stdio: ['ignore', descriptor, descriptor] });
    closeSync(descriptor);
    const said = readFileSync(output, 'utf8').trim();
    console.log(said);
    if (!said.endsWith(': lava whales lava')) throw new StepFailed('that is not what the library answers elsewhere');
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
});
