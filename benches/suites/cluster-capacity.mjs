// The constants of docs/design/capacity.md: what a passage costs Sparrow's encoder and the cluster (OpenSearch 2.19) in processor time and on
// the disk, and what a search costs a small shard. At the end four times as many documents, in one shard and in four, say whether documents
// and shards cost what the page makes of these constants.
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import { usage } from '../../scripts/lib/server-process.mjs';
import { withClusterServers } from '../lib/cluster-server.mjs';
import { percentile } from '../lib/statistics.mjs';
import { Side } from '../serving/paired.mjs';
import { startOpenSearch } from '../serving/servers.mjs';

export const title = 'What a cluster needs for so many documents';

const SIZES = {
  quick: { sizes: [1000, 2000, 4000], questions: 100, passes: 2 },
  full: { sizes: [1000, 2000, 4000], questions: 300, passes: 5 },
};
/** How many times the documents of the largest size make the two indices by which the arithmetic is checked. */
const TIMES = 4;
const MODEL = '.sparse_encoder_model_2';
const FIELD = 'tokens';
const GROWING = 'capacity-growing';
const CHECKED = { one: 'capacity-one-shard', several: 'capacity-several-shards' };
const BULK = 500;
/** Texts of one request to the encoder, which has ten seconds for it. */
const TEXTS = 100;
/** Files of a segment that a search reads: postings, their skips, the terms, norms and columns. What is left is read for the hits alone. */
const OF_SEARCH = new Set(['doc', 'pos', 'pay', 'tim', 'tip', 'tmd', 'nvd', 'nvm', 'dvd', 'dvm', 'kdd', 'kdi', 'kdm']);

/** @param {import('../lib/context.mjs').Context} context */
export async function run(context) {
  if (context.size === 'smoke' || context.peers === undefined) {
    return { rows: [{ what: 'a document in a cluster', skipped: 'no folder of peers' }] };
  }
  const size = SIZES[context.size];
  const texts = await context.texts(size.sizes.at(-1));
  const questions = await context.questions(size.questions);
  const data = mkdtempSync(join(context.work, 'capacity-'));
  const cluster = await startOpenSearch(context.peers, data, 9290);
  try {
    return await withClusterServers(cluster.url, 1, ([sparrow]) =>
      measure(context, size, { cluster, sparrow }, { texts, questions }),
    );
  } finally {
    await cluster.stop();
    rmSync(data, { recursive: true, force: true });
  }
}

async function measure(context, { sizes, passes }, { cluster, sparrow }, { texts, questions }) {
  const encoded = await encode(sparrow, texts);
  context.log(`encoded: ${JSON.stringify(encoded.figures)}`);
  const vectors = [];
  for (let from = 0; from < questions.length; from += TEXTS) {
    const results = await infer(sparrow, questions.slice(from, from + TEXTS));
    vectors.push(...results.map(({ predicted_value: tokens }) => tokens));
  }
  const grown = [];
  await makeIndex(sparrow, GROWING, 1);
  for (const [at, documents] of sizes.entries()) {
    const lines = encoded.lines.slice(sizes[at - 1] ?? 0, documents);
    const written = await write(cluster, GROWING, lines);
    grown.push({
      documents,
      shards: 1,
      ...written,
      ...(await sizeOf(cluster, GROWING)),
      ...(await ask(cluster, GROWING, vectors, passes)),
    });
    context.log(JSON.stringify(grown.at(-1)));
  }
  const checked = {};
  for (const [name, shards] of [
    ['one', 1],
    ['several', TIMES],
  ]) {
    const index = CHECKED[name];
    await makeIndex(sparrow, index, shards);
    let written;
    for (let copy = 0; copy < TIMES; copy += 1) {
      // Other ids: each is a document of its own.
      const lines = encoded.lines.map((line) => line.replace('{"index":{"_id":"', `$&${copy}-`));
      written = await write(cluster, index, lines);
    }
    const documents = TIMES * sizes.at(-1);
    checked[name] = {
      documents,
      shards,
      ...written,
      ...(await sizeOf(cluster, index)),
      ...(await ask(cluster, index, vectors, passes)),
    };
    context.log(JSON.stringify(checked[name]));
    await cluster.request('DELETE', `/${index}`);
  }
  return { rows: rowsOf(encoded.figures, grown, checked), notes: notesOf(encoded.figures, grown) };
}

async function makeIndex(sparrow, name, shards) {
  await sparrow.request('PUT', `/${name}`, {
    settings: { number_of_shards: shards, number_of_replicas: 0 },
    mappings: { properties: { title: { type: 'text' }, text: { type: 'text' }, [FIELD]: { type: 'sparse_vector' } } },
  });
}

async function infer({ request }, texts) {
  const docs = texts.map((text) => ({ text_field: text }));
  return (await request('POST', `/_ml/trained_models/${MODEL}/_infer`, { docs })).inference_results;
}

/** What the encoder makes of the texts, as lines of bulk requests, and what that takes. */
async function encode(sparrow, texts) {
  const lines = [];
  let [tokens, bytes] = [0, 0];
  const [begun, before] = [performance.now(), usage(sparrow.pid).cpuMs];
  for (let from = 0; from < texts.length; from += TEXTS) {
    const part = texts.slice(from, from + TEXTS);
    const results = await infer(
      sparrow,
      part.map(({ text }) => text),
    );
    part.forEach(({ id, title: name, text }, at) => {
      const found = results[at].predicted_value;
      tokens += Object.keys(found).length;
      bytes += Buffer.byteLength(JSON.stringify({ title: name, text }));
      lines.push(
        `${JSON.stringify({ index: { _id: String(id) } })}\n${JSON.stringify({ title: name, text, [FIELD]: found })}\n`,
      );
    });
  }
  const { cpuMs, resident } = usage(sparrow.pid);
  return {
    lines,
    figures: {
      documents: texts.length,
      cpuMicros: ((cpuMs - before) * 1000) / texts.length,
      perSecond: (texts.length * 1000) / (performance.now() - begun),
      tokens: tokens / texts.length,
      textBytes: bytes / texts.length,
      lineBytes: lines.reduce((sum, line) => sum + Buffer.byteLength(line), 0) / lines.length,
      sparrowResident: resident,
    },
  };
}

/** Writes into the cluster itself and merges what is there into one segment a shard; what that takes a document, the merge with it. */
async function write(cluster, index, lines) {
  const side = new Side(cluster);
  const before = usage(cluster.pid).cpuMs;
  try {
    for (let from = 0; from < lines.length; from += BULK) {
      const { answer } = await side.post(`/${index}/_bulk`, lines.slice(from, from + BULK).join(''));
      if (answer.errors) throw new Error('a document was refused');
    }
  } finally {
    side.close();
  }
  await cluster.request('POST', `/${index}/_forcemerge?max_num_segments=1&flush=true`);
  await cluster.request('POST', `/${index}/_refresh`);
  return { writeCpuMicros: ((usage(cluster.pid).cpuMs - before) * 1000) / lines.length };
}

/** Bytes a document, and of which those that searches read. */
async function sizeOf({ request }, index) {
  const found = await request('GET', `/${index}/_stats/store,docs,segments?include_segment_file_sizes=true`);
  const { store, docs, segments } = found._all.primaries;
  const files = Object.entries(segments.file_sizes);
  const all = files.reduce((sum, [, { size_in_bytes: bytes }]) => sum + bytes, 0);
  const searched = files.filter(([kind]) => OF_SEARCH.has(kind)).reduce((sum, [, it]) => sum + it.size_in_bytes, 0);
  if (all < 0.9 * store.size_in_bytes) throw new Error(`files of ${all} bytes are not all of ${store.size_in_bytes}`);
  return {
    segments: segments.count,
    bytesPerDocument: store.size_in_bytes / docs.count,
    searchedBytesPerDocument: searched / docs.count,
  };
}

/** What searches of ten hits with the tokens of the questions take, one after another: the better pass counts. */
async function ask(cluster, index, vectors, passes) {
  const side = new Side(cluster);
  const found = { searchCpuMicros: Infinity, p50: Infinity, p95: Infinity };
  try {
    for (let pass = -1; pass < passes; pass += 1) {
      const before = usage(cluster.pid).cpuMs;
      const ms = [];
      for (const tokens of vectors) {
        const body = { query: { neural_sparse: { [FIELD]: { query_tokens: tokens } } }, _source: false };
        const { ms: one, answer } = await side.post(`/${index}/_search?request_cache=false`, body);
        if (answer.hits.hits.length === 0) throw new Error('nothing was found');
        ms.push(one);
      }
      if (pass < 0) continue;
      found.searchCpuMicros = Math.min(
        found.searchCpuMicros,
        ((usage(cluster.pid).cpuMs - before) * 1000) / vectors.length,
      );
      found.p50 = Math.min(found.p50, percentile(ms, 0.5));
      found.p95 = Math.min(found.p95, percentile(ms, 0.95));
    }
  } finally {
    side.close();
  }
  return found;
}

function rowsOf(encoder, grown, { one, several }) {
  const last = grown.at(-1);
  const search = ({ documents, shards, searchCpuMicros, ...detail }) => ({
    what: `a search, ${documents} documents in ${shards} shard${shards === 1 ? '' : 's'}`,
    unit: 'µs of a core',
    sparrow: searchCpuMicros,
    detail,
  });
  const disk = ({ documents, shards, bytesPerDocument }) => ({
    what: `a document on the disk, ${documents} in ${shards} shard${shards === 1 ? '' : 's'}`,
    against: `${last.documents} in one shard`,
    unit: 'bytes',
    sparrow: bytesPerDocument,
    peer: last.bytesPerDocument,
  });
  const rows = [
    { what: 'encoding a passage', unit: 'µs of a core', sparrow: encoder.cpuMicros, detail: encoder },
    { what: 'writing and merging a document', unit: 'µs of a core', sparrow: last.writeCpuMicros, detail: { grown } },
    { what: `a document on the disk, ${last.documents} in one shard`, unit: 'bytes', sparrow: last.bytesPerDocument },
    { what: 'of which searches read', unit: 'bytes', sparrow: last.searchedBytesPerDocument },
    ...[...grown, one, several].map(search),
    disk(one),
    disk(several),
  ];
  return rows.map((row) => ({ checked: 'no document was refused, every search found some', ...row }));
}

function notesOf(encoder, grown) {
  return [
    `passages of ${Math.round(encoder.textBytes)} bytes with ${Math.round(encoder.tokens)} tokens, as JSON ${Math.round(encoder.lineBytes)} bytes; one ` +
      'segment a shard, no replicas, heap 2 GB; processor time is that of the whole process, the better of the passes for searches',
    `one after another a search took ${grown.map(({ documents, p50, p95 }) => `${p50.toFixed(1)} ms (p95 ${p95.toFixed(1)}) over ${documents} documents`).join(', ')}`,
    `Sparrow's process had ${Math.round(encoder.sparrowResident / 2 ** 20)} MiB resident after the encoding`,
  ];
}
