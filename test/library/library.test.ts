// The engine as a library: no server, no socket.
import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, readdir, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { promisify } from 'node:util';

import { type BulkProgress, type Hit, Sparrow, SparrowError } from '@sparrow-search/engine';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

interface Article {
  readonly title: string;
  readonly content: string;
  readonly year: number;
}

const CONTENTS = [
  'Sore muscles recover faster with rest, water and gentle stretching.',
  'Bread rises because yeast makes gas.',
  'Blue whales are the largest animals that ever lived.',
];

function articles(count: number): Article[] {
  return Array.from({ length: count }, (_, n) => ({
    title: `Article ${String(n)}`,
    content: CONTENTS[n % CONTENTS.length] ?? '',
    year: 2000 + (n % 20),
  }));
}

let sparrow: Sparrow;
beforeAll(async () => {
  sparrow = await Sparrow.open();
});
afterAll(async () => {
  await sparrow.close();
});

/** What a call that should fail fails with. */
async function failure(call: Promise<unknown>): Promise<SparrowError> {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(SparrowError);
  return error as SparrowError;
}

describe('an engine', () => {
  it('keeps its data in the directory that is named, for this user alone', async () => {
    const data = join(await mkdtemp(join(tmpdir(), 'sparrow-library-')), 'data');
    {
      await using first = await Sparrow.open({ data });
      await first.index<Article>('articles').put('1', articles(1)[0] as Article);
      const { status, reason } = await failure(Sparrow.open({ data }));
      expect([status >= 400, reason]).toEqual([true, expect.stringContaining('already open here')]);
    }
    await using second = await Sparrow.open({ data });
    expect(await second.index<Article>('articles').get('1')).toMatchObject({ title: 'Article 0' });
    await second.close();
    await rm(data, { recursive: true });
  });

  it('says as the others do that a path is that of a file', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sparrow-library-'));
    const file = join(folder, 'file');
    await writeFile(file, '');
    expect((await failure(Sparrow.open({ data: file }))).reason).toBe(
      `${file} cannot be a data directory: it is not a folder`,
    );
    expect((await failure(Sparrow.open({ data: join(file, 'data') }))).reason).toContain(
      'a part of its path is not a folder',
    );
    await rm(folder, { recursive: true });
  });

  it('is opened once, and says where it is open already', async () => {
    const folder = await realpath(await mkdtemp(join(tmpdir(), 'sparrow-library-')));
    const [data, link] = [join(folder, 'data'), join(folder, 'link')];
    const first = await Sparrow.open({ data });
    await symlink(data, link);
    expect(await failure(Sparrow.open({ data }))).toMatchObject({
      status: 409,
      reason: `${data} is already open here, in this process: use the Sparrow that has it open, or close that one first`,
    });
    expect((await failure(Sparrow.open({ data: link }))).reason).toContain(`in this process, as ${data}: use`);
    await first.close();
    await (await Sparrow.open({ data: link })).close();
    await rm(folder, { recursive: true });
  });

  it('says in its errors what is wrong, and not that all shards failed', async () => {
    await using other = await Sparrow.open();
    const index = other.index<{ title: string }>('titles');
    await index.create({ mappings: { properties: { title: { type: 'text' }, v: { type: 'dense_vector', dims: 3 } } } });
    await index.put('1', { title: 'one' }, { refresh: true });
    for (const [search, reason] of [
      [{ query: { semantic: { field: 'title', query: 'x' } } }, 'does not support semantic queries'],
      [{ sort: ['nope'] }, 'No mapping found for [nope]'],
      [{ query: { knn: { field: 'v', query_vector: [1], k: 1 } } }, 'the query vector has a different'],
    ] as const) {
      expect((await failure(index.search(search as object))).reason).toContain(reason);
    }
  });

  it('is not opened while another process has it open, and says what to do', async () => {
    const data = join(await mkdtemp(join(tmpdir(), 'sparrow-library-')), 'data');
    const program = `
      import { Sparrow } from '@sparrow-search/engine';
      await Sparrow.open({ data: ${JSON.stringify(data)} });
      console.log('open');
      setInterval(() => {}, 1000);`;
    const other = spawn(process.execPath, ['--input-type=module', '--eval', program]);
    await new Promise((resolve) => other.stdout.once('data', resolve));
    const { status, reason } = await failure(Sparrow.open({ data }));
    expect([status, reason]).toEqual([409, expect.stringContaining('in use by another process: if that is a server')]);
    other.kill('SIGKILL');
    await new Promise((resolve) => other.once('close', resolve));
    await rm(data, { recursive: true });
  });

  it('writes nothing into a folder of other files, unless that is wanted', async () => {
    const data = await mkdtemp(join(tmpdir(), 'sparrow-library-'));
    await writeFile(join(data, 'summer.jpg'), '');
    const { status, reason } = await failure(Sparrow.open({ data }));
    expect([status, reason]).toEqual([400, expect.stringContaining('to use this one anyway, pass amongOtherFiles')]);
    expect(await readdir(data)).toEqual(['summer.jpg']);
    await (await Sparrow.open({ data, amongOtherFiles: true })).close();
    // From now on it is one.
    await (await Sparrow.open({ data })).close();
    await rm(data, { recursive: true });
  });

  it('tells what a request should not do any more', async () => {
    const warnings: string[] = [];
    await using warned = await Sparrow.open({ onWarning: (warning) => warnings.push(warning) });
    const index = warned.index('warned');
    await index.create({ mappings: { properties: { tokens: { type: 'sparse_vector' } } } });
    const query = { text_expansion: { tokens: { model_id: '.sparse_encoder_model_2', model_text: 'a' } } };
    await index.search({ query });
    await index.search({ query });
    expect(warnings).toEqual(Array(2).fill(expect.stringContaining('text_expansion')));
    const program = `
      import { Sparrow } from '@sparrow-search/engine';
      const sparrow = await Sparrow.open();
      const index = sparrow.index('warned');
      await index.create(${JSON.stringify({ mappings: { properties: { tokens: { type: 'sparse_vector' } } } })});
      for (let n = 0; n < 2; n += 1) await index.search(${JSON.stringify({ query })});
      await sparrow.close();`;
    const { stderr } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program]);
    expect(stderr.match(/SparrowWarning/g)).toHaveLength(1);
  });

  it('tells of names that are not there, which would only find nothing', async () => {
    const warnings: string[] = [];
    await using warned = await Sparrow.open({ onWarning: (warning) => warnings.push(warning) });
    const index = warned.index<{ title: string }>('warned');
    const meaning = { type: 'semantic_text', inference_id: '.hybird' } as const;
    await index.create({ mappings: { properties: { title: { type: 'text' }, meaning } } });
    await index.bulk([{ title: 'one' }], { refresh: true });
    await index.search({ query: { match: { titel: 'one' } } });
    await index.search({ query: { match: { title: 'two' } } });
    expect(await index.count({ term: { titel: 'one' } })).toBe(0);
    const unknown = expect.stringContaining('has a field [titel], so nothing is found by it; did you mean [title]?');
    expect(warnings).toEqual([
      expect.stringContaining('the inference endpoint [.hybird], which does not exist'),
      unknown,
      unknown,
    ]);
  });

  it('deletes a temporary directory when it is closed, and can be closed twice', async () => {
    const temporary = await Sparrow.open();
    const data = temporary.data ?? '';
    expect(existsSync(join(data, 'indices')) || existsSync(data)).toBe(true);
    await temporary.close();
    await temporary.close();
    expect(existsSync(data)).toBe(false);
  });

  it('refuses what is asked once it is closed, also where nothing else keeps the process alive', async () => {
    const program = `
      import { Sparrow } from '@sparrow-search/engine';
      const sparrow = await Sparrow.open();
      await sparrow.close();
      for (let n = 0; n < 2; n += 1) await sparrow.index('a').count().catch(({ message }) => console.log(message));
      console.log('the end');`;
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program]);
    expect(stdout).toBe('the engine is closed\nthe engine is closed\nthe end\n');
  });

  it('refuses arguments that would be taken for something else', async () => {
    const index = sparrow.index<{ title: string }>('arguments');
    const untyped = <T>(value: unknown): T => value as T;
    const calls: readonly [() => unknown, string][] = [
      [
        () => Sparrow.open(untyped({ dat: './data' })),
        'Sparrow.open has no option dat; it takes data, amongOtherFiles,',
      ],
      [() => Sparrow.open(untyped('./x')), "must be an object, such as { data: './search-data' }"],
      [() => Sparrow.open(untyped({ threads: '4' })), 'threads must be a whole number, at least 1'],
      [() => index.search(untyped('x')), 'the request of a search must be an object, such as { query: '],
      [() => sparrow.execute(untyped('put_piplines')), 'there is no operation [put_piplines]'],
      [() => Sparrow.open({ data: '' }), 'data must be a string that is not empty'],
      [() => sparrow.index(untyped(undefined)), 'the name of an index must be a string that is not empty'],
      [() => sparrow.index(''), 'the name of an index must be'],
      [() => index.put('', { title: 'a' }), 'the id of a document must be a string that is not empty'],
      [() => index.put(untyped({ title: 'a' }), untyped(undefined)), 'the id of a document must be'],
      [() => index.get(''), 'the id of a document must be'],
      [() => index.update('', {}), 'the id of a document must be'],
      [() => index.delete(untyped(7)), 'the id of a document must be'],
      [() => index.bulk(untyped({ title: 'a' })), 'bulk takes an iterable or async iterable of documents'],
      [() => index.bulk(untyped('text')), 'bulk takes an iterable'],
      [() => index.bulk([], untyped({ batchSize: 5 })), 'bulk has no option batchSize; it takes id, action,'],
      [() => index.all(untyped({ match: {} })).next(), 'a walk has no option match; it takes query, batch,'],
      [() => index.refresh(untyped({ refresh: true })), 'refresh has no option refresh; it takes signal'],
      [
        () => index.put('1', { title: 'a' }, untyped({ refersh: true })),
        'put has no option refersh; it takes refresh,',
      ],
      [() => index.add({ title: 'a' }, untyped({ pipelin: 'p' })), 'add has no option pipelin'],
      [() => index.delete('1', untyped({ pipeline: 'p' })), 'delete has no option pipeline; it takes refresh, signal'],
      [() => index.search({}, untyped({ size: 1 })), 'search has no option size; it takes signal'],
      [() => sparrow.execute('count', untyped({ paht: {} })), 'execute has no option paht; it takes path, query,'],
      [() => sparrow.embed(untyped('a text')), 'embed takes an array of texts'],
      [() => sparrow.embed(['a'], untyped({ modle: 'dense' })), 'embed has no option modle; it takes model, as,'],
    ];
    for (const [call, message] of calls) {
      const error = await (async () => call())().catch((thrown: unknown) => thrown);
      expect(error, message).toBeInstanceOf(TypeError);
      expect((error as TypeError).message).toContain(message);
    }
    expect(await index.exists()).toBe(false);
  });

  it('names a folder of models that is not there', async () => {
    await expect(Sparrow.open({ models: '/nowhere' })).rejects.toThrow('cannot read the folder /nowhere');
  });

  it('carries out any operation by its name', async () => {
    await sparrow.execute('put_pipeline', {
      path: { pipeline: 'p' },
      body: { processors: [{ lowercase: { field: 'title' } }] },
    });
    const index = sparrow.index<{ title: string }>('piped');
    await index.put('1', { title: 'LOUD' }, { pipeline: 'p' });
    expect(await index.get('1')).toEqual({ title: 'loud' });
    expect(await sparrow.execute('cat_count', { path: { index: 'piped' } })).toMatch(/^\d+ /);
  });
});

describe('reads', () => {
  const query = { query: { match: { title: 'short' } } };
  const found = (answer: unknown) => (answer as { hits: { hits: unknown[] } }).hits.hits.length;
  const search = async () => found(await sparrow.execute('search', { path: { index: 'short-reads' }, body: query }));
  beforeAll(async () => {
    await sparrow.index<{ title: string }>('short-reads').put('a', { title: 'a short one' }, { refresh: true });
    for (let n = 0; n < 200; n += 1) expect(await search()).toBe(1);
  });

  it('that follow each other leave the event loop its turns', async () => {
    let turns = 0;
    const timer = setInterval(() => {
      turns += 1;
    }, 1);
    // Other processes may take their time from any one try.
    for (let tries = 0; tries < 5 && turns <= 20; tries += 1) {
      turns = 0;
      const begun = performance.now();
      while (performance.now() - begun < 500) expect(await search()).toBe(1);
    }
    clearInterval(timer);
    expect(turns).toBeGreaterThan(20);
  });

  it('that are asked for together are all answered, refusals too', async () => {
    for (let round = 0; round < 50; round += 1) {
      expect(await Promise.all(Array.from({ length: 20 }, search))).toEqual(Array.from({ length: 20 }, () => 1));
      await expect(sparrow.execute('search', { path: { index: 'short-absent' } })).rejects.toMatchObject({
        status: 404,
      });
    }
  });
});

describe('embed', () => {
  it('gives the weights of tokens, in the order of the texts', async () => {
    const [whales, bread, nothing] = await sparrow.embed(['blue whales', 'bread', '']);
    expect(Object.keys(whales ?? {})).toEqual(expect.arrayContaining(['whales', 'blue']));
    expect(bread?.['bread']).toBeGreaterThan(1);
    expect(Object.values(whales ?? {}).every((weight) => weight > 0)).toBe(true);
    expect(typeof nothing).toBe('object');
    const many = await sparrow.embed(
      Array.from({ length: 600 }, (_, n) => (n === 599 ? 'bread' : `number ${String(n)}`)),
    );
    expect(many).toHaveLength(600);
    expect(many[599]).toEqual(bread);
  });

  it('gives dense vectors with the dense model', async () => {
    const vectors = await sparrow.embed(['a young dog', 'a puppy', 'a bank account'], { model: 'dense' });
    expect(vectors.map(({ length }) => length)).toEqual([384, 384, 384]);
    const dot = (a: readonly number[] = [], b: readonly number[] = []) =>
      a.reduce((sum, value, at) => sum + value * (b[at] ?? 0), 0);
    const [young, puppy, bank] = vectors;
    expect(dot(young, puppy)).toBeGreaterThan(dot(young, bank) + 0.2);
  });

  it('gives the same with the id of the model, and says which texts were cut', async () => {
    const truncated: number[] = [];
    const texts = ['bread', 'word '.repeat(600)];
    const byId = await sparrow.embed(texts, {
      model: '.sparse_encoder_model_2',
      onTruncated: (n) => truncated.push(n),
    });
    expect(truncated).toEqual([1]);
    expect(byId).toEqual(await sparrow.embed(texts));
    const { status, message } = await failure(sparrow.embed(['a'], { model: 'no-such-model' }));
    expect([status, message]).toEqual([404, expect.stringContaining('no-such-model')]);
  });
});

describe('an index', () => {
  it('is made once, and dropped', async () => {
    const index = sparrow.index('made');
    expect([await index.exists(), await index.drop()]).toEqual([false, false]);
    expect(await index.ensure({ mappings: { properties: { n: { type: 'integer' } } } })).toBe(true);
    expect([await index.ensure(), await index.exists()]).toEqual([false, true]);
    const error = await failure(index.create());
    expect(error).toMatchObject({ status: 400, type: 'resource_already_exists_exception' });
    expect(error.message).toBe(error.reason);
    expect(await index.drop()).toBe(true);
  });

  it('writes, changes and deletes single documents', async () => {
    const index = sparrow.index<Article>('single');
    const [article] = articles(1) as [Article];
    expect(await index.put('a', article)).toMatchObject({ _id: 'a', result: 'created' });
    expect(await index.update('a', { year: 1999 })).toMatchObject({ result: 'updated' });
    const { _id: id } = await index.add(article, { refresh: true });
    expect(await index.get('a')).toEqual({ ...article, year: 1999 });
    expect(await index.get('b')).toBeUndefined();
    expect([await index.count(), await index.count({ range: { year: { lt: 2000 } } })]).toEqual([2, 1]);
    expect([await index.delete(id), await index.delete(id)]).toEqual([true, false]);
    expect(await failure(index.update('b', { year: 1 }))).toMatchObject({ status: 404 });
    expect(await failure(sparrow.index('absent').get('a'))).toMatchObject({
      status: 404,
      type: 'index_not_found_exception',
      message: 'no such index [absent]',
    });
  });

  it('names the cause of an error', async () => {
    const index = sparrow.index('strict');
    await index.create({ mappings: { properties: { n: { type: 'integer' } } } });
    const error = await failure(index.put('1', { n: 'seven' }));
    expect(error).toMatchObject({ status: 400, type: 'document_parsing_exception' });
    expect(error.cause).toMatchObject({ type: expect.any(String), status: 400 });
  });

  it('is searched by meaning, with typed hits', async () => {
    const index = sparrow.index<{ body: string }>('library');
    await index.create({ mappings: { properties: { body: { type: 'semantic_text' } } } });
    const progress: BulkProgress[] = [];
    const result = await index.bulk(
      CONTENTS.map((body) => ({ body })),
      { id: (_, n) => String(n), refresh: true, onProgress: (one) => progress.push(one) },
    );
    expect(result).toMatchObject({ documents: 3, written: 3, rejected: 0, truncatedTexts: 0, failures: [] });
    expect(progress.at(-1)).toMatchObject({ documents: 3, written: 3 });
    const { hits } = await index.search({ query: { semantic: { field: 'body', query: 'the biggest creature' } } });
    const [best] = hits.hits as [Hit<{ body: string }>];
    // A compile-time check as well: the source has the index' type.
    const body: string = best._source.body;
    expect([best._id, body]).toEqual(['2', CONTENTS[2]]);
    expect(await failure(index.search({ query: { nonsense: {} } as object }))).toMatchObject({ status: 400 });
  });
});

describe('bulk', () => {
  it('reads a source no faster than it is written', async () => {
    const index = sparrow.index<Article>('pressed');
    let read = 0;
    const ahead: number[] = [];
    async function* source() {
      for (const article of articles(1000)) {
        read += 1;
        yield article;
        if (read % 100 === 0) await Promise.resolve();
      }
    }
    const result = await index.bulk(source(), {
      id: ({ title }) => title,
      batchDocuments: 50,
      concurrency: 2,
      refresh: true,
      onProgress: ({ documents }) => ahead.push(read - documents),
    });
    expect(result).toMatchObject({ documents: 1000, written: 1000 });
    expect(ahead).toHaveLength(20);
    // Two batches under way and one that is being read.
    expect(Math.max(...ahead)).toBeLessThanOrEqual(150);
    expect(await index.count()).toBe(1000);
  });

  it('goes on after refused documents, and tells of each', async () => {
    const index = sparrow.index<{ n: unknown }>('refusing');
    await index.create({ mappings: { properties: { n: { type: 'integer' } } } });
    const rejected: number[] = [];
    const documents = Array.from({ length: 10 }, (_, n) => ({ n: n % 4 === 3 ? 'no number' : n }));
    const result = await index.bulk(documents, { batchDocuments: 3, onRejected: ({ n }) => rejected.push(n) });
    expect(result).toMatchObject({ documents: 10, written: 8, rejected: 2 });
    expect(rejected).toEqual([3, 7]);
    expect(result.failures[0]).toMatchObject({ n: 3, error: { status: 400, type: 'document_parsing_exception' } });
    const created = await index.bulk([{ n: 1 }, { n: 2 }], { action: 'create', id: () => 'same' });
    expect(created).toMatchObject({
      written: 1,
      rejected: 1,
      failures: [{ n: 1, id: 'same', error: { status: 409 } }],
    });
  });

  it('sends again what a full queue refused', async () => {
    await sparrow.execute('start_deployment', {
      path: { model: '.sparse_encoder_model_2' },
      query: { deployment_id: 'narrow', queue_capacity: 1, wait_for: 'started' },
    });
    const inference = { model_id: 'narrow', input_output: [{ input_field: 'content', output_field: 'tokens' }] };
    await sparrow.execute('put_pipeline', { path: { pipeline: 'narrow' }, body: { processors: [{ inference }] } });
    const index = sparrow.index<Article>('narrow');
    await index.create({ mappings: { properties: { tokens: { type: 'sparse_vector' } } } });
    const source = articles(12).map((article, n) => ({ ...article, content: `${article.content} ${String(n)}` }));
    const result = await index.bulk(source, {
      pipeline: 'narrow',
      batchDocuments: 4,
      concurrency: 3,
      retries: 500,
      refresh: true,
    });
    expect(result).toMatchObject({ written: 12, rejected: 0 });
    expect(await index.count({ exists: { field: 'tokens' } })).toBe(12);
  });

  it('stops with the error of its source, and closes it', async () => {
    let closed = false;
    function* source() {
      try {
        yield* articles(10);
        throw new Error('the file is torn');
      } finally {
        closed = true;
      }
    }
    await expect(sparrow.index<Article>('torn').bulk(source(), { batchDocuments: 2 })).rejects.toThrow(
      'the file is torn',
    );
    expect(closed).toBe(true);
    const big = [{ n: 1n }] as unknown as { n: number }[];
    await expect(sparrow.index('torn').bulk(big)).rejects.toThrow(TypeError);
  });

  it('writes what has come while its source waits, and hears of failures meanwhile', async () => {
    const index = sparrow.index<Article>('waiting');
    let more: () => void = () => undefined;
    async function* source() {
      yield* articles(3);
      await new Promise<void>((resolve) => (more = resolve));
      yield* articles(2);
    }
    const progress: number[] = [];
    const result = await index.bulk(source(), {
      flushAfterMs: 20,
      refresh: true,
      onProgress: ({ documents }) => {
        progress.push(documents);
        if (documents === 3) more();
      },
    });
    expect([progress, result.written]).toEqual([[3, 5], 5]);
    async function* endless() {
      yield* articles(1);
      await new Promise(() => undefined);
    }
    const closed = await Sparrow.open();
    await closed.close();
    const error = await failure(closed.index<Article>('a').bulk(endless(), { flushAfterMs: 1 }));
    expect(error.message).toContain('the engine is closed');
  });

  it('ends with its signal, and reads no further', async () => {
    const controller = new AbortController();
    let read = 0;
    function* source() {
      for (;;) yield articles(1)[read++ % 1] as Article;
    }
    const load = sparrow.index<Article>('endless').bulk(source(), {
      batchDocuments: 20,
      signal: controller.signal,
      onProgress: ({ documents }) => {
        if (documents >= 100) controller.abort(new Error('enough'));
      },
    });
    await expect(load).rejects.toThrow('enough');
    expect(read).toBeLessThanOrEqual(160);
  });
});

describe('a walk through everything', () => {
  it('sees each document once, as they were when it began', async () => {
    const index = sparrow.index<Article>('walked');
    await index.bulk(articles(250), { id: (_, n) => String(n), refresh: true });
    const seen: string[] = [];
    for await (const { _id: id, _source: article } of index.all({ batch: 100 })) {
      expect(article.title).toBe(`Article ${id}`);
      if (seen.length === 0) await index.put('late', articles(1)[0] as Article, { refresh: true });
      seen.push(id);
    }
    expect(seen.sort()).toEqual(Array.from({ length: 250 }, (_, n) => String(n)).sort());
    let some = 0;
    for await (const hit of index) {
      expect(hit._source.year).toBeGreaterThan(1999);
      if (++some === 3) break;
    }
    const years = new Set<number>();
    for await (const hit of index.all({ query: { term: { year: 2003 } } })) years.add(hit._source.year);
    expect([...years]).toEqual([2003]);
  });
});

describe('a signal', () => {
  it('that is aborted already ends a call before it begins', async () => {
    const signal = AbortSignal.abort(new Error('never mind'));
    await expect(sparrow.index('single').search({}, { signal })).rejects.toThrow('never mind');
    await expect(sparrow.embed(['a'], { signal })).rejects.toThrow('never mind');
  });

  it('ends work that is under way', async () => {
    const controller = new AbortController();
    const texts = Array.from(
      { length: 20_000 },
      (_, n) => `${'a long text that takes its time '.repeat(20)} ${String(n)}`,
    );
    const encoded = async (): Promise<number> => {
      const { trained_model_stats: stats } = await sparrow.execute<any>('trained_model_stats', {
        path: { model: '_all' },
      });
      const nodes = stats.flatMap((each: any) => each.deployment_stats?.nodes ?? []);
      return nodes.reduce((sum: number, { inference_count: count }: any) => sum + Number(count), 0);
    };
    const before = await encoded();
    setTimeout(() => {
      controller.abort(new Error('too slow'));
    }, 200);
    await expect(sparrow.embed(texts, { signal: controller.signal })).rejects.toThrow('too slow');
    // The texts that were on their way, and not those that wait.
    expect((await encoded()) - before).toBeLessThan(texts.length / 2);
  });
});

it('the package depends on the models that it looks for', async () => {
  const manifest = JSON.parse(await readFile(new URL('../../packages/engine/package.json', import.meta.url), 'utf8'));
  expect(Object.keys(manifest.dependencies)).toEqual([
    '@sparrow-search/model-minilm-l6',
    '@sparrow-search/model-splade-minilm-l6',
    '@sparrow-search/model-splade-tiny',
  ]);
});
