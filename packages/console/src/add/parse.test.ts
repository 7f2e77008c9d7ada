import { describe, expect, it } from 'vitest';

import { portions } from './bulk';
import { INDEX_NAME, idColumns, indexName, readFile, readFiles, withIdsOf } from './parse';

const columns = (name: string, text: string): string[] =>
  readFile(name, text).columns.map((one) => `${one.name} ${one.type}`);
const documents = (name: string, text: string): unknown => readFile(name, text).documents;

describe('a file is read', () => {
  it('as JSON, whatever its list is called', () => {
    const wanted = [
      { id: undefined, source: { a: 1 } },
      { id: undefined, source: { a: 2 } },
    ];
    expect(documents('x.json', '[{"a":1},{"a":2}]')).toEqual(wanted);
    expect(documents('x.json', '{"meta":{},"rows":[{"a":1},{"a":2}]}')).toEqual(wanted);
    expect(documents('x.json', '{"a":1}\n{"a":2}')).toEqual(wanted);
    expect(documents('x.json', '["one","two"]')).toMatchObject([
      { source: { text: 'one' } },
      { source: { text: 'two' } },
    ]);
    expect(() => readFile('x.json', '[{"a":1}')).toThrow('This is not valid JSON');
    expect(() => readFile('x.json', '  ')).toThrow('The file is empty');
  });

  it('unless it is no text', () => {
    expect(() => readFile('book.xlsx', 'PK\u0003\u0004\u0014\0\u0006\0')).toThrow('This is not a text in UTF-8');
    expect(() => readFile('paper.pdf', '%PDF-1.4\n%\uFFFD\uFFFD\uFFFD\uFFFD\n1 0 obj')).toThrow('as plain text');
    // A letter here and there is another encoding; the rest can be read.
    const table = readFile('x.csv', `title,text\nOne,"${'plain words '.repeat(20)}caf\uFFFD"\n`);
    expect(table.documents).toHaveLength(1);
    expect(table.left).toEqual([expect.stringContaining('UTF-8')]);
    // Wherever in the file it is.
    const late = `title,text\nOne,"${'plain words '.repeat(20_000)}caf\uFFFD na\uFFFDve"\n`;
    expect(readFile('x.csv', late).left).toEqual([expect.stringContaining('2 letters not in UTF-8')]);
    expect(() => readFile('x.txt', 'plain words '.repeat(10_000) + '\uFFFD'.repeat(10_000))).toThrow('not a text');
  });

  it('unless it is nested too deeply', () => {
    const deep = (open: string, close: string): string => `${open.repeat(100_000)}1${close.repeat(100_000)}`;
    for (const text of [deep('[', ']'), deep('{"a":', '}'), `[{"a":1},{"a":${deep('[', ']')}}]`]) {
      expect(() => readFile('x.json', text)).toThrow('This file is nested too deeply');
    }
    expect(() => readFile('x.jsonl', `{"a":1}\n${deep('{"a":', '}')}`)).toThrow('This file is nested too deeply');
    expect(documents('x.json', `[{"a":${'['.repeat(500)}1${']'.repeat(500)}}]`)).toHaveLength(1);
  });

  it('as JSON lines, saying what is left out', () => {
    const table = readFile('x.jsonl', '{"index":{"_index":"a"}}\n{"a":1}\nnonsense\n{"a":2}\n');
    expect(table.documents.map(({ source }) => source)).toEqual([{ a: 1 }, { a: 2 }]);
    expect(table.left).toEqual(['line 3 is not a JSON object', expect.stringContaining('_bulk')]);
  });

  it('as CSV, with quotes, line breaks and numbers', () => {
    expect(documents('x.csv', 'id;title;price\n7;One, two;1.5\n8;Three;\n')).toEqual([
      { id: '7', source: { id: 7, title: 'One, two', price: 1.5 } },
      { id: '8', source: { id: 8, title: 'Three' } },
    ]);
    expect(documents('x.tsv', 'a\tb\n1\tx\n')).toEqual([{ id: undefined, source: { a: 1, b: 'x' } }]);
    expect(documents('x.csv', 'a|b\n1,5|x\n')).toEqual([{ id: undefined, source: { a: '1,5', b: 'x' } }]);
    expect(readFile('x.csv', 'a,b\n1,2\n3,4,5\n')).toMatchObject({
      documents: [{ source: { a: 1, b: 2 } }],
      left: [expect.stringMatching(/^line 3: it has 3 columns, and the first line has 2: /)],
    });
    expect(readFile('x.csv', 'a;b\n1;3,50\n').note).toMatch(/^the numbers in b have a decimal comma and stay texts: /);
    expect(() => readFile('x.csv', 'a,b\n1,"open, \n')).toThrow(
      'This file cannot be read: the row that begins in line 2 opens a quote in column [b] that is not closed up to the end of the file.',
    );
    // Leading zeros are no number's.
    expect(documents('x.csv', 'zip,a\n01234,b\n')).toMatchObject([{ source: { zip: '01234', a: 'b' } }]);
  });

  it('as text, by paragraphs and headings', () => {
    const [first, second] = readFile('x.md', '# Birds\nThey fly.\n\nThey sing.\n\n## Fish\n\nThey swim.').documents;
    expect(first?.source).toEqual({ title: 'Birds', text: 'Birds\n\nThey fly.\n\nThey sing.', part: 1, file: 'x.md' });
    expect(second?.source).toEqual({ title: 'Fish', text: 'Fish\n\nThey swim.', part: 2, file: 'x.md' });
    // A vector of each heading alone would be near to everything.
    expect(readFile('x.md', '# Birds of the sea\nThey fly over the water.').meaning).toEqual(['text']);
  });

  it('with all digits of its numbers', () => {
    const [one, two] = ['1790000000000000001', '1790000000000000003'];
    const lines = readFile('x.jsonl', `{"id":${one},"n":1.5}\n{"id":${two},"n":2}\n`);
    expect(lines.documents).toEqual([
      { id: one, source: { id: one, n: 1.5 } },
      { id: two, source: { id: two, n: 2 } },
    ]);
    const rows = readFile('x.csv', `id,code\n${one},123456789012345678901\n${two},7\n`);
    expect(rows.columns.map(({ name, type }) => [name, type])).toEqual([
      ['id', 'long'],
      ['code', 'keyword'],
    ]);
    expect(rows.documents.map(({ id, source }) => [id, source['id']])).toEqual([
      [one, one],
      [two, two],
    ]);
  });

  it('after another one of the same format, each with its name', () => {
    const notes = [
      { name: 'a.md', text: '# One\nFirst.' },
      { name: 'b.md', text: 'Second.' },
    ];
    expect(readFiles(notes).documents.map(({ source }) => [source['file'], source['text']])).toEqual([
      ['a.md', 'One\n\nFirst.'],
      ['b.md', 'Second.'],
    ]);
    expect(readFile('pasted', 'One.').documents).toEqual([{ id: undefined, source: { text: 'One.', part: 1 } }]);
    expect(() => readFiles([...notes, { name: 'c.csv', text: 'a,b\n1,2\n' }])).toThrow(
      'a.md is text, and c.csv is CSV: add these one after the other.',
    );
    expect(() => readFiles([...notes, { name: 'd.md', text: ' ' }])).toThrow('d.md: The file is empty.');
  });

  it('unless its name or its beginning says that it is no text', () => {
    for (const [name, text] of [
      ['a.PDF', 'x'],
      ['a.xlsx', 'a,b'],
      ['pasted', '%PDF-1.7 x'],
    ] as const) {
      expect(() => readFile(name, text)).toThrow('This is not a text in UTF-8.');
    }
  });

  it('and each of its columns without a value twice may be the id', () => {
    const { documents: read } = readFile('x.csv', 'sku,colour,n,about\nA-1,red,1,\nA-2,red,2,x y\n');
    expect(idColumns(read)).toEqual(['sku', 'n']);
    expect(read.map(({ id }) => id)).toEqual([undefined, undefined]);
    expect(withIdsOf(read, 'sku').map(({ id, source }) => [id, source['n']])).toEqual([
      ['A-1', 1],
      ['A-2', 2],
    ]);
    // As long as an id may be, and no longer.
    const long = 'é'.repeat(256);
    expect(readFile('x.jsonl', `{"_id":"${long}","a":1}\n`).documents[0]?.id).toBe(long);
    expect(withIdsOf(readFile('x.csv', 'id,a\n1,x\n').documents, undefined)[0]?.id).toBeUndefined();
  });

  it('and its columns are told apart', () => {
    const rows = ['red', 'blue', 'red', 'red'].map((colour, at) => ({
      colour,
      about: `a sentence with words number ${at}`,
      n: at,
    }));
    expect(columns('x.json', JSON.stringify(rows))).toEqual(['colour keyword', 'about text', 'n long']);
    // Every object has these names, but not as columns.
    const { columns: named } = readFile('x.json', '[{"a":1},{"constructor":"x y","__proto__":"z"}]');
    expect(named.map(({ name, example }) => [name, example])).toEqual([
      ['a', '1'],
      ['constructor', 'x y'],
      ['__proto__', 'z'],
    ]);
  });

  it('and ids that are not unique are none', () => {
    expect(documents('x.json', '[{"id":1},{"id":1}]')).toEqual([
      { id: undefined, source: { id: 1 } },
      { id: undefined, source: { id: 1 } },
    ]);
    expect(documents('x.json', '[{"_id":"a","b":1}]')).toEqual([{ id: 'a', source: { b: 1 } }]);
  });
});

it('documents go out in portions of a bounded size', () => {
  const many = Array.from({ length: 600 }, (_, at) => ({ source: { at } }));
  expect(portions(many).map((portion) => portion.length)).toEqual([250, 250, 100]);
  const long = Array.from({ length: 3 }, () => ({ source: { text: 'x'.repeat(300_000) } }));
  expect(portions(long).map((portion) => portion.length)).toEqual([1, 1, 1]);
});

it.each([
  ['Geschäfte.csv', 'geschäfte'],
  ['日本 データ.txt', '日本-データ'],
  ['_My File (1).json', 'my-file-1'],
  ['!!!.csv', 'my-data'],
])('the index for the file %s has a name that the form accepts', (file, name) => {
  expect(indexName(file)).toBe(name);
  expect(name).toMatch(new RegExp(`^(?:${INDEX_NAME})$`, 'v'));
});
