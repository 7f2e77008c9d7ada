// node benches/cluster-capacity.mjs --cluster URL --data DIR [--sizes 10000,20000,40000] [--json FILE]
//
// The constants of docs/design/capacity.md: one shard of a cluster takes more and more passages of DIR/passages-200k.jsonl.gz through a Sparrow
// server, and is asked questions of DIR/queries-20k.jsonl.gz, whose tokens are given, one after another. It makes an index and removes it.
import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { createGunzip } from 'node:zlib';

import { bulkLines, createClient } from '../scripts/lib/api-client.mjs';
import { main } from '../scripts/lib/process.mjs';
import { productOf, withClusterServer, withoutAddress } from './lib/cluster-server.mjs';
import { beginRecord, commandLine, writeRecord } from './lib/record.mjs';
import { percentile } from './lib/statistics.mjs';

const MODEL = '.sparse_encoder_model_2';
const INDEX = 'capacity-passages';
const PIPELINE = 'capacity-embed';
const FIELD = 'tokens';
const BULK = 1000;
const QUESTIONS = 200;

const OPTIONS = {
  cluster: { type: 'string' },
  data: { type: 'string' },
  sizes: { type: 'string', default: '10000,20000,40000' },
  json: { type: 'string' },
};

async function readRows(file, count) {
  const rows = [];
  const input = createReadStream(file).pipe(createGunzip());
  for await (const line of createInterface({ input })) {
    rows.push(JSON.parse(line));
    if (rows.length === count) break;
  }
  input.destroy();
  return rows;
}

/** Asks the cluster itself; resolves with its answer and the milliseconds until it was there. */
async function ask(url, method, path, body) {
  const begun = performance.now();
  const answer = await fetch(url + path, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
  });
  const text = await answer.text();
  const ms = performance.now() - begun;
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text.slice(0, 300)}`);
  return { body: JSON.parse(text), ms };
}

async function searchTimes(cluster, vectors) {
  const times = [];
  for (const round of ['warm-up', 'measured']) {
    for (const tokens of vectors) {
      const body = { query: { neural_sparse: { [FIELD]: { query_tokens: tokens } } }, size: 10, _source: false };
      const answer = await ask(cluster, 'POST', `/${INDEX}/_search?request_cache=false`, body);
      if (round === 'warm-up') continue;
      times.push(answer.ms);
    }
  }
  const mean = (all) => Number((all.reduce((sum, it) => sum + it, 0) / all.length).toFixed(3));
  return {
    mean_ms: mean(times),
    p50_ms: Number(percentile(times, 0.5).toFixed(3)),
    p95_ms: Number(percentile(times, 0.95).toFixed(3)),
  };
}

await main(async (args) => {
  const { values } = parseArgs({ args, options: OPTIONS });
  const { cluster } = values;
  const sizes = values.sizes.split(',').map(Number);
  const [passages, queries] = await Promise.all([
    readRows(join(values.data, 'passages-200k.jsonl.gz'), Math.max(...sizes)),
    readRows(join(values.data, 'queries-20k.jsonl.gz'), QUESTIONS),
  ]);
  const endRecord = beginRecord({
    suite: 'cluster-capacity',
    title: 'one shard of a cluster as it grows',
    command: commandLine('node benches/cluster-capacity.mjs', withoutAddress(args, cluster)),
  });
  const found = await withClusterServer(cluster, (server) => measure(cluster, server, { passages, queries, sizes }));
  if (values.json !== undefined) writeRecord(values.json, endRecord(found));
});

async function measure(cluster, server, { passages, queries, sizes }) {
  const request = createClient(server);
  const rows = [];
  try {
    const { body: root } = await ask(cluster, 'GET', '/');
    const inference = { model_id: MODEL, input_output: [{ input_field: 'text', output_field: FIELD }] };
    await request('PUT', `/_ingest/pipeline/${PIPELINE}`, { processors: [{ inference }] });
    await ask(cluster, 'DELETE', `/${INDEX}?ignore_unavailable=true`);
    await request('PUT', `/${INDEX}`, {
      settings: { number_of_shards: 1, number_of_replicas: 0 },
      mappings: { properties: { text: { type: 'text' }, [FIELD]: { type: 'sparse_vector' } } },
    });
    const { inference_results: results } = await request('POST', `/_ml/trained_models/${MODEL}/_infer`, {
      docs: queries.map(({ text }) => ({ text_field: text })),
    });
    const vectors = results.map((it) => it.predicted_value);
    let loaded = 0;
    for (const size of sizes) {
      const begun = performance.now();
      const first = loaded;
      while (loaded < size) {
        const part = passages.slice(loaded, Math.min(size, loaded + BULK));
        loaded += part.length;
        const lines = bulkLines(part);
        const answer = await request('POST', `/${INDEX}/_bulk?pipeline=${PIPELINE}`, lines);
        if (answer.errors) throw new Error('a document was refused');
      }
      const seconds = (performance.now() - begun) / 1000;
      await ask(cluster, 'POST', `/${INDEX}/_forcemerge?max_num_segments=1&flush=true`);
      await ask(cluster, 'POST', `/${INDEX}/_refresh`);
      const { body: stats } = await ask(cluster, 'GET', `/${INDEX}/_stats/store,docs`);
      const { store, docs } = stats._all.primaries;
      rows.push({
        documents: docs.count,
        loaded_per_second: Math.round((size - first) / seconds),
        bytes_per_document: Math.round(store.size_in_bytes / docs.count),
        ...(await searchTimes(cluster, vectors)),
      });
      console.log(JSON.stringify(rows.at(-1)));
    }
    const sample = passages.slice(0, 1000);
    return {
      cluster: productOf(root),
      text_bytes_per_document: Math.round(
        sample.reduce((sum, row) => sum + Buffer.byteLength(JSON.stringify(row)), 0) / 1000,
      ),
      query_tokens: Number((vectors.reduce((sum, it) => sum + Object.keys(it).length, 0) / vectors.length).toFixed(1)),
      rows,
    };
  } finally {
    await ask(cluster, 'DELETE', `/${INDEX}?ignore_unavailable=true`).catch(() => {});
    await request('DELETE', `/_ingest/pipeline/${PIPELINE}`).catch(() => {});
  }
}
