// One search of one way, as a column shows it.
import { call } from '../lib/api';
import type { Index, Known } from '../lib/indices';
import { type SearchOptions, fusedLists, searchBody } from './body';
import { type Shown, type Source, shown, titleFieldOf } from '../../../cli/src/documents/shown-document';
import { type Kind, type Way, vectorFields, withPassages } from './fields';
import { type Explanation, type Part, partsOf, tokensOf, withoutEmptyMarks, wordsOf } from './why';

interface RawHit {
  readonly _index: string;
  readonly _id: string;
  readonly _score: number | null;
  readonly _source?: Source;
  readonly highlight?: Readonly<Record<string, readonly string[]>>;
  readonly _explanation?: Explanation;
}

interface Answer {
  readonly took: number;
  readonly timed_out: boolean;
  readonly hits: {
    readonly total?: { readonly value: number; readonly relation: string };
    readonly max_score: number | null;
    readonly hits: readonly RawHit[];
  };
  readonly profile?: { readonly phases?: Readonly<Record<string, number>> };
}

export interface Hit {
  /** Tells a document of one index from any other on the page. */
  readonly key: string;
  readonly id: string;
  readonly index: string;
  readonly rank: number;
  readonly score: number;
  readonly document: Shown;
  readonly source: Source;
  /** Passages with marks, by field. */
  readonly passages: Readonly<Record<string, readonly string[]>>;
  readonly parts: readonly Part[];
  readonly words: readonly string[];
  readonly explanation: Explanation | undefined;
}

export interface Result {
  readonly way: Way;
  readonly body: object;
  readonly took: number;
  readonly total: string;
  readonly best: number;
  readonly hits: readonly Hit[];
  readonly phases: Readonly<Record<string, number>>;
}

export interface Question {
  readonly text: string;
  readonly filter: string;
  readonly why: boolean;
  readonly size: number;
}

export function optionsFor(index: Index, known: Known, ways: readonly Way[], question: Question): SearchOptions {
  return {
    ways,
    models: { sparse: known.models.sparse[0] ?? '', dense: known.models.dense[0] ?? '' },
    marked: withPassages(index.fields),
    passages: index.fields.filter(({ type }) => type === 'semantic_text').map(({ name }) => name),
    hidden: vectorFields(index.fields),
    filter: question.filter,
    size: question.size,
    explain: question.why,
    profile: true,
  };
}

export async function search(
  index: Index,
  known: Known,
  ways: readonly Way[],
  way: Way,
  question: Question,
  signal: AbortSignal,
): Promise<Result> {
  const body = searchBody(way, question.text, optionsFor(index, known, ways, question));
  const answer = await call<Answer>('POST', `/${encodeURIComponent(index.name)}/_search`, body, { signal });
  const { total, hits } = answer.hits;
  const lists: readonly Kind[] = way.kind === 'hybrid' ? fusedLists(ways).map(({ kind }) => kind) : [];
  // A score of 0 says that nothing speaks for a document: fused lists end with those that are below the mean of each.
  const titleField = titleFieldOf(hits.map(({ _source: source = {} }) => source));
  const made = hits
    .filter(({ _score: score }) => (score ?? 0) !== 0)
    .map((hit, at) => hitOf(hit, at + 1, lists, titleField));
  return {
    way,
    body,
    took: answer.took,
    // Where hits of score 0 begin, nothing else is found.
    total: made.length < hits.length ? made.length.toLocaleString('en-US') : totalOf(total),
    best: Math.max(...made.map(({ score }) => score), 0),
    hits: made,
    phases: answer.profile?.phases ?? {},
  };
}

function totalOf(total: Answer['hits']['total']): string {
  if (total === undefined) return '';
  return `${total.relation === 'gte' ? 'at least ' : ''}${total.value.toLocaleString('en-US')}`;
}

function hitOf(hit: RawHit, rank: number, lists: readonly Kind[], titleField: string | undefined): Hit {
  const source = hit._source ?? {};
  const parts = hit._explanation === undefined ? [] : partsOf(hit._explanation, lists);
  return {
    key: `${hit._index}/${hit._id}`,
    id: hit._id,
    index: hit._index,
    rank,
    score: hit._score ?? 0,
    document: shown(hit._id, source, [], titleField),
    source,
    passages: hit.highlight ?? {},
    parts,
    words: hit._explanation === undefined ? [] : wordsOf(tokensOf(hit._explanation)),
    explanation: hit._explanation,
  };
}

/** A result whose hits also say what made their scores; everything else, times above all, stays that of the plain search. */
export function explainedBy(result: Result, explained: Result | undefined): Result {
  const found = new Map(explained?.hits.map((hit) => [hit.key, hit]));
  return {
    ...result,
    hits: result.hits.map((hit) => {
      const { parts, words, explanation } = found.get(hit.key) ?? hit;
      return { ...hit, parts, words, explanation };
    }),
  };
}

/** At what place each document is in each column. */
export function ranksOf(results: readonly Result[]): Map<string, Map<Kind, number>> {
  const ranks = new Map<string, Map<Kind, number>>();
  for (const { way, hits } of results) {
    for (const { key, rank } of hits) {
      const known = ranks.get(key) ?? new Map<Kind, number>();
      known.set(way.kind, rank);
      ranks.set(key, known);
    }
  }
  return ranks;
}

/**
 * The passage that a card shows: the best one with marks, or else how the text begins. Words that every text has are not
 * marked: where a hit was found by no others, they are named below it.
 */
export function passageOf(hit: Hit, kind: Kind): string {
  const marked = (texts: readonly string[]): string | undefined => texts.find((text) => text.includes('<em>'));
  const passages = Object.entries(hit.passages).map(([field, texts]) => [field, texts.map(withoutEmptyMarks)] as const);
  const { title, titleField, textField } = hit.document;
  const ofText = passages.find(([field]) => field === textField)?.[1];
  const others = passages.filter(([field]) => field !== titleField && field !== textField).map(([, texts]) => texts);
  const found = (ofText && marked(ofText)) ?? others.map(marked).find((text) => text !== undefined);
  // A passage found by meaning has no marks, but says more than one in which nothing is left marked. That of a title says nothing that
  // the card does not say.
  const byMeaning = others.flat().find((text) => text !== title);
  const rest = kind === 'words' ? [ofText?.[0], byMeaning] : [byMeaning, ofText?.[0]];
  const passage = found ?? rest[0] ?? rest[1] ?? hit.document.text;
  return titleField === undefined ? passage : behindTitle(passage, title);
}

/** A passage without the title that it begins with, as parts of a text do: the card has said it. */
function behindTitle(passage: string, title: string): string {
  let at = 0;
  for (const letter of title) {
    at += /^(?:<\/?em>)*/.exec(passage.slice(at, at + LONGEST_MARKS))?.[0].length ?? 0;
    if (!passage.startsWith(letter, at)) return passage;
    at += letter.length;
  }
  const rest = passage.slice(at).replace(/^<\/em>/, '');
  return /^\s+\S/.test(rest) ? rest.trimStart() : passage;
}

/** Characters of the marks that may be between two letters: one that ends, and one that begins. */
const LONGEST_MARKS = '</em><em>'.length;
