// The one reader of files of columns (CSV and TSV), for `sparrow import` and the console. It has no imports, as it runs in browsers too.
// docs/command-line.md says what it takes.

/** A row below the line of names. */
export interface CsvRow {
  /** The line of the file in which it begins, from 1. */
  readonly line: number;
  /** The cells of the row by the names of their columns; undefined for a row with a problem. */
  readonly values: Readonly<Record<string, string>> | undefined;
  /** Why it cannot be a document. */
  readonly problem: string | undefined;
}

/** Why a file of columns cannot be read any further, in words that go behind the name of the file. */
export class CsvProblem extends Error {}

/** What may separate the columns of a CSV file; the first of them where the line of names has as many of several. */
const SEPARATORS = [',', ';', '\t', '|'] as const;

/** Longest row, in characters; longest line of names, and most names: an index has a thousand fields unless it is told otherwise. */
const MOST_CHARACTERS = 100 * 1024 * 1024;
const MOST_CHARACTERS_OF_NAMES = 8 * 1024 * 1024;
const MOST_NAMES = 10_000;

/** Most columns of a row, those without a name too: without a bound, a file without lines would be one row of any length. */
const MOST_CELLS = 1_000_000;

/** Most pieces of a value that are kept apart. */
const MOST_PIECES = 1000;

/** Where the reader is in a value: before it, in one without quotes, in a quoted one, behind the quote that may end it, or in blanks behind that. */
type Place = 'before' | 'plain' | 'quoted' | 'closed' | 'ended';

/**
 * Reads a file of columns piece by piece. A line feed, a carriage return, or both end a row. A value in quotes may hold separators, line
 * breaks, and quotes that are written twice; blanks around its quotes are no part of it. Rows of empty values are passed over.
 */
export class CsvReader {
  /** Undefined until the line of names was seen. */
  #separator: string | undefined;
  /** Finds what ends a value or begins a quoted one. */
  #stop = /[\t\r\n]/g;
  /** The text before the end of the line of names, in pieces, and what was seen in it. */
  #head: string[] = [];
  #headCharacters = 0;
  readonly #seen = new Map<string, number>(SEPARATORS.map((one) => [one, 0]));
  #isQuotedHead = false;
  #isBlankHead = true;

  #names: readonly string[] | undefined;
  /** The values of the row that is open, and the pieces of its last one. */
  #values: string[] = [];
  #pieces: string[] = [];
  #place: Place = 'before';
  #isQuoted = false;
  #characters = 0;
  /** The line of the file that is read, and the one in which the row begins, from 1. */
  #line = 1;
  #begin = 1;
  /** Whether the last character ended a row and takes a line feed with it. */
  #isBehindReturn = false;

  /** @param format in a file of tabs, quotes are characters like others */
  constructor(format: 'csv' | 'tsv') {
    if (format === 'tsv') this.#separator = '\t';
  }

  /**
   * Takes the next piece of the file; gives the rows that end in it.
   *
   * @throws {CsvProblem} if the file cannot be read any further
   */
  add(text: string): CsvRow[] {
    if (this.#separator !== undefined) return this.#read(text);
    this.#head.push(text);
    return this.#endsNames(text) ? this.#readHead() : [];
  }

  /**
   * Gives the row that ends with the file.
   *
   * @throws {CsvProblem} if that is in the middle of a quoted value
   */
  end(): CsvRow[] {
    const rows = this.#separator === undefined ? this.#readHead() : [];
    if (this.#place === 'quoted')
      throw new CsvProblem(
        `${this.#row()} opens a quote${this.#column()} that is not closed up to the end of the file`,
      );
    if (this.#place !== 'before' || this.#values.length > 0) this.#endRow(rows);
    return rows;
  }

  /** Counts separators outside quotes, up to the end of the first line that holds more than them and blanks; says whether that was seen. */
  #endsNames(text: string): boolean {
    const marks = /["\r\n,;\t|]/g;
    let behind = 0;
    for (let found = marks.exec(text); found !== null; found = marks.exec(text)) {
      const [mark] = found;
      const isBreak = mark === '\n' || mark === '\r';
      this.#isBlankHead &&= mark !== '"' && text.slice(behind, found.index).trim() === '';
      behind = found.index + 1;
      if (isBreak && !this.#isQuotedHead) {
        if (!this.#isBlankHead) return true;
        for (const one of SEPARATORS) this.#seen.set(one, 0);
        continue;
      }
      if (mark === '"') this.#isQuotedHead = !this.#isQuotedHead;
      else if (!isBreak && !this.#isQuotedHead) this.#seen.set(mark, (this.#seen.get(mark) ?? 0) + 1);
    }
    this.#isBlankHead &&= text.slice(behind).trim() === '';
    this.#checkCells(Math.max(...this.#seen.values()));
    this.#headCharacters += text.length;
    this.#checkLength(this.#headCharacters);
    return false;
  }

  /** Reads what was kept until the separator was known. */
  #readHead(): CsvRow[] {
    const [first] = SEPARATORS;
    this.#separator = SEPARATORS.reduce<string>(
      (best, one) => ((this.#seen.get(one) ?? 0) > (this.#seen.get(best) ?? 0) ? one : best),
      first,
    );
    this.#stop = new RegExp(`["\\r\\n${this.#separator}]`, 'g');
    const head = this.#head.join('');
    this.#head = [];
    return this.#read(head);
  }

  #read(text: string): CsvRow[] {
    const rows: CsvRow[] = [];
    let at = this.#isBehindReturn && text.startsWith('\n') ? 1 : 0;
    if (text !== '') this.#isBehindReturn = false;
    while (at < text.length) {
      if (this.#place === 'quoted') {
        const close = text.indexOf('"', at);
        this.#take(text, at, close === -1 ? text.length : close);
        if (close === -1) break;
        this.#place = 'closed';
        at = close + 1;
        continue;
      }
      if (this.#place === 'closed' && text[at] === '"') {
        this.#take(text, at, at + 1);
        this.#place = 'quoted';
        at += 1;
        continue;
      }
      this.#stop.lastIndex = at;
      const found = this.#stop.exec(text);
      const end = found?.index ?? text.length;
      if (end > at) {
        if (this.#place === 'closed' || this.#place === 'ended') {
          if (text.slice(at, end).trim() !== '') throw this.#endsTooEarly();
          this.#place = 'ended';
        } else {
          this.#take(text, at, end);
          this.#place = 'plain';
        }
      }
      if (found === null) break;
      at = end + 1;
      if (found[0] === '"') {
        if (this.#place === 'ended') throw this.#endsTooEarly();
        if (this.#pieces.some((piece) => piece.trim() !== ''))
          throw new CsvProblem(
            `${this.#row()} has a quote${this.#column()} in the middle of a value: such a value is written in quotes, with the quotes in it written twice`,
          );
        this.#pieces = [];
        this.#place = 'quoted';
        this.#isQuoted = true;
      } else if (found[0] === this.#separator) {
        this.#endValue();
      } else {
        this.#endRow(rows);
        if (found[0] === '\n') continue;
        if (at === text.length) this.#isBehindReturn = true;
        else if (text[at] === '\n') at += 1;
      }
    }
    return rows;
  }

  #take(text: string, from: number, to: number): void {
    if (from === to) return;
    this.#pieces.push(text.slice(from, to));
    // A text of quotes alone is one piece for each.
    if (this.#pieces.length > MOST_PIECES) this.#pieces = [this.#pieces.join('')];
    this.#characters += to - from;
    this.#checkLength(this.#characters);
  }

  #endValue(): void {
    const value = this.#pieces.length === 1 ? (this.#pieces[0] ?? '') : this.#pieces.join('');
    if (this.#isQuoted) this.#line += breaksIn(value);
    this.#values.push(value);
    this.#checkCells(this.#values.length);
    this.#pieces = [];
    this.#place = 'before';
    this.#isQuoted = false;
  }

  #endRow(rows: CsvRow[]): void {
    this.#endValue();
    const [values, line] = [this.#values, this.#begin];
    this.#values = [];
    this.#characters = 0;
    this.#line += 1;
    this.#begin = this.#line;
    if (values.every((value) => value.trim() === '')) return;
    if (this.#names !== undefined) rows.push(rowOf(this.#names, values, line));
    // What separates columns may be another character than those before the names.
    else if (/[^\s,;|]/.test(values.join(''))) this.#names = checkedNames(values);
  }

  #checkLength(characters: number): void {
    if (this.#names === undefined && characters > MOST_CHARACTERS_OF_NAMES)
      throw new CsvProblem('its first line is longer than 8 MB: is this a CSV or TSV file, and is every quote closed?');
    if (characters > MOST_CHARACTERS)
      throw new CsvProblem(
        `${this.#row()} is longer than 100 MB: is this a CSV or TSV file, and is every quote closed?`,
      );
  }

  #checkCells(cells: number): void {
    if (cells > MOST_CELLS)
      throw new CsvProblem(`${this.#row()} has more than ${number(MOST_CELLS)} columns: is this a CSV or TSV file?`);
  }

  #endsTooEarly(): CsvProblem {
    return new CsvProblem(
      `${this.#row()} opens a quote${this.#column()} that ends in the middle of a value: a quote within quotes is written twice, and is every quote closed?`,
    );
  }

  /** The open row, in words. */
  #row(): string {
    return this.#names === undefined ? 'its first line' : `the row that begins in line ${number(this.#begin)}`;
  }

  /** The column of the open value, in words; nothing where that has no name. */
  #column(): string {
    const name = this.#names?.[this.#values.length];
    return name === undefined ? '' : ` in column [${name}]`;
  }
}

function rowOf(names: readonly string[], values: readonly string[], line: number): CsvRow {
  // Spreadsheets end lines with separators.
  const isFull = values.length >= names.length && values.slice(names.length).every((value) => value.trim() === '');
  if (isFull)
    return { line, values: Object.fromEntries(names.map((name, at) => [name, values[at] ?? ''])), problem: undefined };
  const own = values.length === 1 ? '1 column' : `${number(values.length)} columns`;
  const problem = `it has ${own}, and the first line has ${number(names.length)}: a value with a separator in it is written in quotes`;
  return { line, values: undefined, problem };
}

function checkedNames(names: readonly string[]): string[] {
  const trimmed = names.map((name, at) => name.trim() || `column ${String(at + 1)}`);
  if (trimmed.length > MOST_NAMES)
    throw new CsvProblem(
      `its first line has ${number(trimmed.length)} columns, at most ${number(MOST_NAMES)} can be read`,
    );
  const seen = new Set<string>();
  const twice = trimmed.find((name) => seen.size === seen.add(name).size);
  if (twice !== undefined) throw new CsvProblem(`its first line has the column [${twice}] twice`);
  return trimmed;
}

function breaksIn(value: string): number {
  const breaks = /\r\n|[\r\n]/g;
  let count = 0;
  while (breaks.exec(value) !== null) count += 1;
  return count;
}

function number(value: number): string {
  return value.toLocaleString('en-US');
}
