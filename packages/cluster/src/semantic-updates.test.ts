// What is told of documents that could not be given the vectors of a model to which a field has begun to change.
import { describe, expect, it } from 'vitest';

import { refusal } from './errors.js';
import type { SemanticIndex } from './semantic-fields.js';
import { complete } from './semantic-updates.js';

const SEMANTIC = { type: 'semantic_text', inference_id: 'e' };
const BESIDE = { number: 1, parameters: { ...SEMANTIC, inference_id: 'new' } };
const named = (index: string): SemanticIndex => ({ index, mapping: {}, state: null, fields: { body: SEMANTIC } });

/** What is logged where the cluster answers each write with one of some statuses; `broken` is an index that cannot be asked about. */
async function logged(statuses: readonly number[], indices = ['i']): Promise<readonly unknown[]> {
  const warnings: unknown[] = [];
  const ids = statuses.map((_, at) => String(at));
  const execute = (): Promise<object> => {
    const documents = ids.map(() => ({ source: null, companion: {} }));
    return Promise.resolve({ status: 200, body: Buffer.from(JSON.stringify({ documents })) });
  };
  const ask = ({ path }: { path: string }): Promise<object> => {
    const docs = ids.map((_id) => ({ _index: 'i', _id, found: true, _source: {}, _seq_no: 1, _primary_term: 1 }));
    const items = ids.map((_id, at) => ({
      index: { _index: 'i', _id, status: statuses[at], error: { type: 't', reason: `no room for ${_id}` } },
    }));
    return Promise.resolve({
      status: 200,
      body: Buffer.from(JSON.stringify(path === '/_mget' ? { docs } : { items })),
      text: false,
    });
  };
  const writtenToNow = (index: string): Promise<SemanticIndex> =>
    index === 'broken'
      ? Promise.reject(refusal(503, 'away', 'no node answers'))
      : Promise.resolve({ ...named(index), state: { body: { beside: BESIDE } } });
  const semantic = { native: { execute }, writtenTo: writtenToNow, writtenToNow, forget: () => undefined };
  const log = { warn: (message: string, told: object) => warnings.push([message, told]) };
  const context = { semantic, transport: { ask }, log } as unknown as Parameters<typeof complete>[0];
  const written = ids.map((id) => ({ index: 'i', id, routing: undefined }));
  await complete(context, indices.map(named), performance.now() - 1000, written);
  return warnings;
}

const MESSAGE = 'documents that were just written lack the vectors of a new model';

describe('documents that lack vectors', () => {
  it('are told of where the cluster refuses them', async () => {
    const told = { index: 'i', documents: 2, first: '1', error: 'no room for 1' };
    expect(await logged([200, 429, 400])).toEqual([[MESSAGE, told]]);
  });

  it('are not told of where they are gone, or written by somebody else', async () => {
    expect(await logged([200, 404, 409])).toEqual([]);
  });

  it('are told of where nothing is known of their index, which keeps those of others from nothing', async () => {
    expect(await logged([429], ['broken', 'i'])).toEqual([
      [MESSAGE, { index: 'broken', error: 'no node answers' }],
      [MESSAGE, { index: 'i', documents: 1, first: '0', error: 'no room for 0' }],
    ]);
  });
});
