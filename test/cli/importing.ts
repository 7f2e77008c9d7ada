// A server for the tests of a file, and imports into it.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { expect } from 'vitest';

import { type Served, serveNothing } from './served.js';
import { type Ended, sparrow } from './support.js';

export interface Importing extends Pick<Served, 'server' | 'folder'> {
  readonly run: (...args: string[]) => Promise<Ended>;
  /** Runs an import that should work; gives what became of its only file. */
  readonly imported: (...args: string[]) => Promise<any>;
  /** Writes a file into the folder; gives its path. */
  readonly file: (name: string, text: string | Buffer) => Promise<string>;
  readonly count: (index: string) => Promise<number>;
  /** Up to a hundred documents of an index, in the order in which they were written. */
  readonly documents: (index: string) => Promise<readonly { readonly _id: string; readonly _source: any }[]>;
}

/** Starts an empty server; it ends with the tests of the file. */
export async function importing(): Promise<Importing> {
  const { server, folder } = await serveNothing();
  const run = (...args: string[]): Promise<Ended> =>
    sparrow(['import', ...args, '--url', server.url, '--data', server.data]);
  return {
    server,
    folder,
    run,
    imported: async (...args) => {
      const { code, stdout, stderr } = await run(...args, '--json');
      expect([code, stderr]).toEqual([0, '']);
      return JSON.parse(stdout)[0];
    },
    file: async (name, text) => {
      const path = join(folder, name);
      await writeFile(path, text);
      return path;
    },
    count: async (index) => (await server.request('GET', `/${index}/_count`)).body.count,
    documents: async (index) =>
      (await server.request('POST', `/${index}/_search`, { size: 100, sort: ['_doc'] })).body.hits.hits,
  };
}

/** Documents as JSON lines. */
export function lines(rows: readonly object[]): string {
  return rows.map((row) => `${JSON.stringify(row)}\n`).join('');
}

/** Documents with the numbers from one up to another, without the latter. */
export function numbered(from: number, to: number): { readonly n: number }[] {
  return Array.from({ length: to - from }, (_, n) => ({ n: from + n }));
}
