// The examples of docs/integrations.md: whole programs, each with what it prints.
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { fences, read } from '../documentation/pages.js';
import type { RunningServer } from '../support/server.js';

export interface PageExample {
  /** The heading that it is under. */
  readonly title: string;
  readonly language: string;
  readonly text: string;
  /** What the page says that it prints. */
  readonly answer: string;
}

/** The examples in some languages, in the order of the page. */
export function examplesIn(...languages: string[]): PageExample[] {
  const page = read('docs/integrations.md');
  const blocks = fences(page);
  const headings = page.split('\n');
  return blocks.flatMap(({ language, mark, text, line }, at) => {
    if (!languages.includes(language) || mark !== '') return [];
    const answer = blocks[at + 1];
    if (answer?.mark !== 'answer') throw new Error(`line ${String(line)}: the example has no answer`);
    const title = headings.slice(0, line).findLast((text) => text.startsWith('### ')) ?? '';
    return [{ title: title.replace('### ', ''), language, text, answer: answer.text }];
  });
}

/** A folder in which examples find the data of a server. */
export class ReaderFolder {
  readonly path = mkdtempSync(join(tmpdir(), 'sparrow-integrations-'));
  readonly #server: RunningServer;

  constructor(server: RunningServer) {
    this.#server = server;
    symlinkSync(server.data, join(this.path, 'data'));
  }

  /** Writes an example into a file, with the address of the server in place of that of the page. */
  write(example: PageExample, file: string): string {
    writeFileSync(file, `${example.text.replaceAll('http://localhost:9200', this.#server.url)}\n`);
    return file;
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}
