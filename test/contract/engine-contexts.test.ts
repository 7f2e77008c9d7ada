// What stays open between requests, for keys that may use some indices only: one suite for every engine behind the routes.
import { randomBytes } from 'node:crypto';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { ENGINES } from '../support/engines.js';
import type { Answer, RunningServer } from '../support/server.js';

describe.each(ENGINES)('scrolls and points in time over the $name engine', ({ start }) => {
  const run = randomBytes(4).toString('hex');
  const [mine, theirs] = [`open-${run}-mine`, `open-${run}-theirs`];
  let server: RunningServer;
  const keys = new Map<string, string>();

  const ask = (key: string | undefined, method: string, path: string, body?: unknown): Promise<Answer> =>
    server.request(method, path, body, key === undefined ? {} : { apiKey: keys.get(key) ?? '' });
  async function done(key: string | undefined, method: string, path: string, body?: unknown): Promise<any> {
    const answer = await ask(key, method, path, body);
    expect(answer.status, `${method} ${path}: ${answer.text}`).toBe(200);
    return answer.body;
  }

  beforeAll(async () => {
    server = await start();
    for (const index of [mine, theirs]) {
      const lines = [1, 2, 3].map((n) => `{"index":{"_id":"${String(n)}"}}\n{"n":${String(n)},"of":"${index}"}\n`);
      await done(undefined, 'POST', `/${index}/_bulk?refresh=true`, lines.join(''));
      const made = await done(undefined, 'POST', '/_security/api_key', {
        name: index,
        role_descriptors: { reads: { indices: [{ names: [index], privileges: ['read'] }] } },
      });
      keys.set(index, made.encoded);
    }
  });
  afterAll(async () => {
    await server.request('DELETE', `/${mine},${theirs}`);
    await server.stop();
  });

  it('go on for the key that opened them, by the name of an index and by a pattern', async () => {
    const sort = [{ n: 'asc' }];
    for (const name of [mine, 'open-*']) {
      const seen: unknown[] = [];
      let page = await done(mine, 'POST', `/${name}/_search?scroll=1m`, { size: 1, sort });
      for (
        ;
        page.hits.hits.length > 0;
        page = await done(mine, 'POST', '/_search/scroll', { scroll_id: page._scroll_id, scroll: '1m' })
      )
        seen.push(...page.hits.hits.map(({ _source }: any) => [_source.of, _source.n]));
      expect(seen, name).toEqual([1, 2, 3].map((n) => [mine, n]));
      await done(mine, 'DELETE', '/_search/scroll', { scroll_id: page._scroll_id });
      const { id } = await done(mine, 'POST', `/${name}/_pit?keep_alive=1m`);
      const first = await done(mine, 'POST', '/_search', { pit: { id, keep_alive: '1m' }, size: 2, sort });
      expect(
        first.hits.hits.map(({ _source }: any) => _source.of),
        name,
      ).toEqual([mine, mine]);
      const after = { search_after: first.hits.hits[1].sort, pit: { id: first.pit_id }, sort };
      expect(
        (await done(mine, 'POST', '/_search', after)).hits.hits.map(({ _id }: any) => _id),
        name,
      ).toEqual(['3']);
      await done(mine, 'DELETE', '/_pit', { id: first.pit_id });
    }
  });

  it('are of no use for a key that may not use their indices', async () => {
    for (const opener of [theirs, undefined]) {
      const page = await done(opener, 'POST', `/${theirs}/_search?scroll=1m`, { size: 1 });
      const { id } = await done(opener, 'POST', `/${theirs}/_pit?keep_alive=1m`);
      for (const [method, path, body] of [
        ['POST', '/_search/scroll', { scroll_id: page._scroll_id }],
        ['DELETE', '/_search/scroll', { scroll_id: page._scroll_id }],
        ['POST', '/_search', { pit: { id } }],
        ['DELETE', '/_pit', { id }],
      ] as const) {
        const { status, text } = await ask(mine, method, path, body);
        expect([403, 404], `${method} ${path}: ${text}`).toContain(status);
        expect(text).not.toContain('_source');
      }
      // Nobody ended them.
      await done(opener, 'POST', '/_search/scroll', { scroll_id: page._scroll_id, scroll: '1m' });
      await done(opener, 'POST', '/_search', { pit: { id } });
      await done(opener, 'DELETE', '/_search/scroll', { scroll_id: page._scroll_id });
      await done(opener, 'DELETE', '/_pit', { id });
    }
  });
});
