// SPLADE in Node without Sparrow: a tokenizer in JavaScript and onnxruntime-node, fp32, one thread.
//
//   node encode-onnxruntime-node.mjs MODEL TOKENIZER < job.json > figures.json
//
// The job: { passages: [texts], questions: [texts], batches: [sizes], rounds, top: tokens of an answer that are told }. MODEL has
// the inputs input_ids and attention_mask and the output `output`, [texts, vocabulary]: the weights, pooled in the graph.
// With `dense`, the name of an output of hidden states, the vectors are the means over tokens, of unit length.
// As in crates/encoder/examples/throughput.rs, all texts are encoded once before the rounds that count, and the best of those
// counts. Prints the CPU seconds of each batch size, the time of a question, the answers, and the memory after all of that:
// it is that of one batch size only where there is no other in the job.
import { readFileSync } from 'node:fs';
import { WordPiece } from './word-piece.mjs';

// It reports to its maker unless told not to before it is loaded.
process.env.ORT_DISABLE_TELEMETRY = '1';
const { default: ort } = await import('onnxruntime-node');

const [, , modelPath, tokenizerPath] = process.argv;
const job = JSON.parse(readFileSync(0, 'utf8'));
const tokenizer = new WordPiece(tokenizerPath);
const session = await ort.InferenceSession.create(modelPath, {
  intraOpNumThreads: 1,
  interOpNumThreads: 1,
  executionMode: 'sequential',
  graphOptimizationLevel: 'all',
  extra: { session: { intra_op: { allow_spinning: '0' } } },
});

/** Tokens of texts to vectors, in one batch: `[term, weight]`, highest weight first. */
async function run(rows) {
  const columns = Math.max(...rows.map((ids) => ids.length));
  const ids = new BigInt64Array(rows.length * columns);
  const mask = new BigInt64Array(rows.length * columns);
  rows.forEach((row, at) => {
    for (let column = 0; column < row.length; column += 1) {
      ids[at * columns + column] = BigInt(row[column]);
      mask[at * columns + column] = 1n;
    }
  });
  const shape = [rows.length, columns];
  const feeds = {
    input_ids: new ort.Tensor('int64', ids, shape),
    attention_mask: new ort.Tensor('int64', mask, shape),
  };
  if (session.inputNames.includes('token_type_ids')) {
    feeds.token_type_ids = new ort.Tensor('int64', new BigInt64Array(ids.length), shape);
  }
  if (job.dense) return means((await session.run(feeds, [job.dense]))[job.dense], rows);
  const { output } = await session.run(feeds, ['output']);
  const width = output.dims[1];
  return rows.map((_, at) => {
    const pairs = [];
    for (let term = 0; term < width; term += 1) {
      const weight = output.data[at * width + term];
      if (weight > 0) pairs.push([term, weight]);
    }
    return pairs.sort((a, b) => b[1] - a[1]);
  });
}

/** Means over the tokens of each text, padding left out, of unit length. */
function means({ data, dims: [, columns, width] }, rows) {
  return rows.map((ids, at) => {
    const sum = new Float64Array(width);
    for (let token = 0; token < ids.length; token += 1) {
      const start = (at * columns + token) * width;
      for (let dim = 0; dim < width; dim += 1) sum[dim] += data[start + dim];
    }
    const length = Math.hypot(...sum);
    return Array.from(sum, (value) => value / length);
  });
}

const cpu = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
};
const quantile = (times, share) => times.sort((a, b) => a - b)[Math.floor(times.length * share)];

// Batches join texts of one length, as a careful user would have it.
async function passages(size) {
  const start = cpu();
  const rows = job.passages.map((text, place) => ({ ids: tokenizer.encode(text), place }));
  rows.sort((a, b) => a.ids.length - b.ids.length);
  const answers = new Array(rows.length);
  for (let at = 0; at < rows.length; at += size) {
    const batch = rows.slice(at, at + size);
    const found = await run(batch.map((row) => row.ids));
    batch.forEach((row, index) => (answers[row.place] = found[index]));
  }
  const tokens = rows.reduce((sum, row) => sum + row.ids.length, 0);
  return { size, cpu_s: cpu() - start, tokens: tokens / rows.length, answers };
}

const batches = [];
let answers;
for (const size of job.batches) {
  await passages(size);
  const rounds = [];
  for (let round = 0; round < job.rounds; round += 1) rounds.push(await passages(size));
  answers = rounds.at(-1).answers;
  const cpu_s = Math.min(...rounds.map((round) => round.cpu_s));
  batches.push({ size, cpu_s, texts: job.passages.length, tokens: rounds[0].tokens });
}

const questions = [];
for (const text of job.questions) questions.push((await run([tokenizer.encode(text)]))[0]);
let question = { p50: null, p95: null };
for (let round = 0; round < job.rounds && questions.length > 0; round += 1) {
  const times = [];
  for (const text of job.questions) {
    const start = process.hrtime.bigint();
    await run([tokenizer.encode(text)]);
    times.push(Number(process.hrtime.bigint() - start) / 1e6);
  }
  const found = { p50: quantile(times, 0.5), p95: quantile(times, 0.95) };
  if (question.p50 === null || found.p50 < question.p50) question = found;
}
const told = (answer) => (job.dense ? answer : answer.slice(0, job.top));
const status = readFileSync('/proc/self/status', 'utf8');
const kilobytes = (name) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1] ?? 0);
process.stdout.write(
  JSON.stringify({
    batches,
    question_p50_ms: question.p50,
    question_p95_ms: question.p95,
    rss_anon_kb: kilobytes('RssAnon'),
    rss_kb: kilobytes('VmRSS'),
    peak_rss_kb: kilobytes('VmHWM'),
    passages: answers?.map(told),
    questions: questions.map(told),
  }),
);
