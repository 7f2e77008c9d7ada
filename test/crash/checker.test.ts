// The checker finds planted mistakes: each test changes one thing of what a faultless server would show.
import { beforeEach, describe, expect, it } from 'vitest';

import { compareCatalogue, compareDocuments } from './compare.mjs';
import { matches } from './documents.mjs';
import { IndexModel, Model } from './model.mjs';
import { Register } from './register.mjs';
import { World } from './world.mjs';

const source = (n: number, text = 'red stone'): string => JSON.stringify({ n, text, kw: 'k1', v: { token1: 1 } });
const state = (n: number, version: number, seqNo: number) => ({ source: source(n), version, seqNo });

let model: Model;
let index: any;
let kinds: string[];
const fail = (kind: string): void => {
  kinds.push(kind);
};

beforeEach(() => {
  kinds = [];
  model = new Model();
  index = model.add(new IndexModel('books', { owner: 0, ordinal: 0 }));
  index.docs.set('kept', new Register(state(1, 2, 5)));
  index.docs.set('deleted', new Register(null));
  model.aliases.set('a', new Register('books'));
  model.pipelines.set('p', new Register('m1'));
});

/** What a faultless server shows of the documents. */
function shown() {
  const kept = state(1, 2, 5);
  return {
    found: new Map<string, any>([['kept', kept]]),
    twice: [] as string[],
    total: 1,
    count: 1,
    got: new Map<string, any>([
      ['kept', kept],
      ['deleted', null],
    ]),
    searches: [{ query: { match: { text: 'red' } }, ids: ['kept'], total: 1 }],
  };
}

/** What a faultless server shows of everything else. */
function catalogue() {
  const fields: Record<string, any> = Object.fromEntries([...index.fields].map(([name, type]) => [name, { type }]));
  const settings: Record<string, string> = { 'index.refresh_interval': '100ms' };
  return {
    health: 'green',
    indices: new Map<string, any>([['books', { open: true, health: 'green', fields, settings }]]),
    aliases: new Map([['a', ['books']]]),
    pipelines: new Map([['p', 'm1']]),
    templates: new Map<string, string>(),
  };
}

const documents = (change: (observed: ReturnType<typeof shown>) => void): string[] => {
  const observed = shown();
  change(observed);
  compareDocuments(index, observed, fail);
  return kinds;
};

const everythingElse = (change: (observed: ReturnType<typeof catalogue>) => void): string[] => {
  const observed = catalogue();
  change(observed);
  compareCatalogue(model, observed, fail);
  return kinds;
};

/** Shows another state of a document, by search and by id. */
const put = (observed: ReturnType<typeof shown>, id: string, as: any): void => {
  if (as === null) observed.found.delete(id);
  else observed.found.set(id, as);
  observed.got.set(id, as);
};

describe('documents', () => {
  it('of a faultless server are accepted', () => {
    expect(documents(() => {})).toEqual([]);
  });

  it.each<[string, string, (observed: ReturnType<typeof shown>) => void]>([
    ['document lost', 'a lost one', (it) => put(it, 'kept', null)],
    ['deleted document is back', 'one that came back', (it) => put(it, 'deleted', state(1, 1, 3))],
    ['wrong document', 'an older source', (it) => put(it, 'kept', { ...state(7, 2, 5) })],
    ['wrong document', 'a stale version', (it) => put(it, 'kept', state(1, 1, 5))],
    ['wrong document', 'another sequence number', (it) => put(it, 'kept', state(1, 2, 4))],
    ['document that nobody wrote', 'one of nobody', (it) => put(it, 'stranger', state(1, 1, 9))],
    ['search and get differ', 'one that a search does not find', (it) => it.found.delete('kept')],
    ['search and get differ', 'one that a get does not find', (it) => it.got.set('kept', null)],
    ['document found twice', 'one in two segments', (it) => it.twice.push('kept')],
    ['wrong count', 'a count that is too high', (it) => void (it.count = 2)],
    [
      'wrong answer of a search',
      'a search that misses one',
      (it) => void (it.searches = [{ ...it.searches[0], ids: [] } as any]),
    ],
    ['wrong answer of a search', 'a search that finds too many', (it) => it.searches[0]?.ids.push('deleted')],
  ])('%s: %s', (kind, _, change) => {
    expect(documents(change)).toContain(kind);
  });

  it('written while the server was killed may be old or new, and nothing else', () => {
    const begin = (): void => index.docs.get('kept').begin({ source: source(2), version: undefined, seqNo: undefined });
    begin();
    index.docs.get('kept').doubt();
    expect(documents((it) => put(it, 'kept', state(2, 3, 6)))).not.toContain('wrong document');
    expect(index.docs.get('kept').latest).toEqual(state(2, 3, 6));
    begin();
    index.docs.get('kept').doubt();
    expect(documents((it) => put(it, 'kept', state(3, 4, 7)))).toContain('wrong document');
  });

  it('are new once that was acknowledged', () => {
    index.docs.get('kept').begin({ source: source(2), version: undefined, seqNo: undefined });
    index.docs.get('kept').acknowledge({ version: 3, seqNo: 6 });
    expect(documents(() => {})).toContain('wrong document');
  });
});

describe('indices, aliases, pipelines', () => {
  it('of a faultless server are accepted', () => {
    expect(everythingElse(() => {})).toEqual([]);
  });

  it.each<[string, string, (observed: ReturnType<typeof catalogue>) => void]>([
    ['alias of not exactly one index', 'an alias of both', (it) => it.aliases.set('a', ['books', 'other'])],
    ['alias of not exactly one index', 'an alias of none', (it) => it.aliases.delete('a')],
    ['wrong alias', 'an alias of another index', (it) => it.aliases.set('a', ['other'])],
    ['index lost', 'a lost index', (it) => it.indices.delete('books')],
    ['index that nobody made', 'an index of nobody', (it) => it.indices.set('x', it.indices.get('books'))],
    ['field lost from the mapping', 'a lost field', (it) => delete it.indices.get('books').fields.n],
    ['wrong type in the mapping', 'a changed type', (it) => (it.indices.get('books').fields.n = { type: 'text' })],
    ['wrong setting', 'a block', (it) => (it.indices.get('books').settings['index.blocks.write'] = 'true')],
    ['wrong state', 'a closed index', (it) => (it.indices.get('books').open = false)],
    ['wrong pipeline', 'a lost pipeline', (it) => it.pipelines.delete('p')],
    ['template that nobody made', 'a template of nobody', (it) => it.templates.set('t', '1s')],
    ['cluster health is red', 'red health', (it) => void (it.health = 'red')],
  ])('%s: %s', (kind, _, change) => {
    expect(everythingElse(change)).toContain(kind);
  });

  it('a deleted index that is back is found', () => {
    index.exists.begin(false);
    index.exists.acknowledge();
    expect(everythingElse(() => {})).toEqual(['deleted index is back']);
  });

  it('an alias that was being moved may stand for either index', () => {
    model.aliases.get('a')?.begin('other');
    model.aliases.get('a')?.doubt();
    expect(everythingElse((it) => it.aliases.set('a', ['other']))).toEqual([]);
  });
});

describe('answers', () => {
  const perform = async (answer: object, change: Record<string, unknown> = {}): Promise<string[]> => {
    const world = new World(model, async () => ({ text: '', body: {}, ...answer }));
    const client = { number: 0 };
    await world.perform(client, { method: 'PUT', path: '/books/_doc/kept', indices: [index], ...change } as any);
    return world.problems.map(({ kind }: any) => kind);
  };

  it.each([
    ['an error of the server', { status: 500 }],
    ['a broken connection', { status: 0 }],
    ['a refusal without a reason', { status: 403, body: { error: { type: 'cluster_block_exception' } } }],
  ])('%s is a failure', async (_, answer) => {
    expect(await perform(answer)).toEqual(['unexpected answer']);
  });

  it('a write through an acknowledged block is a failure', async () => {
    index.blocked.adopt('true');
    expect(await perform({ status: 200 }, { writes: true })).toEqual(['written through an acknowledged block']);
  });
});

describe('a search for objects', () => {
  const filter = [{ term: { 'rows.word': 'red' } }, { range: { 'rows.n': { gte: 2 } } }];
  const query = { nested: { path: 'rows', query: { bool: { filter } } } };

  it.each([
    [[{ word: 'red', n: 2 }], true],
    [
      [
        { word: 'red', n: 1 },
        { word: 'blue', n: 3 },
      ],
      false,
    ],
    [[], false],
    [undefined, false],
  ])('wants all of it from one: %j', (rows, found) => {
    expect(matches(query, { n: 1, rows })).toBe(found);
  });
});
