// Sparrow in this process, as the other engines are in theirs: requests go through the addon, JSON in and JSON out.
import { NativeSearchEngine, embeddedModels } from '@sparrow-search/engine';

import { StepFailed } from '../../scripts/lib/process.mjs';
import { median, percentile } from '../lib/statistics.mjs';

export const K = 10;
const BULK = 1000;

export async function openSparrow(data) {
  const log = { level: 'warn', asText: true };
  const engine = await NativeSearchEngine.open({ data, models: embeddedModels(), deployAtStart: false, log });
  const send = async (op, path, query, body) => {
    const reply = await engine.execute({ op, path, query }, body === undefined ? undefined : Buffer.from(body));
    return JSON.parse(Buffer.from(reply.body).toString());
  };
  return { engine, send, close: () => engine.close() };
}

/**
 * An index in one segment of documents whose `_id` is their number.
 *
 * @param {object} properties their mapping
 * @param {Iterable<object>} documents
 * @returns {Promise<{ seconds: number, bytes: number, count: number }>} what it took, and what lies on disk; making the bodies does not count
 */
export async function build({ send }, index, properties, documents) {
  const settings = { number_of_shards: 1, refresh_interval: '-1' };
  const mappings = { dynamic: false, _source: { enabled: false }, properties };
  await send('create_index', { index }, {}, JSON.stringify({ settings, mappings }));
  let [lines, count, took] = [[], 0, 0];
  const timed = async (...request) => {
    const begun = performance.now();
    const answer = await send(...request);
    took += performance.now() - begun;
    return answer;
  };
  const write = async () => {
    const { errors } = await timed('bulk', { index }, {}, `${lines.join('\n')}\n`);
    if (errors) throw new StepFailed(`a document of ${index} is refused`);
    lines = [];
  };
  for (const document of documents) {
    lines.push(`{"index":{"_id":"${count}"}}`, JSON.stringify(document));
    count += 1;
    if (count % BULK === 0) await write();
  }
  if (lines.length > 0) await write();
  await timed('refresh', { index }, {});
  await timed('force_merge', { index }, { max_num_segments: '1' });
  await send('refresh', { index }, {});
  const { _all: all } = await send('index_stats', { index }, {});
  return { seconds: took / 1000, bytes: all.primaries.store.size_in_bytes, count };
}

/**
 * Asks all questions one by one, once to warm up; the best time of each counts.
 *
 * @param {object[]} bodies of searches
 * @returns {Promise<{ mean: number, p50: number, p95: number, ids: Int32Array }>} milliseconds, and the ten of each, -1 for none
 */
export async function ask({ engine }, index, bodies, passes) {
  const requests = bodies.map((body) =>
    Buffer.from(JSON.stringify({ size: K, track_total_hits: false, _source: false, ...body })),
  );
  const ids = new Int32Array(K * bodies.length).fill(-1);
  const best = new Array(bodies.length).fill(Infinity);
  for (let pass = 0; pass <= passes; pass += 1) {
    for (const [at, request] of requests.entries()) {
      const begun = performance.now();
      const reply = await engine.execute({ op: 'search', path: { index }, query: {} }, request);
      if (pass > 0) best[at] = Math.min(best[at], performance.now() - begun);
      else {
        const { hits } = JSON.parse(Buffer.from(reply.body).toString());
        hits.hits.forEach(({ _id: id }, rank) => (ids[K * at + rank] = Number(id)));
      }
    }
  }
  const mean = best.reduce((sum, time) => sum + time, 0) / best.length;
  return { mean, p50: median(best), p95: percentile(best, 0.95), ids };
}
