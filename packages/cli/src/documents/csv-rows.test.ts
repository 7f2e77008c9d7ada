import { describe, expect, it } from 'vitest';

import { growth } from '../../../../test/support/effort.js';
import { CsvReader, type CsvRow } from './csv-rows.js';

type Format = ConstructorParameters<typeof CsvReader>[0];

function read(pieces: readonly string[], format: Format = 'csv'): CsvRow[] {
  const reader = new CsvReader(format);
  return [...pieces.flatMap((piece) => reader.add(piece)), ...reader.end()];
}

/** What a file becomes, wherever it is cut. */
function rowsOf(text: string, format: Format = 'csv'): CsvRow[] {
  const whole = read([text], format);
  expect(read([...text], format)).toEqual(whole);
  for (let at = 1; at < text.length; at += 1) expect(read([text.slice(0, at), text.slice(at)], format)).toEqual(whole);
  return whole;
}

const values = (text: string, format?: Format): unknown => rowsOf(text, format).map(({ values: own }) => own);

describe('a file of columns', () => {
  it.each<[name: string, text: string, wanted: readonly object[]]>([
    ['commas', 'a,b\n1,2;3\n', [{ a: '1', b: '2;3' }]],
    ['semicolons, as decimal commas are written with', 'a;b\n1,5;2\n', [{ a: '1,5', b: '2' }]],
    ['upright lines', 'a|b\n1|2,3\n', [{ a: '1', b: '2,3' }]],
    ['tabs', 'a\tb\n"1"\t2\n', [{ a: '1', b: '2' }]],
    ['what the names have most of', 'a;b, in km;c\n1;2;3\n', [{ a: '1', 'b, in km': '2', c: '3' }]],
    ['commas, where they have as many of both', 'a,b;c\n1,2\n', [{ a: '1', 'b;c': '2' }]],
    ['what they have outside quotes', '"a,b,c";d\n1;2\n', [{ 'a,b,c': '1', d: '2' }]],
    ['nothing, with one column', 'a\n1\n\n2', [{ a: '1' }, { a: '2' }]],
  ])('is separated by %s', (_, text, wanted) => {
    expect(values(text)).toEqual(wanted);
  });

  it('may have separators, line breaks and doubled quotes in quotes', () => {
    expect(values('a,"b\r\nc"\r\n"x ""y"", z","1\n2"\r\n')).toEqual([{ a: 'x "y", z', 'b\r\nc': '1\n2' }]);
    expect(values('a,b\n"""e""",""\n')).toEqual([{ a: '"e"', b: '' }]);
    expect(values('a\tb\nfive"\t"x\n', 'tsv')).toEqual([{ a: 'five"', b: '"x' }]);
  });

  it('may begin with lines of blanks and separators, which say nothing of its columns', () => {
    for (const before of ['  \n', ',,,\n', ' \t\r\n;;;;\n\n'])
      expect(values(`${before}a|b\n1|2\n`)).toEqual([{ a: '1', b: '2' }]);
  });

  it('may have a value of quotes alone', () => {
    const rows = read([`a\n"${'""'.repeat(5000)}"\n`]);
    expect(rows.map(({ values: own }) => own)).toEqual([{ a: '"'.repeat(5000) }]);
  });

  it('may have blanks around quotes, as people write it', () => {
    expect(values('a, b\nAnn, "likes tea, black" \n"Bob" , x \n')).toEqual([
      { a: 'Ann', b: 'likes tea, black' },
      { a: 'Bob', b: ' x ' },
    ]);
  });

  it('ends its rows with any line break, and may have empty ones', () => {
    expect(rowsOf('\r\n\na,b\r1,2\r\r3,4\r\n , \n5,6').map(({ line, values: own }) => [line, own])).toEqual([
      [4, { a: '1', b: '2' }],
      [6, { a: '3', b: '4' }],
      [8, { a: '5', b: '6' }],
    ]);
    // Lines within quotes count.
    expect(rowsOf('a,b\n"x\r\ny\rz\n",1\n2,3\n').map(({ line }) => line)).toEqual([2, 6]);
  });

  it('may end its lines with separators, and leave columns without a name', () => {
    expect(values('a;b;\n1;2;\n3;4;x\n')).toEqual([
      { a: '1', b: '2', 'column 3': '' },
      { a: '3', b: '4', 'column 3': 'x' },
    ]);
    expect(values('a;b\n1;2;;\n')).toEqual([{ a: '1', b: '2' }]);
    expect(values('__proto__,constructor\n1,2\n')).toEqual([
      Object.fromEntries([
        ['__proto__', '1'],
        ['constructor', '2'],
      ]),
    ]);
  });

  it('has rows that are no documents', () => {
    const sentence = 'the first line has 2: a value with a separator in it is written in quotes';
    expect(rowsOf('a,b\n1\n1,2,3\n4,5\n').map(({ line, problem }) => [line, problem])).toEqual([
      [2, `it has 1 column, and ${sentence}`],
      [3, `it has 3 columns, and ${sentence}`],
      [4, undefined],
    ]);
  });

  it.each([
    [
      'n,t\n\n1,"open\n2,x\n',
      'the row that begins in line 3 opens a quote in column [t] that is not closed up to the end',
    ],
    ['"n,t\n1,x\n', 'its first line opens a quote that is not closed up to the end of the file'],
    ['n,t\n"x"y,1\n', 'the row that begins in line 2 opens a quote in column [n] that ends in the middle of a value'],
    ['n,t\n1,x"y\n', 'the row that begins in line 2 has a quote in column [t] in the middle of a value'],
    ['n,t\n"x" "y",1\n', 'the row that begins in line 2 opens a quote in column [n] that ends in the middle'],
    ['n,t,n\n1,2,3\n', 'its first line has the column [n] twice'],
    [`${'n|'.repeat(10_000)}n\n`, 'its first line has 10,001 columns, at most 10,000 can be read'],
  ])('says where it cannot be read any further', (text, sentence) => {
    expect(() => read([text])).toThrow(sentence);
    expect(() => read(text.split(/(?<=,)/))).toThrow(sentence);
  });

  it('is read in time that grows with its length only', async () => {
    const work = (length: number): void => {
      const long = 'x""y\n'.repeat(length);
      expect(read([`a,b\n"${long}",1\n`])[0]?.values).toEqual({ a: long.replaceAll('""', '"'), b: '1' });
      expect(read(['a,b\n"', ...long.replaceAll('"', "'"), '",1\n'])).toHaveLength(1);
    };
    // Where time grew with the square of the length, it would take 1,024 times as much.
    expect(await growth(work, 3_125, 100_000)).toBeLessThan(300);
  });
});
