// `sparrow import` of files of columns and of texts in other encodings, against a real server.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';

import { describe, expect, it } from 'vitest';

import { importing } from './importing.js';
import { type Ended, begin } from './support.js';

const { server, folder, run, imported, file, count, documents } = await importing();

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

  it('may have the ids of its documents in a column _id', async () => {
    const path = await file('named.csv', '_id,name\na1,Emma\n,Nobody\n');
    const { code, stderr } = await run(path);
    expect([code, stderr]).toEqual([1, `${path}, line 3: its [_id] is empty\n`]);
    expect(await documents('named')).toMatchObject([{ _id: 'a1', _source: { name: 'Emma' } }]);
    expect(await run(path, '--id', '_id', '--index', 'named-2')).toMatchObject({ code: 1 });
    expect((await documents('named-2')).map(({ _id, _source }) => [_id, _source])).toEqual([['a1', { name: 'Emma' }]]);
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

  it('is told where its numbers have decimal commas, as they stay texts', async () => {
    const path = await file('commas-in-numbers.csv', 'name|price\nTea|3,50\nMilk|1\n');
    const { code, stdout, stderr } = await run(path);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(
      /: 2 documents in .*\n {2}the numbers in price have a decimal comma and stay texts: write them with a point, as 3\.50, to .*\n$/,
    );
    expect((await documents('commas-in-numbers')).map(({ _source }) => _source.price)).toEqual(['3,50', '1']);
  });

  it('is told where dates or numbers stay texts, rather than refused', async () => {
    const rows = ['2024-05-01', '01.05.2026', 'May 1, 2024', '2024/05/01', '2024-05-01 10:00'].map((released, at) => ({
      released,
      price: at === 0 ? 383.65 : `€ ${String(at)}`,
      stock: at,
    }));
    const { code, stdout, stderr } = await run(await file('products.json', JSON.stringify(rows)));
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(
      /: 5 documents in .*\n {2}released: dates in several forms, kept as keyword; .*\n {2}price: /,
    );
    const wrong = await run(await file('more.jsonl', '{"stock":"many"}'), '--index', 'products');
    expect([wrong.code, wrong.stdout]).toEqual([
      1,
      expect.stringContaining('the rejected values do not fit [stock] (long)'),
    ]);
    expect(wrong.stdout).toContain('import again with --restart');
    // A pipeline may make dates of them.
    await server.request('PUT', '/_ingest/pipeline/years', {
      processors: [{ script: { source: "ctx.released = ctx.released.substring(0, 4) + '-01-01'" } }],
    });
    const dates = [{ released: '2024-05-01' }, { released: '2024/05/01' }];
    await imported(await file('piped.json', JSON.stringify(dates)), '--pipeline', 'years');
    const piped = (await server.request('GET', '/piped/_mapping')).body.piped.mappings.properties;
    expect(piped.released.type).toBe('date');
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
      expect.stringContaining(`${folder} is a folder: name the files in it, as in sparrow import ${folder}/*.csv`),
    ]);
    const missing = await run(join(folder, 'missing.csv'));
    expect([missing.code, missing.stderr]).toEqual([
      1,
      expect.stringMatching(/^sparrow: cannot read .*missing\.csv: there is nothing of that name\n$/),
    ]);
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
        expect.stringContaining(`${name}: line ${line} is not UTF-8: save the file as UTF-8, or add --encoding latin1`),
      ]);
    }
    const cut = await file('half.csv', Buffer.concat([Buffer.from('n,text\n1,caf'), Buffer.from([0xc3])]));
    expect((await run(cut)).stderr).toContain('line 2 is not UTF-8');
  });

  it('are not looked for in a picture, which --encoding does not make a text', async () => {
    const path = await file('picture.txt', Buffer.from('\x89PNG\r\n\x1a\n\0\0\0\rIHDR', 'latin1'));
    for (const given of [[], ['--encoding', 'latin1']]) {
      const { code, stderr } = await run(path, ...given);
      expect([code, stderr]).toEqual([1, expect.stringContaining('picture.txt: this is not a text')]);
      expect(stderr).not.toContain('--encoding');
    }
  });

  it('may be Latin-1, where that is said', async () => {
    const path = await file('windows.csv', Buffer.from('n,text\n1,caf\xe9 \x80 5\n', 'latin1'));
    await imported(path, '--encoding', 'latin1');
    expect((await documents('windows'))[0]?._source).toEqual({ n: 1, text: 'caf\u00e9 \u20ac 5' });
  });
});
