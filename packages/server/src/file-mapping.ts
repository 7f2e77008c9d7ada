// The one maker of mappings for documents of a file: `sparrow import` and the console's "Add data" both ask it, so that the same file
// becomes the same index. It has no imports, as it runs in browsers too. docs/command-line.md says what it looks at and what it makes.

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

/** A field as this file looks at it. */
export interface Property {
  readonly type?: string;
  readonly properties?: Properties;
  readonly fields?: Properties;
  readonly inference_id?: string;
  readonly copy_to?: string | readonly string[];
  readonly model_settings?: { readonly task_type?: string };
}
export type Properties = Readonly<Record<string, Property>>;

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

/** What cells of a file of columns say, where all of a column do. */
const KINDS_OF_CELLS: readonly (readonly [ColumnType, RegExp])[] = [
  ['boolean', /^(?:true|false)$/],
  // A number with a zero before it is a code: it would lose that.
  ['long', /^-?(?:0|[1-9]\d{0,17})$/],
  ['double', /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/],
];
/** Numbers with a comma before their decimals, and points between their thousands; the second has decimals that are no thousands. */
const COMMA_NUMBER = /^-?\d+(?:\.\d{3})*(?:,\d+)?$/;
const COMMA_DECIMALS = /,(?!\d{3}$)\d+$/;
const DATE = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{2})?)?$/;

type Document = Readonly<Record<string, unknown>>;

/** The first documents of a file, of which all columns are told. */
export class Sample {
  readonly #values = new Map<string, unknown[]>();
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
        if (one === null || one === undefined || isBlank(one)) continue;
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
      type: typeOf(name, values, this.#hasCells),
      example: exampleOf(values),
    }));
  }
}

function isBlank(value: unknown): boolean {
  return typeof value === 'string' && value.trim() === '';
}

function exampleOf([first]: readonly unknown[]): string {
  return first === undefined ? '' : typeof first === 'string' ? first : JSON.stringify(first);
}

function typeOf(name: string, values: readonly unknown[], hasCells: boolean): ColumnType {
  if (values.length === 0) return 'other';
  if (values.every((value) => typeof value === 'boolean')) return 'boolean';
  if (values.every((value) => typeof value === 'number'))
    return values.every((value) => Number.isInteger(value) && Math.abs(value) < BEYOND_LONG) ? 'long' : 'double';
  const texts = values.filter((value) => typeof value === 'string').map((text) => text.trim());
  if (texts.length < values.length) return 'other';
  const said = hasCells ? KINDS_OF_CELLS.find(([, pattern]) => texts.every((text) => pattern.test(text))) : undefined;
  if (said !== undefined) return said[0];
  if (texts.every((text) => DATE.test(text))) return 'date';
  const words = texts.reduce((all, text) => all + text.split(/\s+/).length, 0) / texts.length;
  if (words >= WORDS_OF_TEXT || (NAMES_OF_TEXT.test(name) && words > 1)) return 'text';
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
