// A server under load: how long what it admits takes, what it refuses, and whether it stays well meanwhile.
import { Worker } from 'node:worker_threads';

import { usage } from '../../scripts/lib/server-process.mjs';
import { openLoop, runClient } from './clients.mjs';

/** Over how long clients come, and from when on their requests count, in milliseconds. */
const COMING_MS = 1000;
const COUNTED_FROM_MS = 1500;

/** From when on arrivals count, in milliseconds: a server needs a moment to see that more comes than it can carry. */
const ARRIVALS_COUNTED_FROM_MS = 4000;

const LOOK_MS = 50;

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** The value below which a share of the sorted numbers lies. */
function quantile(sorted, share) {
  return sorted.length === 0 ? 0 : sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}

function median(numbers) {
  return quantile(
    numbers.toSorted((a, b) => a - b),
    0.5,
  );
}

function addressOf({ url, apiKey }) {
  const { hostname, port } = new URL(url);
  return { hostname, port: Number(port), apiKey };
}

/** What is counted of the answers. */
class Answers {
  admitted = [];
  refused = 0;
  /** Refused without being told when to come again. */
  untold = 0;
  failed = 0;

  hear(status, ms, retryAfter) {
    if (status === 200) this.admitted.push(ms);
    else if (status !== 429) this.failed += 1;
    else {
      this.refused += 1;
      this.untold += Number(!(retryAfter > 0));
    }
  }

  figures(seconds) {
    const { admitted, refused, untold, failed } = this;
    admitted.sort((a, b) => a - b);
    return {
      ok: admitted.length,
      refused,
      untold,
      failed,
      perSecond: admitted.length / seconds,
      p50: quantile(admitted, 0.5),
      p99: quantile(admitted, 0.99),
    };
  }
}

/** Watches whether the server is well, and how large it is, while something else goes on for so long. */
class Watch {
  #samples = [];
  #timer;
  #health;

  constructor(server, ms) {
    const workerData = { server: addressOf(server), ms };
    const worker = new Worker(new URL('pulse.mjs', import.meta.url), { workerData });
    this.#health = new Promise((resolve, reject) => {
      worker.on('message', resolve);
      worker.on('error', reject);
    });
    const look = () => {
      const memory = usage(server.pid);
      if (memory !== undefined) this.#samples.push(memory);
    };
    look();
    this.#timer = setInterval(look, LOOK_MS);
  }

  async end() {
    const { took, unwell } = await this.#health;
    clearInterval(this.#timer);
    took.sort((a, b) => a - b);
    const quarter = Math.max(1, Math.floor(this.#samples.length / 4));
    const anonymous = this.#samples.map((sample) => sample.anonymous);
    return {
      healthP50: quantile(took, 0.5),
      healthP99: quantile(took, 0.99),
      healthMost: took.at(-1) ?? 0,
      unwell,
      peakBytes: Math.max(...this.#samples.map((sample) => sample.resident)),
      firstBytes: median(anonymous.slice(0, quarter)),
      lastBytes: median(anonymous.slice(-quarter)),
    };
  }
}

/**
 * Lets so many clients ask one request after another for a time.
 *
 * @param {{url: string, apiKey: string, pid: number}} server
 * @param {{clients: number, ms: number, random: () => number, next: () => object, patient?: boolean}} options
 */
export async function measure(server, { clients, ms, random, next, patient = true }) {
  const answers = new Answers();
  const watch = new Watch(server, COUNTED_FROM_MS + ms);
  const begun = performance.now();
  const isOver = () => performance.now() - begun > COUNTED_FROM_MS + ms;
  const heard = (status, took, later) => {
    if (performance.now() - begun - took >= COUNTED_FROM_MS) answers.hear(status, took, later);
  };
  const ends = await Promise.all(
    Array.from({ length: clients }, async (_, at) => {
      await sleep((COMING_MS * at) / clients);
      return runClient(addressOf(server), next, { isOver, patient, random, heard });
    }),
  );
  const seconds = (performance.now() - begun - COUNTED_FROM_MS) / 1000;
  const cut = ends.filter((how) => how === 'cut').length;
  return { clients, ...answers.figures(seconds), cut, ...(await watch.end()) };
}

/**
 * Lets requests arrive at a fixed rate for a time, whatever becomes of them; their latency counts from when they were to arrive.
 *
 * @param {{url: string, apiKey: string, pid: number}} server
 * @param {{rate: number, ms: number, next: () => object}} options
 */
export async function measureArrivals(server, { rate, ms, next }) {
  const answers = new Answers();
  const all = ARRIVALS_COUNTED_FROM_MS + ms;
  const watch = new Watch(server, all);
  const { cut, unanswered, late } = await openLoop(addressOf(server), next, {
    rate,
    ms: all,
    heard: (planned, ...answer) => {
      if (planned >= ARRIVALS_COUNTED_FROM_MS) answers.hear(...answer);
    },
  });
  late.sort((a, b) => a - b);
  return {
    rate,
    ...answers.figures(ms / 1000),
    cut: cut + unanswered,
    lateP99: quantile(late, 0.99),
    ...(await watch.end()),
  };
}

/** The figures as a table in Markdown. */
export function table(rows) {
  const lines = rows.map((row) =>
    [
      row.name,
      row.perSecond.toFixed(0),
      row.p50.toFixed(1),
      row.p99.toFixed(1),
      `${((100 * row.refused) / Math.max(1, row.ok + row.refused)).toFixed(1)} %`,
      row.failed + row.cut,
      row.healthP99.toFixed(1),
      (row.peakBytes / 2 ** 20).toFixed(0),
    ].join(' | '),
  );
  return [
    '| load | searches/s | p50 ms | p99 ms | refused | failed | health p99 ms | resident MiB |',
    '|---|---|---|---|---|---|---|---|',
    ...lines.map((line) => `| ${line} |`),
  ].join('\n');
}
