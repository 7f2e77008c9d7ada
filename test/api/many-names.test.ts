// Long lists of patterns, over many aliases: they cost a bounded time, and a key with a long list of names sees what its names say.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

const LIMIT = 'in [16777216] steps in all';
const aliases = Array.from({ length: 3001 }, (_, n) => `a${String(n).padStart(4, '0')}`);
const patterns = Array.from({ length: 6000 }, () => '*0*z');

let server: RunningServer;
beforeAll(async () => {
  server = await startServer();
  await server.request('PUT', '/own');
  const made = await change({ add: { index: 'own', aliases } });
  expect(made.body, made.text).toMatchObject({ acknowledged: true, errors: false });
});
afterAll(() => server.stop());

function change(...actions: object[]): ReturnType<RunningServer['request']> {
  return server.request('POST', '/_aliases', { actions });
}

describe('a list of patterns', () => {
  it('is refused where it would be held against too many names', async () => {
    const searched = await server.request('POST', '/_msearch', `${JSON.stringify({ index: patterns })}\n{}\n`);
    expect(searched.body.responses[0]).toMatchObject({
      status: 400,
      error: { type: 'illegal_argument_exception', reason: expect.stringContaining(LIMIT) as unknown },
    });
    const requests: [string, object][] = [
      ['/_reindex', { source: { index: patterns }, dest: { index: 'to' } }],
      ['/own/_search', { indices_boost: patterns.map((pattern) => ({ [pattern]: 2 })) }],
      [
        '/_aliases',
        {
          actions: [
            {
              remove: {
                indices: ['ow*', ...patterns.map((pattern) => `-${pattern}`)],
                alias: 'own-x',
                must_exist: false,
              },
            },
          ],
        },
      ],
      ['/_aliases', { actions: [{ remove: { index: 'own', aliases: patterns, must_exist: false } }] }],
    ];
    for (const [path, body] of requests) {
      const refused = await server.request('POST', path, body);
      expect([refused.status, refused.text], path).toEqual([400, expect.stringContaining(LIMIT)]);
    }
  });

  it('is taken where few names begin as its patterns do', async () => {
    const header = JSON.stringify({ index: Array.from({ length: 6000 }, (_, n) => `a${String(n).padStart(4, '0')}*`) });
    const { body, text } = await server.request('POST', '/_msearch', `${header}\n{}\n`);
    expect(body.responses[0], text).toMatchObject({ status: 200, _shards: { total: 1 } });
  });

  it('of names alone may be long', async () => {
    const header = JSON.stringify({ index: Array.from({ length: 100_000 }, (_, n) => aliases[n % 3000]) });
    const { body, text } = await server.request('POST', '/_msearch', `${header}\n{}\n`);
    expect(body.responses[0], text).toMatchObject({ status: 200, _shards: { total: 1 } });
  });
});

it('changes of aliases have a limit over all actions', async () => {
  const many = Array.from({ length: 50_001 }, (_, n) => `b${String(n)}`);
  const add = { add: { index: 'own', aliases: many } };
  const named = await change(add, add);
  expect([named.status, named.body.error.reason]).toEqual([
    400,
    '[actions] name [100004] indices and aliases, more than [100000]',
  ]);
  await server.request('PUT', '/own2');
  const made = await change({ add: { index: 'own*', aliases: many } });
  expect([made.status, made.body.error.reason]).toEqual([
    400,
    '[actions] come to more than [100000] changes of aliases',
  ]);
  const removed = await change({ remove: { index: 'own', aliases: ['a00*', 'a3*'] } });
  expect(removed.body, removed.text).toMatchObject({ acknowledged: true, errors: false });
  const left = await server.request('GET', '/own/_alias');
  expect(Object.keys(left.body.own.aliases as object)).toEqual(aliases.slice(100, 3000));
  await change({ add: { index: 'own', aliases } });
  await server.request('DELETE', '/own2');
});

it('a key with a long list of names sees what they say', async () => {
  const names = ['own', 'a00?1', 'a1*', ...Array.from({ length: 600 }, (_, n) => `*${String(n)}?x*y`)];
  const made = await server.request('POST', '/_security/api_key', {
    name: 'many',
    role_descriptors: { r: { indices: [{ names, privileges: ['all'] }] } },
  });
  const as = { apiKey: made.body.encoded as string };
  const seen = aliases.filter((alias) => /^a00.1$|^a1/.test(alias));
  const resolved = await server.request('GET', '/_resolve/index/*', undefined, as);
  expect(resolved.body.indices, resolved.text).toMatchObject([{ name: 'own', aliases: seen }]);
  expect(resolved.body.aliases.map(({ name }: { name: string }) => name)).toEqual(seen);
  const listed = await server.request('GET', '/_cat/aliases?h=alias', undefined, as);
  expect(listed.text.trim().split(/\s+/)).toEqual(seen);
  const shown = await server.request('GET', '/own', undefined, as);
  expect(Object.keys(shown.body.own.aliases as object)).toEqual(seen);
  const own = await server.request('GET', '/_alias/a0*,a10*', undefined, as);
  expect(Object.keys(own.body.own.aliases as object)).toEqual(seen.filter((alias) => /^a(?:0|10)/.test(alias)));
  const other = await server.request('GET', '/a0002/_search', undefined, as);
  expect(other.status).toBe(403);
});
