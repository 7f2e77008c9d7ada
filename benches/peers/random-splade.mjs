// A SPLADE model of BERT-base's size with random weights, as the exporters of PyTorch models write one: token types, positions
// looked up from a buffer, a mask of the smallest float, the decoder tied to the word embeddings, logits as the output.
import { createWriteStream, copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { join } from 'node:path';

import { field, floats, integers, node, number, text } from './splade-graph.mjs';

/** BERT-base's. */
const BASE = { layers: 12, width: 768, heads: 12, inner: 3072, terms: 30_522, positions: 512 };
const WORDS = 'bert.embeddings.word_embeddings.weight';
const BIAS = 'cls.predictions.bias';
/** Large enough that a text of 120 tokens gets some hundred terms. */
const THRESHOLD = -2.7;

/**
 * Writes `model.onnx`, `tokenizer.json` and `config.json` into a folder, unless they are there, and the same model with the
 * pooling that a Node user would add as `peer.onnx`.
 *
 * @param {string} dir the folder to fill
 * @param {string} like a model directory with a tokenizer of as many terms
 * @param {typeof BASE} shape
 */
export async function randomSplade(dir, like, shape = BASE) {
  const peer = join(dir, 'peer.onnx');
  const model = join(dir, 'model', 'model.onnx');
  const done = join(dir, 'done-2');
  if (!existsSync(done)) {
    mkdirSync(join(dir, 'model'), { recursive: true });
    const config = JSON.parse(readFileSync(join(like, 'config.json'), 'utf8'));
    Object.assign(config, {
      hidden_size: shape.width,
      intermediate_size: shape.inner,
      num_attention_heads: shape.heads,
      num_hidden_layers: shape.layers,
      max_position_embeddings: shape.positions,
      vocab_size: shape.terms,
    });
    writeFileSync(join(dir, 'model', 'config.json'), JSON.stringify(config));
    copyFileSync(join(like, 'tokenizer.json'), join(dir, 'model', 'tokenizer.json'));
    const weights = parameters(shape);
    const nodes = graph(shape);
    await write(model, [...weights, ...nodes, ...logits(), output('logits', shape.terms)]);
    await write(peer, [...weights, ...nodes, ...pooled(), output('output', shape.terms)]);
    writeFileSync(done, '');
  }
  return { model: join(dir, 'model'), peer };
}

/** Writes a model of operator set 17 whose graph is the given fields; protobuf wants its length first. */
async function write(path, parts) {
  const opset = field(8, Buffer.concat([text(1, ''), number(2, 17)]));
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const out = createWriteStream(path);
  // An empty field's header is a key and a zero: the zero makes room for the true length.
  const head = Buffer.concat([number(1, 8), opset, number(7, length)]);
  head[head.length - number(7, length).length] = 7 * 8 + 2;
  for (const part of [head, ...parts]) if (!out.write(part)) await once(out, 'drain');
  out.end();
  await once(out, 'close');
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

function parameters({ layers, width, heads, inner, terms, positions }) {
  const random = generator(20_261_121);
  const tensor = (name, dims, deviation, mean = 0) => {
    const values = new Float32Array(dims.reduce((product, dim) => product * dim, 1));
    for (let at = 0; at < values.length; at += 1) values[at] = mean + random(deviation);
    return floats(name, dims, Buffer.from(values.buffer));
  };
  const linear = (name, from, to, deviation) => [
    tensor(`${name}.weight`, [from, to], deviation),
    tensor(`${name}.bias`, [to], 0.02),
  ];
  const norm = (name) => [tensor(`${name}.weight`, [width], 0.05, 1), tensor(`${name}.bias`, [width], 0.05)];
  const out = [
    tensor(WORDS, [terms, width], 0.04),
    tensor('types', [2, width], 0.01),
    tensor('positions', [positions, width], 0.02),
    ...norm('embeddings'),
  ];
  for (let layer = 0; layer < layers; layer += 1) {
    const name = (part) => `layer${layer}.${part}`;
    for (const part of ['query', 'key', 'value', 'attended']) out.push(...linear(name(part), width, width, 0.04));
    out.push(...linear(name('inner'), width, inner, 0.04), ...linear(name('outer'), inner, width, 0.04));
    out.push(...norm(name('attention_norm')), ...norm(name('output_norm')));
  }
  out.push(...linear('transform', width, width, 0.04), ...norm('transform_norm'));
  out.push(tensor(BIAS, [terms], 0.1, THRESHOLD));
  const scalar = (name, value) => floats(name, [], Buffer.from(new Float32Array([value]).buffer));
  out.push(
    scalar('one', 1),
    scalar('half', 0.5),
    scalar('root_two', Math.SQRT2),
    scalar('root_depth', Math.sqrt(width / heads)),
    scalar('smallest', -3.4028234663852886e38),
    integers('list_zero', [0]),
    integers('list_one', [1]),
    integers('list_two', [2]),
    integers('split', [0, 0, heads, width / heads]),
    integers('join', [0, 0, width]),
    positionIds(positions),
  );
  return out;
}

/** The buffer of positions, `[1, positions]`. */
function positionIds(count) {
  const raw = Buffer.alloc(count * 8);
  for (let at = 0; at < count; at += 1) raw.writeBigInt64LE(BigInt(at), at * 8);
  const content = [number(1, 1), number(1, count), number(2, 7), text(8, 'position_ids'), field(9, raw)];
  return field(5, Buffer.concat(content));
}

/** Inputs, and the nodes up to the transformed hidden states. */
function graph({ layers }) {
  const out = ['input_ids', 'attention_mask', 'token_type_ids'].map((name) =>
    // ValueInfoProto: a tensor of 64-bit integers with two axes.
    field(11, Buffer.concat([text(1, name), field(2, field(1, Buffer.concat([number(1, 7), axes(2)])))])),
  );
  const add = (...args) => (out.push(node(...args)), args[2]);
  const linear = (x, name, to) =>
    add('Add', [`${name}.bias`, add('MatMul', [x, `${name}.weight`], `${to}_product`)], to);
  const norm = (x, name, to) => add('LayerNormalization', [x, `${name}.weight`, `${name}.bias`], to, { axis: -1 });
  const gelu = (x, to) => {
    const erf = add('Erf', [add('Div', [x, 'root_two'], `${to}_divided`)], `${to}_erf`);
    const product = add('Mul', [x, add('Add', [erf, 'one'], `${to}_shifted`)], `${to}_double`);
    return add('Mul', [product, 'half'], to);
  };
  add('Shape', ['input_ids'], 'shape');
  add('Slice', ['shape', 'list_one', 'list_two'], 'length');
  add('Slice', ['position_ids', 'list_zero', 'length', 'list_one'], 'places');
  const typed = add(
    'Add',
    [add('Gather', [WORDS, 'input_ids'], 'word_rows'), add('Gather', ['types', 'token_type_ids'], 'type_rows')],
    'typed',
  );
  let x = norm(
    add('Add', [typed, add('Gather', ['positions', 'places'], 'position_rows')], 'embedded'),
    'embeddings',
    'normalised',
  );
  add('Unsqueeze', ['attention_mask', 'list_one'], 'mask_1');
  add('Unsqueeze', ['mask_1', 'list_two'], 'mask_2');
  add('Cast', ['mask_2'], 'mask_float', { to: 1 });
  add('Sub', ['one', 'mask_float'], 'padding');
  add('Mul', ['padding', 'smallest'], 'mask_bias');
  for (let layer = 0; layer < layers; layer += 1) {
    const name = (part) => `layer${layer}.${part}`;
    const heads = (part, perm) =>
      add(
        'Transpose',
        [add('Reshape', [linear(x, name(part), name(`${part}_out`)), 'split'], name(`${part}_split`))],
        name(`${part}_heads`),
        { perm },
      );
    const scores = add('MatMul', [heads('query', [0, 2, 1, 3]), heads('key', [0, 2, 3, 1])], name('scores'));
    const masked = add('Add', [add('Div', [scores, 'root_depth'], name('scaled')), 'mask_bias'], name('masked'));
    const shares = add('Softmax', [masked], name('shares'), { axis: -1 });
    const context = add('MatMul', [shares, heads('value', [0, 2, 1, 3])], name('context'));
    const ordered = add('Transpose', [context], name('ordered'), { perm: [0, 2, 1, 3] });
    const attended = linear(add('Reshape', [ordered, 'join'], name('joined')), name('attended'), name('attended_out'));
    const middle = norm(add('Add', [attended, x], name('residual')), name('attention_norm'), name('middle'));
    const inner = gelu(linear(middle, name('inner'), name('inner_out')), name('activated'));
    const outer = linear(inner, name('outer'), name('outer_out'));
    x = norm(add('Add', [outer, middle], name('residual_2')), name('output_norm'), name('states'));
  }
  norm(gelu(linear(x, 'transform', 'transformed'), 'transform_activated'), 'transform_norm', 'hidden');
  return [...out, node('Transpose', [WORDS], 'decoder', { perm: [1, 0] })];
}

const axes = (count) =>
  field(2, Buffer.concat(Array.from({ length: count }, (_, at) => field(1, text(2, `axis_${at}`)))));

const logits = () => [node('MatMul', ['hidden', 'decoder'], 'product'), node('Add', ['product', BIAS], 'logits')];

/** The same order of operations as in splade-graph.mjs; padding takes the first token's place. */
const pooled = () => [
  integers('list_last', [-1]),
  node('Cast', ['attention_mask'], 'is_token', { to: 9 }),
  node('Unsqueeze', ['is_token', 'list_last'], 'token_mask'),
  node('Slice', ['hidden', 'list_zero', 'list_one', 'list_one'], 'first'),
  node('Where', ['token_mask', 'hidden', 'first'], 'hidden_tokens'),
  node('MatMul', ['hidden_tokens', 'decoder'], 'product'),
  node('ReduceMax', ['product'], 'largest', { axes: [1], keepdims: 0 }),
  node('Add', ['largest', BIAS], 'shifted_largest'),
  node('Relu', ['shifted_largest'], 'positive'),
  node('Add', ['positive', 'one'], 'above_one'),
  node('Log', ['above_one'], 'output'),
];

/** ValueInfoProto of a tensor of floats: `[texts, tokens, terms]` logits or `[texts, terms]` weights. */
function output(name, terms) {
  const dims = name === 'logits' ? [text(2, 'texts'), text(2, 'tokens')] : [text(2, 'texts')];
  const shape = field(2, Buffer.concat([...dims, number(1, terms)].map((dim) => field(1, dim))));
  return field(12, Buffer.concat([text(1, name), field(2, field(1, Buffer.concat([number(1, 1), shape])))]));
}
