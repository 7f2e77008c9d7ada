import { describe, expect, it } from 'vitest';

import { Sample, fieldAt, fieldsFor, isByMeaning, textColumns, typedDocument } from './file-mapping.js';

function sample(documents: readonly Readonly<Record<string, unknown>>[], hasCells = false): Sample {
  const all = new Sample(hasCells);
  for (const document of documents) all.add(document);
  return all;
}
const types = (...args: Parameters<typeof sample>): string[] =>
  sample(...args)
    .columns()
    .map(({ name, type }) => `${name} ${type}`);

describe('columns are told by their values', () => {
  it('in JSON by what they are, in cells by what they say', () => {
    const cells = { n: '7', x: '1.5', b: 'true', on: '2024-05-01', zip: '01234', empty: ' ' };
    expect(types([cells], true)).toEqual(['n long', 'x double', 'b boolean', 'on date', 'zip keyword', 'empty other']);
    expect(types([cells])).toEqual(['n keyword', 'x keyword', 'b keyword', 'on date', 'zip keyword', 'empty other']);
    const values = {
      _id: 'a',
      n: 7,
      x: 1.5,
      b: true,
      big: 2 ** 62,
      huge: 1e30,
      on: '2024-05-01T10:00Z',
      none: null,
      o: {},
    };
    expect(types([values])).toEqual([
      ...['n long', 'x double', 'b boolean', 'big long', 'huge double', 'on date', 'none other', 'o other'],
    ]);
    expect(types([{ a: 1 }, { a: 'one' }])).toEqual(['a keyword']);
    expect(types([{ a: 1 }, { a: '2' }, { a: '' }])).toEqual(['a long']);
    expect(types([{ a: 1 }, { a: {} }])).toEqual(['a other']);
  });

  it('and numbers with decimal commas are told, as they stay texts', () => {
    const rows = [
      { price: '3,50', weight: '1.234,5', people: '1,234', list: '1,2,3', n: '7' },
      { price: '-4', weight: '2', people: '12,345', list: '1,2', n: '' },
    ];
    expect(types(rows, true)).toEqual(['price other', 'weight other', 'people other', 'list other', 'n long']);
    expect(sample(rows, true).decimalCommas()).toBe(
      'the numbers in price, weight have a decimal comma and stay texts: write them with a point, as 3.50, to sort, filter by ranges and calculate with them',
    );
    expect(sample(rows).decimalCommas()).toBeUndefined();
    expect(sample([{ price: '3.50' }], true).decimalCommas()).toBeUndefined();
  });

  it('and dates or numbers of several forms stay texts, which is told', () => {
    const said = (values: readonly unknown[], hasCells = false): string[] => {
      const rows = sample(
        values.map((a) => ({ a })),
        hasCells,
      );
      return [...rows.columns().map(({ type }) => type), ...rows.notes().map(({ text }) => text)];
    };
    const forms = ['2024-05-01', '01.05.2026', 'May 1, 2024', '2024/05/01', 1714521600];
    const several = expect.stringMatching(/^a: dates in several forms, kept as keyword; to sort by them, .*`format`/);
    for (const first of forms) expect(said([first, ...forms])).toEqual(['keyword', several]);
    expect(said(['2024-05-01', '2024', '2024-05', 1714521600000])).toEqual(['date']);
    expect(said(['2024/05/01', '2024/06/01'])).toEqual(['other']);
    const german = expect.stringMatching(/^a: dates such as 01\.05\.2026 stay texts; /);
    expect(said(['01.05.2026', '02.05.2026'], true)).toEqual(['keyword', german]);
    expect(said(['2024-05-01', ''])).toEqual(['keyword', expect.stringContaining('dates and empty texts')]);
    expect(said(['2024-05-01', ''], true)).toEqual(['date']);
    const prices = expect.stringContaining('a: numbers and texts such as “€ 163”, kept as keyword');
    for (const values of [
      [383.65, '€ 163'],
      ['€ 163', 383.65],
    ])
      expect(said(values)).toEqual(['keyword', prices]);
    expect(said(['2024-05-01', 'unknown'])).toEqual(['keyword', expect.stringContaining('texts such as “unknown”')]);
    expect(said(['1.2.3', '1.2.4'])).toEqual(['other']);
    expect(said([1984, 'Fahrenheit 451, a novel about books'])).toEqual(['text']);
    expect(said([true, 'no'])).toEqual(['keyword', expect.stringContaining('booleans and texts such as “no”')]);
  });

  it('and texts by their words', () => {
    const rows = ['red', 'blue', 'red', 'red'].map((colour, at) => ({
      title: `Book ${String(at)}`,
      plot: 'somebody reads a book',
      colour,
      tags: [colour, 'all'],
      sku: `x${String(at)}`,
      parts: ['one part that is long', 'and another part that is long'],
    }));
    expect(types(rows)).toEqual([
      'title text',
      'plot text',
      'colour keyword',
      'tags keyword',
      'sku other',
      'parts text',
    ]);
    expect(textColumns(sample(rows).columns())).toEqual(['title', 'plot', 'parts']);
  });

  it('in the first thousand documents', () => {
    const rows = Array.from({ length: 1001 }, (_, at) => ({ n: at === 1000 ? 'x' : 1 }));
    expect(types(rows)).toEqual(['n long']);
    const long = sample([{ text: 'x'.repeat(17 << 20) }]);
    expect([long.isFull, sample([{ text: 'x' }]).isFull]).toEqual([true, false]);
  });

  it('whatever they are called', () => {
    const named = sample([JSON.parse('{"constructor":"x y","__proto__":"a sentence of several words"}')]).columns();
    expect(named.map(({ name }) => name)).toEqual(['constructor', '__proto__']);
    expect(Object.keys(fieldsFor(named, ['__proto__'], 'dense'))).toEqual(['constructor', '__proto__', 'meaning']);
    expect(fieldAt({}, 'constructor')).toBeUndefined();
  });
});

it('a row becomes a document of numbers, booleans and dates', () => {
  const row = { n: ' 7', big: '123456789012345678', b: 'true', on: ' 2024-05-01', text: ' as it stands ', empty: '  ' };
  expect(typedDocument(row, sample([row], true).columns())).toEqual({
    n: 7,
    big: '123456789012345678',
    b: true,
    on: '2024-05-01',
    text: ' as it stands ',
  });
  // A later row than those that were looked at may have anything.
  expect(typedDocument({ n: 'many', b: 'no' }, sample([row], true).columns())).toEqual({ n: 'many', b: 'no' });
});

it('fields are made for columns', () => {
  const columns = sample([{ meaning: 'a sentence of several words', genre: 'crime', year: 1999 }]).columns();
  expect(fieldsFor(columns, ['meaning', 'about.plot'], 'sparse')).toEqual({
    genre: { type: 'keyword', ignore_above: 256, fields: { text: { type: 'text' } } },
    year: { type: 'long' },
    'about.plot': { type: 'text', copy_to: ['meaning'] },
    meaning: { type: 'semantic_text', inference_id: '.elser-2-elasticsearch' },
  });
  expect(fieldsFor([], [], 'hybrid')).toEqual({});
});

it('knows which columns of an index are searched by meaning', () => {
  const there = {
    title: { type: 'text' },
    plot: { type: 'text', copy_to: 'meaning' },
    about: { properties: { note: { type: 'text', fields: { semantic: { type: 'semantic_text' } } } } },
    meaning: { type: 'semantic_text' },
  };
  const names = ['title', 'plot', 'about.note', 'about.note.semantic', 'meaning', 'review', 'constructor'];
  expect(names.filter((name) => isByMeaning(there, name))).toEqual([
    ...['plot', 'about.note', 'about.note.semantic', 'meaning'],
  ]);
});
