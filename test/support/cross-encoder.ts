import { cpSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const SMALL = fileURLToPath(new URL('../../crates/encoder/tests/fixtures/cross-bert', import.meta.url));
/** The size of the cross-encoders that people use: six layers, 512 tokens. */
const [HIDDEN, INNER, LAYERS, HEADS, POSITIONS] = [384, 1536, 6, 6, 512] as const;

/**
 * Makes a folder of models with the cross-encoder `large`, which takes as long for a text as a real one. Its weights say nothing.
 *
 * @returns the folder
 */
export function largeCrossEncoder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sparrow-cross-'));
  const model = join(folder, 'large');
  cpSync(SMALL, model, { recursive: true });
  const config = JSON.parse(readFileSync(join(SMALL, 'config.json'), 'utf8')) as Record<string, unknown>;
  const sizes = {
    ...{ hidden_size: HIDDEN, intermediate_size: INNER, num_hidden_layers: LAYERS },
    ...{ num_attention_heads: HEADS, max_position_embeddings: POSITIONS },
  };
  writeFileSync(join(model, 'config.json'), JSON.stringify({ ...config, ...sizes }));
  const tensors = { ...around(), ...Object.assign({}, ...Array.from({ length: LAYERS }, (_, at) => layer(at))) };
  writeFileSync(join(model, 'model.safetensors'), safetensors(tensors as Record<string, readonly number[]>));
  return folder;
}

function around(): Record<string, readonly number[]> {
  return {
    'bert.embeddings.LayerNorm.bias': [HIDDEN],
    'bert.embeddings.LayerNorm.weight': [HIDDEN],
    'bert.embeddings.position_embeddings.weight': [POSITIONS, HIDDEN],
    'bert.embeddings.token_type_embeddings.weight': [2, HIDDEN],
    'bert.embeddings.word_embeddings.weight': [13, HIDDEN],
    'bert.pooler.dense.bias': [HIDDEN],
    'bert.pooler.dense.weight': [HIDDEN, HIDDEN],
    'classifier.bias': [1],
    'classifier.weight': [1, HIDDEN],
  };
}

function layer(at: number): Record<string, readonly number[]> {
  const square = ['attention.output.dense', ...['query', 'key', 'value'].map((name) => `attention.self.${name}`)];
  const shapes: Record<string, readonly number[]> = {
    'intermediate.dense.bias': [INNER],
    'intermediate.dense.weight': [INNER, HIDDEN],
    'output.dense.bias': [HIDDEN],
    'output.dense.weight': [HIDDEN, INNER],
  };
  for (const name of square)
    Object.assign(shapes, { [`${name}.bias`]: [HIDDEN], [`${name}.weight`]: [HIDDEN, HIDDEN] });
  for (const name of ['attention.output.LayerNorm', 'output.LayerNorm']) {
    Object.assign(shapes, { [`${name}.bias`]: [HIDDEN], [`${name}.weight`]: [HIDDEN] });
  }
  return Object.fromEntries(
    Object.entries(shapes).map(([name, shape]) => [`bert.encoder.layer.${String(at)}.${name}`, shape]),
  );
}

/** Tensors of these shapes in the format of the same name, with numbers that are always the same. */
function safetensors(shapes: Readonly<Record<string, readonly number[]>>): Buffer {
  const header: Record<string, unknown> = {};
  const parts: Buffer[] = [];
  let at = 0;
  for (const [name, shape] of Object.entries(shapes)) {
    const values = new Float32Array(shape.reduce((product, size) => product * size, 1));
    for (let n = 0; n < values.length; n += 1) {
      values[n] = name.endsWith('LayerNorm.weight') ? 1 : Math.fround(((n * 7919) % 1009) / 1009 - 0.5) * 0.1;
    }
    const bytes = Buffer.from(values.buffer);
    header[name] = { dtype: 'F32', shape, data_offsets: [at, at + bytes.length] };
    parts.push(bytes);
    at += bytes.length;
  }
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  return Buffer.concat([length, text, ...parts]);
}
