// The kernels by themselves: criterion's means of the benchmarks in crates/*/benches, quick form. Where a benchmark's name ends in an
// instruction set (`dot/avx512`), it is set against the scalar code of the same name. The kernels' answers are compared by their own
// property tests; in smoke each benchmark runs once, with whatever it asserts.
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

import { at } from '../../scripts/lib/paths.mjs';
import { StepFailed } from '../../scripts/lib/process.mjs';
import { capture, folder } from '../lib/programs.mjs';

export const title = 'kernels by criterion';

const SCALAR = 'scalar';
const NANOSECONDS = { ps: 1e-3, ns: 1, µs: 1e3, us: 1e3, ms: 1e6, s: 1e9 };
const INSTRUCTIONS = /^(avx\w*|amx\w*|vnni|neon|sse\w*|f16c)$/;

/** @param {import('../lib/context.mjs').Context} context */
export async function run(context) {
  const names = benchmarks();
  if (names.length === 0)
    return { rows: [{ what: 'kernels', skipped: 'there are no benchmarks in crates/*/benches' }] };
  const rows = [];
  for (const { crate, name } of names) {
    const program = await context.rustBench(crate, name);
    const env = { ...context.rustEnv, CRITERION_HOME: folder(context.work, 'criterion') };
    if (context.size === 'smoke') {
      await capture(program, ['--test'], { env, cwd: at('crates', crate) });
      rows.push({ what: `${crate}: ${name} runs`, checked: 'what the benchmark asserts' });
      continue;
    }
    context.log(`${crate}: ${name}`);
    const args = ['--bench', '--quick', '--noplot'];
    const text = await capture(program, args, { env, cwd: at('crates', crate) });
    const means = readMeans(text);
    if (means.size === 0) throw new StepFailed(`${crate}: ${name} measured nothing:\n${text}`);
    rows.push(...describe(crate, means));
  }
  return { rows, notes: ['criterion, quick mode; nanoseconds an iteration'] };
}

/** The criterion benchmarks of the workspace. */
function benchmarks() {
  return readdirSync(at('crates')).flatMap((crate) => {
    const home = at('crates', crate, 'benches');
    if (!existsSync(home)) return [];
    return readdirSync(home)
      .filter((file) => file.endsWith('.rs') || existsSync(join(home, file, 'main.rs')))
      .map((file) => ({ crate, name: file.replace(/\.rs$/, '') }))
      .sort((a, b) => a.name.localeCompare(b.name));
  });
}

/**
 * From lines as `dot/avx512   time:   [1.20 ns 1.23 ns 1.30 ns]`; a long name has a line of its own.
 *
 * @returns {Map<string, { mean: number, low: number, high: number }>} nanoseconds
 */
export function readMeans(text) {
  const found = text.matchAll(/^(\S.*?)\s+time:\s+\[([\d.]+) (\S+) ([\d.]+) (\S+) ([\d.]+) (\S+)\]/gm);
  const entries = [...found].map(([, name, low, lowUnit, mean, unit, high, highUnit]) => {
    const nanoseconds = (value, scale) => Number(value) * NANOSECONDS[scale];
    const range = { low: nanoseconds(low, lowUnit), high: nanoseconds(high, highUnit) };
    return [name, { mean: nanoseconds(mean, unit), ...range }];
  });
  return new Map(entries);
}

/** Rows of one benchmark: `group/avx2/64` is compared with `group/scalar/64`. */
export function describe(crate, means) {
  return [...means].map(([name, { mean, ...range }]) => {
    const parts = name.split('/');
    const place = parts.findIndex((part) => INSTRUCTIONS.test(part));
    const twin = place < 0 ? undefined : means.get(parts.with(place, SCALAR).join('/'));
    return {
      what: `${crate}: ${name}`,
      against: twin === undefined ? null : 'scalar',
      unit: 'ns',
      sparrow: mean,
      peer: twin?.mean ?? null,
      checked: "the kernels' property tests",
      detail: range,
    };
  });
}
