import { createReadStream, existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { createGunzip } from 'node:zlib';

import { fileProblem } from '@sparrow-search/engine';
import type { Grades } from '@sparrow-search/evaluation';

import { CommandError } from '../errors.js';
import { linesOf } from '../lines.js';
import { inLine } from '../terminal.js';

/** A line of `corpus.jsonl` or `queries.jsonl`. */
export interface Row {
  readonly _id: string;
  readonly title?: string;
  readonly text: string;
}

/** For each query by its id, the relevant documents. */
export type Judgements = ReadonlyMap<string, Grades>;

/**
 * Rows of a file of JSON lines, zipped or not.
 *
 * @throws {CommandError} if there is no such file, or a line of it is no row
 */
export async function* rows(directory: string, name: string): AsyncGenerator<Row> {
  for await (const { row } of numbered(directory, name)) yield row;
}

/** A query that is judged. */
export interface JudgedQuery {
  readonly text: string;
  readonly grades: Grades;
}

/**
 * The first `limit` queries of `queries.jsonl` that are judged. The rest of the file is not read.
 *
 * @throws {CommandError} if there is no such file, a line of it is no row, or a judged query comes a second time
 */
export async function* judgedQueries(
  directory: string,
  judgements: Judgements,
  limit: number,
): AsyncGenerator<JudgedQuery> {
  const name = 'queries.jsonl';
  const seen = new Set<string>();
  for await (const { row, line } of numbered(directory, name)) {
    const grades = judgements.get(row._id);
    if (grades === undefined) continue;
    if (seen.has(row._id)) {
      throw new CommandError(inLine(`${directory}: line ${String(line)} of ${name} repeats the _id ${row._id}`));
    }
    seen.add(row._id);
    yield { text: row.text, grades };
    if (seen.size >= limit) return;
  }
}

/** Rows with the numbers of their lines, from 1. */
async function* numbered(
  directory: string,
  name: string,
): AsyncGenerator<{ readonly row: Row; readonly line: number }> {
  const [plain, zipped] = [join(directory, name), join(directory, `${name}.gz`)];
  const isZipped = existsSync(zipped);
  if (!isZipped && !existsSync(plain)) throw new CommandError(`${directory} holds no ${name} or ${name}.gz`);
  const file = createReadStream(isZipped ? zipped : plain);
  const input = isZipped ? file.pipe(createGunzip()) : file;
  // A pipe hands errors of its source to nobody.
  file.on('error', (error) => input.destroy(error));
  let line = 0;
  try {
    const tooLong = (): CommandError =>
      new CommandError(
        `${directory}: line ${String(line + 1)} of ${name} is longer than 100 MB: is it a file of lines?`,
      );
    for await (const json of linesOf(input as AsyncIterable<Buffer>, LONGEST_LINE, tooLong)) {
      line += 1;
      if (json.trim() === '') continue;
      const row = parsed(json);
      if (row === undefined) {
        throw new CommandError(
          `${directory}: line ${String(line)} of ${name} is not a JSON object in which _id and text are strings`,
        );
      }
      yield { row, line };
    }
  } catch (error) {
    throw error instanceof CommandError ? error : unreadable(directory, isZipped ? `${name}.gz` : name, error);
  } finally {
    input.destroy();
    file.destroy();
  }
}

function parsed(line: string): Row | undefined {
  try {
    const row = JSON.parse(line) as Partial<Row> | null;
    return typeof row?._id === 'string' && typeof row.text === 'string' ? (row as Row) : undefined;
  } catch {
    return undefined;
  }
}

/** Longest line, in bytes: what the server takes in one request. */
const LONGEST_LINE = 100 * 1024 * 1024;

/** Longest file of judgements, in bytes: it is read as one text, which cannot be much longer. */
const MOST_JUDGEMENTS = 256 * 1024 * 1024;

/** How relevant a document may be said to be: sums of grades stay numbers. */
const HIGHEST_GRADE = 1000;

function contentOf(directory: string, file: string): string {
  try {
    if (statSync(join(directory, file)).size > MOST_JUDGEMENTS)
      throw new CommandError(`${directory}: ${file} is larger than 256 MB`);
    return readFileSync(join(directory, file), 'utf8');
  } catch (cause) {
    throw cause instanceof CommandError ? cause : unreadable(directory, file, cause);
  }
}

function unreadable(directory: string, file: string, cause: unknown): CommandError {
  return new CommandError(`cannot read ${join(directory, file)}: ${fileProblem(cause)}`, { cause });
}

/** The judgements of a folder, of its test set if there are several, and the name of their file. */
export function readJudgements(directory: string): { readonly file: string; readonly judgements: Judgements } {
  let files: string[];
  try {
    files = readdirSync(directory).filter((name) => /^qrels\..*\.tsv$/.test(name));
  } catch (cause) {
    throw new CommandError(`cannot read ${directory}: ${fileProblem(cause)}`, { cause });
  }
  const file = ['qrels.test.tsv', 'qrels.dev.tsv', ...files].find((name) => files.includes(name));
  if (file === undefined) throw new CommandError(`${directory} holds no qrels.<split>.tsv`);
  const judgements = new Map<string, Map<string, number>>();
  const lines = contentOf(directory, file).split(/\r?\n/);
  for (const [at, line] of lines.entries()) {
    const [query = '', document, grade] = line.split('\t');
    if (line === '') continue;
    if (document === undefined || grade === undefined || Number.isNaN(Number(grade))) {
      // A heading, which a file may have or not.
      if (at === 0) continue;
      throw new CommandError(
        `${directory}: line ${String(at + 1)} of ${file} is not a query id, a document id and a grade, separated by tabs`,
      );
    }
    if (Number(grade) <= 0) continue;
    if (Number(grade) > HIGHEST_GRADE) {
      throw new CommandError(
        `${directory}: line ${String(at + 1)} of ${file} has a grade above ${String(HIGHEST_GRADE)}`,
      );
    }
    const grades = judgements.get(query) ?? new Map<string, number>();
    judgements.set(query, grades.set(document, Number(grade)));
  }
  return { file, judgements };
}
