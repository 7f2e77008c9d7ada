import type { Ranked } from '@sparrow-search/engine';

import { type Json, members, parseAnswer, valueOf } from './json.js';

/** A page ends here: the index setting `max_result_window` of every cluster. */
const RESULT_WINDOW = 10_000;

/** What tells a document from all others of a search. */
export function keyOf(index: string, id: string): string {
  return JSON.stringify([index, id]);
}

/** The same of a hit that stands at a place in a text. */
export function keyIn(text: string, at: number): string {
  const parts = new Map(members(text, at).map((it) => [it.name, it]));
  const [index = '', id = ''] = ['_index', '_id'].map((name) => {
    const part = parts.get(name);
    return part === undefined ? '' : String(valueOf(text, part));
  });
  return keyOf(index, id);
}

/** The hits of a list, in the order of the answer; where they are sorted by something else, they have no scores. */
export function listOf(response: string): readonly Ranked[] {
  const { hits } = parseAnswer(response) as {
    hits: { hits: readonly { _index: string; _id: string; _score: number | null }[] };
  };
  return hits.hits.map(({ _index, _id, _score }) => ({ key: keyOf(_index, _id), score: _score ?? 0 }));
}

/** A query that finds the documents of hits and no others, with the scores that these have. */
export function scoredAs(hits: readonly Ranked[]): Json {
  const should = hits.map(({ key, score }) => {
    const [index, id] = JSON.parse(key) as [string, string];
    const filter = [{ ids: { values: [id] } }, { term: { _index: index } }];
    return { constant_score: { filter: { bool: { filter } }, boost: score } };
  });
  return hits.length === 0 ? { match_none: {} } : { bool: { should } };
}

/**
 * A clause that finds some documents. Each id is looked for in its own index: a search may be of more indices than those of the hits, and
 * an id may stand for documents in several.
 */
export function documentsClause(documents: Iterable<readonly [index: string, id: string]>): object {
  const indices = new Map<string, string[]>();
  for (const [index, id] of documents) {
    const ids = indices.get(index);
    if (ids === undefined) indices.set(index, [id]);
    else ids.push(id);
  }
  const should = [...indices].map(([index, values]) => ({
    bool: { filter: [{ ids: { values } }, { term: { _index: index } }] },
  }));
  return should.length === 0 ? { match_none: {} } : { bool: { should, minimum_should_match: 1 } };
}

/** A filter that lets through no documents but those of hits, and how many it lets through at most. */
export function theseOf(hits: readonly Pick<Ranked, 'key'>[]): {
  readonly filter: readonly object[];
  readonly most: number;
} {
  const keys = [...new Set(hits.map(({ key }) => key))];
  return {
    filter: [documentsClause(keys.map((key) => JSON.parse(key) as [string, string]))],
    most: Math.min(keys.length, RESULT_WINDOW),
  };
}
