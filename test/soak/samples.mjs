// What is looked at every few seconds: the process as the system sees it, its data directory, and what it says of itself.
import { readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Bytes of all files below a folder. Some may go meanwhile. */
export function sizeOf(folder) {
  let total = 0;
  let entries = [];
  try {
    entries = readdirSync(folder, { withFileTypes: true });
  } catch {
    // It went.
  }
  for (const entry of entries) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) total += sizeOf(path);
    else total += statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  }
  return total;
}

/** Figures of a page for Prometheus by what is before the value. */
export function readPage(text) {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
  );
}

/** The value below which a share of the sorted numbers lies. */
export function quantile(sorted, share) {
  return sorted.length === 0 ? 0 : sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}

/** Looks at a server again and again. Times and delays are those since the look before. */
export class Sampler {
  #delay = { sum: 0, count: 0 };

  constructor(world, { pid, data }) {
    Object.assign(this, { world, pid, data });
  }

  async look(seconds) {
    const page = await this.world.ask({ method: 'GET', path: '/metrics' });
    const figures = readPage(page?.text ?? '');
    const status = readFileSync(`/proc/${this.pid}/status`, 'utf8');
    const line = (name) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1]);
    const times = this.world.takeTimes();
    const delay = {
      sum: figures.get('sparrow_event_loop_delay_seconds_sum') ?? 0,
      count: figures.get('sparrow_event_loop_delay_seconds_count') ?? 0,
    };
    const before = this.#delay;
    this.#delay = delay;
    const documents = figures.get('sparrow_documents') ?? 0;
    const diskBytes = sizeOf(this.data);
    return {
      seconds: Math.round(seconds),
      anonymousBytes: line('RssAnon') * 1024,
      heapBytes: figures.get('sparrow_javascript_heap_bytes{state="used"}') ?? 0,
      heapCommittedBytes: figures.get('sparrow_javascript_heap_bytes{state="committed"}') ?? 0,
      descriptors: readdirSync(`/proc/${this.pid}/fd`).length,
      threads: line('Threads'),
      documents,
      diskBytes,
      diskPerDocument: diskBytes / Math.max(1, documents),
      delayMs: (1000 * (delay.sum - before.sum)) / Math.max(1, delay.count - before.count),
      searches: times.length,
      p50: quantile(times, 0.5),
      p99: quantile(times, 0.99),
    };
  }
}
