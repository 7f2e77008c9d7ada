// The encoder against what a Node user would write: a tokenizer in JavaScript and onnxruntime-node, fp32, one thread.
//
// Both get the same texts; Sparrow's program (crates/encoder/examples/throughput.rs) and the peer's (benches/peers/
// encode-onnxruntime-node.mjs) run in turns, twice, with as many rounds each after one that is not counted, and the best round
// of each counts. A run of the peer beforehand finds its best batch size; in the turns it has no other, so that its memory is that
// of this size. Passages are counted per CPU-second, so that other work on the machine hurts little; a question is timed from its
// text to its tokens. Answers: the 50 tokens of the highest weights are the same, and their weights within 0.001 (where the 50th
// and 51st weigh the same within that, either may be told).
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { at } from '../../scripts/lib/paths.mjs';
import { atBestBatch, bestRun } from '../lib/onnxruntime-peer.mjs';
import { captureJson, folder } from '../lib/programs.mjs';
import { readTensors } from '../lib/safetensors.mjs';
import { writeBertGraph } from '../peers/bert-graph.mjs';

export const title = 'the encoder against onnxruntime-node';

const MODEL = at('packages', 'model-splade-tiny');
const PEER = 'onnxruntime-node, fp32, 1 thread';
const TOP = 50;
const SLACK = 1e-3;
const SIZES = {
  smoke: { passages: 24, questions: 12, rounds: 1, batches: [4], simd: ['', 'avx2'] },
  quick: { passages: 200, questions: 200, rounds: 2, batches: [1, 4, 8], simd: ['', 'avx2'] },
  full: { passages: 400, questions: 500, rounds: 3, batches: [1, 2, 4, 8, 16], simd: ['', 'amx', 'avx512', 'avx2'] },
};
/** Times the peer's passages per CPU-second, by instruction set. */
const TARGETS = { amx: 8, avx512: 5, avx2: 2.5 };

/** @param {import('../lib/context.mjs').Context} context */
export async function run(context) {
  const size = SIZES[context.size];
  const program = await context.rustExample('throughput');
  if (context.prepare) return { rows: [] };
  // Neighbours in a corpus are alike: take texts from all over it.
  const pool = await context.texts(context.size === 'smoke' ? size.passages : size.passages * 25);
  const step = Math.max(1, Math.floor(pool.length / size.passages));
  const passages = pool.filter((_, place) => place % step === 0).slice(0, size.passages);
  const questions = await context.questions(size.questions);
  const job = { passages: passages.map((passage) => passage.text), questions, batches: size.batches, top: TOP + 10 };
  const graph = await peerGraph(folder(context.work, 'encoder'));
  const sparrow = (simd) =>
    captureJson(program, [MODEL, String(size.rounds)], {
      input: JSON.stringify(job),
      env: { ...context.rustEnv, SPARROW_SIMD: simd },
    });

  if (size.batches.length > 1) context.log('onnxruntime-node: its best batch size');
  const peer = await atBestBatch(graph, join(MODEL, 'tokenizer.json'), job);
  const runs = new Map();
  const peers = [];
  for (let round = 0; round < (context.size === 'smoke' ? 1 : 2); round += 1) {
    context.log('onnxruntime-node');
    peers.push(await peer.run({ rounds: size.rounds }));
    let best;
    for (const simd of size.simd) {
      if (simd === best) continue;
      context.log(`sparrow, ${simd || 'best instruction set'}`);
      const [found] = await sparrow(simd);
      best ??= found.kernels;
      if (simd !== '' && found.kernels !== simd) continue;
      compare(found, peers[0]);
      runs.set(found.kernels, [...(runs.get(found.kernels) ?? []), found]);
    }
  }
  return { rows: rows(runs, bestRun(peers), peer), notes: notes(runs, peer, size) };
}

function rows(runs, peer, { size, tried }) {
  const checked = `top ${TOP} tokens the same and weights within ${SLACK}, passages and questions, against fp32`;
  const out = [];
  for (const [kernels, found] of runs) {
    const rate = Math.max(...found.map((one) => one.texts_per_cpu_s));
    out.push({
      what: `passages, ${kernels}`,
      against: PEER,
      unit: 'texts/CPU-s',
      sparrow: rate,
      peer: peer.rate,
      target: TARGETS[kernels] ? { at_least: TARGETS[kernels] } : null,
      checked,
      detail: { tokens_per_text: found[0].tokens_per_text, peer_batch: size, peer_batches: tried },
    });
    out.push({
      what: `a question, p50, ${kernels}`,
      against: PEER,
      unit: 'ms',
      sparrow: Math.min(...found.map((one) => one.question.p50_ms)),
      peer: peer.question_p50_ms,
      target: kernels === [...runs.keys()][0] ? { at_most: 1 / 6 } : null,
      checked,
      detail: { tokens_per_question: found[0].tokens_per_question, questions: found.map((one) => one.question) },
    });
  }
  const [first] = runs.values();
  const scaling = first.map((one) => one.texts_per_s_2_allocations / one.texts_per_s_1_allocation);
  const pick = first[scaling.indexOf(Math.max(...scaling))];
  out.push({
    what: 'two allocations of one thread',
    against: 'one allocation',
    unit: 'texts/s',
    sparrow: pick.texts_per_s_2_allocations,
    peer: pick.texts_per_s_1_allocation,
    target: { at_least: 1.8 },
    checked,
    detail: { rounds: scaling },
  });
  const { question_beside_ingest: beside, question, cache } = first[0];
  out.push({
    what: 'a question beside 512-token documents, p95',
    against: 'one such document and a question alone',
    unit: 'ms',
    sparrow: beside.question.p95_ms,
    peer: beside.long_text_p50_ms + question.p95_ms,
    // Under one batch: it waits for the one that runs, and for no other.
    target: { at_most: 1.25 },
    checked: `${beside.texts_meanwhile} documents were written meanwhile`,
    detail: beside,
  });
  for (const [what, again, once] of [
    ['a passage that was encoded before', cache.text_again_ms, cache.text_ms],
    ['a question that was asked before, p50', cache.question_again.p50_ms, cache.question.p50_ms],
  ]) {
    const checked = 'the same vectors as the first time';
    out.push({ what, against: 'the first time', unit: 'ms', sparrow: again, peer: once, checked, detail: cache });
  }
  out.push({
    what: 'memory of the process, two allocations and one beside it',
    against: PEER,
    unit: 'MB',
    sparrow: Math.min(...first.map((one) => one.rss_anon_kb)) / 1024,
    peer: peer.rss_anon_kb / 1024,
    checked: `RssAnon at the end, of the peer after passages in batches of ${size} and questions`,
    detail: { peak_mb: first[0].peak_rss_kb / 1024, peer_peak_mb: peer.peak_rss_kb / 1024, peer_batch: size },
  });
  return out;
}

function notes(runs, { size, tried }, { rounds }) {
  const [first] = runs.values();
  const sizes = tried.length === 0 ? '' : `, the fastest of ${tried.map((batch) => batch.size).join(', ')}`;
  return [
    `${first[0].texts} passages of ${first[0].tokens_per_text.toFixed(0)} tokens, ` +
      `questions of ${first[0].tokens_per_question.toFixed(0)}; model loaded in ${first[0].load_ms.toFixed(0)} ms; ` +
      `the peer has batches of ${size}${sizes}`,
    `in turns; each run has ${rounds} rounds after one that is not counted, and the best of all rounds counts, for both`,
  ];
}

/** Writes the graph that the peer runs. */
async function peerGraph(dir) {
  const path = join(dir, 'splade.onnx');
  const config = JSON.parse(readFileSync(join(MODEL, 'config.json'), 'utf8'));
  await writeBertGraph(path, config, readTensors(join(MODEL, 'model.safetensors')), 'output');
  return path;
}

/** Throws unless both have told the same tokens and weights. */
function compare(sparrow, peer) {
  const { vocab } = JSON.parse(readFileSync(join(MODEL, 'tokenizer.json'), 'utf8')).model;
  const tokens = Object.entries(vocab).reduce((all, [token, id]) => ((all[id] = token.replaceAll('.', '__')), all), []);
  for (const kind of ['passages', 'questions']) {
    sparrow[kind].forEach((ours, place) => {
      const theirs = peer[kind][place].map(([id, weight]) => [tokens[id], weight]);
      const problem = difference(new Map(ours), new Map(theirs));
      if (problem) throw new Error(`${kind} ${place}, ${sparrow.kernels}: ${problem}`);
    });
  }
}

function difference(ours, theirs) {
  const border = [...theirs.values()][TOP] ?? 0;
  for (const [tokens, others, who] of [
    [theirs, ours, 'Sparrow'],
    [ours, theirs, 'the peer'],
  ]) {
    for (const [token, weight] of [...tokens].slice(0, TOP)) {
      if (weight <= border + SLACK && !others.has(token)) continue;
      const other = others.get(token);
      if (other === undefined) return `[${token}] is missing from ${who}`;
      if (Math.abs(other - weight) > SLACK) return `[${token}] weighs ${weight} and ${other}`;
    }
  }
  return undefined;
}
