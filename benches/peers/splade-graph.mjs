// The graph that a Node user would run: the embedded model with the projection, pooled to one row of weights.
//
// Protobuf messages merge when their bytes are joined, so the missing nodes are appended to the file. The maximum over tokens
// goes before bias, ReLU and logarithm, and padding takes the first token's place instead of a mask over the logits:
// the fastest form of those tried with this runtime (the textbook order takes twice the time).

const varint = (value) => {
  const bytes = [];
  for (; value >= 0x80; value = Math.floor(value / 128)) bytes.push((value % 128) | 0x80);
  return Buffer.from([...bytes, value]);
};
export const field = (number, bytes) => Buffer.concat([varint(number * 8 + 2), varint(bytes.length), bytes]);
export const text = (number, value) => field(number, Buffer.from(value));
export const number = (key, value) => Buffer.concat([varint(key * 8), varint(value)]);
const minusOne = Buffer.from([0x18, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]);
const attribute = (name, value) => {
  const kind = Array.isArray(value) ? 7 : 2;
  // -1 is written in ten bytes, as protobuf has it.
  const content = Array.isArray(value) ? value.map((one) => number(8, one)) : [value < 0 ? minusOne : number(3, value)];
  return field(5, Buffer.concat([text(1, name), ...content, number(20, kind)]));
};
export const node = (operator, inputs, output, attributes = {}) =>
  field(
    1,
    Buffer.concat([
      ...inputs.map((input) => text(1, input)),
      text(2, output),
      text(4, operator),
      ...Object.entries(attributes).map(([name, value]) => attribute(name, value)),
    ]),
  );
export const integers = (name, values) => {
  const raw = Buffer.alloc(values.length * 8);
  values.forEach((value, at) => raw.writeBigInt64LE(BigInt(value), at * 8));
  return field(5, Buffer.concat([number(1, values.length), number(2, 7), text(8, name), field(9, raw)]));
};
export const floats = (name, dims, raw) =>
  field(5, Buffer.concat([...dims.map((dim) => number(1, dim)), number(2, 1), text(8, name), field(9, raw)]));

/**
 * Bytes of the graph with an output `output`, `[texts, vocabulary]`.
 * @param {Buffer} model a graph with an output `hidden`, whose word embeddings are the decoder
 * @param {Buffer} bias the decoder's, little-endian
 */
export function withLogits(model, bias, table = 'bert.embeddings.word_embeddings.weight') {
  const terms = bias.length / 4;
  const graph = Buffer.concat([
    integers('peer_zero', [0]),
    integers('peer_one', [1]),
    integers('peer_last', [-1]),
    floats('peer_bias', [terms], bias),
    floats('peer_unit', [1], Buffer.from(new Float32Array([1]).buffer)),
    node('Cast', ['attention_mask'], 'peer_bool', { to: 9 }),
    node('Unsqueeze', ['peer_bool', 'peer_last'], 'peer_mask'),
    node('Slice', ['hidden', 'peer_zero', 'peer_one', 'peer_one'], 'peer_first'),
    node('Where', ['peer_mask', 'hidden', 'peer_first'], 'peer_hidden'),
    node('Transpose', [table], 'peer_decoder', { perm: [1, 0] }),
    node('MatMul', ['peer_hidden', 'peer_decoder'], 'peer_product'),
    node('ReduceMax', ['peer_product'], 'peer_largest', { axes: [1], keepdims: 0 }),
    node('Add', ['peer_largest', 'peer_bias'], 'peer_logits'),
    node('Relu', ['peer_logits'], 'peer_positive'),
    node('Add', ['peer_positive', 'peer_unit'], 'peer_shifted'),
    node('Log', ['peer_shifted'], 'output'),
    // ValueInfoProto: a tensor of floats.
    field(12, Buffer.concat([text(1, 'output'), field(2, field(1, number(1, 1)))])),
  ]);
  return Buffer.concat([model, field(7, graph)]);
}

/** A tensor of a safetensors file, as bytes. */
export function tensor(file, name) {
  const length = Number(file.readBigUInt64LE(0));
  const header = JSON.parse(file.subarray(8, 8 + length).toString());
  const [from, to] = header[name].data_offsets;
  return file.subarray(8 + length + from, 8 + length + to);
}
