// Documents that are too long to be read or written many at once, over a cluster that is a list of them.
import { describe, expect, it } from 'vitest';

import { type CopyPlan, type Copying, type Progress, copy } from './copy.js';
import { refusal } from './errors.js';
import type { Given } from './pipelines.js';
import { newTally } from './task-record.js';
import type { Asked } from './transport.js';

const LONG = 6 * 1024 * 1024;
const PLAN = { source: 'a', dest: 'b', batch: 128, maxDocs: Number.MAX_SAFE_INTEGER, perSecond: 0 } as CopyPlan;

/** A cluster with as many documents, of which it gives no more than some in an answer; `bulks` are the ids of each bulk, `sizes` how many were asked for. */
function over(count: number, most: number) {
  const text = 'x'.repeat(LONG);
  const bulks: string[][] = [];
  const queries: unknown[] = [];
  const sizes: number[] = [];
  const ask = ({ path, body = '{}' }: Asked): Promise<unknown> => {
    const answered = (answer: object) => ({ status: 200, body: Buffer.from(JSON.stringify(answer)), text: false });
    if (path !== '/_search' && path !== '/_bulk') return Promise.resolve(answered({ pit_id: 'view' }));
    if (path === '/_bulk') {
      const ids = Array.from(String(body).matchAll(/"_id":"(\d+)"/g), ([, id = '']) => id);
      bulks.push(ids);
      return Promise.resolve(answered({ items: ids.map((id) => ({ index: { _index: 'b', _id: id, status: 201 } })) }));
    }
    const {
      size,
      query,
      search_after: [after] = [-1],
      sort: [order] = [{}],
    } = JSON.parse(String(body)) as {
      size: number;
      query?: unknown;
      search_after?: [number];
      sort?: [{ _seq_no?: string }];
    };
    if (order._seq_no === 'desc') {
      return Promise.resolve(answered({ hits: { hits: [{ _id: String(count - 1), sort: [count - 1] }] } }));
    }
    queries.push(query);
    sizes.push(size);
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
  return { context, bulks, queries, sizes };
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

  it('sends what became longer on its way in parts', async () => {
    const { context, bulks } = over(3, 5);
    const source = JSON.stringify({ text: 'x'.repeat(10 * 1024 * 1024) });
    const run = (_: string, page: readonly Given[]) =>
      Promise.resolve(page.map((hit) => ({ kind: 'document', ...hit, source })));
    const pipelines = { run, fills: () => Promise.resolve([]) };
    const { tally } = await copy({ ...context, pipelines } as never, { ...PLAN, pipeline: 'p' }, begun, setDown);
    expect(tally).toMatchObject({ created: 3, bulk_retries: 0 });
    expect(bulks).toEqual([['0', '1'], ['2']]);
  });

  it('asks for a few of them before it knows how long they are', async () => {
    const { context, bulks, sizes } = over(12, 12);
    await copy(context, PLAN, begun, setDown);
    expect(bulks.flat()).toHaveLength(12);
    expect(Math.max(...sizes)).toBe(8);
  });

  it('takes no more of them than it was asked for', async () => {
    const { context, bulks } = over(10, 5);
    await copy(context, { ...PLAN, maxDocs: 4 }, begun, setDown);
    expect(bulks.flat()).toHaveLength(4);
  });

  it('looks whether the caller may write to an index before anything is done for it', async () => {
    const { context, bulks } = over(2, 5);
    const asked: string[] = [];
    const sentAway = (_: string, given: readonly Given[]): Promise<unknown> =>
      Promise.resolve(given.map((it) => ({ ...it, kind: 'document', index: 'secret' })));
    const copying = {
      ...context,
      pipelines: { run: sentAway },
      checkTarget: () => Promise.reject(refusal(403, 'security_exception', 'not there')),
      finals: { of: (index: string) => Promise.resolve(void asked.push(index)) },
      dynamic: { prepare: (index: string) => Promise.resolve(void asked.push(index)) },
    } as unknown as Copying;
    const done = copy(copying, { ...PLAN, pipeline: 'away' }, begun, setDown);
    await expect(done).rejects.toMatchObject({ status: 403 });
    expect([asked, bulks]).toEqual([[], []]);
  });

  it('writes nothing in place again that it has written, when a task goes on', async () => {
    const { context, bulks, queries } = over(10, 5);
    const kept: Progress[] = [];
    // The server stops after the first batch.
    const stops = (progress: Progress): Promise<boolean> => Promise.resolve(kept.push(progress) < 2);
    const plan = { ...PLAN, inPlace: true, batch: 4 } as CopyPlan;
    await copy(context, plan, begun, stops);
    const [first, second = first] = kept;
    expect(first?.shards).toEqual([{ index: 'a', shard: 0, until: 9 }]);
    await copy(context, plan, second ?? begun, setDown);
    expect(bulks.flat()).toEqual(Array.from({ length: 10 }, (_, at) => String(at)));
    // Everything that was written since has a later number.
    const bound = { bool: { filter: [{ range: { _seq_no: { lte: 9 } } }] } };
    expect(queries.filter((query) => query !== undefined)).toEqual(queries.filter(Boolean).map(() => bound));
  });

  it('ends where a single one is too long', async () => {
    const { context } = over(2, 0);
    await expect(copy(context, PLAN, begun, setDown)).rejects.toMatchObject({ status: 502 });
  });
});
