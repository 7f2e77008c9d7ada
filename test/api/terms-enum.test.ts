// `_terms_enum`: the terms of keyword fields that begin with a text; and `_mappings`, another name for `_mapping`.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type Answer, type RunningServer, startServer } from '../support/server.js';

let server: RunningServer;
const call = (method: string, path: string, body?: unknown): Promise<Answer> => server.request(method, path, body);
const terms = async (body: object, path = '/places'): Promise<string[]> => {
  const answer = await call('POST', `${path}/_terms_enum`, body);
  expect(answer.status, answer.text).toBe(200);
  return answer.body.terms as string[];
};

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
  for (const [index, names] of [
    ['places', ['Bern', 'Berlin', 'berlin', 'Basel', 'Bordeaux', 'Ärmel', '', 'Zug']],
    ['more', ['Berlin', 'Bergen', 'Berkeley']],
  ] as const) {
    const properties = {
      name: { type: 'keyword', fields: { low: { type: 'keyword', normalizer: 'low' } } },
      text: { type: 'text' },
      n: { type: 'integer' },
    };
    const settings = { analysis: { normalizer: { low: { type: 'custom', filter: ['lowercase'] } } } };
    await call('PUT', `/${index}`, { settings, mappings: { properties } });
    for (const [n, name] of names.entries()) {
      // A segment each: what a dictionary has alone is not the answer.
      await call('PUT', `/${index}/_doc/${String(n)}?refresh=true`, { name, text: name, n });
    }
  }
  await call('POST', '/_aliases', { actions: [{ add: { index: 'more', alias: 'part', filter: { term: { n: 1 } } } }] });
});

afterAll(async () => {
  await server.stop();
});

describe('_terms_enum', () => {
  it('_terms_enum answers the terms that begin with a text', async () => {
    const answer = await call('GET', '/places/_terms_enum', { field: 'name', string: 'B' });
    expect(answer.body).toEqual({
      _shards: { total: 1, successful: 1, failed: 0 },
      terms: ['Basel', 'Berlin', 'Bern', 'Bordeaux'],
      complete: true,
    });
    expect(await terms({ field: 'name' })).toEqual([
      '',
      'Basel',
      'Berlin',
      'Bern',
      'Bordeaux',
      'Zug',
      'berlin',
      'Ärmel',
    ]);
    expect(await terms({ field: 'name', string: null, size: 2 })).toEqual(['', 'Basel']);
    expect(await terms({ field: 'name', string: 'Ber', size: 1 })).toEqual(['Berlin']);
    expect(await terms({ field: 'name', string: 'bER', case_insensitive: true })).toEqual(['Berlin', 'Bern', 'berlin']);
    expect(await terms({ field: 'name.low', string: 'BER' })).toEqual(['berlin', 'bern']);
    expect(await terms({ field: 'name', string: 'x' })).toEqual([]);
    for (const field of ['text', 'n', 'gone']) expect(await terms({ field })).toEqual([]);
  });

  it('goes on behind a term, and over several indices', async () => {
    expect(await terms({ field: 'name', string: 'Be', search_after: 'Berlin' })).toEqual(['Bern']);
    expect(await terms({ field: 'name', string: 'B', search_after: 'A', size: 1 })).toEqual(['Basel']);
    expect(await terms({ field: 'name', string: 'be', case_insensitive: true, search_after: 'Berlin' })).toEqual([
      'Bern',
      'berlin',
    ]);
    const both = ['Bergen', 'Berkeley', 'Berlin', 'Bern'];
    expect(await terms({ field: 'name', string: 'Ber' }, '/places,more')).toEqual(both);
    expect(await terms({ field: 'name', string: 'Ber', size: 3 }, '/_all')).toEqual(both.slice(0, 3));
    const index_filter = { term: { name: 'Bergen' } };
    expect(await terms({ field: 'name', string: 'Ber', index_filter }, '/_all')).toEqual(both.slice(0, 3));
  });

  it('is not complete where its filter takes more time than it has', async () => {
    const value = '(a|b)*a(a|b){17}';
    const answer = await call('POST', '/places/_terms_enum', {
      field: 'name',
      timeout: '1ms',
      index_filter: { regexp: { name: { value, max_determinized_states: 10_000_000 } } },
    });
    expect(answer.status, answer.text).toBe(200);
    expect(answer.body).toMatchObject({ terms: [], complete: false });
  });

  it('tells nothing of what an alias hides', async () => {
    const answer = await call('POST', '/part/_terms_enum', { field: 'name' });
    expect([answer.body.terms, answer.body.complete]).toEqual([[], false]);
  });

  it.each([
    [{}, 'field cannot be null'],
    [{ field: 'name', size: 0 }, '[size] must be between [1] and [10000]'],
    [{ field: 'name', size: 10_001 }, '[size] must be between [1] and [10000]'],
    [{ field: 'name', timeout: '2m' }, 'Timeout cannot be > 1 minute'],
    [{ field: 'name', timeout: 'soon' }, 'as a time value'],
    [{ field: 'name', strings: 'a' }, '[terms_enum] unknown field [strings] did you mean [string]?'],
  ])('refuses %j', async (body, reason) => {
    const answer = await call('POST', '/places/_terms_enum', body);
    expect([answer.status, answer.body.error.reason]).toEqual([400, expect.stringContaining(reason)]);
  });

  it('is a 404 for an index that is not there', async () => {
    expect((await call('POST', '/gone/_terms_enum', { field: 'name' })).status).toBe(404);
  });
});

describe('_mappings', () => {
  it('is another name for _mapping', async () => {
    const shown = (await call('GET', '/places/_mapping')).body;
    expect((await call('GET', '/places/_mappings')).body).toEqual(shown);
    expect((await call('GET', '/_mappings')).body).toEqual((await call('GET', '/_mapping')).body);
    await call('PUT', '/places/_mappings', { properties: { later: { type: 'keyword' } } });
    expect((await call('GET', '/places/_mappings')).body.places.mappings.properties.later).toEqual({ type: 'keyword' });
  });
});
