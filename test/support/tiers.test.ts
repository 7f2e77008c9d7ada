// The lists of the two tiers name what there is.
import { existsSync, readFileSync, readdirSync } from 'node:fs';

import { expect, it } from 'vitest';

import { FIRST_SUITES, MEASURING, SECOND_TIER } from '../tiers.mjs';

const ROOT = new URL('../../', import.meta.url);
const named = [...Object.keys(SECOND_TIER), ...Object.keys(MEASURING)];
const below = (folder: string): string[] => readdirSync(new URL(folder, ROOT), { recursive: true, encoding: 'utf8' });

it('each file of the second tier is there, and in one list', () => {
  expect(named.filter((file) => !existsSync(new URL(file, ROOT)))).toEqual([]);
  expect(new Set(named).size).toBe(named.length);
});

it('each suite of benchmarks in the first tier is there', () => {
  expect(FIRST_SUITES.filter((name) => !existsSync(new URL(`benches/suites/${name}.mjs`, ROOT)))).toEqual([]);
});

it('a test in Rust that the first tier leaves out says why', () => {
  const sources = below('crates/').filter((path) => path.endsWith('.rs'));
  expect(sources.length).toBeGreaterThan(500);
  const silent = sources.filter((path) => /#\[ignore\]/.test(readFileSync(new URL(`crates/${path}`, ROOT), 'utf8')));
  expect(silent).toEqual([]);
});

it('the tests of a crate are linked once, and twice for the engine', () => {
  const programs = readdirSync(new URL('crates/', ROOT)).flatMap((crate) => {
    const folder = new URL(`crates/${crate}/tests/`, ROOT);
    const entries = existsSync(folder) ? readdirSync(folder) : [];
    const mains = entries.filter((name) => name.endsWith('.rs') || existsSync(new URL(`${name}/main.rs`, folder)));
    return mains.length > 1 ? [`${crate}: ${mains.join(', ')}`] : [];
  });
  expect(programs).toEqual(['engine: alone, it']);
});
