import { describe, expect, it } from 'vitest';

import { areSamePassages } from './payloads.js';

interface Field {
  readonly path: string;
  readonly model?: string;
  readonly tokens?: Readonly<Record<string, number>>;
  readonly vector?: readonly number[];
}

/** A payload with one passage for each field. */
function payload(...fields: readonly Field[]): string {
  const number = (bytes: number, value: number): Buffer => {
    const out = Buffer.alloc(bytes);
    out.writeUIntLE(value, 0, bytes);
    return out;
  };
  const text = (value: string): Buffer => Buffer.concat([number(2, Buffer.byteLength(value)), Buffer.from(value)]);
  const float = (value: number): Buffer => Buffer.from(Float32Array.of(value).buffer);
  const parts = fields.flatMap(({ path, model = 'm', tokens, vector }) => [
    ...[path, 'endpoint', model, 'sentence'].map(text),
    ...[number(2, 1), text(path.split('..')[0] ?? '')],
    ...[number(4, 1), number(2, 0), number(4, 0), number(4, 9)],
    number(1, tokens === undefined ? 2 : vector === undefined ? 1 : 3),
    ...(tokens === undefined ? [] : [number(4, Object.keys(tokens).length)]),
    ...Object.entries(tokens ?? {}).flatMap(([token, weight]) => [text(token), float(weight)]),
    ...(vector === undefined ? [] : [number(4, vector.length), ...vector.map(float)]),
  ]);
  return Buffer.concat([number(1, 1), number(2, fields.length), ...parts]).toString('base64');
}

describe('passages on both sides of a move', () => {
  const sparse = { path: 'body', tokens: { whale: 1.5, 'ä sea': 0.5 } };
  const dense = { path: 'title', vector: [1, -2, 3] };

  it.each([
    ['the same', payload(sparse, dense), payload(sparse, dense), true],
    ['in another order', payload(sparse, dense), payload(dense, sparse), true],
    ['of a field whose model was changed once', payload({ ...sparse, path: 'body..1' }), payload(sparse), true],
    [
      'the searched ones of two sets',
      payload(sparse, { ...sparse, path: 'body..1', model: 'n' }),
      payload(sparse),
      true,
    ],
    [
      'the other ones of two sets',
      payload(sparse, { ...dense, path: 'body..1' }),
      payload({ ...dense, path: 'body' }),
      true,
    ],
    ['with other tokens', payload(sparse), payload({ ...sparse, tokens: { whale: 1.5 } }), false],
    [
      'with another vector',
      payload({ ...sparse, ...dense }),
      payload({ ...sparse, ...dense, vector: [1, 2, 3] }),
      false,
    ],
    ['of another model', payload(sparse), payload({ ...sparse, model: 'n' }), false],
    ['of another field', payload(sparse), payload({ ...sparse, path: 'title' }), false],
    ['without a field', payload(sparse, dense), payload(sparse), false],
    ['none', payload(sparse), null, false],
    ['that cannot be read', payload(sparse), `${payload(sparse).slice(0, 40)}`, false],
    ['with more behind them', payload(sparse), `${Buffer.from(payload(sparse), 'base64').toString('hex')}00`, false],
  ])('are told: %s', (_, ours, theirs, same) => {
    expect(areSamePassages(ours, theirs)).toBe(same);
  });
});
