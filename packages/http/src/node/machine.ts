import { readFile, readdir, statfs } from 'node:fs/promises';
import { arch, availableParallelism, cpus, freemem, loadavg, release, totalmem, type } from 'node:os';
import process from 'node:process';
import { getHeapStatistics } from 'node:v8';

/** When the server was started. Its process may be older: `npm start` builds in it first. */
const STARTED = performance.now();

/** What the process uses of its machine. What a system does not tell is absent. The engine's tables read it as JSON. */
export interface Machine {
  readonly pid: number;
  readonly http_address?: string;
  /** The heap of the JavaScript engine, in bytes; the search engine's memory is outside of it. */
  readonly heap_used: number;
  readonly heap_committed: number;
  readonly heap_max: number;
  readonly ram_used: number;
  readonly ram_total: number;
  readonly cpu_percent?: number;
  /** Averages over 1, 5 and 15 minutes. */
  readonly load?: readonly [number, number, number];
  readonly file_descriptors?: number;
  readonly file_descriptors_max?: number;
  readonly disk_available?: number;
  readonly disk_free?: number;
  readonly disk_total?: number;
  readonly uptime_millis: number;
}

/** Measures the process and its machine; the disk is the one that holds `data`. */
export async function measure(data: string, httpAddress: string | undefined): Promise<Machine> {
  const heap = getHeapStatistics();
  const total = totalmem();
  const [disk, files, filesMax] = await Promise.all([diskOf(data), openFiles(), mostFiles()]);
  const cpu = cpuPercent();
  const [minute = 0, five = 0, fifteen = 0] = loadavg();
  return {
    pid: process.pid,
    ...(httpAddress === undefined ? {} : { http_address: httpAddress }),
    heap_used: heap.used_heap_size,
    heap_committed: heap.total_heap_size,
    heap_max: heap.heap_size_limit,
    ram_used: total - freemem(),
    ram_total: total,
    ...(cpu === undefined ? {} : { cpu_percent: cpu }),
    // Windows has no such averages.
    ...(process.platform === 'win32' ? {} : { load: [minute, five, fifteen] as const }),
    ...(files === undefined ? {} : { file_descriptors: files }),
    ...(filesMax === undefined ? {} : { file_descriptors_max: filesMax }),
    ...disk,
    uptime_millis: Math.round(performance.now() - STARTED),
  };
}

/** The machine as `_nodes` describes it. */
export function describeOs(prettyName: string): object {
  return {
    refresh_interval_in_millis: 1000,
    name: type(),
    pretty_name: prettyName,
    arch: arch() === 'x64' ? 'amd64' : arch() === 'arm64' ? 'aarch64' : arch(),
    version: release(),
    available_processors: availableParallelism(),
    allocated_processors: availableParallelism(),
  };
}

/** The system's name for people. */
export async function osPrettyName(): Promise<string> {
  try {
    const text = await readFile('/etc/os-release', 'utf8');
    return /^PRETTY_NAME="?([^"\n]*)"?$/m.exec(text)?.[1] ?? type();
  } catch {
    return type();
  }
}

/**
 * Threads of the process, and its memory that is not a mapped file. Resident memory alone says little of a server that maps
 * its indices: the system takes those pages back whenever it needs them. Only Linux tells.
 */
export async function processStatus(): Promise<{ anonymous?: number; threads?: number }> {
  try {
    const status = await readFile('/proc/self/status', 'utf8');
    const kilobytes = /^RssAnon:\s+(\d+) kB$/m.exec(status)?.[1];
    const threads = /^Threads:\s+(\d+)$/m.exec(status)?.[1];
    return {
      ...(kilobytes === undefined ? {} : { anonymous: Number(kilobytes) * 1024 }),
      ...(threads === undefined ? {} : { threads: Number(threads) }),
    };
  } catch {
    return {};
  }
}

async function diskOf(path: string): Promise<Pick<Machine, 'disk_available' | 'disk_free' | 'disk_total'>> {
  try {
    const { bavail, bfree, blocks, bsize } = await statfs(path);
    return { disk_available: bavail * bsize, disk_free: bfree * bsize, disk_total: blocks * bsize };
  } catch {
    return {};
  }
}

async function openFiles(): Promise<number | undefined> {
  try {
    return (await readdir('/proc/self/fd')).length;
  } catch {
    return undefined;
  }
}

async function mostFiles(): Promise<number | undefined> {
  try {
    const found = /^Max open files\s+(\d+)/m.exec(await readFile('/proc/self/limits', 'utf8'))?.[1];
    return found === undefined ? undefined : Number(found);
  } catch {
    return undefined;
  }
}

let last = { busy: 0, all: 0 };
let lastPercent: number | undefined;

/** Use of all cores since the last time somebody asked, at first since the machine started. */
function cpuPercent(): number | undefined {
  let [busy, all] = [0, 0];
  for (const { times } of cpus()) {
    const work = times.user + times.nice + times.sys + times.irq;
    busy += work;
    all += work + times.idle;
  }
  if (all > last.all) {
    lastPercent = Math.round(((busy - last.busy) * 100) / (all - last.all));
    last = { busy, all };
  }
  return lastPercent;
}
