// Documents of many hits are read some at a time, so that their vectors are not all in one answer.
import type { Ranked, SearchEngine } from '@sparrow-search/engine';
import { describe, expect, it } from 'vitest';

import { different } from './diversity.js';
import { readDocuments } from './documents-of-hits.js';
import { refusal } from './errors.js';
import { theseOf } from './ranked-hits.js';
import type { Asking } from './multiple.js';
import type { SemanticFields } from './semantic-fields.js';
import type { Asked, Transport } from './transport.js';
import type { VectorFields } from './vector-fields.js';

const hits = (count: number): readonly Ranked[] =>
  Array.from({ length: count }, (_, at) => ({ key: JSON.stringify(['i', String(at)]), score: 1 }));

/** A cluster whose documents have so many characters; it answers no request for more than it is said to. */
function asking(characters: number, most = Infinity): { readonly of: Asking; readonly asked: number[] } {
  const asked: number[] = [];
  const transport = {
    ask: ({ body }: Asked) => {
      const [, search = '{}'] = String(body).split('\n');
      const { query, size } = JSON.parse(search) as { query: any; size: number };
      asked.push(size);
      if (size > most) return Promise.reject(tooLong());
      const found = (query.bool.filter[0].bool.should[0].bool.filter[0].ids.values as string[]).map((_id) => ({
        _index: 'i',
        _id,
        _source: { v: [1, Number(_id)], text: 'x'.repeat(characters) },
      }));
      const answer = JSON.stringify({ responses: [{ hits: { hits: found } }] });
      return Promise.resolve({ status: 200, body: Buffer.from(answer), text: false });
    },
  } as unknown as Transport;
  return { of: { transport, expression: 'i', target: {} }, asked };
}

function tooLong(): Error {
  return refusal(502, 'cluster_answer_exception', 'more than Sparrow reads: ask for less at once');
}

describe('documents of hits', () => {
  it('are read as many at a time as an answer of some megabytes holds', async () => {
    const { of, asked } = asking(100_000);
    const read: string[] = [];
    await readDocuments(of, {}, hits(200), (documents) => {
      read.push(...documents.map(({ id }) => id));
    });
    expect(read).toEqual(hits(200).map((_, at) => String(at)));
    expect(asked[0]).toBe(64);
    expect(asked.length).toBeGreaterThan(2);
    for (const size of asked.slice(1)) expect(size).toBeLessThan(90);
    const short = asking(1);
    await readDocuments(short.of, {}, hits(2000), () => undefined);
    expect(short.asked).toEqual([64, 128, 256, 512, 1024, 16]);
    const few = asking(1, 20);
    await readDocuments(few.of, {}, hits(30), () => undefined);
    expect(few.asked.slice(0, 3)).toEqual([30, 15, 15]);
  });

  it('are looked for in the index of each, as another one may have the same ids', () => {
    const elsewhere = hits(1).map((hit) => ({ ...hit, key: JSON.stringify(['other', '0']) }));
    const { filter, most } = theseOf([...hits(2), ...elsewhere]);
    const of = (index: string, values: string[]) => ({
      bool: { filter: [{ ids: { values } }, { term: { _index: index } }] },
    });
    const should = [of('i', ['0', '1']), of('other', ['0'])];
    expect([filter, most]).toEqual([[{ bool: { should, minimum_should_match: 1 } }], 3]);
  });

  it('are not compared where their vectors are more than may be in memory', async () => {
    const context = {
      native: {
        execute: () => Promise.resolve({ status: 200, body: Buffer.from('{"kept":[0]}') }),
      } as unknown as SearchEngine,
      semantic: { of: () => Promise.resolve(undefined), native: undefined } as unknown as SemanticFields,
      vectors: { of: () => Promise.resolve([new Map([['v', {}]])]) } as unknown as VectorFields,
    };
    const retriever = { diversify: { type: 'mmr', field: 'v' } };
    const { of } = asking(1);
    await expect(different(context, of)(retriever, hits(100))).resolves.toEqual([0]);
    await expect(different(context, of, undefined, 1000)(retriever, hits(100))).rejects.toMatchObject({
      status: 400,
      reason: expect.stringContaining('give a smaller [rank_window_size]') as string,
    });
  });
});
