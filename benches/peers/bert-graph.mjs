// The graph of a BERT encoder in the form in which exporters of PyTorch models write it: token types, positions looked up from a
// buffer, a mask of the smallest float. The weights are those of a checkpoint in Transformers' names.
import { createWriteStream } from 'node:fs';
import { once } from 'node:events';

import { field, floats, integers, node, number, text } from './protobuf.mjs';

const WORDS = 'embeddings.word_embeddings.weight';
const TYPES = 'embeddings.token_type_embeddings.weight';
const TRANSFORM = 'cls.predictions.transform';

/**
 * Writes a graph for the peer: the hidden states, or the weights of a sparse model, pooled as a Node user would do it.
 *
 * @param {string} path of the file
 * @param {{ num_hidden_layers: number, num_attention_heads: number, hidden_size: number, layer_norm_eps: number }} config the
 *   model's config.json
 * @param {Map<string, import('../lib/safetensors.mjs').Tensor>} tensors
 * @param {'last_hidden_state' | 'output'} output hidden states, `[texts, tokens, width]`, or token weights, `[texts, terms]`
 */
export async function writeBertGraph(path, config, tensors, output) {
  const prefix = tensors.has(`bert.${WORDS}`) ? 'bert.' : '';
  const graph = new BertGraph(config, tensors, prefix);
  const last = graph.encoder();
  if (output === 'output') graph.pooledTerms(graph.transform(last));
  else graph.add('Identity', [last], output);
  const opset = field(8, Buffer.concat([text(1, ''), number(2, 17)]));
  const parts = [...graph.parts, valueInfo(12, output, 1)];
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const out = createWriteStream(path);
  // An empty field's header is a key and a zero: the zero makes room for the true length.
  const head = Buffer.concat([number(1, 8), opset, number(7, length)]);
  head[head.length - number(7, length).length] = 7 * 8 + 2;
  for (const part of [head, ...parts]) if (!out.write(part)) await once(out, 'drain');
  out.end();
  await once(out, 'close');
}

/** Collects inputs, weights and nodes of one graph. */
class BertGraph {
  constructor(config, tensors, prefix) {
    const { hidden_size: width, num_attention_heads: heads } = config;
    this.config = config;
    this.tensors = tensors;
    this.prefix = prefix;
    const inputs = ['input_ids', 'attention_mask'];
    if (tensors.has(`${prefix}${TYPES}`)) inputs.push('token_type_ids');
    const scalar = (name, value) => floats(name, [], Buffer.from(new Float32Array([value]).buffer));
    this.parts = [
      ...inputs.map((name) => valueInfo(11, name, 7)),
      ...[scalar('one', 1), scalar('half', 0.5), scalar('root_two', Math.SQRT2)],
      ...[scalar('root_depth', Math.sqrt(width / heads)), scalar('smallest', -3.4028234663852886e38)],
      ...[
        integers('list_zero', [0]),
        integers('list_one', [1]),
        integers('list_two', [2]),
        integers('list_last', [-1]),
      ],
      ...[integers('split', [0, 0, heads, width / heads]), integers('join', [0, 0, width])],
    ];
  }

  /** Adds a node; returns its output. */
  add(operator, inputs, output, attributes) {
    this.parts.push(node(operator, inputs, output, attributes));
    return output;
  }

  /** Adds a weight; returns its name. */
  weight(name, { shape, values } = this.tensors.get(name)) {
    this.parts.push(floats(name, shape, Buffer.from(values.buffer, values.byteOffset, values.byteLength)));
    return name;
  }

  linear(x, name, to) {
    // A checkpoint has the weights of an output side by side, a product those of an input.
    const { shape, values } = this.tensors.get(`${name}.weight`);
    const [outputs, inputs] = shape;
    const turned = new Float32Array(values.length);
    for (let row = 0; row < outputs; row += 1) {
      for (let column = 0; column < inputs; column += 1) turned[column * outputs + row] = values[row * inputs + column];
    }
    const weight = this.weight(`${name}.weight`, { shape: [inputs, outputs], values: turned });
    return this.add('Add', [this.weight(`${name}.bias`), this.add('MatMul', [x, weight], `${to}_product`)], to);
  }

  norm(x, name, to) {
    const [scale, shift] = this.tensors.has(`${name}.gamma`) ? ['gamma', 'beta'] : ['weight', 'bias'];
    const inputs = [x, this.weight(`${name}.${scale}`), this.weight(`${name}.${shift}`)];
    return this.add('LayerNormalization', inputs, to, { axis: -1, epsilon: this.config.layer_norm_eps });
  }

  gelu(x, to) {
    const erf = this.add('Erf', [this.add('Div', [x, 'root_two'], `${to}_divided`)], `${to}_erf`);
    const product = this.add('Mul', [x, this.add('Add', [erf, 'one'], `${to}_shifted`)], `${to}_double`);
    return this.add('Mul', [product, 'half'], to);
  }

  /** The embeddings and all layers; returns the name of the hidden states. */
  encoder() {
    const of = (name) => `${this.prefix}embeddings.${name}`;
    const positions = this.weight(of('position_embeddings.weight'));
    const [count] = this.tensors.get(positions).shape;
    this.parts.push(positionIds(count));
    this.add('Shape', ['input_ids'], 'shape');
    this.add('Slice', ['shape', 'list_one', 'list_two'], 'length');
    this.add('Slice', ['position_ids', 'list_zero', 'length', 'list_one'], 'places');
    let embedded = this.add('Gather', [this.weight(`${this.prefix}${WORDS}`), 'input_ids'], 'word_rows');
    const types = `${this.prefix}${TYPES}`;
    if (this.tensors.has(types)) {
      const rows = this.add('Gather', [this.weight(types), 'token_type_ids'], 'type_rows');
      embedded = this.add('Add', [embedded, rows], 'typed');
    }
    const places = this.add('Gather', [positions, 'places'], 'position_rows');
    let x = this.norm(this.add('Add', [embedded, places], 'embedded'), of('LayerNorm'), 'normalised');
    this.add('Unsqueeze', ['attention_mask', 'list_one'], 'mask_1');
    this.add('Unsqueeze', ['mask_1', 'list_two'], 'mask_2');
    this.add('Cast', ['mask_2'], 'mask_float', { to: 1 });
    this.add('Sub', ['one', 'mask_float'], 'padding');
    this.add('Mul', ['padding', 'smallest'], 'mask_bias');
    for (let layer = 0; layer < this.config.num_hidden_layers; layer += 1) x = this.layer(x, layer);
    return x;
  }

  layer(x, layer) {
    const from = (part) => `${this.prefix}encoder.layer.${layer}.${part}`;
    const to = (part) => `layer${layer}.${part}`;
    const heads = (part, perm) => {
      const projected = this.linear(x, from(`attention.self.${part}`), to(part));
      const split = this.add('Reshape', [projected, 'split'], to(`${part}_split`));
      return this.add('Transpose', [split], to(`${part}_heads`), { perm });
    };
    const scores = this.add('MatMul', [heads('query', [0, 2, 1, 3]), heads('key', [0, 2, 3, 1])], to('scores'));
    const scaled = this.add('Div', [scores, 'root_depth'], to('scaled'));
    const shares = this.add('Softmax', [this.add('Add', [scaled, 'mask_bias'], to('masked'))], to('shares'), {
      axis: -1,
    });
    const context = this.add('MatMul', [shares, heads('value', [0, 2, 1, 3])], to('context'));
    const ordered = this.add('Transpose', [context], to('ordered'), { perm: [0, 2, 1, 3] });
    const joined = this.add('Reshape', [ordered, 'join'], to('joined'));
    const attended = this.linear(joined, from('attention.output.dense'), to('attended'));
    const residual = this.add('Add', [attended, x], to('residual'));
    const middle = this.norm(residual, from('attention.output.LayerNorm'), to('middle'));
    const inner = this.gelu(this.linear(middle, from('intermediate.dense'), to('inner')), to('activated'));
    const outer = this.linear(inner, from('output.dense'), to('outer'));
    return this.norm(this.add('Add', [outer, middle], to('residual_2')), from('output.LayerNorm'), to('states'));
  }

  /** The transform of a masked language model's head; returns the name of the hidden states behind it. */
  transform(x) {
    const activated = this.gelu(this.linear(x, `${TRANSFORM}.dense`, 'transformed'), 'transform_activated');
    return this.norm(activated, `${TRANSFORM}.LayerNorm`, 'hidden');
  }

  /**
   * The projection to the vocabulary and the maximum over tokens, as token weights in `output`. The maximum goes before bias, ReLU and
   * logarithm, and padding takes the first token's place instead of a mask over the logits: the fastest form of those tried with this
   * runtime (the textbook order takes twice the time).
   */
  pooledTerms(hidden) {
    this.add('Cast', ['attention_mask'], 'is_token', { to: 9 });
    this.add('Unsqueeze', ['is_token', 'list_last'], 'token_mask');
    this.add('Slice', [hidden, 'list_zero', 'list_one', 'list_one'], 'first');
    this.add('Where', ['token_mask', hidden, 'first'], 'hidden_tokens');
    this.add('Transpose', [`${this.prefix}${WORDS}`], 'decoder', { perm: [1, 0] });
    this.add('MatMul', ['hidden_tokens', 'decoder'], 'product');
    this.add('ReduceMax', ['product'], 'largest', { axes: [1], keepdims: 0 });
    this.add('Add', ['largest', this.weight('cls.predictions.bias')], 'shifted_largest');
    this.add('Relu', ['shifted_largest'], 'positive');
    this.add('Add', ['positive', 'one'], 'above_one');
    this.add('Log', ['above_one'], 'output');
  }
}

/** The buffer of positions, `[1, positions]`. */
function positionIds(count) {
  const raw = Buffer.alloc(count * 8);
  for (let at = 0; at < count; at += 1) raw.writeBigInt64LE(BigInt(at), at * 8);
  const content = [number(1, 1), number(1, count), number(2, 7), text(8, 'position_ids'), field(9, raw)];
  return field(5, Buffer.concat(content));
}

/** ValueInfoProto of an input (field 11), `[texts, tokens]`, or of an output (field 12), whose axes are not said. */
function valueInfo(place, name, kind) {
  const axes = ['texts', 'tokens'].map((axis) => field(1, text(2, axis)));
  const shape = place === 11 ? [field(2, Buffer.concat(axes))] : [];
  return field(place, Buffer.concat([text(1, name), field(2, field(1, Buffer.concat([number(1, kind), ...shape])))]));
}
