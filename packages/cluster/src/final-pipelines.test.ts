// What a cluster that cannot answer leaves unknown is not taken for an index without a final pipeline.
import { describe, expect, it } from 'vitest';

import { FinalPipelines } from './final-pipelines.js';
import type { Transport } from './transport.js';
import type { Turns } from './turns.js';

function over(answers: readonly { readonly status: number; readonly body: object }[]): FinalPipelines {
  const left = [...answers];
  const transport = { json: () => Promise.resolve(left.shift()) } as unknown as Transport;
  return new FinalPipelines(transport, {} as Turns);
}

const blocked = (status: number, type: string) => ({ status, body: { error: { type, reason: 'not now' }, status } });
const found = { status: 200, body: { a: { mappings: { _meta: { sparrow: { final_pipeline: 'last' } } } } } };

describe('the final pipeline of an index', () => {
  it.each([
    [403, 'cluster_block_exception'],
    [429, 'circuit_breaking_exception'],
    [503, 'unavailable_shards_exception'],
  ])('is unknown after %d, and asked for again', async (status, type) => {
    const finals = over([blocked(status, type), found]);
    await expect(finals.of('a')).rejects.toMatchObject({ status });
    expect(await finals.of('a')).toBe('last');
    await expect(over([blocked(status, type)]).hasAny('a*')).rejects.toMatchObject({ status });
  });

  it('is unknown where the cluster cannot say what templates bring', async () => {
    const finals = over([{ status: 404, body: {} }, blocked(503, 'unavailable_shards_exception')]);
    await expect(finals.of('b')).rejects.toMatchObject({ status: 503 });
  });
});
