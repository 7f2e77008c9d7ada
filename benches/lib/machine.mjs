// The machine a benchmark ran on, and how busy others kept it meanwhile.
import { readFileSync, readdirSync } from 'node:fs';
import os from 'node:os';
import { join } from 'node:path';
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

/**
 * Ticks that a process and its descendants have used: those that run, and those that ended and were waited for. A daemon whose starter has
 * ended is nobody's descendant any more, and is not counted.
 *
 * @param {number} pid
 * @param {string} [proc] where Linux tells of processes
 */
export function familyTicks(pid, proc = '/proc') {
  const children = new Map();
  const ticks = new Map();
  for (const name of readdirSync(proc).filter((each) => /^\d+$/.test(each))) {
    // After the name, which may hold spaces: the parent is the 2nd field, user and system time are the 12th and 13th, and those of
    // ended children follow.
    const fields = statOf(join(proc, name, 'stat'))
      ?.split(') ')
      .at(-1)
      .split(' ');
    if (fields === undefined) continue;
    const [own, parent] = [Number(name), Number(fields[1])];
    children.set(parent, [...(children.get(parent) ?? []), own]);
    ticks.set(
      own,
      fields.slice(11, 15).reduce((sum, each) => sum + Number(each), 0),
    );
  }
  const sumOf = (each) => (children.get(each) ?? []).reduce((sum, child) => sum + sumOf(child), ticks.get(each) ?? 0);
  return sumOf(pid);
}

/** Undefined where the process has ended meanwhile. */
function statOf(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

/** Processor seconds that everything on the machine has used, and those of this process and its descendants. */
function processorSeconds() {
  try {
    const all = readFileSync('/proc/stat', 'utf8').split('\n', 1)[0].trim().split(/\s+/).slice(1, 9).map(Number);
    const busy = all.reduce((sum, ticks) => sum + ticks, 0) - all[3] - all[4];
    return { busy: busy / TICKS_PER_SECOND, mine: familyTicks(process.pid) / TICKS_PER_SECOND };
  } catch {
    return undefined;
  }
}

/**
 * Starts watching; the function it returns says how many cores other processes used on average, or null if unknown. A peer that is a daemon,
 * as OpenSearch is, counts as another process.
 */
export function watchOthers() {
  const [begun, first] = [performance.now(), processorSeconds()];
  return () => {
    const last = processorSeconds();
    if (first === undefined || last === undefined) return null;
    const others = last.busy - first.busy - (last.mine - first.mine);
    return Math.max(0, Number((others / ((performance.now() - begun) / 1000)).toFixed(2)));
  };
}
