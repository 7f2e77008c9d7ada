import type { Hit, Index, Properties, SearchRequest, Sparrow } from '@sparrow-search/engine';
import { ndcg } from '@sparrow-search/evaluation';

import { type Meaning, dictionary } from '../dictionary.js';
import { CommandError } from '../errors.js';
import { number } from '../terminal.js';

/**
 * How well a model ranks definitions of the dictionary in the package. The query is a word alone, so that little but its meaning
 * leads to the definition.
 */
export interface Quality {
  /** `definitions`: among all texts. `candidates`: among those that share most words with the definition, for cross-encoders. */
  readonly task: 'definitions' | 'candidates';
  readonly queries: number;
  readonly texts: number;
  /** Mean nDCG@10. */
  readonly ndcg: number;
  /** Mean nDCG@10 to compare with: of a search by words or, in the task `candidates`, of a random order. */
  readonly baseline: number;
  /** Mean nDCG@10 of the models that come with Sparrow, by their ids; only if all texts were used. */
  readonly embedded?: Readonly<Record<string, number>>;
}

interface Task {
  readonly meanings: readonly Meaning[];
  readonly queries: readonly { readonly word: string; readonly relevant: ReadonlyMap<string, number> }[];
}

/** Texts of the task; for slower models they are halved until they take about {@link LONGEST_SECONDS}. */
export const TEXTS = 2000;
const FEWEST_TEXTS = 250;
const LONGEST_SECONDS = 30;
/** About how many tokens a definition has, with those that mark its ends. */
const TOKENS = 16;
/** Queries for each text. */
const QUERY_SHARE = 0.15;
/** Texts that a cross-encoder ranks for each query, and queries for each text. */
const CANDIDATES = 20;
const CANDIDATE_QUERY_SHARE = 0.05;

/** What the embedded models reach on all {@link TEXTS} texts; test/cli/model-test.test.ts measures it. */
const EMBEDDED = { '.sparse_encoder_model_2': 0.379, '.all-minilm-l6-v2': 0.463 };

const INDEX = 'definitions';

/**
 * Measures an encoder as the field of an index, in the way in which the server would search it.
 *
 * @param model id of a model that is deployed in the engine
 * @param texts how many definitions there are, at most {@link TEXTS}
 */
export async function encoderQuality(sparrow: Sparrow, model: string, texts: number): Promise<Quality> {
  const { meanings, queries } = taskOf(texts, QUERY_SHARE);
  const semantic = { semantic: { type: 'semantic_text' as const, inference_id: model } };
  const index = await loaded(sparrow, meanings, semantic);
  let [found, byWords] = [0, 0];
  for (const { word, relevant } of queries) {
    found += ndcg(await idsOf(index, { semantic: { field: 'gloss.semantic', query: word } }), relevant);
    byWords += ndcg(await idsOf(index, { match: { gloss: word } }), relevant);
  }
  return {
    task: 'definitions',
    queries: queries.length,
    texts: meanings.length,
    ndcg: found / queries.length,
    baseline: byWords / queries.length,
    ...(meanings.length === TEXTS && { embedded: EMBEDDED }),
  };
}

/**
 * Measures a cross-encoder by the order in which it puts definitions that are alike: the right one, and those that a search by words
 * finds for it.
 *
 * @param score what the model makes of pairs of a question and each of some texts
 * @param count how many definitions there are, at most {@link TEXTS}; it reads about as many pairs
 */
export async function crossEncoderQuality(
  sparrow: Sparrow,
  score: (texts: readonly string[], question: string) => Promise<readonly unknown[]>,
  count: number,
): Promise<Quality> {
  // A query for each twentieth text, and twenty pairs for each query.
  const { meanings, queries } = taskOf(count, CANDIDATE_QUERY_SHARE);
  const index = await loaded(sparrow, meanings, {});
  const others = spread(meanings, CANDIDATES * 2).map(({ _id }) => _id);
  const glosses = new Map(meanings.map(({ _id, gloss }) => [_id, gloss]));
  let [found, chance] = [0, 0];
  for (const { word, relevant } of queries) {
    const [right = ''] = relevant.keys();
    const alike = await idsOf(index, { match: { gloss: glosses.get(right) ?? '' } }, CANDIDATES);
    // Where too few definitions share a word with it, any others do.
    const ids = [...new Set([...relevant.keys(), ...alike, ...others])].slice(0, CANDIDATES).sort();
    const texts = ids.map((id) => glosses.get(id) ?? '');
    const scores = (await score(texts, word)).map(Number);
    const ranked = [...ids.keys()].sort((a, b) => (scores[b] ?? 0) - (scores[a] ?? 0) || a - b);
    const judged = new Map([...relevant].filter(([id]) => ids.includes(id)));
    found += ndcg(
      ranked.map((at) => ids[at] ?? ''),
      judged,
    );
    chance += expectedNdcg(ids.length, judged.size);
  }
  return {
    task: 'candidates',
    queries: queries.length,
    texts: meanings.length,
    ndcg: found / queries.length,
    baseline: chance / queries.length,
  };
}

/** How many texts a model gets that encodes so many tokens a second. */
export function textsFor(tokensPerSecond: number): number {
  let texts = TEXTS;
  while (texts > FEWEST_TEXTS && (texts * TOKENS) / tokensPerSecond > LONGEST_SECONDS) texts /= 2;
  return texts;
}

/** A line about the quality, for people. */
export function shownQuality({ task, queries, texts, ndcg: value, baseline, embedded }: Quality): string {
  const asked = `nDCG@10 ${value.toFixed(3)} for ${number(queries)} words`;
  const sampled = texts < TEXTS ? `; not comparable with a run on all ${number(TEXTS)} definitions` : '';
  if (task === 'candidates') {
    return `${asked}, each with ${String(CANDIDATES)} of ${number(texts)} definitions (in random order: ${baseline.toFixed(3)}${sampled})`;
  }
  const others = Object.entries(embedded ?? {}).map(([id, reached]) => `, ${id}: ${reached.toFixed(3)}`);
  return `${asked} and ${number(texts)} definitions (by words: ${baseline.toFixed(3)}${others.join('')}${sampled})`;
}

/** Meanings spread evenly over the dictionary, and first words of some of them, each with all of its meanings. */
function taskOf(texts: number, share: number): Task {
  const meanings = spread(dictionary().meanings, texts);
  const byWord = new Map<string, Map<string, number>>();
  for (const { _id, words } of meanings) {
    for (const word of words) byWord.set(word, (byWord.get(word) ?? new Map<string, number>()).set(_id, 1));
  }
  const words = new Set(
    spread(meanings, Math.max(1, Math.round(texts * share))).map(({ words: [first = ''] }) => first),
  );
  return { meanings, queries: [...words].map((word) => ({ word, relevant: byWord.get(word) ?? new Map() })) };
}

/** So many of a list, evenly spread over it. */
export function spread<T>(all: readonly T[], count: number): readonly T[] {
  const step = all.length / count;
  return step <= 1 ? all : Array.from({ length: count }, (_, at) => all[Math.floor(at * step)] as T);
}

async function loaded(sparrow: Sparrow, meanings: readonly Meaning[], fields: Properties): Promise<Index<Meaning>> {
  const index = sparrow.index<Meaning>(INDEX);
  await index.create({ mappings: { properties: { gloss: { type: 'text', analyzer: 'english', fields } } } });
  const { failures } = await index.bulk(meanings, {
    id: ({ _id }) => _id,
    toJson: ({ gloss }) => JSON.stringify({ gloss }),
    batchDocuments: TEXTS / 8,
    refresh: true,
  });
  const [failure] = failures;
  if (failure !== undefined) throw new CommandError(`cannot encode a definition: ${failure.error.message}`);
  return index;
}

async function idsOf(index: Index<Meaning>, query: SearchRequest['query'], size = 10): Promise<readonly string[]> {
  const { hits } = await index.search({ ...(query && { query }), size, _source: false });
  return hits.hits.map(({ _id }: Hit<Meaning>) => _id);
}

/** The mean nDCG@10 over all orders of so many texts, some of which are relevant. */
function expectedNdcg(texts: number, relevant: number): number {
  const discounts = (ranks: number): number =>
    Array.from({ length: Math.min(10, ranks) }, (_, at) => 1 / Math.log2(at + 2)).reduce((sum, one) => sum + one, 0);
  return (relevant / texts) * (discounts(texts) / discounts(relevant));
}
