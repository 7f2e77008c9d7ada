import { expect, it } from 'vitest';

import { UsageError } from './errors.js';
import { knownFormat, nameOf } from './import-options.js';

it.each([
  ['/data/My Articles.csv', 'my-articles'],
  ['日本.txt', '日本'],
  ['データ.csv', 'データ'],
  ['Läden.csv.gz', 'läden'],
  ['La\u0308den.csv', 'läden'],
  ['_2024 (1).json', '2024-1-'],
])('names the index after the file %s', (file, name) => {
  expect(nameOf(file, {})).toBe(name);
});

it('asks for the name of an index where that of the file gives none', () => {
  expect(() => nameOf('!!!.txt', {})).toThrow(
    new UsageError('!!!.txt: an index cannot be named after this file: name one with --index'),
  );
  expect(nameOf('!!!.txt', { index: 'notes' })).toBe('notes');
});

it.each(['a.xlsx', 'A.XLS', 'a.ods'])('says how to load the spreadsheet %s', (file) => {
  expect(() => knownFormat(file, {})).toThrow('is a spreadsheet, which Sparrow cannot read: save it as CSV');
});

it.each(['a.pdf', 'A.DOCX', 'a.png'])('says what to do with %s, which is no plain text', (file) => {
  expect(() => knownFormat(file, {})).toThrow(`${file} is not a plain text: save what it says as text or Markdown`);
});

it('says which input has no known format', () => {
  expect(() => knownFormat('a.xml', {})).toThrow('a.xml: say with --format whether it is jsonl, json, csv, tsv, text');
  expect(() => knownFormat('-', {})).toThrow('standard input: say with --format');
});
