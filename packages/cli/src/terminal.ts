import process from 'node:process';

/** What a command writes to, and whether a person looks at it. */
export interface Terminal {
  /** For what was asked for. */
  readonly out: Sink;
  /** For everything else: progress, notes, errors. */
  readonly err: Sink;
}

export interface Sink {
  /** On a terminal, what would steer it is shown instead: documents, names and errors come from anybody. */
  write(text: string): void;
  /** Moves the cursor and takes away what stands there, with the terminal's own sequences. */
  steer(sequences: string): void;
  /** Whether a person sees it as it is written: then there are colours, bars and redrawing. */
  readonly isTerminal: boolean;
  /** Characters of a line. */
  readonly columns: number;
  readonly bold: Paint;
  readonly dim: Paint;
  readonly accent: Paint;
  readonly good: Paint;
  readonly bad: Paint;
}

type Paint = (text: string) => string;

/** The process' own streams. */
export function terminal(): Terminal {
  return { out: sink(process.stdout), err: sink(process.stderr) };
}

/** Longest line that is easy to read. */
const WIDEST = 160;
const USUAL = 100;

/** Colours of a sink's own, every character that a terminal takes for an order, and those that turn a line round or are not seen. */
const ORDERS =
  // eslint-disable-next-line no-control-regex -- those are what it is about
  /\u001b\[(?:0|1|2|31|32|33)m|[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** A text whose characters that steer a terminal are replaced by signs for them; colours and line breaks stay. */
export function harmless(text: string): string {
  return text.replaceAll(ORDERS, (found) => (found.length > 1 ? found : signOf(found)));
}

/** What ends a line, or is not seen in it. */
const BREAKS = /[\t\n\v\f\r\u0085\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** A text from elsewhere that is to stay within its line: signs for what would end the line, turn it round or hide in it. */
export function inLine(text: string): string {
  return text.replaceAll(BREAKS, signOf);
}

function signOf(found: string): string {
  const code = found.charCodeAt(0);
  return code < 0x20 ? String.fromCharCode(0x2400 + code) : '\ufffd';
}

/** Where a command writes. A terminal that does not know its width, such as that of `script`, gets the usual one. */
export function sink(stream: Pick<NodeJS.WriteStream, 'isTTY' | 'columns' | 'write'>): Sink {
  // `isTTY` is undefined for files and pipes, whatever its type says.
  const isTerminal = (stream.isTTY as boolean | undefined) === true;
  const { NO_COLOR: noColour = '', TERM: kind } = process.env;
  const isColoured = isTerminal && noColour === '' && kind !== 'dumb';
  const paint = (code: string): Paint => (isColoured ? (text) => `\u001b[${code}m${text}\u001b[0m` : (text) => text);
  return {
    write: (text) => {
      stream.write(isTerminal ? harmless(text) : text);
    },
    steer: (sequences) => {
      if (isTerminal) stream.write(sequences);
    },
    isTerminal,
    columns: isTerminal ? Math.min(WIDEST, stream.columns || USUAL) : USUAL,
    bold: paint('1'),
    dim: paint('2'),
    accent: paint('33'),
    good: paint('32'),
    bad: paint('31'),
  };
}

export function number(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}

/** A number of things: `1 document`, `2,000 documents`. */
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${number(value)} ${value === 1 ? one : many}`;
}

export function bytes(value: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  const power = Math.min(units.length - 1, value < 1 ? 0 : Math.floor(Math.log10(value) / 3));
  const scaled = value / 1000 ** power;
  return `${power > 0 && scaled < 10 ? scaled.toFixed(1) : String(Math.round(scaled))} ${units[power] ?? ''}`;
}

/** A time for people: `350 ms`, `12.3 s`, `4 min`, `2.5 h`, `3 d`. */
export function duration(ms: number): string {
  if (ms < 1000) return `${String(Math.round(ms))} ms`;
  if (ms < 100_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 5_400_000) return `${String(Math.round(ms / 60_000))} min`;
  return ms < 172_800_000 ? `${(ms / 3_600_000).toFixed(1)} h` : `${String(Math.round(ms / 86_400_000))} d`;
}

/** Rows as aligned columns under a heading. Columns of numbers, by the heading's name in `right`, are set to the right. */
export function table(
  sink: Sink,
  heading: readonly string[],
  rows: readonly (readonly string[])[],
  right = '',
): string {
  const numeric = new Set(right.split(' '));
  const safe = rows.map((row) => row.map(inLine));
  const widths = heading.map((name, at) => Math.max(name.length, ...safe.map((row) => visible(row[at] ?? ''))));
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, at) => {
        const gap = ' '.repeat(Math.max(0, (widths[at] ?? 0) - visible(cell)));
        return numeric.has(heading[at] ?? '') ? gap + cell : cell + gap;
      })
      .join('  ')
      .trimEnd();
  return [sink.bold(line(heading)), ...safe.map(line)].map((text) => `${text}\n`).join('');
}

/** How many characters of a text are seen. */
function visible(text: string): number {
  // eslint-disable-next-line no-control-regex -- what colours begin with
  return text.replaceAll(/\u001b\[\d+m/g, '').length;
}

/** A text on one line, cut to a width. */
export function oneLine(text: string, width: number): string {
  const flat = text.replaceAll(/\s+/g, ' ').trim();
  return flat.length > width ? `${flat.slice(0, width - 1)}…` : flat;
}
