import { SparrowError } from '@sparrow-search/engine';
import { describe, expect, it } from 'vitest';

import { LocalExchange } from '../in-process/local-exchange.js';
import { encode } from './encodings.js';
import { type Answer, answerToError, finish } from './respond.js';

it('answers what an engine refuses to the server itself with its status, and when to come again', async () => {
  const refusal = new SparrowError('[1000] searches wait', 429, 'es_rejected_execution_exception', {
    error: 'not shown',
  });
  const answer = answerToError(refusal);
  expect(answer).toMatchObject({ status: 429, errorType: 'es_rejected_execution_exception' });
  const { status, headers, body } = await finish(
    answer ?? { status: 500, body: null },
    new LocalExchange({ method: 'GET', path: '/' }),
    {},
    [],
  );
  expect(status).toBe(429);
  expect(headers).toContainEqual(['Retry-After', expect.stringMatching(/^[1-9]\d*$/)]);
  const cause = { type: 'es_rejected_execution_exception', reason: '[1000] searches wait' };
  expect(JSON.parse(String(body))).toEqual({ error: { root_cause: [cause], ...cause }, status: 429 });
});

describe('an answer whose bytes are shared', () => {
  const answer: Answer = { status: 200, body: Buffer.from(JSON.stringify({ a: 'b'.repeat(2000) })), isShared: true };
  const shaped = async (query: Record<string, string>, encoding?: string): Promise<unknown> => {
    const finished = await finish(answer, new LocalExchange({ method: 'GET', path: '/', query }), query, []);
    expect(finished.isShared).toBe(true);
    return (encoding === undefined ? finished : await encode(finished, encoding)).body;
  };

  it.each([{}, { pretty: 'true' }, { format: 'yaml' }, { format: 'yaml', pretty: 'true' }])(
    'is shaped and compressed once, however many ask for it: %j',
    async (query) => {
      const [first, others] = [await shaped(query), await Promise.all([shaped(query), shaped(query)])];
      for (const other of others) expect(other).toBe(first);
      for (const encoding of ['gzip', 'zstd']) {
        const packed = await shaped(query, encoding);
        expect(packed).not.toBe(first);
        expect(await shaped(query, encoding)).toBe(packed);
      }
    },
  );

  it('has as many shapes as there are, and none of a filter', async () => {
    expect(String(await shaped({ format: 'yaml' }))).toMatch(/^---\na: "?b/u);
    expect(String(await shaped({ pretty: 'true' }))).toMatch(/^\{\n {2}"a"/u);
    await expect(shaped({ filter_path: '**.a*' })).rejects.toThrow('ask for the whole answer');
  });
});
