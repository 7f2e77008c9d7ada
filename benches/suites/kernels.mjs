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
const INSTRUCTIONS = /^(avx\w*|amx\w*|vnni|neon|sse\w*|f16c)$/;

/** @param {import('../lib/context.mjs').Context} context */
export async function run(context) {
  const names = benchmarks();
  if (names.length === 0)
    return { rows: [{ what: 'kernels', skipped: 'there are no benchmarks in crates/*/benches' }] };
  const rows = [];
  for (const { crate, name } of names) {
    const program = await context.rustBench(name);
    const env = { ...context.rustEnv, CRITERION_HOME: folder(context.work, 'criterion') };
    if (context.size === 'smoke') {
      await capture(program, ['--test'], { env, cwd: at('crates', crate) });
      rows.push({ what: `${crate}: ${name} runs`, checked: 'what the benchmark asserts' });
      continue;
    }
    context.log(`${crate}: ${name}`);
    const args = ['--bench', '--quick', '--noplot', '--output-format', 'bencher'];
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

/** From lines as `test dot/avx512 ... bench: 1,234 ns/iter (+/- 5)`. @returns {Map<string, { mean: number, spread: number }>} */
export function readMeans(text) {
  const number = (digits) => Number(digits.replaceAll(',', ''));
  const lines = text.matchAll(/^test (.+?) \.\.\. bench:\s+([\d,.]+) ns\/iter \(\+\/- ([\d,.]+)\)/gm);
  return new Map([...lines].map(([, name, mean, spread]) => [name, { mean: number(mean), spread: number(spread) }]));
}

/** Rows of one benchmark: `group/avx2/64` is compared with `group/scalar/64`. */
export function describe(crate, means) {
  return [...means].map(([name, { mean, spread }]) => {
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
      detail: { spread },
    };
  });
}
