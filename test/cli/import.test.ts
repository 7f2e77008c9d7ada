// `sparrow import` against a real server.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { appendFile, mkdtemp, rm, truncate, utimes, writeFile } from 'node:fs/promises';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';
import { type Ended, begin, sparrow } from './support.js';

let server: RunningServer;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sparrow-import-'));
  server = await startServer();
});
afterAll(async () => {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});

function run(...args: string[]): Promise<Ended> {
  return sparrow(['import', ...args, '--url', server.url, '--data', server.data]);
}

/** Runs an import that should work; gives what became of its only file. */
async function imported(...args: string[]): Promise<any> {
  const { code, stdout, stderr } = await run(...args, '--json');
  expect([code, stderr]).toEqual([0, '']);
  return JSON.parse(stdout)[0];
}

async function file(name: string, text: string | Buffer): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, text);
  return path;
}

const lines = (rows: readonly object[]) => rows.map((row) => `${JSON.stringify(row)}\n`).join('');
const numbered = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => ({ n: from + n }));
const count = async (index: string) => (await server.request('GET', `/${index}/_count`)).body.count as number;
const documents = async (index: string) =>
  (await server.request('POST', `/${index}/_search`, { size: 100, sort: ['_doc'] })).body.hits.hits as {
    _id: string;
    _source: any;
  }[];

describe('a file of JSON lines', () => {
  it('becomes an index of its name, once however often it is imported', async () => {
    const path = await file(
      'Some Books.jsonl',
      lines([
        { title: 'Emma', big: 1 },
        { _id: 'own', title: 'Persuasion' },
      ]),
    );
    const { code, stdout } = await run(path);
    expect(code).toBe(0);
    expect(stdout).toMatch(/: 2 documents in \[some-books\] in .*\n$/);
    const key = createHash('sha256').update(path).digest('base64url').slice(0, 10);
    expect((await documents('some-books')).map(({ _id: id, _source }) => [id, _source])).toEqual([
      [`${key}-1`, { title: 'Emma', big: 1 }],
      ['own', { title: 'Persuasion' }],
    ]);
    const again = await run(path);
    expect([again.code, again.stderr]).toEqual([
      0,
      `${path}: all of it was imported before; --restart does it again\n`,
    ]);
    expect(await imported(path, '--restart')).toMatchObject({ written: 2, skipped: 0 });
    expect(await count('some-books')).toBe(2);
  });

  it('keeps its numbers as they are written, and takes ids from a field', async () => {
    const path = await file('exact.ndjson', '{"id": 7, "big": 9007199254740993}\n\n{"id": 8, "big": 1}');
    await imported(path, '--id', 'id');
    const answer = await server.request('GET', '/exact/_doc/7/');
    expect(answer.text).toContain('9007199254740993');
    expect(await count('exact')).toBe(2);
  });

  it('is unpacked, and read from standard input', async () => {
    const zipped = await file('zipped.jsonl.gz', gzipSync(lines(numbered(0, 3))));
    expect(await imported(zipped)).toMatchObject({ index: 'zipped', written: 3 });
    const args = ['import', '-', '--format', 'jsonl', '--index', 'piped', '--url', server.url, '--data', server.data];
    expect(await sparrow(args, {}, lines(numbered(0, 4)))).toMatchObject({ code: 0 });
    expect(await count('piped')).toBe(4);
    const broken = await file('broken.jsonl.gz', gzipSync(lines(numbered(0, 3))).subarray(0, 30));
    const { code, stderr } = await run(broken);
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/^sparrow: .*broken\.jsonl\.gz: it cannot be unpacked.*\n$/),
    ]);
  });

  it('is found by meaning where that is asked for', async () => {
    const path = await file(
      'animals.jsonl',
      lines([{ text: 'Blue whales are large animals.' }, { text: 'Yeast makes gas.' }]),
    );
    await imported(path, '--semantic', 'text');
    const found = async (query: object) =>
      (await server.request('POST', '/animals/_search', { query })).body.hits.hits.map((hit: any) => hit._source.text);
    expect(await found({ semantic: { field: 'meaning', query: 'biggest creature' } })).toHaveProperty(
      '0',
      expect.stringContaining('whales'),
    );
    expect(await found({ match: { text: 'yeast' } })).toEqual([expect.stringContaining('Yeast')]);
    // An index that is there gets the field.
    const more = await file('more.jsonl', lines([{ note: 'Lava is hot rock.' }]));
    await imported(more, '--index', 'animals', '--semantic', 'note');
    const query = { semantic: { field: 'meaning', query: 'lava' } };
    const { body } = await server.request('POST', '/animals/_search', { query });
    expect(body.hits.hits[0]._source).toEqual({ note: 'Lava is hot rock.' });
  });

  it('is found by meaning in what looks like texts, unless that is not wanted', async () => {
    const rows = [
      { title: 'Blue whales', about: 'They are the largest animals that ever lived.', kind: 'animal' },
      { title: 'Lava flows', about: 'It is rock so hot that it flows downhill.', kind: 'stone' },
    ];
    const path = await file('chosen.jsonl', lines(rows));
    expect(await imported(path)).toMatchObject({ semantic: ['title', 'about'] });
    const query = { semantic: { field: 'meaning', query: 'biggest creature' } };
    const { body } = await server.request('POST', '/chosen/_search', { query });
    expect(body.hits.hits[0]._source).toEqual(rows[0]);
    // From standard input, too; an index that is there gets no fields that nobody asked for.
    const args = ['import', '-', '--format', 'jsonl', '--url', server.url, '--data', server.data, '--json'];
    const read = async (index: string) =>
      JSON.parse((await sparrow([...args, '--index', index], {}, lines(rows))).stdout)[0].semantic;
    expect([await read('chosen-piped'), await read('chosen-piped')]).toEqual([['title', 'about'], []]);
    expect(await imported(path, '--index', 'unchosen', '--no-semantic')).toMatchObject({ semantic: [], written: 2 });
    const mapped = await server.request('GET', '/unchosen/_mapping');
    const properties = Object.keys(mapped.body.unchosen.mappings.properties);
    expect(properties).toEqual(['about', 'kind', 'title']);
  });

  it('is not loaded where a column that meaning is searched in is not there', async () => {
    const path = await file('typo.csv', 'id,text\n1,Blue whales are large animals.\n');
    const { code, stderr } = await run(path, '--semantic', 'body');
    expect([code, stderr]).toEqual([
      1,
      `sparrow: ${path}: there is no column [body] for --semantic; the columns are id, text\n`,
    ]);
    expect((await server.request('HEAD', '/typo')).status).toBe(404);
  });

  it.each([
    ['ids.csv', 'sku,text\n1,Blue whales\n2,Yeast\n', 'there is no column [id] for --id; the columns are sku, text'],
    [
      'ids.jsonl',
      '{"sku":1,"a":{"id":7}}\n{"sku":2}\n',
      'no document has the field [id] for --id; the fields are sku, a',
    ],
  ])('is not loaded where nothing has the field of the ids: %s', async (name, text, sentence) => {
    const path = await file(name, text);
    const { code, stdout, stderr } = await run(path, '--id', 'id', '--index', 'no-ids');
    expect([code, stdout, stderr]).toEqual([1, '', `sparrow: ${path}: ${sentence}\n`]);
    expect((await server.request('HEAD', '/no-ids')).status).toBe(404);
    const piped = ['import', '-', '--format', name.replace('ids.', ''), '--index', 'no-ids', '--id', 'id'];
    const read = await sparrow([...piped, '--url', server.url, '--data', server.data], {}, text);
    expect([read.code, read.stderr]).toEqual([1, `sparrow: ${sentence}\n`]);
  });

  it('is not passed over in silence where it was imported with other options', async () => {
    const path = await file('options.jsonl', lines([{ sku: 7, text: 'Blue whales' }]));
    await imported(path);
    const again = await run(path, '--id', 'sku', '--semantic', 'text');
    const now = 'before, and this command is with --id sku --semantic text';
    expect([again.code, again.stdout, again.stderr]).toEqual([
      1,
      '',
      `sparrow: ${path}: it was imported without options ${now}: add --restart to import all of it again; documents that have other ids stay\n`,
    ]);
    // Nothing was changed for it either.
    expect((await server.request('GET', '/options/_mapping')).text).not.toContain('sku_text');
    expect(await imported(path, '--id', 'sku', '--restart')).toMatchObject({ written: 1, skipped: 0 });
    // The options can be copied as they are told.
    const spaced = await file('spaced.jsonl', lines([{ 'the sku': 7, text: 'Blue whales', "it's": 'x' }]));
    await imported(spaced, '--id', 'the sku');
    expect((await run(spaced, '--id', "it's")).stderr).toContain(
      String.raw`it was imported with --id 'the sku' before, and this command is with --id 'it'\''s': add --restart`,
    );
    expect(await imported(path, '--id', 'sku', '--batch', '7')).toMatchObject({ written: 0, skipped: 1 });
  });

  it('is told where there is nothing in it', async () => {
    for (const [name, text] of [
      ['empty.jsonl', ''],
      ['empty.csv', ''],
      ['names-only.csv', 'a,b\n'],
    ] as const) {
      const path = await file(name, text);
      const { code, stderr } = await run(path);
      expect([code, stderr]).toEqual([0, `${path}: there is no document in it\n`]);
    }
  });

  it('is not loaded where none of its first documents has a field that meaning is searched in', async () => {
    const rows = lines([
      { _id: 1, title: 'Whales', meta: { note: 'large' } },
      { _id: 2, title: 'Yeast', tags: ['small'] },
    ]);
    const path = await file('typo.jsonl', rows);
    const none = 'no document has the field [titel] for --semantic; the fields are title, meta.note, tags';
    const read = await run(path, '--semantic', 'title', 'titel');
    expect([read.code, read.stderr]).toEqual([1, `sparrow: ${path}: ${none}\n`]);
    const late = await file('late.jsonl', `${'{"a":1}\n'.repeat(1000)}{"tags":"x"}\n`);
    const first = await run(late, '--semantic', 'tags');
    expect(first.stderr).toContain(
      'none of the first 1,000 documents has the field [tags] for --semantic; the fields are a\n',
    );
    const where = ['--index', 'typo', '--url', server.url, '--data', server.data];
    const piped = await sparrow(['import', '-', '--format', 'jsonl', ...where, '--semantic', 'titel'], {}, rows);
    expect([piped.code, piped.stderr]).toEqual([1, `sparrow: ${none}\n`]);
    const columns = await sparrow(['import', '-', '--format', 'csv', ...where, '--semantic', 'b'], {}, 'id,a\n1,x\n');
    expect(columns.stderr).toBe('sparrow: there is no column [b] for --semantic; the columns are id, a\n');
    expect((await server.request('HEAD', '/typo')).status).toBe(404);
    // The records that were read to see their fields are loaded, too.
    const good = await sparrow(['import', '-', '--format', 'jsonl', ...where, '--semantic', 'tags'], {}, rows);
    expect([good.code, good.stderr]).toEqual([0, '']);
    expect(await count('typo')).toBe(2);
    expect(await imported(path, '--index', 'nested', '--semantic', 'meta.note')).toMatchObject({ written: 2 });
  });

  it('says how many of its texts were truncated', async () => {
    const mappings = {
      properties: { text: { type: 'semantic_text', chunking_settings: { strategy: 'none' } } },
    };
    await server.request('PUT', '/truncated', { mappings });
    const path = await file('truncated.jsonl', lines([{ text: 'whale '.repeat(1000) }, { text: 'yeast' }]));
    const { code, stdout } = await run(path, '--index', 'truncated');
    expect([code, stdout]).toEqual([0, expect.stringMatching(/, 1 text beyond the model's limit was truncated\n$/)]);
  });

  it('has sparse and dense vectors of those fields, or one kind where that is asked for', async () => {
    const path = await file('kinds.jsonl', lines([{ text: 'Blue whales are large animals.' }]));
    const endpoints = async (index: string, ...args: string[]) => {
      await imported(path, '--index', index, '--semantic', 'text', ...args);
      const { mappings } = (await server.request('GET', `/${index}/_mapping`)).body[index];
      const { inference_id: id, model_settings: settings } = mappings.properties.meaning;
      return [id, settings.task_type];
    };
    expect(await endpoints('kinds')).toEqual(['.hybrid', 'hybrid_embedding']);
    expect(await endpoints('kinds-sparse', '--vectors', 'sparse')).toEqual([
      '.elser-2-elasticsearch',
      'sparse_embedding',
    ]);
    expect(await endpoints('kinds-dense', '--vectors', 'dense')).toEqual([
      '.all-minilm-l6-v2-elasticsearch',
      'text_embedding',
    ]);
    // What an index holds stays, unless another kind is asked for by its name.
    expect(await endpoints('kinds-sparse', '--restart')).toEqual(['.elser-2-elasticsearch', 'sparse_embedding']);
    for (const more of [[], ['--restart']]) {
      const dense = ['--index', 'kinds-sparse', '--semantic', 'text', '--vectors', 'dense', ...more];
      const { code, stderr } = await run(path, ...dense);
      const remedy =
        '`--vectors dense` cannot replace: leave it out to keep them, choose another index with --index, or change the model of the field with `POST /kinds-sparse/_ext/model/_change`';
      expect([code, stderr]).toEqual([
        1,
        `sparrow: ${path}: the documents in [kinds-sparse] have sparse vectors in [meaning], which ${remedy}\n`,
      ]);
    }
    // The kind that is there may be named, also where an endpoint of another name makes it.
    expect(await endpoints('kinds-sparse', '--vectors', 'sparse', '--restart')).toEqual([
      '.elser-2-elasticsearch',
      'sparse_embedding',
    ]);
    // Each kind is searched as it can be.
    const search = (index: string, by: string) =>
      sparrow(['search', 'biggest creature', '--index', index, '--by', by, '--url', server.url, '--data', server.data]);
    for (const [index, ways] of [
      ['kinds', ['hybrid', 'meaning', 'sparse', 'dense']],
      ['kinds-sparse', ['hybrid', 'meaning', 'sparse']],
      ['kinds-dense', ['hybrid', 'meaning', 'dense']],
      ['kinds,kinds-sparse,kinds-dense', ['hybrid', 'meaning']],
    ] as const) {
      for (const by of ways) {
        const { code, stdout, stderr } = await search(index, by);
        expect([code, stderr], `${index} by ${by}`).toEqual([0, '']);
        expect(stdout, `${index} by ${by}`).toContain('Blue whales');
        // All documents are near in some way: how many were looked at says nothing.
        expect(stdout, `${index} by ${by}`).toMatch(
          by === 'dense' ? /\nthe nearest document, \d+ ms\n$/ : /found, \d+ ms\n$/,
        );
      }
    }
    expect(await search('kinds-sparse', 'dense')).toMatchObject({
      code: 1,
      stderr: 'sparrow: [kinds-sparse] has no semantic_text field of dense vectors to look in\n',
    });
    expect(await search('kinds-dense', 'sparse')).toMatchObject({
      code: 1,
      stderr: 'sparrow: [kinds-dense] has no sparse_vector field or semantic_text of sparse vectors to look in\n',
    });
  });

  it('continues after documents that are refused, and names them', async () => {
    await server.request('PUT', '/strict', { mappings: { properties: { n: { type: 'integer' } } } });
    const path = await file('bad.jsonl', `{"n":1}\n{"n":\n[1]\n{"n":"seven"}\n{"n":5}\n{"_id":"${'i'.repeat(600)}"}\n`);
    const { code, stdout, stderr } = await run(path, '--index', 'strict');
    expect(code).toBe(1);
    expect(stdout).toContain('2 documents in [strict]');
    expect(stdout).toContain('4 rejected');
    expect(stderr).toMatch(/line 6: its id takes 600 bytes, more than 512/);
    expect(stderr).toMatch(/line 2: it is not JSON/);
    expect(stderr).toMatch(/line 3: it is not a JSON object/);
    expect(stderr).toMatch(/line 4: .*failed to parse field \[n\]/);
    expect(await count('strict')).toBe(2);
  });
});

it('refuses a document that is nested too deeply, and goes on behind it', async () => {
  const deep = `${'{"a":'.repeat(200_000)}1${'}'.repeat(200_000)}`;
  const brackets = JSON.stringify({ text: '["\\'.repeat(5000) });
  const path = await file('deep.jsonl', `{"n":1}\n${deep}\n{"_id":"x",${deep.slice(1)}\n${brackets}\n{"n":4}\n`);
  for (const more of [[], ['--semantic', 'text', '--index', 'deep-meaning']]) {
    const { code, stdout, stderr } = await run(path, ...more);
    expect(code).toBe(1);
    expect(stderr).toMatch(/line 2: it is nested more than 1,000 levels deep\n.*line 3: it is nested/);
    expect(stdout).toMatch(/: 3 documents in \[deep.*, 2 rejected\n$/);
  }
});

it('refuses what is neither a regular file nor standard input', async () => {
  const pipe = join(folder, 'pipe.jsonl');
  execFileSync('mkfifo', [pipe]);
  for (const path of [pipe, '/dev/zero']) {
    const { code, stderr } = await run(path, '--format', 'jsonl', '--index', 'pipe');
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^sparrow: .* is not a regular file; - reads .*\n$/)]);
  }
  const { code, stderr } = await run(folder, '--format', 'jsonl', '--index', 'pipe');
  expect([code, stderr]).toEqual([2, expect.stringContaining('folder')]);
});

describe('a file that is no file of columns', () => {
  const MIB = 1 << 20;

  /** Imports `first` and then two gigabytes of `piece` again and again, from standard input; says too how much memory that took at most. */
  async function fed(first: string, piece: string): Promise<Ended & { readonly mebibytes: number }> {
    const args = ['import', '-', '--format', 'csv', '--index', 'endless', '--url', server.url, '--data', server.data];
    const long = piece.repeat(Math.ceil(MIB / piece.length));
    const { process: child, ended } = begin(args, {}, Readable.from([first, ...Array<string>(2048).fill(long)]));
    let mebibytes = 0;
    const watch = setInterval(() => {
      const file = `/proc/${String(child.pid)}/status`;
      const peak = existsSync(file) ? /^VmHWM:\s+(\d+)/m.exec(readFileSync(file, 'utf8'))?.[1] : undefined;
      mebibytes = Math.max(mebibytes, Number(peak ?? 0) / 1024);
    }, 20);
    const result = await ended.finally(() => {
      clearInterval(watch);
    });
    return { ...result, mebibytes };
  }

  it.each([
    ['columns without end', '', 'a,', 'its first line has more than 1,000,000 columns'],
    ['columns without names', '', ',', 'its first line has more than 1,000,000 columns'],
    ['one name without end', '', 'x', 'its first line is longer than 8 MB'],
    ['a quote in the names that is never closed', '"', 'x\n', 'its first line is longer than 8 MB'],
    [
      'too many columns',
      `${'a,'.repeat(10_000)}b\n`,
      '1\n',
      'its first line has 10,001 columns, at most 10,000 can be read',
    ],
    ['cells without end', 'n,t\n1,one\n2,', 'b,', 'has more than 1,000,000 columns: is this a CSV or TSV file?'],
    ['a cell without end', 'n,t\n1,one\n2,', 'x', 'the row that begins in line 3 is longer than 100 MB'],
    ['a quote that is never closed', 'n,t\n1,one\n2,"', 'x\n', 'the row that begins in line 3 is longer than 100 MB'],
  ])('ends the import with a sentence and in little memory: %s', async (_, first, piece, sentence) => {
    const { code, stderr, mebibytes } = await fed(first, piece);
    expect(stderr).toContain(sentence);
    expect(stderr).not.toMatch(/\n {4}at /);
    expect(code).toBe(1);
    expect(mebibytes).toBeLessThan(600);
  });
});

describe('a file of columns', () => {
  it('gets fields of the types that its values have', async () => {
    const path = await file(
      'cities.csv',
      '\ufeffname,people,area,capital,founded,zip\n"Bern, BE",134591,51.62,true,1191-01-01,03000\nBasel,177571,23,false,,04000\n"a ""quoted""\nname",,,,,\n',
    );
    expect(await imported(path)).toMatchObject({ index: 'cities', written: 3 });
    const { properties } = (await server.request('GET', '/cities/_mapping')).body.cities.mappings;
    expect(Object.entries(properties).map(([name, field]: any) => [name, field.type])).toEqual([
      ['area', 'double'],
      ['capital', 'boolean'],
      ['founded', 'date'],
      ['meaning', 'semantic_text'],
      ['name', 'text'],
      ['people', 'long'],
      ['zip', 'text'],
    ]);
    expect((await documents('cities')).map(({ _source }) => _source)).toEqual([
      { name: 'Bern, BE', people: 134591, area: 51.62, capital: true, founded: '1191-01-01', zip: '03000' },
      { name: 'Basel', people: 177571, area: 23, capital: false, zip: '04000' },
      { name: 'a "quoted"\nname' },
    ]);
  });

  it('may have tabs, and quotes between them', async () => {
    const path = await file('words.tsv', 'word\tmeaning\nfive"\ta size\n"b\tc\n');
    await imported(path, '--id', 'word');
    expect((await documents('words')).map(({ _id: id }) => id)).toEqual(['five"', '"b']);
  });

  it('may have semicolons between them, where the first line has no comma', async () => {
    const path = await file('places.csv', 'name;"area; km²";note\r\nBern;51,62;"a; b"\r\nBasel;23;c,d\r\n');
    await imported(path, '--id', 'name');
    expect((await documents('places')).map(({ _source }) => _source)).toEqual([
      { name: 'Bern', 'area; km²': '51,62', note: 'a; b' },
      { name: 'Basel', 'area; km²': '23', note: 'c,d' },
    ]);
    await imported(await file('commas.csv', 'a,"b;c",d;e\n1,2,3\n'));
    expect((await documents('commas')).map(({ _source }) => _source)).toEqual([{ a: 1, 'b;c': 2, 'd;e': 3 }]);
  });

  it('may end its lines with separators, and leave columns without a name', async () => {
    await imported(await file('ends.csv', 'name;n;\nBern;1;\nBasel;2;x\n'));
    expect((await documents('ends')).map(({ _source }) => _source)).toEqual([
      { name: 'Bern', n: 1 },
      { name: 'Basel', n: 2, 'column 3': 'x' },
    ]);
  });

  it('may have line breaks in its names', async () => {
    const path = await file('breaks.csv', '"first\r\nname; in full";"born\n(year)"\n"Ada, Countess";1815\n');
    await imported(path);
    expect((await documents('breaks')).map(({ _source }) => _source)).toEqual([
      { 'first\r\nname; in full': 'Ada, Countess', 'born\n(year)': 1815 },
    ]);
  });

  it.each([
    [
      'open',
      'n,text\n1,one\n\n2,"open\nnever\n3,closed\n',
      'line 4 opens a quote in column [text] that is not closed up to',
    ],
    [
      'followed',
      'n,text\r\n1,"o\r\nne"\r\n\r\n2,"two"x,"three"\r\n',
      'line 5 opens a quote in column [text] that ends in the middle of a value',
    ],
    ['inner', 'n,text\n1,on"e\n', 'line 2 has a quote in column [text] in the middle of a value'],
  ])('says in which row a quote is wrong: %s', async (name, text, sentence) => {
    const path = await file(`quote-${name}.csv`, text);
    const { code, stderr } = await run(path);
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^sparrow: .*\n$/)]);
    expect(stderr).toContain(`quote-${name}.csv: the row that begins in ${sentence}`);
  });

  it('says that a quote is open in its first line', async () => {
    const { code, stderr } = await run(await file('quote-names.csv', '"n,text\n1,one\n'));
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining('its first line opens a quote that is not closed up to the end of the file\n'),
    ]);
  });

  it('names what is wrong with it', async () => {
    const twice = await run(await file('twice.csv', 'a,b,a\n1,2,3\n'));
    expect([twice.code, twice.stderr]).toEqual([
      1,
      expect.stringContaining('twice.csv: its first line has the column [a] twice'),
    ]);
    const ragged = await run(await file('ragged.csv', 'a,b\n1,2\n1,2,3\n4,5\n'));
    const unequal = 'it has 3 columns, and the first line has 2: a value with a separator in it is written in quotes';
    expect([ragged.code, ragged.stderr]).toEqual([1, expect.stringContaining(`ragged.csv, line 3: ${unequal}\n`)]);
    expect(await count('ragged')).toBe(2);
    // Line and column are those of the file: a place in the JSON that is made of the row would be a third one.
    await server.request('PUT', '/prices', { mappings: { properties: { price: { type: 'integer' } } } });
    const prices = await run(await file('prices.csv', 'name,price\nTea,3\nMilk,cheap\n'), '--no-semantic');
    expect([prices.code, prices.stderr]).toEqual([
      1,
      expect.stringMatching(/prices\.csv, line 3: failed to parse field \[price\] of type \[integer\] .*'cheap'/),
    ]);
    const { code: wrong, stderr: why } = await run(folder);
    expect([wrong, why]).toEqual([
      2,
      expect.stringContaining(
        `${folder} is a folder, which is not read: name the files in it, as in sparrow import ${folder}/*.csv`,
      ),
    ]);
    const missing = await run(join(folder, 'missing.csv'));
    expect([missing.code, missing.stderr]).toEqual([
      1,
      expect.stringMatching(/^sparrow: cannot read .*missing\.csv: there is nothing of that name\n$/),
    ]);
  });
});

describe('a file of JSON', () => {
  it('may be a list, or documents that follow each other, over several lines', async () => {
    const list = await file('list.json', '\ufeff[\n{"n": 1, "text": "a]},\\"["},\n\n"words",\n5,\n{"n":\n2}\n]\n');
    const { code, stdout, stderr } = await run(list);
    expect([code, stderr]).toEqual([1, `${list}, line 5: it is not a JSON object\n`]);
    expect(stdout).toMatch(/: 3 documents in \[list\] in .*, 1 rejected\n$/);
    expect((await documents('list')).map(({ _source }) => _source)).toEqual([
      { n: 1, text: 'a]},"[' },
      { text: 'words' },
      { n: 2 },
    ]);
    const others = await file('others.json', '{"big": 9007199254740993}\n{\n  "n": 2\n}');
    expect(await imported(others)).toMatchObject({ written: 2 });
    expect((await server.request('POST', '/others/_search')).text).toContain('9007199254740993');
    expect(await imported(await file('none.json', ' [ ] '))).toMatchObject({ written: 0 });
    const cut = await run(await file('cut.json', '[{"n":1},\n{"n":2'));
    expect([cut.code, cut.stderr]).toEqual([
      1,
      expect.stringContaining('cut.json: it ends in line 2, with a bracket, a brace or a quote still open'),
    ]);
  });

  it('is read piece by piece', async () => {
    const long = await file('pieces.json', JSON.stringify(numbered(0, 30_000).map((one) => ({ ...one, t: '{"é[\\' }))));
    expect(await imported(long)).toMatchObject({ written: 30_000, rejected: 0 });
    const args = ['import', '-', '--format', 'json', '--index', 'follow', '--follow'];
    const { code, stderr } = await sparrow([...args, '--url', server.url, '--data', server.data], {}, '[]');
    expect([code, stderr]).toEqual([2, expect.stringContaining('cannot follow a JSON file')]);
  });
});

describe('the letters of a file', () => {
  it('are UTF-8, or it is refused with the line', async () => {
    for (const [name, before] of [
      ['latin.csv', 'n,text\n1,one\n'],
      ['latin.jsonl', '{"n":1}\n\n'],
      // Beyond the first piece that is read.
      ['late.jsonl', '{"text":"caf\u00e9 \u20ac"}\n'.repeat(9000)],
    ] as const) {
      const path = await file(name, Buffer.concat([Buffer.from(before), Buffer.from('2,"caf\xe9"\n', 'latin1')]));
      const { code, stderr } = await run(path);
      const line = before.split('\n').length.toLocaleString('en-US');
      expect([code, stderr]).toEqual([
        1,
        expect.stringContaining(`${name}: line ${line} is not UTF-8: save the file as UTF-8, or say --encoding latin1`),
      ]);
    }
    const cut = await file('half.csv', Buffer.concat([Buffer.from('n,text\n1,caf'), Buffer.from([0xc3])]));
    expect((await run(cut)).stderr).toContain('line 2 is not UTF-8');
  });

  it('may be Latin-1, where that is said', async () => {
    const path = await file('windows.csv', Buffer.from('n,text\n1,caf\xe9 \x80 5\n', 'latin1'));
    await imported(path, '--encoding', 'latin1');
    expect((await documents('windows'))[0]?._source).toEqual({ n: 1, text: 'caf\u00e9 \u20ac 5' });
  });
});

it('tells how many documents took the place of others', async () => {
  const path = await file('twins.csv', 'id,text\n1,a\n2,b\n1,c\n');
  const { code, stdout } = await run(path, '--id', 'id');
  expect([code, stdout]).toEqual([0, expect.stringMatching(/: 3 documents in \[twins\] in .*, 1 replaced\n$/)]);
  expect(await imported(path, '--id', 'id', '--restart')).toMatchObject({ written: 3, replaced: 3 });
});

describe('several files', () => {
  it('say what became of the others where one fails', async () => {
    const [first, second, third] = [
      await file('several-1.jsonl', lines(numbered(0, 2))),
      await file('several-2.csv', 'a,a\n1,2\n'),
      await file('several-3.jsonl', lines(numbered(0, 3))),
    ];
    const files = [first, second, third];
    const { code, stdout, stderr } = await run(...files, '--index', 'several');
    expect(code).toBe(1);
    expect(stdout).toMatch(/^.*several-1\.jsonl: 2 documents in \[several\] in .*\n$/);
    expect(stderr).toBe(
      `sparrow: ${second}: its first line has the column [a] twice; done: ${first}; not begun: ${third}; once that is fixed, run the same command again: it continues with ${second}\n`,
    );
    await writeFile(second, 'n\n7\n');
    const again = await run(...files, '--index', 'several', '--json');
    expect(JSON.parse(again.stdout).map(({ written, skipped }: any) => [written, skipped])).toEqual([
      [0, 2],
      [1, 0],
      [3, 0],
    ]);
    const none = await run(join(folder, 'several-0.jsonl'), third, '--json');
    expect([none.code, none.stdout]).toEqual([1, '']);
    expect(none.stderr).toContain(`there is nothing of that name; not begun: ${third}; once`);
  });
});

describe('an interrupted import', () => {
  it('goes on where it stopped, without a document twice', async () => {
    const path = await file('long.jsonl', lines(numbered(0, 4000)));
    const ids = new Set<string>();
    // Between the command and the server: breaks the connection after some batches.
    let batches = 0;
    let breaking = true;
    const between = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        if (request.url?.includes('_bulk') === true && breaking && (batches += 1) > 5) {
          request.socket.destroy();
          return;
        }
        const body = Buffer.concat(chunks);
        const headers = {
          authorization: request.headers.authorization ?? '',
          'content-type': request.headers['content-type'] ?? '',
        };
        void fetch(server.url + (request.url ?? ''), {
          method: request.method ?? 'GET',
          headers: body.length === 0 ? { authorization: headers.authorization } : headers,
          ...(body.length === 0 ? {} : { body }),
        }).then(async (answer) => {
          response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' });
          response.end(Buffer.from(await answer.arrayBuffer()));
        });
      });
    });
    await new Promise<void>((resolve) => between.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${String((between.address() as { port: number }).port)}`;
    try {
      const args = ['import', path, '--batch', '100', '--url', url, '--data', server.data];
      const first = await sparrow(args);
      expect([first.code, first.stderr]).toEqual([
        1,
        expect.stringMatching(
          /long\.jsonl: no server answers .*; 500 documents of it are done, run this again to go on\n$/,
        ),
      ]);
      breaking = false;
      const second = await sparrow([...args, '--json']);
      expect(second.code).toBe(0);
      expect(JSON.parse(second.stdout)).toMatchObject([{ written: 3500, skipped: 500, rejected: 0 }]);
    } finally {
      between.close();
      between.closeAllConnections();
    }
    await server.request('POST', '/long/_refresh');
    const { body } = await server.request('POST', '/long/_search', { size: 10_000, _source: ['n'] });
    for (const hit of body.hits.hits) ids.add(String(hit._source.n));
    expect([body.hits.total.value, ids.size]).toEqual([4000, 4000]);
  });

  it('by Ctrl-C keeps what is done, and says so', async () => {
    const rows = Array.from(
      { length: 20_000 },
      (_, n) => `${String(n)},"a text of some length that is number ${String(n)}"\n`,
    );
    const path = await file('stopped.csv.gz', gzipSync(`n,text\n${rows.join('')}`));
    const args = [
      'import',
      path,
      '--batch',
      '50',
      '--id',
      'n',
      '--semantic',
      'text',
      '--url',
      server.url,
      '--data',
      server.data,
    ];
    const { process: child, ended } = begin(args);
    const written = async () => {
      await server.request('POST', '/stopped/_refresh');
      return ((await server.request('GET', '/stopped/_count')).body.count ?? 0) as number;
    };
    await expect.poll(written, { timeout: 30_000, interval: 50 }).toBeGreaterThan(0);
    child.kill('SIGINT');
    const { code, stdout, stderr } = await ended;
    expect([code, stderr]).toEqual([130, '']);
    expect(stdout).toContain('interrupted: run this again to go on');
    const kept = await written();
    const { mappings } = (await server.request('GET', '/stopped/_mapping')).body.stopped;
    expect(Object.values(mappings._meta.sparrow_import)).toMatchObject([{ records: kept, done: false }]);
  });

  it('begins anew where the file is another one, and behind the end where it grew', async () => {
    const path = await file('changing.jsonl', lines(numbered(0, 10)));
    await imported(path);
    await appendFile(path, lines(numbered(10, 15)));
    expect(await imported(path)).toMatchObject({ written: 5, skipped: 10 });
    expect(await count('changing')).toBe(15);
    await file('changing.jsonl', lines(numbered(100, 115)));
    await utimes(path, new Date(), new Date(Date.now() + 10_000));
    expect(await imported(path)).toMatchObject({ written: 15, skipped: 0 });
    // Each line replaces the one at its place.
    expect((await documents('changing')).map(({ _source }) => _source.n).sort()).toEqual(
      numbered(100, 115).map(({ n }) => n),
    );
  });

  it('begins anew where the file has changed behind its begin, whatever its size and its time', async () => {
    const row = (n: number, word: string) => `{"n":${String(n)},"text":"${word.repeat(40_000)}"}\n`;
    const path = await file('behind.jsonl', row(1, 'a') + row(2, 'a') + row(3, 'a'));
    const time = new Date(2020, 1, 1);
    await utimes(path, time, time);
    expect(await imported(path)).toMatchObject({ written: 3, skipped: 0 });
    // In the middle: only the time tells.
    await writeFile(path, row(1, 'a') + row(2, 'b') + row(3, 'a'));
    expect(await imported(path)).toMatchObject({ written: 3, skipped: 0 });
    expect((await documents('behind')).map(({ _source }) => _source.text[0]).sort()).toEqual(['a', 'a', 'b']);
    // At the end, with the time of before.
    await utimes(path, time, time);
    expect(await imported(path)).toMatchObject({ written: 3, skipped: 0 });
    await writeFile(path, row(1, 'a') + row(2, 'b') + row(3, 'c'));
    await utimes(path, time, time);
    expect(await imported(path)).toMatchObject({ written: 3, skipped: 0 });
    expect(await imported(path)).toMatchObject({ written: 0, skipped: 3 });
    // Where it grew, too.
    await writeFile(path, row(1, 'a') + row(2, 'b') + row(3, 'd') + row(4, 'a'));
    expect(await imported(path)).toMatchObject({ written: 4, skipped: 0 });
  });

  it('believes no checkpoint that cannot be one of the file', { timeout: 180_000 }, async () => {
    const path = await file('prepared.jsonl', lines(numbered(0, 3)));
    await imported(path);
    const { _meta: meta } = (await server.request('GET', '/prepared/_mapping')).body.prepared.mappings;
    const [[key, good]] = Object.entries<any>(meta.sparrow_import) as [[string, any]];
    const none = createHash('sha256').update('').digest('base64url');
    const prepare = async (sparrow_import: unknown) => {
      const { status } = await server.request('PUT', '/prepared/_mapping', { _meta: { sparrow_import } });
      expect(status).toBe(200);
    };
    await prepare({ [key]: good });
    expect(await imported(path)).toMatchObject({ written: 0, skipped: 3 });
    const bad = [
      { ...good, head: none, headBytes: 0 },
      { ...good, headBytes: -1 },
      { ...good, headBytes: 1e15 },
      { ...good, headBytes: 'x' },
      { ...good, records: 1e9 },
      { ...good, records: 1.5 },
      { ...good, records: -1 },
      { ...good, records: '3' },
      { ...good, size: 1e15 },
      { ...good, size: 0 },
      { ...good, tail: 7 },
      { ...good, done: 'yes' },
      { ...good, options: undefined },
      { ...good, tail: undefined },
      { ...good, file: '/etc/hostname' },
      ...['text', 7, null, []],
    ];
    for (const checkpoint of bad) {
      await prepare({ [key]: checkpoint });
      expect(await imported(path), JSON.stringify(checkpoint)).toMatchObject({ written: 3, skipped: 0 });
    }
    for (const all of ['text', 7, [good]]) {
      await prepare(all);
      expect(await imported(path), JSON.stringify(all)).toMatchObject({ written: 3, skipped: 0 });
    }
  });

  it('needs no more than the right to write', async () => {
    const made = await server.request('POST', '/_security/api_key', {
      name: 'feed',
      role_descriptors: { r: { indices: [{ names: ['fed'], privileges: ['write', 'auto_configure'] }] } },
    });
    const path = await file('fed.jsonl', lines(numbered(0, 3)));
    const args = ['import', path, '--url', server.url, '--key', made.body.encoded as string];
    for (const round of [1, 2]) expect(await sparrow(args), String(round)).toMatchObject({ code: 0, stderr: '' });
    await server.request('POST', '/fed/_refresh');
    expect(await count('fed')).toBe(3);
  });
});

it('leaves documents alone where the key may only add some', async () => {
  await server.request('PUT', '/added');
  const made = await server.request('POST', '/_security/api_key', {
    name: 'adds',
    role_descriptors: { r: { indices: [{ names: ['added'], privileges: ['create_doc'] }] } },
  });
  const path = await file('added.jsonl', lines(numbered(0, 3)));
  const args = ['import', path, '--url', server.url, '--key', made.body.encoded as string];
  const first = await sparrow([...args, '--json']);
  expect([first.code, first.stderr]).toEqual([0, '']);
  expect(JSON.parse(first.stdout)).toMatchObject([{ written: 3, rejected: 0, skipped: 0 }]);
  await appendFile(path, `broken\n${lines(numbered(3, 5))}`);
  const second = await sparrow(args);
  expect([second.code, second.stdout]).toEqual([
    1,
    expect.stringMatching(/: 2 documents in .*, 1 rejected, 3 were there already\n$/),
  ]);
  // The second try, which only adds, does not say again what the first one said.
  expect(second.stderr.match(/line 4: it is not JSON/g)).toHaveLength(1);
  await server.request('POST', '/added/_refresh');
  expect(await count('added')).toBe(5);
});

describe('--follow', () => {
  it('writes what is added to a file, until it is interrupted', async () => {
    const path = await file('log.jsonl', lines(numbered(0, 2)));
    const { process: child, ended } = begin(['import', path, '--follow', '--url', server.url, '--data', server.data]);
    const patience = { timeout: 20_000, interval: 100 };
    const written = async () => {
      await server.request('POST', '/log/_refresh');
      return (await server.request('GET', '/log/_count')).body.count as number;
    };
    await expect.poll(written, patience).toBe(2);
    // Half a line is none.
    await appendFile(path, '{"n":2}\n{"n"');
    await expect.poll(written, patience).toBe(3);
    await appendFile(path, ':3}\n');
    await expect.poll(written, patience).toBe(4);
    child.kill('SIGINT');
    expect(await ended).toMatchObject({ code: 0, stdout: expect.stringContaining('4 documents in [log]') as string });
    await appendFile(path, lines(numbered(4, 6)));
    expect(await imported(path)).toMatchObject({ written: 2, skipped: 4 });
    expect(await count('log')).toBe(6);
  });

  it('ends with a sentence when the file is replaced by a shorter one', async () => {
    const path = await file('rotated.jsonl', lines(numbered(0, 3)));
    const { ended } = begin(['import', path, '--follow', '--url', server.url, '--data', server.data]);
    await expect
      .poll(async () => (await server.request('GET', '/rotated/_count')).body.count, { timeout: 20_000 })
      .toBe(3);
    await truncate(path, 5);
    expect(await ended).toMatchObject({ code: 1, stderr: expect.stringContaining('it was replaced') as string });
  });
});
