// A SPLADE model of BERT-base's size with random weights, as a checkpoint for Sparrow and as a graph for the peer.
import { copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { writeTensors } from '../lib/safetensors.mjs';
import { writeBertGraph } from './bert-graph.mjs';

/** BERT-base's. */
const BASE = { layers: 12, width: 768, heads: 12, inner: 3072, terms: 30_522, positions: 512 };
/** Large enough that a text of 120 tokens gets some hundred terms. */
const THRESHOLD = -2.7;

/**
 * Writes `model.safetensors`, `tokenizer.json` and `config.json` into a folder, unless they are there, and the same model with the
 * pooling that a Node user would add as `peer.onnx`.
 *
 * @param {string} dir the folder to fill
 * @param {string} like a model directory with a tokenizer of as many terms
 * @param {typeof BASE} shape
 */
export async function randomSplade(dir, like, shape = BASE) {
  const [peer, model, done] = ['peer.onnx', 'model', 'done-3'].map((name) => join(dir, name));
  if (!existsSync(done)) {
    mkdirSync(model, { recursive: true });
    const config = {
      architectures: ['BertForMaskedLM'],
      model_type: 'bert',
      hidden_act: 'gelu',
      layer_norm_eps: 1e-5,
      hidden_size: shape.width,
      intermediate_size: shape.inner,
      num_attention_heads: shape.heads,
      num_hidden_layers: shape.layers,
      max_position_embeddings: shape.positions,
      vocab_size: shape.terms,
    };
    writeFileSync(join(model, 'config.json'), JSON.stringify(config));
    copyFileSync(join(like, 'tokenizer.json'), join(model, 'tokenizer.json'));
    const tensors = parameters(shape);
    await writeTensors(join(model, 'model.safetensors'), tensors);
    await writeBertGraph(peer, config, tensors, 'output');
    writeFileSync(done, '');
  }
  return { model, peer };
}

/** Numbers of about a normal distribution, always the same: the sum of four uniform ones. */
function generator(seed) {
  let state = seed;
  const uniform = () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state / 2 ** 32;
  };
  const scale = Math.sqrt(3);
  return (deviation) => (uniform() + uniform() + uniform() + uniform()) * scale * deviation;
}

/** @returns {Map<string, import('../lib/safetensors.mjs').Tensor>} in the names of Transformers */
function parameters({ layers, width, inner, terms, positions }) {
  const random = generator(20_261_121);
  const tensors = new Map();
  const tensor = (name, shape, deviation, mean = 0) => {
    const values = new Float32Array(shape.reduce((product, dim) => product * dim, 1));
    for (let at = 0; at < values.length; at += 1) values[at] = mean + random(deviation);
    tensors.set(name, { shape, values });
  };
  const linear = (name, from, to) => {
    tensor(`${name}.weight`, [to, from], 0.04);
    tensor(`${name}.bias`, [to], 0.02);
  };
  const norm = (name) => {
    tensor(`${name}.weight`, [width], 0.05, 1);
    tensor(`${name}.bias`, [width], 0.05);
  };
  tensor('bert.embeddings.word_embeddings.weight', [terms, width], 0.04);
  tensor('bert.embeddings.token_type_embeddings.weight', [2, width], 0.01);
  tensor('bert.embeddings.position_embeddings.weight', [positions, width], 0.02);
  norm('bert.embeddings.LayerNorm');
  for (let layer = 0; layer < layers; layer += 1) {
    const name = (part) => `bert.encoder.layer.${layer}.${part}`;
    const square = ['attention.self.query', 'attention.self.key', 'attention.self.value', 'attention.output.dense'];
    for (const part of square) linear(name(part), width, width);
    linear(name('intermediate.dense'), width, inner);
    linear(name('output.dense'), inner, width);
    norm(name('attention.output.LayerNorm'));
    norm(name('output.LayerNorm'));
  }
  linear('cls.predictions.transform.dense', width, width);
  norm('cls.predictions.transform.LayerNorm');
  tensor('cls.predictions.bias', [terms], 0.1, THRESHOLD);
  return tensors;
}
