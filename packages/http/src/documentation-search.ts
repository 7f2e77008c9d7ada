// The search of the documentation, answered by Sparrow: an engine of its own holds the sections of the pages, in memory of its own and in
// a folder of the data directory that goes with it. It opens with the first question and closes when nobody has asked for a while, so that
// a server whose documentation nobody searches has none of it, and no index of anybody is touched.
import { rmSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';

import {
  type Index,
  type Query,
  type Retriever,
  NativeSearchEngine,
  Sparrow,
  embeddedModels,
} from '@sparrow-search/engine';

import { FairQueue, type Sender } from './exchange/fair-queue.js';

/** A part of a page, from one heading to the next. */
export interface Section {
  /** URL of the section relative to `/_docs/`, with the anchor of its heading. */
  readonly address: string;
  readonly title: string;
  readonly heading: string;
  readonly text: string;
}

/** A section that was found. */
export interface Found extends Section {
  /** An excerpt of the section's text, at most about 240 letters long. Each word of the question stands between {@link MARK} and {@link UNMARK}. */
  readonly passage: string;
}

/** What a question finds. */
export interface Answered {
  /** The best sections, the best first. */
  readonly found: readonly Found[];
  /** Whether a page has a word of the question: what is only near in meaning may be about something else. */
  readonly hasWords: boolean;
}

/** Signs that no page has. */
export const MARK = '\u0001';
export const UNMARK = '\u0002';

/** The index in its engine. */
const NAME = 'documentation';
const HITS = 15;
/** How far down the lists of both ways count. */
const RANKED = 50;
const PASSAGE_LETTERS = 240;
/** After so many milliseconds without a question the engine closes. */
const IDLE_MS = 300_000;
/** The folder in a data directory. What a process that was killed leaves there goes with the next question. */
const FOLDER = 'documentation';

const gunzipped = promisify(gunzip);

const text = { type: 'text', analyzer: 'english' } as const;
/** Compared one by one: there are fewer than a thousand. */
const meaning = { type: 'dense_vector', similarity: 'cosine', index_options: { type: 'flat' } } as const;
const MAPPINGS = { properties: { address: { type: 'keyword' }, title: text, heading: text, text, meaning } } as const;
/** The endpoint of the model that has made the vectors of the build; it starts with the first question. */
const MODEL = '.all-minilm-l6-v2-elasticsearch';

/** Questions need no key, so there may be any number of them: one is answered after the other. */
const queue = new FairQueue({
  what: 'questions to the documentation',
  advice: 'ask again later',
  ofCaller: 2,
  together: 20,
});

/** By the data directory, of which a process may have several open, and several applications over one. */
const searches = new Map<string, DocumentationSearch>();

/**
 * The sections that answer a question best, by words and by meaning.
 *
 * @param sections the file with all that there are, as the body of a bulk request, in gzip; read when the engine opens
 * @param data the data directory
 * @throws {HttpError} 429 when too many questions wait, 400 when the client left before its turn
 * @throws {SparrowError} what the engine refuses
 */
export function searchSections(question: string, sections: URL, data: string, sender: Sender): Promise<Answered> {
  return queue.run(sender, () => {
    let search = searches.get(data);
    if (search === undefined) searches.set(data, (search = new DocumentationSearch(join(data, FOLDER), sections)));
    return search.find(question);
  });
}

/** Closes the engine of a data directory, if it is open, and removes its folder. */
export async function closeSearch(data: string): Promise<void> {
  await searches.get(data)?.close();
  searches.delete(data);
}

interface Opened {
  readonly index: Index<Section>;
  readonly close: () => Promise<void>;
}

class DocumentationSearch {
  #opened: Promise<Opened> | undefined;
  /** Settles once the last engine has left the folder. */
  #closed: Promise<void> = Promise.resolve();
  #idle: NodeJS.Timeout | undefined;

  constructor(
    private readonly folder: string,
    private readonly sections: URL,
  ) {}

  async find(question: string): Promise<Answered> {
    clearTimeout(this.#idle);
    try {
      this.#opened ??= this.#open();
      const { index } = await this.#opened;
      const words = await index.search({ query: queryFor(question), size: 0 });
      const shown = {
        size: HITS,
        _source: { excludes: ['meaning'] },
        highlight: {
          ...{ pre_tags: [MARK], post_tags: [UNMARK], require_field_match: false },
          fields: { text: { number_of_fragments: 1, fragment_size: PASSAGE_LETTERS, no_match_size: PASSAGE_LETTERS } },
        },
      };
      // Where the model cannot run, for want of memory for example, the words still answer.
      const { hits } = await index
        .search({ ...shown, retriever: retrieverFor(question) })
        .catch(() => index.search({ ...shown, query: queryFor(question) }));
      const found = hits.hits.map(({ _source: section, highlight }) => ({
        ...section,
        passage: highlight?.['text']?.[0] ?? '',
      }));
      return { found, hasWords: words.hits.total?.value !== 0 };
    } finally {
      // Whatever happened: an engine that is open closes some time.
      clearTimeout(this.#idle);
      this.#idle = setTimeout(() => void this.close(), IDLE_MS).unref();
    }
  }

  #open(): Promise<Opened> {
    const opening = this.#closed.then(() => open(this.folder, this.sections));
    // A failure is no engine: the disk may have room again when somebody asks the next time.
    opening.catch(() => {
      if (this.#opened === opening) this.#opened = undefined;
    });
    return opening;
  }

  close(): Promise<void> {
    clearTimeout(this.#idle);
    const open = this.#opened;
    this.#opened = undefined;
    if (open !== undefined) this.#closed = open.then(({ close }) => close()).catch(() => undefined);
    return this.#closed;
  }
}

/** By words and by meaning. A question costs one pass of the dense model over its words, some milliseconds: anybody may ask. */
function retrieverFor(question: string): Retriever {
  const nearest = {
    field: 'meaning',
    query_vector_builder: { text_embedding: { model_id: MODEL, model_text: question } },
    ...{ k: RANKED, num_candidates: RANKED },
  };
  const ways: readonly Retriever[] = [{ standard: { query: queryFor(question) } }, { knn: nearest }];
  const retrievers = ways.map((retriever) => ({ retriever, normalizer: 'zscore' as const }));
  return { linear: { rank_window_size: RANKED, retrievers } };
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

async function open(folder: string, sections: URL): Promise<Opened> {
  const body = await gunzipped(await readFile(sections));
  const remove = (): void => {
    rmSync(folder, { recursive: true, force: true });
  };
  await rm(folder, { recursive: true, force: true });
  // A process that exits without closing the engine removes the folder all the same.
  process.once('exit', remove);
  let engine: NativeSearchEngine | undefined;
  const close = async (): Promise<void> => {
    await engine?.close();
    process.off('exit', remove);
    await rm(folder, { recursive: true, force: true });
  };
  try {
    engine = await NativeSearchEngine.open({
      data: join(folder, 'data'),
      models: embeddedModels(),
      threads: 1,
      deployAtStart: false,
    });
    const index = Sparrow.over(engine).index<Section>(NAME);
    await index.ensure({ mappings: MAPPINGS });
    // As bytes, which nobody has to read on the event loop.
    const reply = await engine.execute({ op: 'bulk', path: { index: NAME }, query: { refresh: 'true' } }, body);
    if (!Buffer.from(reply.body).includes('"errors":false'))
      throw new Error('sections of the documentation are refused');
    return { index, close };
  } catch (error) {
    await close();
    throw error;
  }
}
