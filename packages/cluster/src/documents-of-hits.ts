import type { Ranked } from '@sparrow-search/engine';

import { parseAnswer } from './json.js';
import { type Asking, multiple } from './multiple.js';
import { keyOf, theseOf } from './ranked-hits.js';
import { isTooLong } from './transport.js';

/** A document of a hit, with what of it is asked for. */
export interface HitDocument {
  readonly key: string;
  readonly index: string;
  readonly id: string;
  readonly routing: string | undefined;
  readonly source: unknown;
  readonly fields: Readonly<Record<string, readonly unknown[]>> | undefined;
}

/** Documents of the first request, whose length says how many the next ones ask for. */
const FIRST = 64;

/** About as many characters as an answer should have; one may be twice as long, or a single long document. */
const PAGE = 8 * 1024 * 1024;

/**
 * Reads the documents of hits, a few megabytes at a time.
 *
 * @param shown the sections of a search that say what of the documents is read
 * @param use gets those that are still there, as many as were read together
 */
export async function readDocuments(
  asking: Asking,
  shown: object,
  hits: readonly Pick<Ranked, 'key'>[],
  use: (documents: readonly HitDocument[]) => void | Promise<void>,
): Promise<void> {
  let most = FIRST;
  for (let at = 0; at < hits.length;) {
    const page = hits.slice(at, at + most);
    const { filter, most: size } = theseOf(page);
    const search = { query: { bool: { filter } }, size, track_total_hits: false, ...shown };
    const answers = await multiple(asking, [JSON.stringify(search)]).catch((error: unknown) => {
      if (page.length > 1 && isTooLong(error)) return undefined;
      throw error;
    });
    if (answers === undefined) {
      most = Math.ceil(page.length / 2);
      continue;
    }
    const [answer = ''] = answers;
    const { hits: found } = parseAnswer(answer) as { hits: { hits: readonly Found[] } };
    await use(
      found.hits.map(({ _index: index, _id: id, _routing: routing, _source: source, fields }) => {
        return { key: keyOf(index, id), index, id, routing, source, fields };
      }),
    );
    at += page.length;
    most = Math.max(1, Math.min(2 * page.length, Math.floor((page.length * PAGE) / answer.length)));
  }
}

interface Found {
  readonly _index: string;
  readonly _id: string;
  readonly _routing?: string;
  readonly _source?: unknown;
  readonly fields?: Readonly<Record<string, readonly unknown[]>>;
}
