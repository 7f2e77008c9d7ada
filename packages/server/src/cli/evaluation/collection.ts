import { createReadStream, existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { createGunzip } from 'node:zlib';

import { CommandError } from '../errors.js';
import type { Grades } from '../ranking-metrics.js';

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
  const [plain, zipped] = [join(directory, name), join(directory, `${name}.gz`)];
  const isZipped = existsSync(zipped);
  if (!isZipped && !existsSync(plain)) throw new CommandError(`${directory} holds no ${name} or ${name}.gz`);
  const input = isZipped ? createReadStream(zipped).pipe(createGunzip()) : createReadStream(plain);
  let at = 0;
  for await (const line of createInterface({ input })) {
    at += 1;
    if (line === '') continue;
    const row = parsed(line);
    if (row === undefined) {
      throw new CommandError(
        `${directory}: line ${String(at)} of ${name} is no JSON object with the texts _id and text`,
      );
    }
    yield row;
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

/** The judgements of a folder, of its test set if there are several, and the name of their file. */
export function readJudgements(directory: string): { readonly file: string; readonly judgements: Judgements } {
  let files: string[];
  try {
    files = readdirSync(directory).filter((name) => /^qrels\..*\.tsv$/.test(name));
  } catch (cause) {
    throw new CommandError(`cannot read ${directory} (${(cause as NodeJS.ErrnoException).code ?? ''})`, { cause });
  }
  const file = ['qrels.test.tsv', 'qrels.dev.tsv', ...files].find((name) => files.includes(name));
  if (file === undefined) throw new CommandError(`${directory} holds no qrels.<split>.tsv`);
  const judgements = new Map<string, Map<string, number>>();
  for (const line of readFileSync(join(directory, file), 'utf8').split('\n').slice(1)) {
    const [query = '', document, grade] = line.split('\t');
    if (document === undefined || !(Number(grade) > 0)) continue;
    const grades = judgements.get(query) ?? new Map<string, number>();
    judgements.set(query, grades.set(document, Number(grade)));
  }
  return { file, judgements };
}
