// Other models than the embedded sparse one, against onnxruntime-node, fp32, one thread: a SPLADE model of BERT-base's size with
// random weights, as an exporter leaves it, and the embedded dense model, which Sparrow computes in 8 bits: against the same weights
// as floats, and against ONNX Runtime's own dynamic quantisation of those (`benches/peers/dense_graphs.py` writes both graphs).
//
// Sparrow's program and the peer's run one after the other, each with one allocation or session and nothing else in the process.
// Passages are counted per CPU-second; the better of the peer's batch sizes counts. RssAnon and RSS are read at the end; the peak
// (VmHWM) includes loading. Sparrow's program runs twice: the first run packs the weights into a file, as the first start with a
// model does, and the second maps it. The peak is the first run's, everything else the second's.
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';

import { at } from '../../scripts/lib/paths.mjs';
import { capture, captureJson, folder } from '../lib/programs.mjs';
import { randomSplade } from '../peers/random-splade.mjs';

export const title = 'other models against onnxruntime-node';

const PEER = 'onnxruntime-node, fp32, 1 thread';
const TOP = 50;
const SLACK = 1e-3;
/** What 8 bits may lose of a vector against the same weights in fp32. */
const COSINE = 0.995;
const SCRIPT = at('benches', 'peers', 'encode-onnxruntime-node.mjs');

/** @param {import('../lib/context.mjs').Context} context */
export async function run(context) {
  if (context.size !== 'full') {
    const skipped = 'takes minutes: `npm run bench -- --full`';
    return { rows: [{ what: 'SPLADE of BERT-base size', against: PEER, unit: 'texts/CPU-s', skipped }] };
  }
  const program = await context.rustExample('throughput');
  if (context.prepare) return { rows: [] };
  const pool = await context.texts(24 * 25);
  const job = {
    passages: pool.filter((_, place) => place % 25 === 0).map((passage) => passage.text),
    questions: [],
    batches: [1, 4],
    top: TOP + 10,
    alone: true,
  };
  const runPeer = async (model, graph, extra) => {
    const input = JSON.stringify({ ...job, ...extra });
    context.log(`${graph}: onnxruntime-node`);
    return (await captureJson(process.execPath, [SCRIPT, graph, join(model, 'tokenizer.json')], { input }))[0];
  };
  const measure = async (model, graph, extra) => {
    const input = JSON.stringify({ ...job, ...extra });
    const peer = await runPeer(model, graph, extra);
    const packed = join(folder(context.work, 'packed'), 'model.weights');
    rmSync(packed, { force: true });
    const runs = [];
    for (const what of ['packing', 'mapped']) {
      context.log(`${model}: sparrow, ${what}`);
      const [run] = await captureJson(program, [model, '2', packed], { input, env: context.rustEnv });
      if (!run.mapped) throw new Error(`the weights of ${model} are not mapped`);
      runs.push(run);
    }
    const [packing, sparrow] = runs;
    if (JSON.stringify(packing.passages) !== JSON.stringify(sparrow.passages))
      throw new Error(`${model} answers otherwise when its weights were packed before`);
    rmSync(packed);
    return { sparrow, packing, peer };
  };

  const like = at('packages', 'model-splade-tiny');
  const { model, peer } = await randomSplade(folder(context.work, 'random-splade'), like);
  const large = await measure(model, peer, {});
  sameTokens(large, join(model, 'tokenizer.json'));
  const dense = at('packages', 'model-minilm-l6');
  const graphs = await denseGraphs(context, join(dense, 'model.onnx'));
  const denseRows = [];
  if (graphs.skipped === undefined) {
    const extra = { dense: 'last_hidden_state' };
    // The peer in 8 bits runs between the two others.
    const eight = await runPeer(dense, graphs.int8, extra);
    const small = await measure(dense, graphs.fp32, extra);
    const checked = `cosine of every pair at least ${leastCosine(small).toFixed(4)}`;
    denseRows.push(...rows('MiniLM-L6, dense', small, checked, { rate: { at_least: 3 } }));
    const against = 'onnxruntime-node, dynamic int8, 1 thread';
    const detail = { peer_batches: eight.batches };
    const target = { at_least: 1.3 };
    const [sparrow, peer] = [small.sparrow.texts_per_cpu_s, rate(best(eight))];
    const what = 'MiniLM-L6, dense: passages';
    denseRows.push({ what, against, unit: 'texts/CPU-s', sparrow, peer, target, checked, detail });
  } else {
    denseRows.push({ what: 'MiniLM-L6, dense', against: PEER, unit: 'texts/CPU-s', skipped: graphs.skipped });
  }
  return {
    rows: [
      ...rows(
        'SPLADE of BERT-base size, random weights',
        large,
        `top ${TOP} tokens the same and weights within ${SLACK}`,
        {
          rate: { at_least: 1.2 },
          memory: { at_most: 1 / 3 },
        },
      ),
      ...denseRows,
    ],
    notes: ['among the last of the 50 tokens, those whose weights are within 0.001 of the 51st may differ'],
  };
}

/** The graphs that the peer runs of the dense model. */
async function denseGraphs(context, model) {
  const python = await context.python();
  if (python.skipped !== undefined) return python;
  const work = folder(context.work, 'dense-graphs');
  const [fp32, int8] = [join(work, 'fp32.onnx'), join(work, 'int8.onnx')];
  await capture(python.path, [at('benches', 'peers', 'dense_graphs.py'), model, fp32, int8]);
  return { fp32, int8 };
}

const rate = (batch) => batch.texts / batch.cpu_s;
const best = (peer) => peer.batches.reduce((a, b) => (rate(a) > rate(b) ? a : b));

function rows(what, { sparrow, packing, peer }, checked, targets = {}) {
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
    row('passages', 'texts/CPU-s', sparrow.texts_per_cpu_s, rate(best(peer)), targets.rate, {
      ...{ kernels, native, texts, tokens_per_text, peer_batch: best(peer).size },
      peer_batches: peer.batches,
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
function sameTokens({ sparrow, peer }, tokenizer) {
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

/** The least cosine of two vectors of one text; throws if it is too small. */
function leastCosine({ sparrow, peer }) {
  const cosines = sparrow.passages.map((ours, place) => {
    const theirs = peer.passages[place];
    const dot = (a, b) => a.reduce((sum, value, at) => sum + value * b[at], 0);
    return dot(ours, theirs) / Math.sqrt(dot(ours, ours) * dot(theirs, theirs));
  });
  const least = Math.min(...cosines);
  if (!(least >= COSINE)) throw new Error(`a vector's cosine to the peer's is ${least}`);
  return least;
}
