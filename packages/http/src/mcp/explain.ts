import { type Explanation, reasonOf } from '@sparrow-search/endpoints';
import { z } from 'zod';

import { pathOf } from './rest-interface.js';
import { calibrated, checkQuery, retriever, rounded, sourceOf } from './search.js';
import { ID, INDEX, tool } from './tool.js';

/** Matches that are told of each list: the strongest ones. */
const MOST_MATCHES = 10;
/** Matches that are left out, as a share of the strongest one: a model expands a text into many weak words. */
const WEAKEST = 0.1;

const LIST = z.object({
  searched_by: z.enum(['words', 'meaning of words', 'meaning of passages']),
  score: z.number().describe('What this list says about the document; with a relevance, a probability'),
  weight: z.number().describe('How much the list counts among the others'),
  matches: z.array(
    z.object({
      field: z.string(),
      term: z.string().describe('What matched, as it is indexed: words without their endings, or related words'),
      text: z.string().optional().describe('The word of the document that it stands for'),
      strength: z.number(),
    }),
  ),
});

export const EXPLAIN_HIT = tool({
  name: 'explain_hit',
  title: 'Explain a hit',
  description:
    'Says why a document is found by a query: which of its words matched, which related words, and how near its passages are in meaning. Use it when a hit is surprising, or when one is missing.',
  effect: 'read',
  input: z.strictObject({ index: INDEX, id: ID, query: z.string() }),
  output: z.object({
    index: z.string(),
    id: z.string(),
    relevance: z.number().optional(),
    explanation: z.string(),
    lists: z.array(LIST),
  }),
  run: async ({ index, id, query }, { rest, signal }) => {
    checkQuery(query);
    // Tells that it is not there, which no hits would not.
    await sourceOf(rest, index, id, ['_'], signal);
    const { answer, isCalibrated } = await calibrated((normalizer) => {
      const filter = [{ ids: { values: [id] } }];
      const body = { size: 1, _source: false, explain: true, retriever: retriever(query, normalizer, filter) };
      return rest.request<{ hits: { hits: readonly { _score: number; _explanation: Explanation }[] } }>(
        'POST',
        pathOf(index, '_search'),
        { body, signal },
      );
    });
    const [hit] = answer.hits.hits;
    if (hit === undefined) {
      return { index, id, explanation: 'The query does not find this document: nothing in it matches.', lists: [] };
    }
    const lists = listsOf(hit._explanation);
    return {
      index,
      id,
      ...(isCalibrated ? { relevance: rounded(hit._score) } : {}),
      explanation: said(lists),
      lists,
    };
  },
});

type List = z.output<typeof LIST>;

/** The lists that were fused, each with what matched in it. */
function listsOf(root: Explanation): List[] {
  const fused = (root.details ?? []).flatMap((detail) => {
    const reason = reasonOf(detail);
    const weight = reason?.kind === 'list' ? reason.weight : undefined;
    return weight === undefined || detail.value === 0 ? [] : [list(detail, weight)];
  });
  // Where a query makes one list alone, nothing is fused.
  return fused.length > 0 ? fused : [list(root, 1)];
}

function list(node: Explanation, weight: number): List {
  const matches: List['matches'] = [];
  const hasTokens = collect(node, matches);
  const searchedBy = matches.length === 0 ? 'meaning of passages' : hasTokens ? 'meaning of words' : 'words';
  const sorted = matches.toSorted((a, b) => b.strength - a.strength);
  const least = (sorted[0]?.strength ?? 0) * WEAKEST;
  const strongest = sorted.filter(({ strength }) => strength >= least).slice(0, MOST_MATCHES);
  return { searched_by: searchedBy, score: rounded(node.value), weight, matches: strongest };
}

/** Adds what matched at the leaves of an explanation. Says whether there are tokens of sparse vectors. */
function collect(node: Explanation, matches: List['matches']): boolean {
  const reason = reasonOf(node);
  const strength = rounded(node.value);
  switch (reason?.kind) {
    case 'word':
      matches.push({ field: reason.field, term: reason.word, strength });
      return false;
    case 'token': {
      const { field, token, readable, word } = reason;
      // A piece of a word says nothing without the others.
      if (readable === undefined)
        matches.push({ field, term: token, ...(word === undefined ? {} : { text: word }), strength });
      return true;
    }
    default:
      return (node.details ?? []).map((detail) => collect(detail, matches)).includes(true);
  }
}

function said(lists: readonly List[]): string {
  const best = lists.toSorted((a, b) => b.score * b.weight - a.score * a.weight)[0];
  if (best === undefined) return 'Nothing in this document matches the query.';
  const terms = best.matches
    .slice(0, 5)
    .map(({ term, text }) => (text === undefined || text === term ? `“${term}”` : `“${term}” (of “${text}”)`));
  if (best.searched_by === 'words') return `It is found most of all by its words: ${terms.join(', ')}.`;
  if (best.searched_by === 'meaning of words')
    return `It is found most of all by words that go with the query: ${terms.join(', ')}.`;
  return 'It is found most of all because a passage of it is near the query in meaning.';
}
