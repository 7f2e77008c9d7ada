import { SparrowError } from '@sparrow-search/engine';

import { CommandError } from './errors.js';
import { type Sink, counted, duration, inLine, number } from './terminal.js';

/** Files that are named where one of several fails. */
const MOST_NAMED = 10;

/** What became of a file. */
export interface Imported {
  readonly file: string;
  readonly index: string;
  readonly written: number;
  /** Those of them that took the place of a document with the same id: one that was there, or one of the file itself. */
  readonly replaced: number;
  readonly rejected: number;
  /** Documents that an earlier run had done, or that were there already for a key that may replace none. */
  readonly skipped: number;
  /** The fields whose texts this import made to be searched by meaning. */
  readonly semantic: readonly string[];
  readonly truncated_texts: number;
  /** What else is to be known about it: sentences without their full stops. */
  readonly notes: readonly string[];
  readonly ms: number;
  readonly interrupted: boolean;
}

/** An error in a file, with what became of the others. */
export function amongFiles(error: unknown, files: readonly string[], done: number): unknown {
  if (files.length === 1 || !(error instanceof CommandError || error instanceof SparrowError)) return error;
  const named = (some: readonly string[]): string =>
    `${some.slice(0, MOST_NAMED).join(', ')}${some.length > MOST_NAMED ? ' …' : ''}`;
  const [before, after] = [files.slice(0, done), files.slice(done + 1)];
  const others = [
    ...(before.length === 0 ? [] : [`done: ${named(before)}`]),
    ...(after.length === 0 ? [] : [`not begun: ${named(after)}`]),
  ];
  const file = files[done] ?? '';
  const what = error.message.includes(file) ? error.message : `${file}: ${error.message}`;
  return new CommandError(
    `${what}; ${others.join('; ')}; once that is fixed, run the same command again: it continues with ${file}`,
    {
      cause: error,
    },
  );
}

/** The line about a file. */
export function described(out: Sink, one: Imported, follow: boolean): string {
  const {
    file,
    index,
    written,
    replaced,
    rejected,
    skipped,
    semantic,
    truncated_texts: cut,
    notes,
    ms,
    interrupted,
  } = one;
  const more = [
    semantic.length > 0 ? `searched by meaning in ${semantic.map(inLine).join(', ')}` : '',
    replaced > 0 ? `${number(replaced)} replaced` : '',
    rejected > 0 ? out.bad(`${number(rejected)} rejected`) : '',
    skipped > 0 ? `${number(skipped)} ${skipped === 1 ? 'was' : 'were'} there already` : '',
    cut > 0 ? `${counted(cut, 'text')} beyond the model's limit ${cut === 1 ? 'was' : 'were'} truncated` : '',
    interrupted && !follow ? 'interrupted: run this again to go on' : '',
  ].filter((text) => text !== '');
  const rate = written === 0 ? '' : ` (${number((1000 * written) / Math.max(1, ms))}/s)`;
  return `${inLine(file)}: ${counted(written, 'document')} in [${index}] in ${duration(ms)}${rate}${more.map((text) => `, ${text}`).join('')}\n${notes.map((note) => `  ${inLine(note)}\n`).join('')}`;
}
