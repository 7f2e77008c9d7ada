// The pages of docs/ as the tests of this folder read them.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

export const read = (page: string): string => readFileSync(join(ROOT, page), 'utf8');

/** The Markdown files of a folder and of those in it, as paths from the root of the repository. */
export function pagesUnder(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `${folder}/${name.replaceAll('\\', '/')}`)
    .toSorted();
}

/** A fenced block. */
export interface Fence {
  /** The first word behind the fence. */
  readonly language: string;
  /** What follows it on the line: `answer`, or `not-run="why"`. */
  readonly mark: string;
  readonly text: string;
  /** Line of the page on which the block begins, from 1. */
  readonly line: number;
  /** Whether only blank lines lie between this block and the one before. */
  readonly joined: boolean;
}

export function fences(markdown: string): Fence[] {
  const found: Fence[] = [];
  const lines = markdown.split('\n');
  let end = -1;
  for (let at = 0; at < lines.length; at += 1) {
    const opening = /^( *)(`{3,})(\S*)\s*(.*)$/.exec(lines[at] ?? '');
    if (opening === null) continue;
    const [, indent = '', ticks = '', language = '', mark = ''] = opening;
    const close = lines.findIndex((line, number) => number > at && line.trim() === ticks);
    if (close === -1) throw new Error(`the block of line ${String(at + 1)} has no end`);
    const joined = end !== -1 && lines.slice(end + 1, at).every((line) => line.trim() === '');
    const text = lines.slice(at + 1, close).map((line) => line.replace(indent, ''));
    found.push({ language, mark: mark.trim(), text: text.join('\n'), line: at + 1, joined });
    end = close;
    at = close;
  }
  return found;
}

/** What a table says, row by row, cell by cell; the heading and the line below it are left out. */
export function rowsOf(table: string): string[][] {
  return table
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .slice(2)
    .map((line) =>
      line
        .slice(1, -1)
        .split(/(?<!\\)\|/)
        .map((cell) => cell.trim()),
    );
}
