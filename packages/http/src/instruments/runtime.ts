import { readFile } from 'node:fs/promises';
import { type IntervalHistogram, PerformanceObserver, constants, monitorEventLoopDelay } from 'node:perf_hooks';
import process from 'node:process';
import { getHeapStatistics } from 'node:v8';

import type { Distribution, Exposition } from './exposition.js';

/** Upper bounds of the buckets for a pause of the garbage collector, in seconds. */
const PAUSES = [0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1] as const;

/** Milliseconds between two looks at how late the event loop is. */
const RESOLUTION = 20;

const KINDS: Readonly<Record<number, string>> = {
  [constants.NODE_PERFORMANCE_GC_MINOR]: 'young',
  [constants.NODE_PERFORMANCE_GC_MAJOR]: 'old',
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL]: 'incremental',
  [constants.NODE_PERFORMANCE_GC_WEAKCB]: 'weak_callbacks',
};

/** Collections of one kind. */
interface Collections {
  readonly buckets: number[];
  seconds: number;
}

/** Watches JavaScript's part of the process: how late its event loop is, and the pauses of its garbage collector. */
export class RuntimeWatch {
  readonly #delay: IntervalHistogram = monitorEventLoopDelay({ resolution: RESOLUTION });
  readonly #collections = new Map<string, Collections>();
  readonly #observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) this.#collected(entry);
  });

  start(): void {
    this.#delay.enable();
    this.#observer.observe({ entryTypes: ['gc'] });
  }

  stop(): void {
    this.#delay.disable();
    this.#observer.disconnect();
  }

  /** How often the garbage collector ran, by kind, and how many seconds that took. */
  collections(): { readonly kind: string; readonly count: number; readonly seconds: number }[] {
    return [...this.#collections].map(([kind, { buckets, seconds }]) => ({
      kind,
      count: buckets.reduce((sum, count) => sum + count, 0),
      seconds,
    }));
  }

  async expose(page: Exposition): Promise<void> {
    const delay = this.#delay;
    const seconds = (nanos: number): number =>
      Number.isFinite(nanos) ? Math.max(nanos / 1e9 - RESOLUTION / 1000, 0) : 0;
    const quantiles = [0.5, 0.9, 0.99, 1].map((quantile): [number, number] => [
      quantile,
      delay.count === 0 ? 0 : seconds(delay.percentile(quantile * 100)),
    ]);
    page.summary(
      'sparrow_event_loop_delay_seconds',
      'How much later than asked for the event loop ran a timer.',
      quantiles,
      delay.count === 0 ? 0 : seconds(delay.mean) * delay.count,
      delay.count,
    );
    page.histogram(
      'sparrow_gc_pause_seconds',
      'Pauses of the garbage collector of JavaScript’s heap, by kind.',
      PAUSES,
      [...this.#collections].map(([kind, { buckets, seconds: sum }]): Distribution => ({
        labels: { kind },
        counts: buckets,
        sum,
      })),
    );
    const memory = memoryUsage();
    const heap = getHeapStatistics();
    page.gauge('sparrow_process_resident_memory_bytes', 'Resident memory of the process.', memory?.rss);
    const parts = await residentParts();
    if (parts.length > 0) {
      page.gauge(
        'sparrow_process_resident_memory_part_bytes',
        'Resident memory by what it holds: anonymous is the process’s own, file is mapped and can be taken back.',
        parts.map(([part, value]) => ({ labels: { part }, value })),
      );
    }
    page.gauge('sparrow_javascript_heap_bytes', 'Heap of JavaScript.', [
      { labels: { state: 'used' }, value: heap.used_heap_size },
      { labels: { state: 'committed' }, value: heap.total_heap_size },
      { labels: { state: 'limit' }, value: heap.heap_size_limit },
    ]);
    if (memory !== undefined) {
      page.gauge('sparrow_javascript_buffers_bytes', 'Bytes outside of the heap that JavaScript holds.', [
        { labels: { kind: 'array_buffers' }, value: memory.arrayBuffers },
        { labels: { kind: 'external' }, value: memory.external },
      ]);
    }
    const cpu = process.cpuUsage();
    page.counter('sparrow_process_cpu_seconds_total', 'Time on a processor, of all threads.', [
      { labels: { mode: 'user' }, value: cpu.user / 1e6 },
      { labels: { mode: 'system' }, value: cpu.system / 1e6 },
    ]);
    page.gauge('sparrow_process_uptime_seconds', 'Time since the process started.', process.uptime());
  }

  #collected(entry: { readonly duration: number; readonly detail?: unknown }): void {
    const { kind } = entry.detail as { kind?: number };
    const name = KINDS[kind ?? 0] ?? 'other';
    let of = this.#collections.get(name);
    if (of === undefined) {
      of = { buckets: Array.from({ length: PAUSES.length + 1 }, () => 0), seconds: 0 };
      this.#collections.set(name, of);
    }
    const seconds = entry.duration / 1000;
    const place = PAUSES.findIndex((bound) => seconds <= bound);
    const bucket = place < 0 ? PAUSES.length : place;
    of.buckets[bucket] = (of.buckets[bucket] ?? 0) + 1;
    of.seconds += seconds;
  }
}

/** Memory of the process; undefined when there is no file descriptor left to ask the system with. */
function memoryUsage(): NodeJS.MemoryUsage | undefined {
  try {
    return process.memoryUsage();
  } catch {
    return undefined;
  }
}

/** Resident memory by its kind, where the system tells. */
async function residentParts(): Promise<[string, number][]> {
  let status: string;
  try {
    status = await readFile('/proc/self/status', 'utf8');
  } catch {
    return [];
  }
  const names = { anonymous: 'RssAnon', file: 'RssFile', shared: 'RssShmem' };
  return Object.entries(names).flatMap(([part, name]): [string, number][] => {
    const kilobytes = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1];
    return kilobytes === undefined ? [] : [[part, Number(kilobytes) * 1024]];
  });
}
