import { type Cancel, type EngineRequest, type SearchEngine, matchesGlob } from '@sparrow-search/engine';

import { illegal } from './errors.js';
import { type Json, isObject, malformedAnswer, textOf, valueOf, without } from './json.js';
import { fromCluster, ownMeta } from './mappings.js';
import { targetOf } from './multiple.js';
import { encodeExpression, isPattern } from './names.js';
import type { Product } from './product.js';
import { passedOn } from './replies.js';
import type { Fusion, Leaf, ListMap, Node } from './retrievers.js';
import type { SearchBody } from './search-body.js';
import { askNative } from './semantic-fields.js';
import type { Transport } from './transport.js';

/** Fields in which words are looked for, each with the analyzer of questions where the mapping names one. */
type WordFields = ReadonlyMap<string, string | undefined>;

/** An index that is searched, as the native engine is told of it, and what words are looked for in. */
interface Searched {
  readonly index: string;
  readonly mapping: Json;
  readonly state: unknown;
  readonly words: WordFields;
}

/** What the native engine says of the scores of a list in one index. */
type Scores =
  | { readonly kind: 'none' }
  | { readonly kind: 'map'; readonly map: ListMap }
  | { readonly kind: 'words'; readonly boost: number; readonly words: readonly Words[] };

/** A text that is looked for as words. */
interface Words {
  /** Names with boosts; none for all fields. */
  readonly fields: readonly (readonly [string, number])[];
  readonly text: string;
  readonly analyzer: string | null;
  readonly boost: number;
}

/** What the cluster says of the words of a text in a field. */
interface Statistics {
  readonly boost: number;
  readonly docs: number;
  readonly frequencies: readonly number[];
}

interface Context {
  readonly transport: Transport;
  readonly product: Product;
  readonly native: SearchEngine;
}

/** Texts times indices that the cluster is asked about for one search, each in a request of its own. */
const MOST_ASKED = 200;

/** The factor 1 + k1 of BM25, which scores of Elasticsearch and of OpenSearch before version 3 have, and those of OpenSearch 3 have not. */
const LESS = 2.2;

/** Types of fields in which words are looked for. */
const OF_WORDS: ReadonlySet<string> = new Set(['text', 'match_only_text', 'search_as_you_type', 'keyword']);

/**
 * A tree of lists with the maps by which the scores of those that are to be calibrated become probabilities. What vectors score is the
 * native engine's knowledge. For words, the cluster is asked how many documents have each of them.
 *
 * @throws {EngineError} 400 for a list whose scores cannot be calibrated
 */
export async function withCalibration(
  context: Context,
  request: EngineRequest,
  expression: string,
  body: SearchBody,
  fusion: Fusion,
  cancel?: Cancel,
): Promise<Fusion> {
  if (!calibratedIn(fusion)) return fusion;
  const indices = await searched(context.transport, request, expression);
  const numbers = new Map(indices.map(({ index }, at) => [index, at]));
  const indexOf = (key: string): number => numbers.get((JSON.parse(key) as [string])[0]) ?? 0;
  const within = async (tree: Fusion): Promise<Fusion> => {
    const inputs = await Promise.all(
      tree.inputs.map(async (it) => (it.node.kind === 'leaf' ? it : { ...it, node: await within(it.node) })),
    );
    if (!isCalibrated(tree)) return { ...tree, inputs };
    const maps = await mapsOf(context, indices, body, tree, cancel);
    return { ...tree, indexOf, inputs: inputs.map((it, at) => ({ ...it, maps: maps[at] ?? [] })) };
  };
  return within(fusion);
}

function isCalibrated({ inputs }: Fusion): boolean {
  return inputs.some(({ normalizer }) => normalizer === 'calibrated');
}

function calibratedIn(node: Node): boolean {
  return node.kind === 'fused' && (isCalibrated(node) || node.inputs.some((input) => calibratedIn(input.node)));
}

/** The maps of each list of a fusion, one for each index; undefined where the list finds nothing. */
async function mapsOf(
  { transport, product, native }: Context,
  indices: readonly Searched[],
  body: SearchBody,
  { inputs }: Fusion,
  cancel?: Cancel,
): Promise<readonly (readonly (ListMap | undefined)[])[]> {
  const fused = inputs.flatMap(({ node, rescore }) =>
    node.kind === 'fused' ? [node.called] : rescore ? ['rescorer'] : [],
  );
  const asked = {
    fused,
    boosts: body.section('indices_boost') !== undefined,
    indices: indices.map(({ index, mapping, state }) => ({ index, mapping, state })),
    lists: inputs.flatMap(({ node }) => (node.kind === 'leaf' ? [asAsked(body, node)] : [])),
  };
  const { lists } = JSON.parse(await askNative(native, 'calibrate_lists', asked, cancel)) as {
    readonly lists: readonly (readonly Scores[])[];
  };
  const ofWords = lists.flatMap((each) =>
    each.flatMap((scores, at) => {
      const index = indices[at];
      return scores.kind === 'words' && index !== undefined ? [{ scores, index }] : [];
    }),
  );
  const asks = ofWords.reduce((sum, { scores }) => sum + scores.words.length, 0);
  if (asks > MOST_ASKED) {
    throw illegal(
      `a search with calibrated scores asks a cluster for the words of each text in each index, at most [${String(MOST_ASKED)}] times; this one would [${String(asks)}] times`,
    );
  }
  const isLower = product.name === 'OpenSearch' && product.major >= 3;
  const words = await Promise.all(
    ofWords.map(async ({ scores: { boost, words: texts }, index }) => {
      const fields = await Promise.all(texts.map((text) => statisticsOf(transport, index, text)));
      return { boost: isLower ? boost / LESS : boost, fields: fields.flat() };
    }),
  );
  const answer = words.length === 0 ? '{"words":[]}' : await askNative(native, 'calibrate_lists', { words }, cancel);
  const found = (JSON.parse(answer) as { readonly words: readonly ListMap[] }).words.values();
  return lists.map((each) =>
    each.map((scores) => {
      if (scores.kind === 'none') return undefined;
      return scores.kind === 'map' ? scores.map : found.next().value;
    }),
  );
}

/** A list as the native engine is asked about it. */
function asAsked({ text }: SearchBody, { query, knn, made, passages, hits }: Leaf): object {
  if (passages !== undefined) {
    const { field, text: asked, part } = passages;
    return { query: { semantic: { field, query: asked } }, part, hits };
  }
  if (knn !== undefined) {
    const given = without(valueOf(text, knn.span) as Json, 'filter', 'min_score');
    return { query: { knn: { ...given, k: knn.k, num_candidates: knn.candidates } }, hits };
  }
  if (made !== undefined) return { query: JSON.parse(made) as Json, hits };
  return { query: query === undefined ? { match_all: {} } : valueOf(text, query), hits };
}

/** The indices that a search is for. */
async function searched(
  transport: Transport,
  request: EngineRequest,
  expression: string,
): Promise<readonly Searched[]> {
  const { ignore_unavailable: ignored, allow_no_indices: none, expand_wildcards: expanded } = targetOf(request.query);
  const given = { ignore_unavailable: ignored, allow_no_indices: none, expand_wildcards: expanded };
  const query = Object.fromEntries(
    Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
  const path = `/${encodeExpression(expression)}/_mapping`;
  const answered = await transport.ask({ method: 'GET', path, query, repeatable: true });
  if (answered.status !== 200) throw passedOn(answered);
  const found = JSON.parse(answered.body.toString()) as Readonly<Record<string, { readonly mappings: unknown }>>;
  return Object.entries(found).map(([index, { mappings }]) => {
    const shown = fromCluster(mappings);
    const words = new Map<string, string | undefined>();
    gatherWords(shown, '', words);
    return { index, mapping: ofVectors(shown), state: ownMeta(mappings)['semantic'] ?? null, words };
  });
}

/** What of a mapping says how vectors are compared. */
function ofVectors(mapping: unknown): Json {
  const kept = (given: unknown): Json =>
    Object.fromEntries(
      Object.entries(isObject(given) ? given : {}).flatMap(([name, field]): (readonly [string, Json])[] => {
        if (!isObject(field)) return [];
        if (field['type'] === 'semantic_text') return [[name, field]];
        if (field['type'] === 'dense_vector') {
          const { type, dims, similarity, element_type: element } = field;
          return [[name, JSON.parse(JSON.stringify({ type, dims, similarity, element_type: element })) as Json]];
        }
        const [properties, fields] = [kept(field['properties']), kept(field['fields'])];
        if (Object.keys(properties).length > 0) return [[name, { properties }]];
        return Object.keys(fields).length > 0 ? [[name, { type: 'text', fields }]] : [];
      }),
    );
  return { properties: kept(isObject(mapping) ? mapping['properties'] : {}) };
}

function gatherWords(mapping: unknown, above: string, found: Map<string, string | undefined>): void {
  if (!isObject(mapping)) return;
  for (const below of ['properties', 'fields']) {
    for (const [name, field] of Object.entries(isObject(mapping[below]) ? mapping[below] : {})) {
      if (!isObject(field) || field['type'] === 'nested') continue;
      const path = `${above}${name}`;
      if (OF_WORDS.has(String(field['type'])) && field['index'] !== false)
        found.set(path, textOf(field['search_analyzer']));
      gatherWords(field, `${path}.`, found);
    }
  }
}

/**
 * How many documents of an index have each word of a text, for each of the fields in which it is looked for. The cluster says it of one
 * shard, as it scores documents by the statistics of their shard; always of the same one, so that equal questions have equal scores.
 */
async function statisticsOf(
  transport: Transport,
  { index, words }: Searched,
  { fields, text, analyzer, boost }: Words,
): Promise<readonly Statistics[]> {
  const boosts = new Map<string, number>();
  for (const [name, factor] of fields.length === 0 ? [['*', 1] as const] : fields) {
    const paths = isPattern(name)
      ? [...words.keys()].filter((path) => matchesGlob(name, path))
      : words.has(name)
        ? [name]
        : [];
    for (const path of paths) boosts.set(path, factor);
  }
  if (boosts.size === 0) return [];
  const analyzers = [...boosts.keys()].flatMap((path) => {
    const named = analyzer ?? words.get(path);
    return named === undefined ? [] : [[path, named] as const];
  });
  const asked = {
    doc: documentWith(words, [...boosts.keys()], text),
    fields: [...boosts.keys()],
    ...{ offsets: false, payloads: false, positions: true, term_statistics: true, field_statistics: true },
    ...(analyzers.length === 0 ? {} : { per_field_analyzer: Object.fromEntries(analyzers) }),
  };
  const path = `/${encodeURIComponent(index)}/_termvectors`;
  const query = { routing: 'sparrow' };
  const answered = await transport.ask({ method: 'POST', path, query, body: JSON.stringify(asked), repeatable: true });
  if (answered.status !== 200) throw passedOn(answered);
  const { term_vectors: vectors } = JSON.parse(answered.body.toString()) as {
    readonly term_vectors?: Readonly<Record<string, TermVector>>;
  };
  if (vectors === undefined) throw malformedAnswer();
  return Object.entries(vectors).map(([field, { field_statistics: statistics, terms }]) => {
    const frequencies = frequenciesIn(terms);
    // A cluster may not say how many documents have the field: no fewer than have one of its words.
    const docs = Math.max(statistics?.doc_count ?? 0, 0, ...frequencies);
    return { boost: boost * (boosts.get(field) ?? 1), docs, frequencies };
  });
}

interface TermVector {
  readonly field_statistics?: { readonly doc_count?: number };
  readonly terms: Readonly<
    Record<string, { readonly doc_freq?: number; readonly tokens?: readonly { readonly position?: number }[] }>
  >;
}

/** For each place of a text, how many documents have a word that stands there: words in one place mean the same. */
function frequenciesIn(terms: TermVector['terms']): readonly number[] {
  const places = new Map<number, number>();
  for (const { doc_freq: documents = 0, tokens = [] } of Object.values(terms)) {
    for (const { position = 0 } of tokens) places.set(position, Math.max(places.get(position) ?? 0, documents));
  }
  return [...places.values()];
}

/** A document whose fields at these paths have a text; a sub-field has that of the field above it. */
function documentWith(words: WordFields, paths: readonly string[], text: string): Json {
  const above = paths.map((path) => {
    const names = path.split('.');
    const first = [...names.keys()].map((at) => names.slice(0, at + 1).join('.')).find((it) => words.has(it));
    return first ?? path;
  });
  return Object.fromEntries(above.map((path) => [path, text]));
}
