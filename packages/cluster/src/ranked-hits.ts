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

/** A filter that lets through no documents but those of hits, and how many it lets through at most. */
export function theseOf(hits: readonly Pick<Ranked, 'key'>[]): {
  readonly filter: readonly object[];
  readonly most: number;
} {
  const keys = hits.map(({ key }) => JSON.parse(key) as [string, string]);
  const ids = [...new Set(keys.map(([, id]) => id))];
  const indices = [...new Set(keys.map(([index]) => index))];
  return {
    filter: [{ ids: { values: ids } }, ...(indices.length > 1 ? [{ terms: { _index: indices } }] : [])],
    most: Math.min(ids.length * indices.length, RESULT_WINDOW),
  };
}
