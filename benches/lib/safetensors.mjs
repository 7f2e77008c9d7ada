// Files of weights: reading one as floats, and writing one.
import { createWriteStream, readFileSync } from 'node:fs';
import { once } from 'node:events';

/** @typedef {{ shape: number[], values: Float32Array }} Tensor */

/**
 * All tensors of a file as floats, by name; bytes are multiplied with the scales of their rows.
 *
 * @returns {Map<string, Tensor>}
 */
export function readTensors(path) {
  const file = readFileSync(path);
  const start = 8 + Number(file.readBigUInt64LE(0));
  const header = JSON.parse(file.subarray(8, start).toString());
  delete header.__metadata__;
  const plain = (name) => {
    const { dtype, shape, data_offsets: offsets } = header[name];
    const [from, to] = offsets.map((offset) => start + offset);
    return { shape, values: FLOATS[dtype](file.subarray(from, to)) };
  };
  const names = Object.keys(header).filter((name) => !name.endsWith('_scale'));
  return new Map(
    names.map((name) => {
      const { shape, values } = plain(name);
      if (header[name].dtype === 'I8') {
        const scales = plain(`${name}_scale`).values;
        for (let at = 0; at < values.length; at += 1) values[at] *= scales[Math.floor(at / shape[1])];
      }
      return [name, { shape, values }];
    }),
  );
}

const FLOATS = {
  F32: (bytes) => new Float32Array(Uint8Array.from(bytes).buffer),
  F16: (bytes) => Float32Array.from(new Uint16Array(Uint8Array.from(bytes).buffer), half),
  I8: (bytes) => Float32Array.from(new Int8Array(bytes.buffer, bytes.byteOffset, bytes.length)),
};

function half(bits) {
  const [sign, exponent, fraction] = [bits & 0x8000 ? -1 : 1, (bits >> 10) & 0x1f, bits & 0x3ff];
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15));
}

/**
 * Writes tensors of floats.
 *
 * @param {Map<string, Tensor>} tensors
 */
export async function writeTensors(path, tensors) {
  const header = {};
  let end = 0;
  for (const [name, { shape, values }] of tensors) {
    header[name] = { dtype: 'F32', shape, data_offsets: [end, (end += values.byteLength)] };
  }
  const json = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(json.length));
  const out = createWriteStream(path);
  const parts = [...tensors.values()].map(({ values }) => Buffer.from(values.buffer));
  for (const part of [length, json, ...parts]) if (!out.write(part)) await once(out, 'drain');
  out.end();
  await once(out, 'close');
}
