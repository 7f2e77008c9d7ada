// Documents whose texts make more terms than may be indexed, and what is written after them.
import { afterAll, beforeAll, expect, it } from 'vitest';

import { type Answer, type RunningServer, startServer } from '../support/server.js';

/** Half a gigabyte of terms is made before a text is refused: seconds of a processor, which others may have as well. */
const PATIENCE_MS = 300_000;

let server: RunningServer;
const call = (method: string, path: string, body?: unknown): Promise<Answer> => server.request(method, path, body);

/** Letters that do not repeat soon. */
function letters(count: number): string {
  let state = 7;
  return Array.from({ length: count }, () => {
    state = (state * 48_271) % 2_147_483_647;
    return String.fromCodePoint(97 + (state % 26));
  }).join('');
}

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
  const tokenizer = {
    wide: { type: 'ngram', min_gram: 10_000, max_gram: 10_000 },
    pairs: { type: 'ngram', min_gram: 2, max_gram: 3 },
  };
  await call('PUT', '/wide', {
    settings: { analysis: { tokenizer, analyzer: { wide: { tokenizer: 'wide' }, pairs: { tokenizer: 'pairs' } } } },
    mappings: { properties: { t: { type: 'text', analyzer: 'wide' }, pairs: { type: 'text', analyzer: 'pairs' } } },
  });
});

afterAll(async () => {
  await server.stop();
});

it(
  'a document with too many terms is refused, and documents after it are indexed as they are',
  async () => {
    const refused = await call('PUT', '/wide/_doc/1', { t: letters(80_000) });
    expect(refused.status, refused.text.slice(0, 500)).toBe(400);
    expect(refused.body.error).toMatchObject({
      type: 'illegal_argument_exception',
      reason:
        'the texts of the document have more than [512mb] of terms, the most that one document may have: field [t] is beyond that',
    });
    // On every thread that writes: none keeps terms of the text that was refused.
    for (let number = 0; number < 16; number += 1) {
      const written = await call('PUT', `/after/_doc/${String(number)}`, { t: `word${String(number)} shared` });
      expect(written.status, written.text).toBe(201);
    }
    await call('POST', '/after/_refresh');
    const found = await call('POST', '/after/_search', { query: { match: { t: 'shared' } }, size: 0 });
    expect(found.body.hits.total.value).toBe(16);
    const { body } = await call('GET', '/_count?q=*:*');
    expect(body.count).toBe(16);
  },
  PATIENCE_MS,
);

it('a text is found by terms that are thousands of times as long as it', async () => {
  const taken = await call('PUT', '/wide/_doc/2?refresh=true', { t: letters(12_000), pairs: letters(12_000) });
  expect(taken.status, taken.text).toBe(201);
  const found = await call('POST', '/wide/_search', { query: { match: { t: letters(10_000) } } });
  expect(found.body.hits.hits.map((hit: { _id: string }) => hit._id)).toEqual(['2']);
});

it(
  'also terms behind a char filter, and those that a token filter makes, are made one by one and limited',
  async () => {
    const wide = { wide: { type: 'ngram', min_gram: 10_000, max_gram: 10_000 } };
    const created = await call('PUT', '/more', {
      settings: {
        analysis: {
          tokenizer: wide,
          filter: wide,
          analyzer: {
            stripped: { tokenizer: 'wide', char_filter: ['html_strip'] },
            whole: { tokenizer: 'keyword', filter: ['wide'] },
          },
        },
      },
      mappings: {
        properties: Object.fromEntries(['stripped', 'whole'].map((analyzer) => [analyzer, { type: 'text', analyzer }])),
      },
    });
    expect(created.status, created.text).toBe(200);
    for (const field of ['stripped', 'whole']) {
      const refused = await call('PUT', '/more/_doc/1', { [field]: letters(300_000) });
      expect(refused.status, refused.text.slice(0, 300)).toBe(400);
      expect(refused.body.error.reason).toContain(`field [${field}] is beyond that`);
    }
  },
  PATIENCE_MS,
);

it('a highlight of a mark in whitespace that is cut off', async () => {
  await call('PUT', '/wide/_doc/3?refresh=true', { pairs: '   a\u0301b\nnull/running' });
  for (const query of ['big apple', ' a', '   a\u0301', 'running']) {
    const answer = await call('POST', '/wide/_search', {
      query: { match: { pairs: query } },
      highlight: { fields: { pairs: {} } },
    });
    expect(answer.status, answer.text).toBe(200);
  }
});
