// What the command line of an import says about each file: its format, its index, and the options that a later import has to repeat.
import { stat } from 'node:fs/promises';
import { basename } from 'node:path';

import type { Vectors } from './documents/file-mapping.js';
import { asIndexName } from './documents/index-name.js';
import { NO_TEXT_NAME, SPREADSHEET } from './documents/no-text.js';
import type { ServerOptions } from './context.js';
import type { Encoding } from './encoding.js';
import { CommandError, UsageError } from './errors.js';
import { FORMATS, type Format, formatOf } from './records.js';
import { commandName, shellWord } from './shell.js';

/** What `sparrow import` is told. */
export interface ImportOptions extends ServerOptions {
  readonly index?: string;
  readonly format?: Format;
  readonly encoding: Encoding;
  readonly id?: string;
  /** False: nothing is searched by meaning. */
  readonly semantic?: readonly string[] | false;
  readonly vectors?: Vectors;
  readonly pipeline?: string;
  readonly batch: number;
  readonly follow?: boolean;
  readonly restart?: boolean;
}

/**
 * A folder may hold files of any kind, and each of them goes into an index: which ones are meant, the shell is told better.
 *
 * @throws {UsageError} that says how to load many files
 */
export async function refuseFolder(file: string): Promise<void> {
  if (file === '-' || (await stat(file).catch(() => undefined))?.isDirectory() !== true) return;
  throw new UsageError(
    `${file} is a folder: name the files in it, as in ${commandName()} import ${shellWord(file.replace(/\/+$/, ''))}/*.csv; each is loaded into an index of the same name, or all into one with --index`,
  );
}

/**
 * The format of a file: the one that the options say, or that its name says.
 *
 * @throws {UsageError} where neither says one
 */
export function knownFormat(file: string, { format }: Pick<ImportOptions, 'format'>): Format {
  const known = format ?? formatOf(file);
  if (known === undefined && SPREADSHEET.test(file))
    throw new UsageError(`${file} is a spreadsheet, which Sparrow cannot read: save it as CSV, and import that file`);
  if (known === undefined && NO_TEXT_NAME.test(file))
    throw new UsageError(`${file} is not a plain text: save what it says as text or Markdown, and import that file`);
  if (known === undefined)
    throw new UsageError(
      `${file === '-' ? 'standard input' : file}: say with --format whether it is ${FORMATS.join(', ')}`,
    );
  return known;
}

/**
 * The index that a file is loaded into: the one that the options say, or one that is named after the file.
 *
 * @throws {UsageError} where there is no name to be had
 */
export function nameOf(file: string, { index }: Pick<ImportOptions, 'index'>): string {
  if (index !== undefined) return index;
  if (file === '-') throw new UsageError('standard input needs --index');
  const stem = basename(file)
    .replace(/\.gz$/i, '')
    .replace(/\.[^.]+$/, '');
  const name = asIndexName(stem).replace(/^[-_.]+/, '');
  if (name === '') throw new UsageError(`${file}: an index cannot be named after this file: name one with --index`);
  return name;
}

/** The options on which ids and fields of the documents depend, as they are written on a command line. */
export function recordedOptions({ encoding, id, semantic, vectors, pipeline }: ImportOptions): string {
  const words = [
    ...(encoding === 'utf-8' ? [] : ['--encoding', encoding]),
    ...(id === undefined ? [] : ['--id', id]),
    ...(semantic === undefined
      ? []
      : semantic === false
        ? ['--no-semantic']
        : ['--semantic', ...[...new Set(semantic)].sort()]),
    ...(vectors === undefined || vectors === 'hybrid' ? [] : ['--vectors', vectors]),
    ...(pipeline === undefined ? [] : ['--pipeline', pipeline]),
  ];
  return words.map(shellWord).join(' ');
}

export function otherOptions(before: string, now: string): CommandError {
  const said = (options: string): string => (options === '' ? 'without options' : `with ${options}`);
  return new CommandError(
    `it was imported ${said(before)} before, and this command is ${said(now)}: use the same options again, or add --restart to import all of it again; documents that have other ids stay`,
  );
}
