// node benches/report.mjs [--check]
//
// Writes the tables of docs/performance.md from the records in benches/results/ (the full ones, else the quick ones). --check only
// says whether the page is what they give, as a test does.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import process from 'node:process';

import { at } from '../scripts/lib/paths.mjs';
import { fillPage } from './lib/page.mjs';

const PAGE = at('docs', 'performance.md');

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
  const page = readFileSync(PAGE, 'utf8');
  const filled = fillPage(page, readRecords());
  if (process.argv.includes('--check')) {
    if (filled !== page) {
      console.error('docs/performance.md is not what the records give: run `node benches/report.mjs`');
      process.exitCode = 1;
    }
  } else {
    writeFileSync(PAGE, filled);
  }
}
