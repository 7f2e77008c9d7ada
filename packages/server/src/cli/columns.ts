/** What the values of a column are; `text` is what nothing else fits. */
export type ColumnType = 'long' | 'double' | 'boolean' | 'date' | 'text';

type Row = Readonly<Record<string, unknown>>;

const KINDS: readonly (readonly [ColumnType, RegExp])[] = [
  ['boolean', /^(?:true|false)$/],
  // A number with a zero before it is a code: it would lose that.
  ['long', /^-?(?:0|[1-9]\d{0,17})$/],
  ['double', /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/],
  ['date', /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{2})?)?$/],
];

/** The types of the columns, as far as some rows tell: a column has the first type that fits all of its values. */
export function columnTypes(rows: readonly Row[]): ReadonlyMap<string, ColumnType> {
  const types = new Map<string, ColumnType>();
  for (const name of new Set(rows.flatMap((row) => Object.keys(row)))) {
    const values = rows
      .map((row) => row[name])
      .filter((value) => typeof value === 'string' && value !== '') as string[];
    const kind =
      values.length === 0 ? undefined : KINDS.find(([, pattern]) => values.every((value) => pattern.test(value)));
    types.set(name, kind?.[0] ?? 'text');
  }
  return types;
}

/** The mapping of the columns that are no texts: those get their fields from their values, as every text does. */
export function columnProperties(
  types: ReadonlyMap<string, ColumnType>,
): Record<string, { readonly type: Exclude<ColumnType, 'text'> }> {
  return Object.fromEntries([...types].flatMap(([name, type]) => (type === 'text' ? [] : [[name, { type }]])));
}

/** A row as a document: numbers and booleans as such, empty cells left out. */
export function typedDocument(row: Row, types: ReadonlyMap<string, ColumnType>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(row).flatMap(([name, value]) => {
      if (typeof value !== 'string' || value === '') return [];
      return [[name, typed(value, types.get(name) ?? 'text')]];
    }),
  );
}

function typed(value: string, type: ColumnType): unknown {
  if (type === 'boolean') return value === 'true' ? true : value === 'false' ? false : value;
  if (type !== 'long' && type !== 'double') return value;
  const number = Number(value);
  // What no number of JavaScript's is goes as it stands: the field reads digits in a text as well, exactly.
  return Number.isNaN(number) || (type === 'long' && !Number.isSafeInteger(number)) ? value : number;
}
