// Fields of type `completion` and their suggester: documents, suggestions, statistics, what survives copies and snapshots.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { Random } from '../support/oracle/random.js';
import { type RunningServer, startServer } from '../support/server.js';

let server: RunningServer;
const repositories = mkdtempSync(join(tmpdir(), 'sparrow-completion-'));
const SONGS = {
  1: { suggest: { input: ['Nevermind', 'Nirvana'], weight: 34 }, year: 1991 },
  2: { suggest: [{ input: 'Nirvana', weight: 10 }], year: 1993 },
  3: { suggest: 'Nine Inch Nails', year: 1989 },
};

const call = async (method: string, path: string, body?: object): Promise<{ status: number; body: any }> =>
  server.request(method, path, body);
const done = async (method: string, path: string, body?: object): Promise<any> => {
  const { status, body: answer } = await call(method, path, body);
  expect(status, JSON.stringify(answer)).toBeLessThan(300);
  return answer;
};
const complete = async (index: string, prefix: string, options: object = {}): Promise<string[]> => {
  const completion = { field: 'suggest', ...options };
  const { suggest } = await done('POST', `/${index}/_search`, { suggest: { s: { prefix, completion } } });
  return suggest.s[0].options.map((one: any) => `${one.text as string}:${one._id as string}`);
};

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false', '--repo-path', repositories] });
  const properties = { suggest: { type: 'completion' }, year: { type: 'integer' } };
  await done('PUT', '/songs', { mappings: { properties } });
  for (const [id, song] of Object.entries(SONGS)) await done('PUT', `/songs/_doc/${id}`, song);
  await done('POST', '/songs/_refresh');
});

afterAll(async () => {
  await server.stop();
  rmSync(repositories, { recursive: true, force: true });
});

describe('the completion suggester', () => {
  it('answers with documents, the heaviest first', async () => {
    const body = {
      _source: ['year'],
      suggest: {
        song: { prefix: 'nir', completion: { field: 'suggest' } },
        other: { text: 'x', term: { field: 'suggest' } },
      },
    };
    const { status } = await call('POST', '/songs/_search', body);
    expect(status).toBe(400);
    const answer = await done('POST', '/songs/_search?typed_keys=true', {
      ...body,
      suggest: { song: body.suggest.song },
    });
    expect(answer.hits).toEqual({ total: { value: 0, relation: 'eq' }, max_score: null, hits: [] });
    expect(answer.suggest).toEqual({
      'completion#song': [
        {
          text: 'nir',
          offset: 0,
          length: 3,
          options: [
            { text: 'Nirvana', _index: 'songs', _id: '1', _score: 34, _source: { year: 1991 } },
            { text: 'Nirvana', _index: 'songs', _id: '2', _score: 10, _source: { year: 1993 } },
          ],
        },
      ],
    });
  });

  it('finds texts with mistakes, and by expressions', async () => {
    expect(await complete('songs', 'nurv', { fuzzy: { fuzziness: 1 } })).toEqual(['Nirvana:1', 'Nirvana:2']);
    // As in Elasticsearch, a text belongs to the document in which it is heaviest, even if that is suggested by another.
    const once = await complete('songs', 'n', { skip_duplicates: true, size: 2 });
    expect(once).toEqual(['Nevermind:1', 'Nine Inch Nails:3']);
    const regex = { suggest: { s: { regex: 'n[ever|i]r', completion: { field: 'suggest' } } } };
    const { suggest } = await done('POST', '/songs/_search', regex);
    expect(suggest.s[0].options.map((one: any) => one._id)).toEqual(['1', '2']);
  });

  it('answers in a list of searches, beside hits of their own', async () => {
    const section = { s: { prefix: 'nine', completion: { field: 'suggest' } } };
    const lines = [
      { index: 'songs' },
      { suggest: section },
      {},
      { query: { match_all: {} }, size: 1, suggest: section },
    ];
    const { body } = await server.request(
      'POST',
      '/songs/_msearch',
      lines.map((line) => JSON.stringify(line)).join('\n') + '\n',
      {
        headers: { 'content-type': 'application/x-ndjson' },
      },
    );
    const shown = body.responses.map((one: any) => [one.hits.hits.length, one.suggest.s[0].options[0].text]);
    expect(shown).toEqual([
      [0, 'Nine Inch Nails'],
      [1, 'Nine Inch Nails'],
    ]);
  });

  it('hides what an alias with a filter hides from a key for that alias', async () => {
    await done('PUT', '/songs/_alias/later', { filter: { range: { year: { gte: 1993 } } } });
    const role = { index: [{ names: ['later'], privileges: ['read'] }] };
    const { encoded } = await done('POST', '/_security/api_key', { name: 'later', role_descriptors: { r: role } });
    const apiKey = encoded as string;
    const body = { suggest: { s: { prefix: 'n', completion: { field: 'suggest' } } } };
    const answer = await server.request('POST', '/later/_search', body, { apiKey });
    expect(answer.body.suggest.s[0].options.map((one: any) => one._id)).toEqual(['2']);
    expect((await server.request('POST', '/songs/_search', body, { apiKey })).status).toBe(403);
  });
});

describe('a completion field', () => {
  it('is in mappings, capabilities and statistics', async () => {
    const shown = (await done('GET', '/songs/_mapping')).songs.mappings.properties.suggest;
    expect(shown).toEqual({
      type: 'completion',
      analyzer: 'simple',
      preserve_separators: true,
      preserve_position_increments: true,
      max_input_length: 50,
    });
    const { fields } = await done('GET', '/songs/_field_caps?fields=suggest');
    expect(fields.suggest).toEqual({
      completion: { type: 'completion', metadata_field: false, searchable: true, aggregatable: false },
    });
    const stats = (await done('GET', '/songs/_stats/completion?completion_fields=s*,nothing'))._all.total.completion;
    expect(stats.size_in_bytes).toBeGreaterThan(0);
    expect(stats.fields).toEqual({ suggest: { size_in_bytes: stats.size_in_bytes } });
    expect((await done('GET', '/songs/_stats?fields=year'))._all.total.completion.fields).toEqual({});
    const [shard] = await done('GET', '/_cat/shards/songs?h=completion.size&format=json&bytes=b');
    expect(Number(shard['completion.size'])).toBe(stats.size_in_bytes);
  });

  it('names what a document has wrong, and leaves blank inputs out', async () => {
    const { body } = await call('PUT', '/songs/_doc/9', { suggest: { input: 'a', weight: -1 } });
    expect(body.error.caused_by).toEqual({
      type: 'illegal_argument_exception',
      reason: 'weight must be in the interval [0..2147483647], but was [-1]',
    });
    await done('PUT', '/blank', { mappings: { properties: { suggest: { type: 'completion' } } } });
    await done('PUT', '/blank/_doc/1?refresh=true', { suggest: ['', 'full'] });
    expect((await done('GET', '/blank/_search')).hits.hits[0]._ignored).toEqual(['suggest']);
    expect(await complete('blank', 'fu')).toEqual(['full:1']);
  });

  it('is made by a dynamic template', async () => {
    const mapping = { type: 'completion' };
    const dynamic_templates = [{ made: { match: 'suggest', mapping } }];
    await done('PUT', '/made', { mappings: { dynamic_templates } });
    await done('PUT', '/made/_doc/1?refresh=true', { suggest: ['Abc', 'Abd'] });
    await done('PUT', '/made/_doc/2?refresh=true', { suggest: { input: 'Abe', weight: 3 } });
    expect(await complete('made', 'ab')).toEqual(['Abe:2', 'Abc:1']);
  });

  it('survives copies, merges and snapshots', async () => {
    const expected = ['Nevermind:1', 'Nirvana:2', 'Nine Inch Nails:3'];
    const { mappings } = (await done('GET', '/songs/_mapping')).songs;
    await done('PUT', '/copy', { mappings });
    await done('POST', '/_reindex?refresh=true', { source: { index: 'songs' }, dest: { index: 'copy' } });
    expect(await complete('copy', 'n')).toEqual(expected);
    await done('POST', '/copy/_forcemerge?max_num_segments=1');
    expect(await complete('copy', 'n')).toEqual(expected);
    await done('PUT', '/_snapshot/repo', { type: 'fs', settings: { location: join(repositories, 'repo') } });
    await done('PUT', '/_snapshot/repo/one?wait_for_completion=true', { indices: 'copy' });
    await done('DELETE', '/copy');
    await done('POST', '/_snapshot/repo/one/_restore?wait_for_completion=true', { indices: 'copy' });
    expect(await complete('copy', 'n')).toEqual(expected);
    await done('POST', '/copy/_update/3?refresh=true', { doc: { suggest: { input: 'Nails', weight: 99 } } });
    expect(await complete('copy', 'n')).toEqual(['Nails:3', 'Nevermind:1', 'Nirvana:2']);
    await done('DELETE', '/copy/_doc/1?refresh=true');
    expect(await complete('copy', 'n')).toEqual(['Nails:3', 'Nirvana:2']);
  });
});

describe('contexts of a completion field', () => {
  const COLOURS = ['red', 'green', 'blue', 'rebecca'];
  const WORDS = ['alder', 'alert', 'algae', 'all', 'alpine', 'bark'];
  /** Inputs as a naive evaluator has them: a document suggests its heaviest input in one of the contexts. */
  const trees: { id: string; input: string; weight: number; colours: string[]; at: { lat: number; lon: number } }[] =
    [];

  beforeAll(async () => {
    const contexts = [
      { name: 'colour', type: 'category' },
      { name: 'place', type: 'geo', precision: 4, path: 'at' },
      { name: 'kind', type: 'category', path: 'kind' },
    ];
    const properties = {
      suggest: { type: 'completion', contexts },
      at: { type: 'geo_point' },
      kind: { type: 'keyword' },
    };
    await done('PUT', '/trees', { mappings: { properties } });
    const random = new Random(9);
    const lines: string[] = [];
    for (let n = 0; n < 150; n++) {
      const tree = {
        id: String(n),
        input: random.pick(WORDS),
        weight: n,
        colours: random.some(COLOURS, 0.5),
        at: { lat: random.int(40, 45), lon: random.int(-3, 3) },
      };
      trees.push(tree);
      const { input, weight, colours, at } = tree;
      const suggest = { input, weight, contexts: { colour: colours } };
      lines.push(
        JSON.stringify({ index: { _id: tree.id } }),
        JSON.stringify({ suggest, at, kind: `k${String(n % 3)}` }),
      );
    }
    const { body } = await server.request('POST', '/trees/_bulk?refresh=true', `${lines.join('\n')}\n`);
    expect(body.errors, JSON.stringify(body).slice(0, 1000)).toBe(false);
  });

  const expected = (prefix: string, boosts: (tree: (typeof trees)[number]) => number[]): string[] => {
    const scored = trees
      .filter(({ input }) => input.startsWith(prefix))
      .map((tree) => ({ ...tree, boosts: boosts(tree) }));
    const inside = scored.filter((tree) => tree.boosts.length > 0);
    const score = (tree: (typeof inside)[number]): number => tree.weight * Math.max(...tree.boosts);
    inside.sort((a, b) => score(b) - score(a) || (a.input < b.input ? -1 : 1) || Number(a.id) - Number(b.id));
    return inside.slice(0, 200).map(({ id, input }) => `${input}:${id}`);
  };
  const ask = (prefix: string, contexts: object) => complete('trees', prefix, { size: 200, contexts });

  it('are asked for as whole values, beginnings and places, each with a boost', async () => {
    for (const prefix of ['al', 'ale', 'b']) {
      const red = await ask(prefix, { colour: 'red' });
      expect(red).toEqual(expected(prefix, ({ colours }) => (colours.includes('red') ? [1] : [])));
      const both = {
        colour: [
          { context: 're', prefix: true },
          { context: 'blue', boost: 3 },
        ],
      };
      const scores = (colours: string[]): number[] =>
        colours.flatMap((colour) => (colour === 'blue' ? [3] : colour.startsWith('re') ? [1] : []));
      expect(await ask(prefix, both)).toEqual(expected(prefix, ({ colours }) => scores(colours)));
      const near = await ask(prefix, { place: { lat: 42.01, lon: 1.01 } });
      expect(near).toEqual(expected(prefix, ({ at }) => (at.lat === 42 && at.lon === 1 ? [1] : [])));
      const kind = await ask(prefix, { kind: ['k1'] });
      expect(kind).toEqual(expected(prefix, ({ id }) => (Number(id) % 3 === 1 ? [1] : [])));
    }
    const fuzzy = await complete('trees', 'barc', { contexts: { colour: 'blue' }, size: 200, fuzzy: { fuzziness: 1 } });
    expect(fuzzy.map((one) => one.split(':')[1])).toEqual(
      expected('bark', ({ colours }) => (colours.includes('blue') ? [1] : [])).map((one) => one.split(':')[1]),
    );
  });

  it.each([
    [undefined, 'Missing mandatory contexts in context query'],
    [{ colour: [] }, 'Missing mandatory contexts in context query'],
    [{ size: 'x' }, 'Unknown context name [size], must be one of [colour, place, kind]'],
    [{ colour: { context: 'red', boost: 0 } }, 'boost must be greater than 0, but was [0]'],
    [{ colour: { context: 'red', near: 1 } }, 'unknown option [near] of context [colour]'],
    [{ place: { lat: 91, lon: 0 } }, 'illegal latitude value'],
  ])('%j are refused', async (contexts, reason) => {
    const completion = { field: 'suggest', ...(contexts && { contexts }) };
    const { status, body } = await call('POST', '/trees/_search', { suggest: { s: { prefix: 'a', completion } } });
    expect([status, JSON.stringify(body)]).toEqual([400, expect.stringContaining(reason)]);
  });

  it('are there for every input, or for none of a field', async () => {
    const refusal = async (path: string, body: object) => (await call('PUT', path, body)).body.error.reason;
    expect(await refusal('/trees/_doc/x', { suggest: 'alone' })).toContain(
      'Contexts are mandatory in context enabled completion field [suggest]',
    );
    const written = await call('POST', '/songs/_doc', { suggest: { input: 'a', contexts: { place: 'a' } } });
    expect(written.body.error.caused_by.reason).toBe('contexts field is not supported for field: [suggest]');
    const { trees: shown } = await done('GET', '/trees/_mapping');
    expect(shown.mappings.properties.suggest.contexts).toEqual([
      { name: 'colour', type: 'CATEGORY' },
      { name: 'place', type: 'GEO', precision: 4, path: 'at' },
      { name: 'kind', type: 'CATEGORY', path: 'kind' },
    ]);
  });

  it('need no contexts of their own for geohashes of places', async () => {
    const fields = { hash: { type: 'completion' }, word: { type: 'keyword' } };
    await done('PUT', '/hashed', { mappings: { properties: { at: { type: 'geo_point', fields } } } });
    await done('PUT', '/hashed/_doc/1?refresh=true', { at: [-5.603, 42.605] });
    const completion = { field: 'at.hash' };
    const { suggest } = await done('POST', '/hashed/_search', { suggest: { s: { prefix: 'ezs42', completion } } });
    expect(suggest.s[0].options).toHaveLength(1);
    expect((await done('POST', '/hashed/_count', { query: { prefix: { 'at.word': 'ezs42' } } })).count).toBe(1);
  });
});
