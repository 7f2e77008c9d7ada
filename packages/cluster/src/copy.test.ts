// Documents that are too long to be read or written many at once, over a cluster that is a list of them.
import { describe, expect, it } from 'vitest';

import { type CopyPlan, type Copying, copy } from './copy.js';
import { refusal } from './errors.js';
import { newTally } from './task-record.js';
import type { Asked } from './transport.js';

const LONG = 6 * 1024 * 1024;
const PLAN = { source: 'a', dest: 'b', batch: 128, maxDocs: Number.MAX_SAFE_INTEGER, perSecond: 0 } as CopyPlan;

/** A cluster with as many documents, of which it gives no more than some in an answer; `bulks` are the ids of each bulk. */
function over(count: number, most: number) {
  const text = 'x'.repeat(LONG);
  const bulks: string[][] = [];
  const ask = ({ path, body = '{}' }: Asked): Promise<unknown> => {
    const answered = (answer: object) => ({ status: 200, body: Buffer.from(JSON.stringify(answer)), text: false });
    if (path !== '/_search' && path !== '/_bulk') return Promise.resolve(answered({ pit_id: 'view' }));
    if (path === '/_bulk') {
      const ids = Array.from(String(body).matchAll(/"_id":"(\d+)"/g), ([, id = '']) => id);
      bulks.push(ids);
      return Promise.resolve(answered({ items: ids.map((id) => ({ index: { _index: 'b', _id: id, status: 201 } })) }));
    }
    const { size, search_after: [after] = [-1] } = JSON.parse(String(body)) as {
      size: number;
      search_after?: [number];
    };
    const places = Array.from({ length: Math.min(size, count - after - 1) }, (_, at) => after + 1 + at);
    if (places.length > most) {
      const reason = 'the cluster answered with more than it may: ask for less at once';
      return Promise.reject(refusal(502, 'cluster_answer_exception', reason));
    }
    const hits = places.map((at) => ({ _id: String(at), _source: { text }, sort: [at] }));
    return Promise.resolve(answered({ hits: { hits } }));
  };
  const semantic = { of: () => Promise.resolve(undefined), writtenTo: () => Promise.resolve(undefined) };
  const finals = { of: () => Promise.resolve(undefined) };
  const dynamic = { prepare: () => Promise.resolve() };
  const product = { name: 'OpenSearch' };
  const context = { transport: { ask }, product, semantic, finals, dynamic } as unknown as Copying;
  return { context, bulks };
}

describe('a copy of long documents', () => {
  const begun = { shards: [{ index: 'a', shard: 0 }], tally: newTally(), failures: [] };
  const setDown = () => Promise.resolve(true);

  it('asks for fewer of them where an answer is too long, and writes no more at once than a cluster takes', async () => {
    const { context, bulks } = over(10, 5);
    const { tally, shards } = await copy(context, PLAN, begun, setDown);
    expect(tally).toMatchObject({ created: 10 });
    expect(shards).toMatchObject([{ done: true }]);
    expect(bulks.flat()).toEqual(Array.from({ length: 10 }, (_, at) => String(at)));
    expect(Math.max(...bulks.map(({ length }) => length))).toBe(3);
  });

  it('takes no more of them than it was asked for', async () => {
    const { context, bulks } = over(10, 5);
    await copy(context, { ...PLAN, maxDocs: 4 }, begun, setDown);
    expect(bulks.flat()).toHaveLength(4);
  });

  it('ends where a single one is too long', async () => {
    const { context } = over(2, 0);
    await expect(copy(context, PLAN, begun, setDown)).rejects.toMatchObject({ status: 502 });
  });
});
