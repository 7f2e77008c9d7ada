// Other models than the embedded sparse one, against onnxruntime-node, fp32, one thread: a SPLADE model of BERT-base's size with
// random weights, and the embedded dense model, which Sparrow computes in 8 bits: against the same weights as floats, and against ONNX
// Runtime's own dynamic quantisation of those (`benches/peers/quantised_graph.py`).
//
// Sparrow's program and the peer's run in turns, twice, each with one allocation or session and nothing else in the process: two
// rounds after one that is not counted, of which the best counts, for both. Passages are counted per CPU-second. Runs of the
// peer beforehand find its best batch size; in the turns it has no other. RssAnon and RSS are read at the end; the peak (VmHWM)
// includes loading. Before the turns Sparrow's program packs the weights into a file, as the first start with a model does; in the
// turns it maps them. The peak is that of packing, everything else that of the turns.
import { readFileSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';

import { at } from '../../scripts/lib/paths.mjs';
import { atBestBatch, bestRun } from '../lib/onnxruntime-peer.mjs';
import { capture, captureJson, folder } from '../lib/programs.mjs';
import { readTensors } from '../lib/safetensors.mjs';
import { writeBertGraph } from '../peers/bert-graph.mjs';
import { randomSplade } from '../peers/random-splade.mjs';

export const title = 'other models against onnxruntime-node';

const PEER = 'onnxruntime-node, fp32, 1 thread';
const PEER_INT8 = 'onnxruntime-node, dynamic int8, 1 thread';
const TOP = 50;
const SLACK = 1e-3;
/** What 8 bits may lose of a vector against the same weights in fp32: Sparrow's, and those of the peer, which only have to be of this model. */
const COSINE = { sparrow: 0.995, peer: 0.97 };
const TURNS = 2;
const ROUNDS = 2;
/** Turns of AMX and AVX-512 against each other. */
const TILE_TURNS = 5;
const BATCHES = [1, 4];
/** Passages of each model: enough for a second of processor time in each round, beside which what Node does by itself is little. */
const PASSAGES = { sparse: 24, dense: 120 };

/** @param {import('../lib/context.mjs').Context} context */
export async function run(context) {
  const skip = (skipped) => ({
    rows: [{ what: 'SPLADE of BERT-base size', against: PEER, unit: 'texts/CPU-s', skipped }],
  });
  if (context.size !== 'full') return skip('takes minutes: `npm run bench -- --full`');
  // A gloss of WordNet has a fifth of a passage's tokens.
  if (context.data === undefined) return skip('no passages given (--data)');
  const program = await context.rustExample('throughput');
  if (context.prepare) return { rows: [] };

  const like = at('packages', 'model-splade-tiny');
  const { model, peer } = await randomSplade(folder(context.work, 'random-splade'), like);
  const large = await measure(context, program, model, { fp32: peer }, PASSAGES.sparse);
  sameTokens(large.sparrow, large.peers.fp32, join(model, 'tokenizer.json'));
  const checked = `top ${TOP} tokens the same and weights within ${SLACK}`;
  const targets = { rate: { at_least: 1.2 }, memory: { at_most: 1 / 3 } };
  const sparse = 'SPLADE of BERT-base size, random weights';
  const found = [...rows(sparse, large, checked, targets), ...(await denseRows(context, program))];
  const turns = `${TURNS} turns, in each ${ROUNDS} rounds after one that is not counted; the best round counts, for both`;
  const ties = `among the last of the ${TOP} tokens, those whose weights are within ${SLACK} of the next may differ`;
  return { rows: found, notes: [...lengths(found), turns, ties] };
}

async function denseRows(context, program) {
  const [what, dense] = ['MiniLM-L6, dense', at('packages', 'model-minilm-l6')];
  const graphs = await denseGraphs(context, dense);
  if (graphs.skipped !== undefined) {
    return [{ what, against: PEER, unit: 'texts/CPU-s', skipped: graphs.skipped }];
  }
  const small = await measure(context, program, dense, graphs, PASSAGES.dense, { dense: 'last_hidden_state' });
  const { fp32, int8 } = small.peers;
  const ours = leastCosine(small.sparrow, fp32, COSINE.sparrow).toFixed(4);
  const theirs = leastCosine(int8, fp32, COSINE.peer).toFixed(4);
  return [
    ...rows(what, small, `cosine of every pair at least ${ours}`, { rate: { at_least: 3 } }),
    {
      ...{ what: `${what}: passages`, against: PEER_INT8, unit: 'texts/CPU-s' },
      ...{ sparrow: small.sparrow.texts_per_cpu_s, peer: int8.rate, target: { at_least: 1.3 } },
      checked: `cosine of every vector to the peer's in fp32 at least ${ours}, of the peer in 8 bits at least ${theirs}`,
      detail: { peer_batch: int8.size, peer_batches: int8.tried },
    },
    ...(await tilesRows(context, program, dense, what)),
  ];
}

/** What AMX brings a model in 8 bits, on a processor that has it. */
async function tilesRows(context, program, model, what) {
  const passages = await passagesOf(context, PASSAGES.dense);
  const input = JSON.stringify({ passages, questions: [], top: TOP, alone: true });
  const runs = { amx: [], avx512: [] };
  for (let turn = 0; turn < TILE_TURNS; turn += 1) {
    for (const [simd, found] of Object.entries(runs)) {
      context.log(`${basename(model)}: sparrow, ${simd}`);
      const env = { ...context.rustEnv, SPARROW_SIMD: simd };
      const [run] = await captureJson(program, [model, String(ROUNDS)], { input, env });
      if (run.kernels !== simd) return [];
      found.push(run);
    }
  }
  const least = leastCosine(runs.amx[0], runs.avx512[0], COSINE.sparrow).toFixed(4);
  const [amx, avx512] = Object.values(runs).map((found) => found.map((run) => run.texts_per_cpu_s));
  return [
    {
      ...{ what: `${what}: passages with AMX`, against: 'Sparrow with AVX-512 VNNI', unit: 'texts/CPU-s' },
      ...{ sparrow: Math.max(...amx), peer: Math.max(...avx512), target: { at_least: 2.5 } },
      checked: `cosine of every vector of the one to that of the other at least ${least}`,
      detail: { turns: TILE_TURNS, amx, avx512 },
    },
  ];
}

/**
 * Sparrow and the graphs of a peer in turns.
 *
 * @param {Record<string, string>} graphs by name
 * @returns {Promise<{ sparrow: object, packing: object, peers: Record<string, object> }>}
 */
async function measure(context, program, model, graphs, count, extra = {}) {
  const passages = await passagesOf(context, count);
  const job = { passages, questions: [], batches: BATCHES, top: TOP + 10, alone: true, ...extra };
  const packed = join(folder(context.work, 'packed'), 'model.weights');
  rmSync(packed, { force: true });
  const sparrow = async (what) => {
    context.log(`${basename(model)}: sparrow, ${what}`);
    const input = JSON.stringify(job);
    const [found] = await captureJson(program, [model, String(ROUNDS), packed], { input, env: context.rustEnv });
    if (!found.mapped) throw new Error(`the weights of ${model} are not mapped`);
    return found;
  };
  const peers = {};
  for (const [name, graph] of Object.entries(graphs)) {
    context.log(`${basename(model)}: onnxruntime-node, ${name}: its best batch size`);
    peers[name] = { ...(await atBestBatch(graph, join(model, 'tokenizer.json'), job)), runs: [] };
  }
  const packing = await sparrow('packing');
  const mapped = [];
  for (let turn = 0; turn < TURNS; turn += 1) {
    for (const [name, peer] of Object.entries(peers)) {
      context.log(`${basename(model)}: onnxruntime-node, ${name}`);
      peer.runs.push(await peer.run({ rounds: ROUNDS }));
    }
    mapped.push(await sparrow('mapped'));
  }
  rmSync(packed);
  const answers = JSON.stringify(packing.passages);
  if (mapped.some((found) => JSON.stringify(found.passages) !== answers))
    throw new Error(`${model} answers otherwise when its weights were packed before`);
  const least = (name) => Math.min(...mapped.map((found) => found[name]));
  return {
    packing,
    sparrow: {
      ...mapped[0],
      texts_per_cpu_s: Math.max(...mapped.map((found) => found.texts_per_cpu_s)),
      ...Object.fromEntries(['rss_anon_kb', 'rss_kb', 'peak_rss_kb'].map((name) => [name, least(name)])),
    },
    peers: Object.fromEntries(
      Object.entries(peers).map(([name, { size, tried, runs }]) => [name, { ...bestRun(runs), size, tried }]),
    ),
  };
}

/** Texts from all over the corpus, in which neighbours are alike. */
async function passagesOf(context, count) {
  const pool = await context.texts(count * 25);
  return pool.filter((_, place) => place % 25 === 0).map(({ text }) => text);
}

/** The graphs that the peer runs of the dense model. */
async function denseGraphs(context, model) {
  const python = await context.python();
  if (python.skipped !== undefined) return python;
  const work = folder(context.work, 'dense-graphs');
  const [fp32, int8] = [join(work, 'fp32.onnx'), join(work, 'int8.onnx')];
  const config = JSON.parse(readFileSync(join(model, 'config.json'), 'utf8'));
  await writeBertGraph(fp32, config, readTensors(join(model, 'model.safetensors')), 'last_hidden_state');
  await capture(python.path, [at('benches', 'peers', 'quantised_graph.py'), fp32, int8]);
  return { fp32, int8 };
}

/** How long the texts of each model are. */
const lengths = (all) =>
  all
    .filter(({ detail }) => detail?.tokens_per_text !== undefined)
    .map(
      ({ what, detail }) =>
        `${what}: ${detail.texts} texts of ${detail.tokens_per_text.toFixed(0)} tokens, the peer in batches of ${detail.peer_batch}`,
    );

function rows(what, { sparrow, packing, peers: { fp32: peer } }, checked, targets = {}) {
  const row = (name, unit, ours, theirs, target = null, detail = {}) => ({
    what: `${what}: ${name}`,
    against: PEER,
    unit,
    sparrow: ours,
    peer: theirs,
    target,
    checked,
    detail,
  });
  const { kernels, native, texts, tokens_per_text } = sparrow;
  return [
    row('passages', 'texts/CPU-s', sparrow.texts_per_cpu_s, peer.rate, targets.rate, {
      ...{ kernels, native, texts, tokens_per_text, peer_batch: peer.size },
      peer_batches: peer.tried,
    }),
    row('memory at work', 'MB RssAnon', sparrow.rss_anon_kb / 1024, peer.rss_anon_kb / 1024, targets.memory),
    row(
      'resident at work, mapped weights counted',
      'MB RSS',
      sparrow.rss_kb / 1024,
      peer.rss_kb / 1024,
      targets.memory,
      {
        load_ms: sparrow.load_ms,
        load_and_pack_ms: packing.load_ms,
      },
    ),
    row('memory at its peak', 'MB RSS', packing.peak_rss_kb / 1024, peer.peak_rss_kb / 1024, null, {
      when_packed_before: sparrow.peak_rss_kb / 1024,
    }),
  ];
}

/** Throws unless the tokens of the highest weights are the same, but for ties at the border. */
function sameTokens(sparrow, peer, tokenizer) {
  const { vocab } = JSON.parse(readFileSync(tokenizer, 'utf8')).model;
  const ids = new Map(Object.entries(vocab).map(([token, id]) => [token.replaceAll('.', '__'), id]));
  sparrow.passages.forEach((pairs, place) => {
    const ours = new Map(pairs.map(([token, weight]) => [ids.get(token), weight]));
    const theirs = new Map(peer.passages[place]);
    if (ours.size <= TOP || theirs.size <= TOP) throw new Error(`passage ${place} has only ${ours.size} tokens`);
    const border = [...theirs.values()][TOP];
    for (const [mine, other] of [
      [ours, theirs],
      [theirs, ours],
    ]) {
      for (const [id, weight] of [...mine].slice(0, TOP)) {
        const found = other.get(id);
        if (found === undefined && weight <= border + SLACK) continue;
        if (found === undefined || Math.abs(found - weight) > SLACK)
          throw new Error(`passage ${place}: token ${id} weighs ${weight} and ${found}`);
      }
    }
  });
}

/** The least cosine of two vectors of one text; throws if it is below `least`. */
function leastCosine(one, other, least) {
  const cosines = one.passages.map((ours, place) => {
    const theirs = other.passages[place];
    const dot = (a, b) => a.reduce((sum, value, at) => sum + value * b[at], 0);
    return dot(ours, theirs) / Math.sqrt(dot(ours, ours) * dot(theirs, theirs));
  });
  const found = Math.min(...cosines);
  if (!(found >= least)) throw new Error(`a vector's cosine to the peer's in fp32 is ${found}`);
  return found;
}
