// `sparrow import` of documents in JSON, against a real server: what becomes of them, and what is said about them.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { appendFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

import { describe, expect, it } from 'vitest';

import { importing, lines, numbered } from './importing.js';
import { sparrow } from './support.js';

const { server, folder, run, imported, file, count, documents } = await importing();

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

  it('may be a body of _bulk, whose ids it keeps', async () => {
    const body =
      '{"index":{"_id":"a1"}}\n{"n":1}\n{"index":{}}\n{"n":2}\n{"create":{"_index":"x","_id":"a3"}}\n{"n":3}\n';
    expect(await imported(await file('body.jsonl', body))).toMatchObject({ written: 3 });
    const found = await documents('body');
    expect(found.map(({ _source }) => _source)).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }]);
    expect([found[0]?._id, found[2]?._id]).toEqual(['a1', 'a3']);
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
      `sparrow: ${path}: it was imported without options ${now}: use the same options again, or add --restart to import all of it again; documents that have other ids stay\n`,
    ]);
    // Nothing was changed for it either.
    expect((await server.request('GET', '/options/_mapping')).text).not.toContain('sku_text');
    expect(await imported(path, '--id', 'sku', '--restart')).toMatchObject({ written: 1, skipped: 0 });
    // The options can be copied as they are told.
    const spaced = await file('spaced.jsonl', lines([{ 'the sku': 7, text: 'Blue whales', "it's": 'x' }]));
    await imported(spaced, '--id', 'the sku');
    expect((await run(spaced, '--id', "it's")).stderr).toContain(
      String.raw`it was imported with --id 'the sku' before, and this command is with --id 'it'\''s': use the same options again, or add --restart`,
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
    // Such an index would be in the way of the file that was meant.
    for (const index of ['empty', 'names-only'])
      expect((await server.request('HEAD', `/${index}`)).status, index).toBe(404);
  });

  it('is told where it comes beside other documents', async () => {
    const first = await file('beside-1.jsonl', lines(numbered(0, 2)));
    const more = await file('beside-2.jsonl', lines(numbered(0, 3)));
    expect((await imported(first, '--index', 'beside')).notes).toEqual([]);
    const added = await run(more, '--index', 'beside');
    expect([added.code, added.stdout]).toEqual([
      0,
      expect.stringMatching(
        /: 3 documents in \[beside\] in .*\n {2}added to an existing index of 2 documents: to start over, delete it first \(DELETE \/beside, or in the console\), or name with --id the field by which documents are replaced\n$/,
      ),
    ]);
    // What goes on, takes the place of other documents, or was loaded by the same command is no surprise.
    await appendFile(more, lines(numbered(3, 4)));
    expect(await imported(more, '--index', 'beside')).toMatchObject({ written: 1, notes: [] });
    expect(await imported(more, '--index', 'beside', '--restart')).toMatchObject({ replaced: 4, notes: [] });
    const together = await run(first, more, '--index', 'together', '--json');
    expect(JSON.parse(together.stdout).map(({ notes }: any) => notes)).toEqual([[], []]);
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

  it('may be an object that holds the documents, as the console reads it', async () => {
    const text =
      '{\n "total": {"items": [1]},\n "few": [{"x": 1}], "items": [\n  {"n": 9007199254740993},\n  {"n": }, {"n": 2}\n ]\n}\n';
    const bad = await run(await file('wrapped-badly.json', text));
    expect([bad.code, bad.stderr]).toEqual([
      1,
      expect.stringContaining('nothing was written: line 1: it is not JSON ('),
    ]);
    expect(await imported(await file('wrapped.json', text.replace('{"n": }, ', '')))).toMatchObject({ written: 2 });
    expect((await server.request('POST', '/wrapped/_search')).text).toContain('9007199254740993');
    // One in a list is a document, whatever it holds.
    expect(await imported(await file('order.json', '[{"items": [{"n": 1}, {"n": 2}]}]'))).toMatchObject({ written: 1 });
  });

  it('leaves no index where none of its documents can be read', async () => {
    const { code, stderr } = await run(await file('number.json', '42'));
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining(
        'none of its documents can be read, and nothing was written: line 1: it is not a JSON object',
      ),
    ]);
    expect((await server.request('HEAD', '/number')).status).toBe(404);
    const gap = await run(await file('gap.json', '[{"n": 1},\n,]'));
    expect(gap.stderr).toContain('line 2: nothing stands between two commas');
  });

  it('is read piece by piece', async () => {
    const long = await file('pieces.json', JSON.stringify(numbered(0, 30_000).map((one) => ({ ...one, t: '{"é[\\' }))));
    expect(await imported(long)).toMatchObject({ written: 30_000, rejected: 0 });
    const args = ['import', '-', '--format', 'json', '--index', 'follow', '--follow'];
    const { code, stderr } = await sparrow([...args, '--url', server.url, '--data', server.data], {}, '[]');
    expect([code, stderr]).toEqual([2, expect.stringContaining('cannot follow a JSON file')]);
  });
});

it('tells how many documents took the place of others', async () => {
  const path = await file('twins.csv', 'id,text\n1,a\n2,b\n1,c\n');
  expect((await imported(path, '--index', 'places')).notes).toEqual([
    'the _id of a document is its place in the file: --id id takes that of the field id instead',
  ]);
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
