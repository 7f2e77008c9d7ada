// The search of the documentation, answered by Sparrow: an engine of its own holds the sections of the pages, in memory of its own and in
// a folder that goes with it. It opens with the first question and closes when nobody has asked for a while, so that a server whose
// documentation nobody searches has none of it, and no index of anybody is touched.
import { rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { type Index, NativeSearchEngine, type Query, Sparrow } from '@sparrow-search/engine';

/** A part of a page, from one heading to the next. */
export interface Section {
  /** Its address behind `/_docs/`, with the anchor of its heading. */
  readonly address: string;
  readonly title: string;
  readonly heading: string;
  readonly text: string;
}

/** A section that was found. */
export interface Found extends Section {
  /** What it says, with the words that were looked for between {@link MARK} and {@link UNMARK}. */
  readonly passage: string;
}

/** Signs that no page has. */
export const MARK = '\u0001';
export const UNMARK = '\u0002';

const HITS = 15;
const PASSAGE_LETTERS = 240;
/** After so many milliseconds without a question the engine closes. */
const IDLE_MS = 300_000;

const text = { type: 'text', analyzer: 'english' } as const;
const MAPPINGS = { properties: { address: { type: 'keyword' }, title: text, heading: text, text } } as const;

interface Opened {
  readonly index: Index<Section>;
  readonly close: () => Promise<void>;
}

let opened: Promise<Opened> | undefined;
let closing: NodeJS.Timeout | undefined;

/**
 * The sections that answer a question best, the best first.
 *
 * @param sections all that there are; asked for when the engine opens
 * @throws {SparrowError} when more is asked at once than it can do
 */
export async function searchSections(question: string, sections: () => readonly Section[]): Promise<readonly Found[]> {
  clearTimeout(closing);
  opened ??= open(sections()).catch((error: unknown) => {
    opened = undefined;
    throw error;
  });
  const { index } = await opened;
  const { hits } = await index.search({
    query: queryFor(question),
    size: HITS,
    highlight: {
      ...{ pre_tags: [MARK], post_tags: [UNMARK], require_field_match: false },
      fields: { text: { number_of_fragments: 1, fragment_size: PASSAGE_LETTERS, no_match_size: PASSAGE_LETTERS } },
    },
  });
  clearTimeout(closing);
  closing = setTimeout(() => void closeSearch(), IDLE_MS).unref();
  return hits.hits.map(({ _source: section, highlight }) => ({
    ...section,
    passage: highlight?.['text']?.[0] ?? '',
  }));
}

/** Closes the engine, if it is open. */
export async function closeSearch(): Promise<void> {
  clearTimeout(closing);
  const open = opened;
  opened = undefined;
  await open?.then(({ close }) => close()).catch(() => undefined);
}

/** All words in one of the fields or in several together; those that stand together, or in a heading, count more. */
function queryFor(query: string): Query {
  const fields = ['title^2', 'heading^3', 'text'];
  return {
    bool: {
      must: [{ multi_match: { query, fields, type: 'cross_fields' } }],
      should: [{ multi_match: { query, fields: ['heading^2', 'text'], type: 'phrase' } }],
    },
  };
}

async function open(sections: readonly Section[]): Promise<Opened> {
  const folder = await mkdtemp(join(tmpdir(), 'sparrow-docs-'));
  const remove = (): void => {
    rmSync(folder, { recursive: true, force: true });
  };
  // Whoever ends the process does not wait for what closes by itself.
  process.once('exit', remove);
  const engine = await NativeSearchEngine.open({
    data: join(folder, 'data'),
    models: [],
    threads: 1,
    deployAtStart: false,
  });
  const close = async (): Promise<void> => {
    await engine.close();
    process.off('exit', remove);
    await rm(folder, { recursive: true, force: true });
  };
  try {
    const index = Sparrow.over(engine).index<Section>('documentation');
    await index.ensure({ mappings: MAPPINGS });
    await index.bulk(sections, { refresh: true });
    return { index, close };
  } catch (error) {
    await close();
    throw error;
  }
}
