// Fields of protobuf messages, as ONNX graphs are made of them: a number stands before each, and joined messages merge.

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
  if (!Array.isArray(value) && !Number.isInteger(value)) {
    const single = Buffer.from(new Float32Array([value]).buffer);
    return field(5, Buffer.concat([text(1, name), varint(2 * 8 + 5), single, number(20, 1)]));
  }
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
