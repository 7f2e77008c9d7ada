// The constants of docs/design/capacity.md for passages with two vectors, tokens and 384 numbers: what one costs Sparrow's encoders, and
// three nodes of OpenSearch 2.19 in processor time and on the disk, and what a search by either vector costs a shard. With `--million N`, so
// many passages are loaded into a shard on each node, to say whether they cost what the page makes of these constants. Their vectors are
// derived from those of a few thousand.
import { mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';

import { usage } from '../../scripts/lib/server-process.mjs';
import { openSearchJars, startThreeNodes } from '../../test/support/cluster/three-nodes.mjs';
import { withClusterServers } from '../lib/cluster-server.mjs';
import { DerivedDocuments, derivedVector } from '../lib/derived.mjs';
import { percentile } from '../lib/statistics.mjs';
import { readVocabulary } from '../lib/vocabulary.mjs';
import { Side } from '../serving/paired.mjs';
import { startOpenSearch } from '../serving/servers.mjs';

export const title = 'What a cluster needs for passages with two vectors';

/**
 * Passages of the shards; those of the last one give the constants. As many as `first` says are written to all nodes before that and deleted
 * again: Java translates a node's code while it writes, which costs the first thousands of passages twice as much as all later ones.
 */
const SIZES = {
  quick: { passages: 500, first: 3000, shards: [500, 1000, 5000], questions: 100, passes: 1 },
  full: { passages: 2000, first: 45_000, shards: [1000, 5000, 25_000], questions: 200, passes: 1 },
};
const MODELS = { tokens: '.sparse_encoder_model_2', vector: '.all-minilm-l6-v2' };
const DIMENSIONS = 384;
const HEAP = '1g';
const PORT = 9290;
const BULK = 500;
/** Requests that are under way at once, each to another node. */
const AT_ONCE = 2;
/** Texts of one request to an encoder, which has ten seconds for it. */
const TEXTS = 50;
/** Different texts that documents have; there are no more in the folder of --data. */
const MOST_TEXTS = 200_000;
/** The disk is not filled any further than this. */
const LEFT_ON_DISK = 8e9;
/** Candidates of a search by a vector in each shard, as Sparrow asks for. */
const CANDIDATES = 100;
/**
 * Files of a segment that a search reads: postings, their skips, the terms, norms, vectors and their graphs. The columns hold each vector once
 * more, which scripts alone read.
 */
const OF_SEARCH = new Set([
  ...['doc', 'pos', 'pay', 'tim', 'tip', 'tmd', 'nvd', 'nvm', 'kdd', 'kdi', 'kdm'],
  ...['vec', 'vemf', 'vex', 'vem'],
]);
/** Stored fields: the documents as they were sent. */
const OF_HITS = new Set(['fdt', 'fdx', 'fdm']);

/** @param {import('../lib/context.mjs').Context} context */
export async function run(context) {
  if (context.size === 'smoke' || context.peers === undefined) {
    return { rows: [{ what: 'a passage with two vectors in a cluster', skipped: 'no folder of peers' }] };
  }
  const size = SIZES[context.size];
  const texts = await context.texts(Math.min(MOST_TEXTS, Math.max(size.shards.at(-1), context.million ?? 0)));
  // Those of the second half are asked as texts, which no model has read before.
  const questions = await context.questions(2 * size.questions);
  const folder = mkdtempSync(join(context.work, 'two-vectors-'));
  let nodes;
  try {
    nodes = await startNodes(context, folder);
    return await withClusterServers(nodes.urls.join(), 1, async ([sparrow]) => {
      const encoded = await encodeAll(
        context,
        sparrow,
        texts.slice(0, size.passages),
        questions.slice(0, size.questions),
      );
      await makeIndex(sparrow, FIRST, 3);
      for (const documents of size.shards) await makeIndex(sparrow, shardOf(documents), 1);
      if (context.million !== undefined) await makeIndex(sparrow, LOADED, 3);
      const asked = questions.slice(size.questions);
      return measure({ context, size, nodes, sparrow, folder, texts, asked }, encoded);
    });
  } finally {
    await nodes?.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function startNodes({ peers }, folder) {
  // The launcher of one node fetches what three need.
  if ((await openSearchJars()) === undefined) await (await startOpenSearch(peers, join(folder, 'one'), PORT)).stop();
  return startThreeNodes({ peers, libraries: await openSearchJars(), folder, port: PORT, heap: HEAP });
}

const FIRST = 'two-vectors-first';
const LOADED = 'two-vectors-three-shards';
const shardOf = (documents) => `two-vectors-${documents}`;

/** The vectors of the passages and the questions, and what a passage takes. */
async function encodeAll(context, sparrow, texts, questions) {
  const before = usage(sparrow.pid).cpuMs;
  const passages = await encode(
    sparrow,
    texts.map(({ text }) => text),
  );
  const { cpuMs, resident } = usage(sparrow.pid);
  const cpuMicros = ((cpuMs - before) * 1000) / texts.length;
  context.log(`${texts.length} passages encoded: ${Math.round(cpuMicros)} µs of a core each`);
  const figures = { passages: texts.length, cpuMicros, sparrowResident: resident };
  return { passages, questions: await encode(sparrow, questions), figures };
}

/** Makes an index as Sparrow makes them. */
async function makeIndex({ request }, name, shards) {
  await request('PUT', `/${name}`, {
    settings: {
      ...{ number_of_shards: shards, number_of_replicas: 0, refresh_interval: -1 },
      'index.translog.durability': 'async',
    },
    mappings: {
      dynamic: false,
      properties: {
        ...{ title: { type: 'text' }, text: { type: 'text' }, tokens: { type: 'sparse_vector' } },
        vector: { type: 'dense_vector', dims: DIMENSIONS },
      },
    },
  });
}

async function encode({ request }, texts) {
  const made = { tokens: [], vector: [] };
  for (const [kind, model] of Object.entries(MODELS)) {
    for (let from = 0; from < texts.length; from += TEXTS) {
      const docs = texts.slice(from, from + TEXTS).map((text) => ({ text_field: text }));
      const answer = await request('POST', `/_ml/trained_models/${model}/_infer`, { docs });
      made[kind].push(...answer.inference_results.map(({ predicted_value: value }) => value));
    }
  }
  return made;
}

/** A document of each number, as a line of a bulk. */
function documentsOf({ tokens, vector }, texts) {
  const vocabulary = readVocabulary();
  const columns = new Map(vocabulary.map((token, column) => [token, column]));
  const rows = tokens.map((each) => Object.entries(each).sort(([a], [b]) => columns.get(a) - columns.get(b)));
  const ptr = new Uint32Array(rows.length + 1);
  rows.forEach((row, at) => {
    ptr[at + 1] = ptr[at] + row.length;
  });
  const pairs = rows.flat();
  const derived = new DerivedDocuments(
    {
      ptr,
      idx: Uint32Array.from(pairs, ([token]) => columns.get(token)),
      val: Float32Array.from(pairs, ([, weight]) => weight),
      rows: rows.length,
    },
    vocabulary,
  );
  const bytes = Buffer.allocUnsafe(1 << 20);
  return (number) => {
    const { title: name, text } = texts[number % texts.length];
    const sparse = bytes.toString('utf8', 0, derived.write(number, bytes, 0));
    const dense = JSON.stringify(derivedVector(vector, number, derived.passagesOf(number)));
    const words = JSON.stringify({ title: name, text }).slice(0, -1);
    return `{"index":{"_id":"${number}"}}\n${words},"tokens":${sparse},"vector":${dense}}\n`;
  };
}

async function measure({ context, size, nodes, sparrow, folder, texts, asked }, { passages, questions, figures }) {
  const cluster = new Cluster(nodes);
  const lineOf = documentsOf(passages, texts);
  const { writeCpuMicros } = await write(context, cluster, FIRST, size.first, lineOf, () => false);
  context.log(`the first passages, which do not count: ${Math.round(writeCpuMicros)} µs of a core each`);
  await sparrow.request('DELETE', `/${FIRST}`);
  const shards = [];
  for (const documents of size.shards) {
    const written = await write(context, cluster, shardOf(documents), documents, lineOf, () => false);
    shards.push({ ...written, shards: 1, ...(await cluster.sizeOf(shardOf(documents))) });
    context.log(JSON.stringify(shards.at(-1)));
  }
  const askAll = async () => {
    for (const shard of shards) {
      const found = await askBoth(cluster, shardOf(shard.documents), questions, size.passes);
      for (const kind of Object.keys(found)) {
        if (found[kind].cpuMicros < (shard[kind]?.cpuMicros ?? Infinity)) shard[kind] = found[kind];
      }
      context.log(JSON.stringify([shard.documents, shard.tokens, shard.vector]));
    }
  };
  // The nodes are warm only in the second round, and warmer still once they have loaded more.
  for (let round = 0; round < 2; round += 1) await askAll();
  const fused = await askTexts(cluster, sparrow, shardOf(size.shards[0]), asked);
  context.log(JSON.stringify(fused));
  const ofSparrow = { ...figures, fused };
  if (context.million === undefined) return { rows: rowsOf(ofSparrow, shards), notes: notesOf(figures) };
  const loaded = await load(context, cluster, folder, lineOf);
  // Each node's own code is no file of the index, nor are the files of the other indices.
  const before = cluster.usage();
  Object.assign(loaded, await askBoth(cluster, LOADED, questions, size.passes));
  loaded.memory = { before, after: cluster.usage() };
  await askAll();
  context.log(JSON.stringify(loaded));
  return { rows: rowsOf(ofSparrow, shards, loaded), notes: notesOf(figures, loaded) };
}

/** Loads as many passages into three shards as are wanted, or as there are once a signal (SIGUSR2) ends that, or the disk is nearly full. */
async function load(context, cluster, folder, lineOf) {
  let isEnded = false;
  const end = () => {
    isEnded = true;
  };
  const isFull = () => {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize < LEFT_ON_DISK;
  };
  process.once('SIGUSR2', end);
  try {
    const stopped = () => isEnded || isFull();
    const written = await write(context, cluster, LOADED, context.million, lineOf, stopped);
    return { ...written, shards: 3, ...(await cluster.sizeOf(LOADED)) };
  } finally {
    process.off('SIGUSR2', end);
  }
}

/** The three nodes, as one. */
class Cluster {
  #nodes;
  urls;

  constructor(nodes) {
    this.#nodes = nodes;
    this.urls = nodes.urls;
  }

  /** Processor time of all nodes, what their processes hold, and what they have mapped of files. */
  usage() {
    const all = this.#nodes.pids.map((pid) => usage(pid));
    const sum = (name) => all.reduce((total, one) => total + one[name], 0);
    const anonymous = sum('anonymous');
    return { cpuMs: sum('cpuMs'), anonymous, mapped: sum('resident') - anonymous };
  }

  async sizeOf(index) {
    const path = `/${index}/_stats/store,docs,segments?include_segment_file_sizes=true`;
    const answer = await fetch(`${this.urls[0]}${path}`);
    const { store, docs, segments } = (await answer.json())._all.primaries;
    const files = Object.entries(segments.file_sizes).map(([kind, { size_in_bytes: bytes }]) => [kind, bytes]);
    const of = (kinds) => files.reduce((sum, [kind, bytes]) => sum + (kinds?.has(kind) === false ? 0 : bytes), 0);
    if (of() < 0.9 * store.size_in_bytes)
      throw new Error(`files of ${of()} bytes are not all of ${store.size_in_bytes}`);
    return {
      segments: segments.count,
      bytesPerDocument: store.size_in_bytes / docs.count,
      searchedBytesPerDocument: of(OF_SEARCH) / docs.count,
      storedBytesPerDocument: of(OF_HITS) / docs.count,
      files: Object.fromEntries(files),
    };
  }
}

/** Writes passages and merges what is there into one segment a shard, or fewer passages if it is stopped; what that takes a passage. */
async function write({ log }, cluster, index, documents, lineOf, stopped) {
  const [begun, before] = [performance.now(), cluster.usage().cpuMs];
  let [next, bytes] = [0, 0];
  const writer = async (url) => {
    const side = new Side({ url });
    while (next < documents && !stopped()) {
      const first = next;
      next = Math.min(documents, next + BULK);
      const lines = Array.from({ length: next - first }, (_, at) => lineOf(first + at)).join('');
      bytes += Buffer.byteLength(lines);
      const { answer } = await side.post(`/${index}/_bulk?filter_path=errors`, lines);
      if (answer.errors) throw new Error('a document was refused');
      if (first % 20_000 === 0) log(`${first} passages, ${Math.round((performance.now() - begun) / 1000)} s`);
    }
    side.close();
  };
  await Promise.all(Array.from({ length: AT_ONCE }, (_, at) => writer(cluster.urls[at])));
  const loadMs = performance.now() - begun;
  const loadCpuMs = cluster.usage().cpuMs - before;
  log(`${next} passages are loaded, ${Math.round(loadMs / 1000)} s`);
  const side = new Side({ url: cluster.urls[0] });
  for (const step of ['_forcemerge?max_num_segments=1&flush=true', '_refresh'])
    await side.post(`/${index}/${step}`, '');
  side.close();
  return {
    ...{ documents: next, lineBytes: bytes / next, loadMs, loadCpuMs, seconds: (performance.now() - begun) / 1000 },
    writeCpuMicros: ((cluster.usage().cpuMs - before) * 1000) / next,
  };
}

/** The lists of a search by both vectors, as Sparrow asks the cluster for them. */
const BODIES = {
  tokens: (tokens) => ({ query: { neural_sparse: { tokens: { query_tokens: tokens } } }, _source: false }),
  vector: (vector) => ({ query: { knn: { vector: { vector, k: CANDIDATES } } }, _source: false }),
};

/** What searches by each of the vectors take. */
async function askBoth(cluster, index, questions, passes) {
  const found = {};
  for (const kind of Object.keys(BODIES))
    found[kind] = await ask(cluster, index, BODIES[kind], questions[kind], passes);
  return found;
}

/** What searches of ten hits take, one after another: the better pass counts. */
async function ask(cluster, index, bodyOf, questions, passes) {
  const side = new Side({ url: cluster.urls[0] });
  const found = { cpuMicros: Infinity, p50: Infinity, p95: Infinity };
  for (let pass = -1; pass < passes; pass += 1) {
    const before = cluster.usage().cpuMs;
    const ms = [];
    for (const question of questions) {
      const { ms: one, answer } = await side.post(`/${index}/_search?request_cache=false`, bodyOf(question));
      if (answer.hits.hits.length === 0) throw new Error('nothing was found');
      ms.push(one);
    }
    if (pass < 0) continue;
    const cpuMicros = ((cluster.usage().cpuMs - before) * 1000) / questions.length;
    found.cpuMicros = Math.min(found.cpuMicros, cpuMicros);
    found.p50 = Math.min(found.p50, percentile(ms, 0.5));
    found.p95 = Math.min(found.p95, percentile(ms, 0.95));
  }
  side.close();
  return found;
}

/** What a search with a text takes Sparrow and the nodes: it is encoded by both models, and the two lists are fused. */
async function askTexts(cluster, sparrow, index, texts) {
  const side = new Side(sparrow);
  const bodyOf = (text) => {
    const tokens = { sparse_vector: { field: 'tokens', inference_id: MODELS.tokens, query: text } };
    const builder = { text_embedding: { model_id: MODELS.vector, model_text: text } };
    const knn = { field: 'vector', query_vector_builder: builder, k: CANDIDATES, num_candidates: CANDIDATES };
    return { retriever: { rrf: { retrievers: [{ standard: { query: tokens } }, { knn }] } }, _source: false };
  };
  const half = texts.length / 2;
  let before;
  for (const [at, text] of texts.entries()) {
    // What comes before is not counted: the first searches translate code.
    if (at === Math.floor(half)) before = [usage(sparrow.pid).cpuMs, cluster.usage().cpuMs];
    const { answer } = await side.post(`/${index}/_search`, bodyOf(text));
    if (answer.hits.hits.length === 0) throw new Error('nothing was found');
  }
  side.close();
  const micros = (after, at) => ((after - before[at]) * 1000) / Math.ceil(half);
  return { cpuMicros: micros(usage(sparrow.pid).cpuMs, 0), clusterCpuMicros: micros(cluster.usage().cpuMs, 1) };
}

const OF_KIND = { tokens: 'tokens', vector: 'a vector' };

function rowsOf(encoder, shards, loaded) {
  const last = shards.at(-1);
  const one = (what, unit, sparrow, detail) => ({ what, unit, sparrow, detail });
  const searches = (found) =>
    Object.entries(OF_KIND).map(([kind, shown]) =>
      one(
        `a search by ${shown}, ${found.documents} passages in ${found.shards} shard${found.shards === 1 ? '' : 's'}`,
        'µs of a core',
        found[kind].cpuMicros,
        { ...found[kind], documents: found.documents, shards: found.shards, kind },
      ),
    );
  const rows = [
    one('encoding a passage by both models', 'µs of a core', encoder.cpuMicros, encoder),
    one('writing and merging a passage', 'µs of a core', last.writeCpuMicros, { shards }),
    one('a passage on the disk', 'bytes', last.bytesPerDocument),
    one('of which searches read', 'bytes', last.searchedBytesPerDocument),
    one('of which is the document as it was sent', 'bytes', last.storedBytesPerDocument),
    one('a search with a text by both vectors, Sparrow alone', 'µs of a core', encoder.fused.cpuMicros, encoder.fused),
    ...shards.flatMap(searches),
  ];
  if (loaded !== undefined) {
    const of = `${loaded.documents} in three shards`;
    const { before, after } = loaded.memory;
    rows.push(
      one(`writing and merging a passage, ${of}`, 'µs of a core', loaded.writeCpuMicros, loaded),
      one(`a passage on the disk, ${of}`, 'bytes', loaded.bytesPerDocument),
      one(`of which searches read, ${of}`, 'bytes', loaded.searchedBytesPerDocument),
      one(`files that searches brought into memory, ${of}`, 'bytes', after.mapped - before.mapped, loaded.memory),
      ...searches(loaded),
    );
  }
  return rows.map((row) => ({ checked: 'no document was refused, every search found some', ...row }));
}

function notesOf(encoder, loaded) {
  return [
    `${encoder.passages} passages were encoded, and all others derived from these; both vectors are kept in _source; three processes with a ` +
      `heap of ${HEAP} each, no replicas, one segment a shard; processor time is that of the three processes, the better of the passes for searches`,
    ...(loaded === undefined
      ? []
      : [
          `${loaded.documents} passages were loaded in ${Math.round(loaded.loadMs / 1000)} s and merged in ` +
            `${Math.round(loaded.seconds - loaded.loadMs / 1000)} s; the processes then held ${Math.round(loaded.memory.after.anonymous / 2 ** 20)} MiB ` +
            'besides files',
        ]),
  ];
}
