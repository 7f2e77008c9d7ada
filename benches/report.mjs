// node benches/report.mjs [--check]
//
// Writes the tables of docs/performance.md, docs/reliability.md, docs/limits.md and docs/design/capacity.md from the records in
// benches/results/ (the full ones, else the quick ones). --check only says whether the pages are what they give, as a test does.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import process from 'node:process';

import { at } from '../scripts/lib/paths.mjs';
import { fillCapacity } from './lib/capacity-page.mjs';
import { fillCounts } from './lib/counts-page.mjs';
import { fillPage } from './lib/page.mjs';

/** The pages, and what fills each. */
export const PAGES = new Map([
  ['performance.md', fillPage],
  ['reliability.md', fillCounts],
  ['limits.md', fillCounts],
  ['design/capacity.md', fillCapacity],
]);

/** The newest kind of record of each suite. */
export function readRecords(folder = at('benches', 'results')) {
  const records = new Map();
  // `quick` sorts after `full`: a full record is not replaced.
  for (const file of readdirSync(folder).sort()) {
    const suite = /^(.+)-(full|quick)\.json$/.exec(file)?.[1];
    if (suite === undefined || records.has(suite)) continue;
    records.set(suite, JSON.parse(readFileSync(at('benches', 'results', file), 'utf8')));
  }
  return records;
}

if (process.argv[1] === import.meta.filename) {
  for (const [name, fill] of PAGES) {
    const page = readFileSync(at('docs', name), 'utf8');
    const filled = fill(page, readRecords());
    if (filled === page) continue;
    if (process.argv.includes('--check')) {
      console.error(`docs/${name} is not what the records give: run \`node benches/report.mjs\``);
      process.exitCode = 1;
    } else {
      writeFileSync(at('docs', name), filled);
    }
  }
}
