// Documents a second of `_reindex` through the inference pipeline, against the encoder alone on the same texts: one process, the
// same number of allocations, in turns. See crates/engine/examples/reindex.rs.
import { spawn } from 'node:child_process';
import process from 'node:process';
import { createInterface } from 'node:readline';

import { at, onnxRuntimeLibrary } from '../../scripts/lib/paths.mjs';

export const title = 'Reindex through the model, against the bare encoder';

const SIZES = {
  smoke: { documents: 40, rounds: 1 },
  quick: { documents: 3000, rounds: 4 },
  full: { documents: 6000, rounds: 6 },
};

/** @returns {Promise<{rows: object[], notes?: string[]}>} */
export async function run(context) {
  const { documents, rounds } = SIZES[context.size];
  const texts = await context.texts(documents);
  const program = await context.rustExample('reindex');
  const results = await measure(program, rounds, texts);
  const copied = results.reduce((sum, { documents: count }) => sum + count, 0);
  if (copied !== texts.length) throw new Error(`${copied} documents were copied, not ${texts.length}`);
  const median = (figure) => results.map(figure).sort((a, b) => a - b)[results.length >> 1];
  const ratio = median((result) => result.ratio);
  return {
    rows: [
      {
        what: `reindex of ${texts.length} documents`,
        against: 'the bare encoder in the same process, all texts in one call',
        unit: 'documents/s',
        sparrow: median((result) => result.reindex_per_second),
        peer: median((result) => result.bare_per_second),
        ratio,
        target: { at_least: 0.9 },
        met: ratio >= 0.9,
        checked: 'every document arrived with its vector',
        detail: {
          cpuMicrosPerDocument: {
            reindex: median((result) => result.reindex_cpu_micros),
            bare: median((result) => result.bare_cpu_micros),
          },
          rounds: results,
        },
      },
    ],
    notes: ['each round has documents of its own, so that no encoding is known; which of the two is first changes'],
  };
}

async function measure(program, rounds, texts) {
  const child = spawn(program, [at('packages', 'model-splade-tiny'), String(rounds)], {
    env: { ...process.env, SPARROW_ONNXRUNTIME: onnxRuntimeLibrary(), ORT_DISABLE_TELEMETRY: '1' },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  child.stdin.end(texts.map(({ title: name, text }) => `${JSON.stringify({ title: name, text })}\n`).join(''));
  const results = [];
  createInterface({ input: child.stdout }).on('line', (line) => results.push(JSON.parse(line)));
  const code = await new Promise((resolve) => child.on('close', resolve));
  if (code !== 0) throw new Error(`the measuring program ended with ${code}`);
  return results;
}
