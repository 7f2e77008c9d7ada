// The one maker of mappings for documents of a file: `sparrow import` and the console's "Add data" both ask it, so that the same file
// becomes the same index. It imports only types, as it runs in browsers too. docs/command-line.md says what it looks at and what it makes.
import type { Properties, Property } from '@sparrow-search/endpoints';

/** What the values of a column are. `other` gets its field from its first document, as without a mapping. */
export type ColumnType = 'long' | 'double' | 'boolean' | 'date' | 'keyword' | 'text' | 'other';

export interface Column {
  readonly name: string;
  /** `text` is what one would search by meaning, `keyword` what one would filter by. */
  readonly type: ColumnType;
  /** The beginning of the file in this column. */
  readonly example: string;
}

/** Vectors of texts that are searched by meaning. */
export type Vectors = 'hybrid' | 'sparse' | 'dense';

/** The inference endpoint that fills a `semantic_text` with vectors of a kind. */
export const ENDPOINTS: Readonly<Record<Vectors, string>> = {
  hybrid: '.hybrid',
  sparse: '.elser-2-elasticsearch',
  dense: '.all-minilm-l6-v2-elasticsearch',
};

/** The field that holds the vectors of all columns that are searched by meaning. */
export const MEANING_FIELD = 'meaning';

export type Made =
  | { readonly type: 'long' | 'double' | 'boolean' | 'date' }
  | { readonly type: 'text'; readonly copy_to: readonly string[] }
  | {
      readonly type: 'keyword';
      readonly ignore_above: number;
      readonly fields: { readonly text: { readonly type: 'text' } };
    }
  | { readonly type: 'semantic_text'; readonly inference_id: string };

/** Documents and characters of a file that are looked at. */
const MOST_DOCUMENTS = 1000;
const MOST_CHARACTERS = 16 << 20;
/** Fewest words, on average, of a column that is searched by meaning; of one with a name that says so, more than one is enough. */
const WORDS_OF_TEXT = 3.5;
const NAMES_OF_TEXT = /^(?:title|name|text|content|body|description)$/i;
const LONGEST_KEYWORD = 60;
/** Largest share of the values of a keyword that are different. */
const MOST_DIFFERENT = 0.8;
/** Longer values of a keyword are found by their words only, as in a field that nobody has mapped. */
const IGNORE_ABOVE = 256;
/** From here on, a whole number does not fit into a `long`. */
const BEYOND_LONG = 2 ** 63;

/** A whole number. */
const WHOLE = /^-?(?:0|[1-9]\d*)$/;
/** Largest number that fits into a `long`. */
const MOST_LONG = 2n ** 63n - 1n;

/** What cells of a file of columns say, where all of a column do. */
const KINDS_OF_CELLS: readonly (readonly [ColumnType, RegExp])[] = [
  ['boolean', /^(?:true|false)$/],
  // A number with a zero before it is a code: it would lose that.
  ['long', WHOLE],
  ['double', /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/],
];
/** Numbers with a comma before their decimals, and points between their thousands; the second has decimals that are no thousands. */
const COMMA_NUMBER = /^-?\d+(?:\.\d{3})*(?:,\d+)?$/;
const COMMA_DECIMALS = /,(?!\d{3}$)\d+$/;
const DATE = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{2})?)?$/;
/** What a field of dates takes beside whole dates: a year, a month, milliseconds. */
const PART_OF_DATE = /^(?:\d{4}(?:-\d{2})?|-?\d{12,15})$/;
/** The other form that a field which nobody has mapped takes for a date, if its first document has it. */
const SLASHED_DATE = /^\d{4}\/\d{2}\/\d{2}(?: \d{2}:\d{2}:\d{2})?$/;
/** Dates as people write them, which are no dates to a field without a `format`. */
const WRITTEN_DATE =
  /^(?:\d{1,2}([-./])\d{1,2}\1\d{4}|\d{4}([-./])\d{1,2}\2\d{1,2}|(?:[a-z]{3,9}\.?,? )?(?:\d{1,2}(?:st|nd|rd|th)?\.?[ -])?(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*\.?(?:[ -]\d{1,2}(?:st|nd|rd|th)?)?,?[ -]\d{4})(?:[ T,].*)?$/i;
const SECONDS = /^-?\d{9,10}$/;
const LONGEST_DATE = 40;
/** Where `format` is explained. */
const ABOUT_FORMATS = 'see /_docs/fields on the server';

type Document = Readonly<Record<string, unknown>>;

/** Something about the values of a column that its field does not say: a sentence without its full stop. */
export interface ColumnNote {
  readonly name: string;
  readonly text: string;
}

/** The first documents of a file, of which all columns are told. */
export class Sample {
  readonly #values = new Map<string, unknown[]>();
  /** Columns in which some document has an empty text. */
  readonly #blank = new Set<string>();
  readonly #hasCells: boolean;
  #documents = 0;
  #characters = 0;

  /** @param hasCells whether all values are texts, as in a file of columns: numbers, booleans and dates are read from them */
  constructor(hasCells: boolean) {
    this.#hasCells = hasCells;
  }

  /** Whether enough documents were seen. */
  get isFull(): boolean {
    return this.#documents >= MOST_DOCUMENTS || this.#characters >= MOST_CHARACTERS;
  }

  add(document: Document): void {
    if (this.isFull) return;
    this.#documents += 1;
    for (const [name, value] of Object.entries(document)) {
      // It is the id of the document, and no part of it.
      if (name === '_id') continue;
      const values = this.#values.get(name) ?? [];
      this.#values.set(name, values);
      for (const one of Array.isArray(value) ? (value as unknown[]) : [value]) {
        if (one === null || one === undefined) continue;
        if (isBlank(one)) {
          // An empty cell is left out of its document.
          if (!this.#hasCells) this.#blank.add(name);
          continue;
        }
        values.push(one);
        this.#characters += typeof one === 'string' ? one.length : JSON.stringify(one).length;
      }
    }
  }

  /** A sentence about columns whose numbers have a decimal comma, without its full stop; undefined where there are none. */
  decimalCommas(): string | undefined {
    if (!this.#hasCells) return undefined;
    const names = [...this.#values].flatMap(([name, values]) => {
      const texts = values.map((value) => String(value).trim());
      return texts.every((text) => COMMA_NUMBER.test(text)) && texts.some((text) => COMMA_DECIMALS.test(text))
        ? [name]
        : [];
    });
    if (names.length === 0) return undefined;
    return `the numbers in ${names.join(', ')} have a decimal comma and stay texts: write them with a point, as 3.50, to sort, filter by ranges and calculate with them`;
  }

  columns(): Column[] {
    return [...this.#values].map(([name, values]) => ({
      name,
      type: typeOf(name, values, this.#hasCells, this.#blank.has(name)),
      example: exampleOf(values),
    }));
  }

  /**
   * What is to be said about columns that stay texts although they hold dates or numbers: as a date or a number, the field that their first
   * document makes would refuse the others.
   */
  notes(): ColumnNote[] {
    return [...this.#values].flatMap(([name, values]) => {
      const type = typeOf(name, values, this.#hasCells, this.#blank.has(name));
      const what = type === 'keyword' || type === 'other' ? mixture(values, this.#hasCells, this.#blank.has(name)) : '';
      return what === '' ? [] : [{ name, text: `${name}: ${what}` }];
    });
  }
}

type Scalar = string | number | boolean;

function areScalars(values: readonly unknown[]): values is readonly Scalar[] {
  return values.every((value) => ['string', 'number', 'boolean'].includes(typeof value));
}

function isDate(text: string): boolean {
  return DATE.test(text) || SLASHED_DATE.test(text);
}

/** Whether all values are dates of some form, and at least one of them cannot be anything else. */
function areDates(texts: readonly string[]): boolean {
  const isWhole = (text: string): boolean => text.length <= LONGEST_DATE && (isDate(text) || WRITTEN_DATE.test(text));
  return texts.some(isWhole) && texts.every((text) => isWhole(text) || PART_OF_DATE.test(text) || SECONDS.test(text));
}

/** What the values of a column are that is kept as a keyword or a text, and what to do about it; empty where that is no loss. */
function mixture(values: readonly unknown[], hasCells: boolean, hasBlank: boolean): string {
  if (values.length === 0 || !areScalars(values)) return '';
  const texts = values.map((value) => String(value).trim());
  const toSort = `to sort by them, first make the index with a mapping in which the field is a date with a \`format\` (${ABOUT_FORMATS})`;
  if (areDates(texts)) {
    if (texts.every((text) => SLASHED_DATE.test(text)) && !hasBlank) return '';
    if (hasBlank)
      return `dates and empty texts, kept as keyword; leave the empty ones out, or use null, to sort by the dates`;
    if (texts.some(isDate) || texts.some((text) => shapeOf(text) !== shapeOf(texts[0] ?? '')))
      return `dates in several forms, kept as keyword; ${toSort}`;
    return `dates such as ${texts[0] ?? ''} stay texts; ${toSort}`;
  }
  const strings = values.filter((value) => typeof value === 'string');
  const other = strings.find((text) => !isDate(text.trim()) && !/^[\d.]+$/.test(text.trim()));
  const like = other === undefined ? 'texts' : `texts such as “${other.trim().slice(0, LONGEST_DATE)}”`;
  if (strings.length < values.length) {
    const kinds = [...new Set(values.map((value) => `${typeof value}s`))].filter((kind) => kind !== 'strings');
    const all = [...kinds.sort().reverse(), ...(strings.length === 0 ? [] : [like])];
    const toCalculate = kinds.includes('numbers')
      ? '; write numbers alone to sort, filter by ranges and calculate with them'
      : '';
    return `${all.join(' and ')}, kept as keyword${toCalculate}`;
  }
  if (!hasCells && strings.some((text) => isDate(text.trim())))
    return `dates and ${like}, kept as keyword; leave out what is no date to sort by the dates`;
  return '';
}

/** How a date is written, whatever its digits. */
function shapeOf(text: string): string {
  return text.replaceAll(/\d+/g, '0').replaceAll(/[a-z]+/gi, 'a');
}

function isLong(text: string): boolean {
  // The longest one has a sign and 19 digits; reading the digits of a longer text takes its time.
  if (text.length > 20) return false;
  const number = BigInt(text);
  return number <= MOST_LONG && number >= -MOST_LONG - 1n;
}

function isBlank(value: unknown): boolean {
  return typeof value === 'string' && value.trim() === '';
}

function exampleOf([first]: readonly unknown[]): string {
  return first === undefined ? '' : typeof first === 'string' ? first : JSON.stringify(first);
}

function typeOf(name: string, values: readonly unknown[], hasCells: boolean, hasBlank: boolean): ColumnType {
  if (values.length === 0) return 'other';
  if (values.every((value) => typeof value === 'boolean')) return 'boolean';
  if (values.every((value) => typeof value === 'number'))
    return values.every((value) => Number.isInteger(value) && Math.abs(value) < BEYOND_LONG) ? 'long' : 'double';
  if (!areScalars(values)) return 'other';
  const texts = values.map((value) => String(value).trim());
  const isMixed = values.some((value) => typeof value !== 'string');
  // Numbers and booleans in quotes fit into a field of those without.
  const said =
    hasCells || isMixed ? KINDS_OF_CELLS.find(([, pattern]) => texts.every((text) => pattern.test(text))) : undefined;
  // Numbers with more digits than any field of numbers keeps are the names of something.
  if (said?.[0] === 'long' && !texts.every(isLong)) return 'keyword';
  if (said !== undefined) return said[0];
  // A field of dates refuses an empty text.
  const fitsDate = (text: string): boolean => DATE.test(text) || PART_OF_DATE.test(text);
  if (!hasBlank && texts.some((text) => DATE.test(text)) && texts.every(fitsDate)) return 'date';
  if (!hasBlank && texts.every((text) => SLASHED_DATE.test(text))) return 'other';
  if (areDates(texts)) return 'keyword';
  const words = texts.reduce((all, text) => all + text.split(/\s+/).length, 0) / texts.length;
  if (words >= WORDS_OF_TEXT || (NAMES_OF_TEXT.test(name) && words > 1)) return 'text';
  // Its first document might make a field that refuses the others.
  if (isMixed || texts.some(isDate)) return 'keyword';
  const isShort = texts.every(({ length }) => length <= LONGEST_KEYWORD);
  return isShort && new Set(texts).size < Math.max(2, texts.length * MOST_DIFFERENT) ? 'keyword' : 'other';
}

/** A row of a file of columns as a document: numbers and booleans as such, empty cells left out. */
export function typedDocument(row: Document, columns: readonly Column[]): Record<string, unknown> {
  const types = new Map(columns.map(({ name, type }) => [name, type]));
  return Object.fromEntries(
    Object.entries(row).flatMap(([name, value]) =>
      typeof value !== 'string' || isBlank(value) ? [] : [[name, typed(value, types.get(name))]],
    ),
  );
}

function typed(value: string, type: ColumnType | undefined): unknown {
  const text = value.trim();
  if (type === 'boolean') return text === 'true' ? true : text === 'false' ? false : value;
  if (type === 'date') return text;
  if (type !== 'long' && type !== 'double') return value;
  const number = Number(text);
  // What no number of JavaScript's is goes as it stands: the field reads digits in a text as well, exactly.
  return Number.isNaN(number) || (type === 'long' && !Number.isSafeInteger(number)) ? text : number;
}

/** The columns that are searched by meaning unless somebody says which. */
export function textColumns(columns: readonly Column[]): string[] {
  return columns.filter(({ type }) => type === 'text').map(({ name }) => name);
}

/**
 * The fields of an index for these columns.
 *
 * @param meaning columns that are searched by meaning as well as by words; `a.b` is a field of an object
 */
export function fieldsFor(
  columns: readonly Column[],
  meaning: readonly string[],
  vectors: Vectors,
): Readonly<Record<string, Made>> {
  return Object.fromEntries<Made>([
    ...columns.flatMap(({ name, type }): [string, Made][] => {
      if (type === 'text' || type === 'other') return [];
      return [[name, type === 'keyword' ? keyword() : { type }]];
    }),
    ...meaning.map((name): [string, Made] => [name, { type: 'text', copy_to: [MEANING_FIELD] }]),
    // Last, as a column of this name is a text like the others.
    ...(meaning.length === 0
      ? []
      : [[MEANING_FIELD, { type: 'semantic_text', inference_id: ENDPOINTS[vectors] }] as [string, Made]]),
  ]);
}

/** A field to filter and to count by, whose words are found as well. */
function keyword(): Made {
  return { type: 'keyword', ignore_above: IGNORE_ABOVE, fields: { text: { type: 'text' } } };
}

/** Whether the texts of a field are searched by meaning in an index that is there: by itself, in another form, or through a copy of it. */
export function isByMeaning(there: Properties, name: string): boolean {
  const property = fieldAt(there, name);
  const forms = Object.values(property?.fields ?? {});
  const copies = [property?.copy_to ?? []].flat().map((other) => fieldAt(there, other));
  return [property, ...forms, ...copies].some((field) => field?.type === 'semantic_text');
}

/** The field of a full name. A name with a point may be that of one field, or of one in an object. */
export function fieldAt(there: Properties, name: string): Property | undefined {
  if (Object.hasOwn(there, name)) return there[name];
  for (let at = name.indexOf('.'); at > 0; at = name.indexOf('.', at + 1)) {
    const object = Object.hasOwn(there, name.slice(0, at)) ? there[name.slice(0, at)] : undefined;
    for (const inner of [object?.properties, object?.fields]) {
      const found = inner === undefined ? undefined : fieldAt(inner, name.slice(at + 1));
      if (found !== undefined) return found;
    }
  }
  return undefined;
}
