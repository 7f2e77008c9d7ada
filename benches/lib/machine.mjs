// The machine a benchmark ran on, and how busy others kept it meanwhile.
import { readFileSync } from 'node:fs';
import os from 'node:os';
import process from 'node:process';

import { output } from '../../scripts/lib/process.mjs';

/** The flags that decide which kernels run. */
const FLAGS =
  /^(avx2|fma|f16c|avx512(f|bw|vl|dq|_vnni|_vbmi2|_bf16|_fp16)|avx_vnni|amx_(tile|int8|bf16)|asimd\w*|sve2?)$/;
const TICKS_PER_SECOND = 100;

/** Nothing here changes while the benchmarks run. */
export function machine() {
  return {
    cpu: `${os.cpus()[0]?.model ?? 'unknown'}${cpuNumbers()}`,
    cores: os.availableParallelism(),
    flags: cpuFlags(),
    memoryBytes: os.totalmem(),
    kernel: `${os.type()} ${os.release()} ${os.arch()}`,
    node: process.version,
    rustc: output('rustc', ['--version'])?.trim() ?? null,
  };
}

/** A name like "AMD EPYC" stands for several generations. */
function cpuNumbers() {
  const [family, model] = [cpuInfo('cpu family'), cpuInfo('model')];
  return family === undefined ? '' : ` (family ${family}, model ${model})`;
}

function cpuFlags() {
  return (cpuInfo('(?:flags|Features)') ?? '')
    .split(/\s+/)
    .filter((flag) => FLAGS.test(flag))
    .sort();
}

/** What Linux says of the first processor. */
function cpuInfo(name) {
  try {
    return new RegExp(`^${name}\\s*:\\s*(.*)$`, 'm').exec(readFileSync('/proc/cpuinfo', 'utf8'))?.[1].trim();
  } catch {
    return undefined;
  }
}

/** The commit, and whether what the figures depend on differs from it; `more` of it than the sources of the server and the benchmarks. */
export function revision(more = []) {
  const watched = ['crates', 'packages', 'benches', 'scripts', 'Cargo.lock', ...more, ':!benches/results'];
  return {
    commit: output('git', ['rev-parse', 'HEAD'])?.trim() ?? null,
    dirty: (output('git', ['status', '--porcelain', '--', ...watched])?.trim() ?? '') !== '',
  };
}

/** Processor seconds that everything on the machine has used, and those of this process and its ended children. */
function processorSeconds() {
  try {
    const all = readFileSync('/proc/stat', 'utf8').split('\n', 1)[0].trim().split(/\s+/).slice(1, 9).map(Number);
    const busy = all.reduce((sum, ticks) => sum + ticks, 0) - all[3] - all[4];
    const own = readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1).split(' ');
    // User and system time are the 12th and 13th field after the name, those of ended children follow.
    const mine = own.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0);
    return { busy: busy / TICKS_PER_SECOND, mine: mine / TICKS_PER_SECOND };
  } catch {
    return undefined;
  }
}

/** Starts watching; the function it returns says how many cores other processes used on average, or null if unknown. */
export function watchOthers() {
  const [begun, first] = [performance.now(), processorSeconds()];
  return () => {
    const last = processorSeconds();
    if (first === undefined || last === undefined) return null;
    const others = last.busy - first.busy - (last.mine - first.mine);
    return Math.max(0, Number((others / ((performance.now() - begun) / 1000)).toFixed(2)));
  };
}
