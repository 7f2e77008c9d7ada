// A server under more and more load: how long what it admits takes, what it refuses, and whether it stays well meanwhile.
import { randomSearch } from './requests.mjs';
import { runClient } from './clients.mjs';
import { usage } from '../../scripts/lib/server-process.mjs';

/** Over how long the clients come, and from when on their requests count, in milliseconds. */
const COMING_MS = 1000;
const COUNTED_FROM_MS = 1500;

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** The value below which a share of the sorted numbers lies. */
function quantile(sorted, share) {
  return sorted.length === 0 ? 0 : sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}

/**
 * Lets so many clients search for a time, while one asks every 50 ms whether the server is well.
 *
 * @param {{url: string, apiKey: string, pid: number}} server
 * @param {{clients: number, ms: number, random: () => number, patient?: boolean, beside?: () => Promise<unknown>}} options
 */
export async function measure(server, { clients, ms, random, patient = true }) {
  const { hostname, port } = new URL(server.url);
  const address = { hostname, port: Number(port), apiKey: server.apiKey };
  const admitted = [];
  const counts = { ok: 0, refused: 0, failed: 0, cut: 0 };
  const begun = performance.now();
  const isOver = () => performance.now() - begun > COUNTED_FROM_MS + ms;
  const heard = (status, took) => {
    if (performance.now() - begun - took < COUNTED_FROM_MS) return;
    if (status === 200) {
      counts.ok += 1;
      admitted.push(took);
    } else if (status === 429) counts.refused += 1;
    else counts.failed += 1;
  };
  const health = [];
  const unwell = { count: 0 };
  const pulse = runClient(
    address,
    () => ({ method: 'GET', path: '/_cluster/health', body: '', type: 'application/json' }),
    { isOver, patient, random, heard: (status, took) => (status === 200 ? health.push(took) : (unwell.count += 1)) },
  );
  let peak = 0;
  const watch = setInterval(() => {
    peak = Math.max(peak, usage(server.pid)?.resident ?? 0);
  }, 50);
  const ends = await Promise.all(
    Array.from({ length: clients }, async (_, at) => {
      await sleep((COMING_MS * at) / clients);
      return runClient(address, () => randomSearch(random), { isOver, patient, random, heard });
    }),
  );
  await pulse;
  clearInterval(watch);
  counts.cut = ends.filter((how) => how === 'cut').length;
  const seconds = (performance.now() - begun - COUNTED_FROM_MS) / 1000;
  admitted.sort((a, b) => a - b);
  health.sort((a, b) => a - b);
  await sleep(100);
  return {
    clients,
    ...counts,
    perSecond: counts.ok / seconds,
    p50: quantile(admitted, 0.5),
    p99: quantile(admitted, 0.99),
    healthP99: quantile(health, 0.99),
    healthMost: health.at(-1) ?? 0,
    unwell: unwell.count,
    peakBytes: peak,
  };
}

/** The figures as a table in Markdown. */
export function table(rows) {
  const lines = rows.map((row) =>
    [
      row.clients,
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
    '| clients | searches/s | p50 ms | p99 ms | refused | failed | health p99 ms | resident MiB |',
    '|---|---|---|---|---|---|---|---|',
    ...lines.map((line) => `| ${line} |`),
  ].join('\n');
}
