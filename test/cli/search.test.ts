// `sparrow search` against a real server.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { describe, expect, it } from 'vitest';

import { serve } from './served.js';
import { sparrow } from './support.js';

const { server, folder, run, json, said } = await serve();

describe('search', () => {
  it('finds by words and meaning, fused, and shows passages', async () => {
    const text = await said('search', 'the', 'biggest', 'creature', '--index', 'articles', '--size', '1');
    expect(text).toMatch(/^ 1 {2}0 .*\n {4}Blue whales are the largest animals\nthe best document, \d+ ms\n$/);
    // A fused list ends with documents of score 0, for which nothing speaks.
    const scores = (await json('search', 'yeast', '--index', 'articles')).hits.hits.map((hit: any) => hit._score);
    expect(scores).toContain(0);
    const shown = scores.filter((score: number) => score !== 0).length;
    const all = await said('search', 'yeast', '--index', 'articles');
    expect([all.match(/^ \d /gm)?.length, all]).toEqual([
      shown,
      expect.stringContaining(`\nthe ${shown === 1 ? 'best document' : `${String(shown)} best documents`}, `),
    ]);
    const answer = await json('search', 'yeast', '--index', 'articles', '--by', 'words');
    expect(answer.hits.hits.map((hit: any) => hit._id)).toEqual(['1']);
    const meaning = await json(
      'search',
      'tired muscles',
      '--index',
      'articles',
      '--by',
      'meaning',
      '--field',
      'meaning',
    );
    expect(meaning.hits.hits[0]._id).toBe('2');
  });

  it('needs no more than the right to read', async () => {
    const made = await server.request('POST', '/_security/api_key', {
      name: 'reader',
      role_descriptors: { r: { indices: [{ names: ['articles'], privileges: ['read'] }] } },
    });
    const as = ['--url', server.url, '--key', made.body.encoded as string, '--index', 'articles'];
    const found = await sparrow(['search', 'yeast', ...as]);
    expect([found.code, found.stderr], found.stderr).toEqual([
      0,
      'this key may not see the fields of [articles], which needs view_index_metadata, so the server chooses the fields to search\n',
    ]);
    expect(found.stdout).toMatch(/^ 1 {2}1 /);
    const fields = await sparrow(['search', 'yeast', ...as, '--field', 'title', '--json']);
    expect([fields.code, fields.stderr]).toEqual([0, '']);
    const by = await sparrow(['search', 'yeast', ...as, '--by', 'words']);
    expect([by.code, by.stderr]).toEqual([
      1,
      'sparrow: --by needs to know the fields of [articles], which this key may not see: use a key with view_index_metadata, or leave out --by\n',
    ]);
  });

  it('shows what a document says where it has no passage', async () => {
    await server.request('PUT', '/flags/_doc/1?refresh=true', { name: 'a', isOpen: false, n: 7, list: [1] });
    expect(await said('search', '--index', 'flags', '--body', '{}')).toContain('name: a isOpen: false n: 7\n');
    await server.request('DELETE', '/flags');
  });

  it('keeps to a filter, and names fields in it that there are not', async () => {
    const ids = async (...args: string[]) =>
      (await json('search', 'animals and bread', '--index', 'articles', ...args)).hits.hits.map((hit: any) => hit._id);
    for (const by of ['hybrid', 'meaning', 'words', 'sparse']) {
      expect(await ids('--by', by, '--filter', 'n:[1 TO 2] AND NOT n:2'), by).toEqual(['1']);
    }
    // One value needs no syntax, whatever signs are in it.
    expect(await ids('--filter', 'n=1')).toEqual(['1']);
    await server.request('PUT', '/signs/_doc/1?refresh=true', { name: 'a "b" (c) \\ d: e' });
    const signs = async (value: string) =>
      (await json('search', 'b', '--index', 'signs', '--filter', `name.keyword=${value}`)).hits.hits.length as number;
    expect([await signs('a "b" (c) \\ d: e'), await signs('a')]).toEqual([1, 0]);
    await server.request('DELETE', '/signs');
    const fields = ['titel^2', 'title', 'ti*'];
    for (const args of [
      ['x', '--filter', 'titel=x'],
      ['x', '--filter', 'n:1 OR title:"a:b" OR titel:x'],
      ['--body', '{"query":{"match":{"titel":"x"}}}'],
      ['--body', JSON.stringify({ query: { multi_match: { query: 'bread', fields } } })],
    ]) {
      const { code, stderr } = await run('search', '--index', 'articles', ...args);
      expect([code, stderr], args.join(' ')).toEqual([
        0,
        '[articles] has no field [titel], so nothing is found by it\n',
      ]);
    }
    // Neither the first nor the last is the only one that counts.
    expect(await ids('--filter', 'n=1', '--filter', 'n:>1')).toEqual([]);
    expect(await ids('--filter', 'n:>1', '--filter', 'n=1')).toEqual([]);
    expect(await ids('--filter', 'n:<2', '--filter', 'n:>0')).toEqual(['1']);
    const mistaken = async (filter: string): Promise<string> =>
      (await run('search', 'x', '--index', 'articles', '--filter', filter)).stderr;
    expect(await mistaken('n<2')).toContain('a comparison is written as n:<50');
    expect(await mistaken('name=a AND n:1')).toContain('everything after the = is one value');
    const both = await run('search', '--index', 'articles', '--body', '{}', '--filter', 'n:1');
    expect([both.code, both.stderr]).toEqual([2, expect.stringContaining('leave out --filter')]);
  });

  it('says where a filter compares letters, and what is wrong with one that cannot be read', async () => {
    const compared = await run('search', 'bread', '--index', 'articles', '--filter', 'title:<50');
    expect([compared.code, compared.stderr]).toEqual([
      0,
      '[title] is a text, so < and > compare letters, and 9 comes after 50: a field of numbers or dates compares values\n',
    ]);
    const broken = await run('search', 'bread', '--index', 'articles', '--filter', 'n:1', '--filter', 'title:(');
    expect([broken.code, broken.stderr]).toEqual([
      1,
      'sparrow: The filter “title:(” ends too early: is a value, a quote or a bracket missing?\n',
    ]);
  });

  it('shows the titles of documents, and how many are found where not all are ordered', async () => {
    for (const [id, Recipe, steps] of [
      ['1', 'Lentil soup', 'Take a pan and boil lentils in it until they are soft.'],
      ['2', 'Apple cake', 'Mix flour and eggs, and bake the apples in the oven.'],
    ])
      await server.request('PUT', `/recipes/_doc/${String(id)}`, { Recipe, steps });
    await server.request('POST', '/recipes/_refresh');
    const text = await said('search', 'bake', 'or', 'boil', '--index', 'recipes');
    expect(text).toMatch(/^ [12] {2}2 {2}\d+\.\d+ {2}Apple cake\n {4}Mix flour/m);
    // More than the lists of a fusion hold at first, but all that there are.
    const more = Array.from({ length: 298 }, (_, at) => ({ Recipe: `Dish ${String(at)}`, steps: 'Boil it in a pan.' }));
    await server.request('PUT', '/recipes/_mapping', {
      properties: { meaning: { type: 'semantic_text', inference_id: '.hybrid' } },
    });
    const lines = more.map((one) => `{"index":{}}\n${JSON.stringify({ ...one, meaning: one.steps })}\n`).join('');
    await server.request('POST', '/recipes/_bulk?refresh=true', lines);
    const args = ['search', 'boil', 'bake', 'pan', '--index', 'recipes'];
    expect((await json(...args)).hits.total).toEqual({ value: 300, relation: 'eq' });
    expect(await said(...args)).toMatch(/^the 10 best documents, /m);
    expect(await said(...args, '--size', '1')).toMatch(/^the best document, /m);
    expect(await said(...args, '--by', 'words')).toMatch(/^300 found, /m);
    expect(await said(...args, '--by', 'words', '--filter', 'Recipe:dish')).toMatch(/^298 found, /m);
    await server.request('DELETE', '/recipes');
  });

  it('finds a book that is longer than what passages are looked for in', async () => {
    const text = `a lighthouse keeper ${'writes letters to nobody '.repeat(50_000)}`;
    await server.request('PUT', '/books/_doc/1?refresh=true', { text });
    expect(await said('search', 'lighthouse', '--index', 'books')).toContain('a lighthouse keeper');
    await server.request('DELETE', '/books');
  });

  it('takes a whole request', async () => {
    const body = '{"query":{"term":{"n":1}},"_source":false}';
    const file = join(folder, 'request.json');
    await writeFile(file, body);
    for (const given of [body, `@${file}`]) {
      const answer = await json('search', '--index', 'articles', '--body', given);
      expect(answer.hits.hits).toMatchObject([{ _id: '1' }]);
    }
  });

  it.each([
    [['--index', 'nowhere', 'x'], 'no such index [nowhere]; there is only [articles]\n'],
    [['--index', 'nowhere', '--body', '{}'], 'no such index [nowhere]; there is only [articles]\n'],
    [['--index', 'articles', 'x', '--field', 'titel'], '[articles] has no field [titel]; did you mean [title]?\n'],
    [
      ['--index', 'articles', 'x', '--field', 'n'],
      '[articles] has no text, semantic_text or sparse_vector field to look in',
    ],
    [['--index', 'articles', '--body', '{"query":{"nonsense":{}}}'], 'nonsense'],
  ])('says what is wrong with %j', async (args, sentence) => {
    const { code, stderr } = await run('search', ...args);
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^sparrow: .*\n$/)]);
    expect(stderr).toContain(sentence);
  });
});
