import type { SearchEngine } from '@sparrow-search/engine';

import { readIfPresent, replaceFile } from './durable-file.js';

/** Where a text is kept that stands for all things of a kind, such as API keys: with every change it is written anew. */
export interface StoredText {
  /** What the text is called in a sentence. */
  readonly path: string;
  /** Whether other servers change it too. */
  readonly isShared: boolean;
  read(): Promise<string | undefined>;
  /** Says whether the text is still what was read last. */
  isCurrent(): Promise<boolean>;
  /** Writes a text, which comes in pieces, in place of the one that was read last; says whether that was still the one. */
  replace(pieces: AsyncIterable<Uint8Array>): Promise<boolean>;
}

/**
 * The text in a file of the data directory, which is this server's alone.
 *
 * @param loss how the server would start without the file, for the error when it cannot be read
 */
export function textInFile(path: string, loss: string): StoredText {
  return {
    path,
    isShared: false,
    read: () => readIfPresent(path, loss),
    isCurrent: () => Promise.resolve(true),
    replace: async (pieces) => {
      await replaceFile(path, pieces);
      return true;
    },
  };
}

/** A place for texts that several servers have in common, each writing of which has a version. */
interface Place {
  read(id: string): Promise<{ readonly text: string; readonly version: Version } | undefined>;
  version(id: string): Promise<Version | undefined>;
  write(id: string, text: string, before: Version | undefined): Promise<Version>;
}

interface Version {
  readonly seqNo: number;
  readonly term: number;
}

/**
 * The text where the servers over one cluster have it in common; undefined for an engine that shares nothing.
 *
 * @param id its name there
 * @param what of which it is the list, in a sentence
 */
export function sharedText(engine: SearchEngine, id: string, what: string): StoredText | undefined {
  const place = (engine as { readonly state?: Place }).state;
  if (place === undefined) return undefined;
  let last: Version | undefined;
  return {
    path: `the list of ${what} in the cluster`,
    isShared: true,
    read: async () => {
      const found = await place.read(id);
      last = found?.version;
      return found?.text;
    },
    isCurrent: async () => {
      const now = await place.version(id);
      return now?.seqNo === last?.seqNo && now?.term === last?.term;
    },
    replace: async (pieces) => {
      const text = await whole(pieces);
      try {
        last = await place.write(id, text, last);
        return true;
      } catch (error) {
        if (error instanceof Error && error.name === 'Conflict') return false;
        throw error;
      }
    },
  };
}

async function whole(pieces: AsyncIterable<Uint8Array>): Promise<string> {
  const all: Uint8Array[] = [];
  for await (const piece of pieces) all.push(piece);
  return Buffer.concat(all).toString('utf8');
}
