import {
  type CalibrationMap,
  type FusionMethod,
  NORMALIZERS,
  type Normalizer,
  type ShortForm,
  expandShortForm,
} from '@sparrow-search/engine';

import { illegal, notOverCluster, refusal, unparsable } from './errors.js';
import { type Json, type Member, type Span, elements, isObject, kindAt, members, textOf, valueOf } from './json.js';
import { type Knn, readKnn } from './knn.js';
import { bestOf, pinnedDocuments } from './pinned.js';
import { MAX_CLAUSES } from './queries.js';
import type { SemanticIndex } from './semantic-fields.js';

/** A node of the tree of lists: one that a query finds, or one that is fused from others. */
export type Node = Leaf | Fusion;

/** A list that a query finds. */
export interface Leaf {
  readonly kind: 'leaf';
  /** Where the whole stands. */
  readonly span: Span;
  readonly query: Span | undefined;
  /** The neighbours of a vector that the node finds; absent where it has a query. */
  readonly knn: Knn | undefined;
  /** A query in the cluster's form, instead of one that stands in the body: of words in fields, or of chosen documents. */
  readonly made: string | undefined;
  /** A text and one kind of vectors of a `semantic_text` field that it looks for, instead of a query that stands in the body. */
  readonly passages: PassagesList | undefined;
  readonly filters: readonly Span[];
  readonly minScore: number | undefined;
  /** How many hits of it are wanted. */
  readonly hits: number;
  /** Sections of a search that a retriever may have: those of a list say which hits it holds, and in which order. */
  readonly sections: readonly Member[];
  /** What explanations call it. */
  readonly name: string | undefined;
}

/** A list by the passages of a field. */
export interface PassagesList {
  readonly field: string;
  readonly text: string;
  readonly part: 'sparse' | 'dense';
}

export interface Fusion {
  readonly kind: 'fused';
  /** What the request calls it. */
  readonly called: string;
  readonly method: FusionMethod;
  readonly inputs: readonly Input[];
  /** How far lists are read: as the request says, or so far and further for pages behind, up to `most`. */
  readonly window: { readonly size: number; readonly given: boolean; readonly most?: number };
  readonly minScore: number | undefined;
  /** Present where the hits of the only list are scored again, by a model that reads their texts. */
  readonly rerank?: Rerank;
  /** The retriever itself without its list, where it keeps some hits of the only list that differ from each other. */
  readonly diversify?: Json;
  readonly name: string | undefined;
  /** The number of the index that a document is from, by its key, where the scores of the lists are calibrated. */
  readonly indexOf?: (key: string) => number;
  /** What an answer shows: `rank` has `_rank` and no `max_score`. */
  readonly form: 'rank' | 'retriever';
}

/** A reranker: what its model compares the texts of a field with. */
export interface Rerank {
  /** The inference endpoint; empty where the only one that reranks is meant. */
  readonly id: string;
  readonly text: string;
  readonly field: string;
  /** The section that says which parts of a text the model reads, as the request has it; undefined where it reads whole texts. */
  readonly chunks: unknown;
  /** Least score of the model that a hit may have. */
  readonly minScore: number | undefined;
}

export interface Input {
  readonly node: Node;
  readonly weight: number;
  readonly normalizer: Normalizer;
  /** The section by whose queries the hits of the list are scored again, if they are. */
  readonly rescore?: Span;
  /** How its scores become probabilities in each index that is searched, where the fusion is calibrated. */
  readonly maps?: readonly (ListMap | undefined)[];
}

/** How the scores of a list become probabilities, and the probability of a document that is not in it. */
export type ListMap = CalibrationMap & { readonly probability_of_absent: number };

/** Longest window; the native engine has the same. */
export const MAX_WINDOW = 10_000;
const MAX_DEPTH = 10;
const MAX_LISTS = 100;
/** Lists of a body after which no more are read, only to be counted in an error. */
const MOST_READ = 1000;
const RANK_CONSTANT = 60;
/** The window of `rank`, and that of a retriever, where the request names none. */
const RANK_WINDOW = 100;
const RETRIEVER_WINDOW = 10;

const OF_STANDARD = ['sort', 'search_after', 'terminate_after', 'collapse'];
/** Those that only the search as a whole may have. */
const OF_LONE = ['search_after', 'terminate_after'];
const RERANKER = 'text_similarity_reranker';
const RESCORER = 'rescorer';
const PINNED = 'pinned';
const DIVERSIFY = 'diversify';
const KINDS = ['standard', 'knn', 'rrf', 'linear', RERANKER, RESCORER, PINNED, DIVERSIFY];

/** Hits that a rescorer scores again where it does not say so. */
const RESCORED = 10;

/**
 * Reads the `rank` section over queries and `knn` sections.
 *
 * @param wanted hits that the search reads: from its first page on
 * @throws {EngineError} 400
 */
export function readRank(
  text: string,
  span: Span,
  queries: readonly Span[],
  sections: readonly Knn[],
  wanted: number,
): Fusion {
  const given = valueOf(text, span);
  const methods = isObject(given) ? Object.entries(given) : [];
  const [method, options] = methods[0] ?? [];
  if (method === undefined || methods.length > 1) throw unparsable('expected one rank method');
  if (method !== 'rrf' || !isObject(options)) throw unparsable(`unknown rank method [${method}]`);
  const unknown = Object.keys(options).find(
    (key) => !['rank_constant', 'rank_window_size', 'window_size'].includes(key),
  );
  if (unknown !== undefined) throw unparsable(`[rrf] unknown field [${unknown}]`);
  const size = options['rank_window_size'] ?? options['window_size'];
  checkLists(queries.length + sections.length);
  const own = size === undefined ? { size: RANK_WINDOW, given: false } : { size: window('rrf', size), given: true };
  const hits = depthOf(own, wanted);
  const leaves = [
    ...queries.map((query) => leaf({ span: query, query, hits })),
    ...sections.map((knn) => leaf({ span: knn.span, knn, hits })),
  ];
  return {
    kind: 'fused',
    called: 'rank',
    method: { kind: 'rrf', rankConstant: rankConstant(options['rank_constant']) },
    inputs: leaves.map((node) => ({ node, weight: 1, normalizer: 'none' })),
    window: own,
    minScore: undefined,
    name: undefined,
    form: 'rank',
  };
}

/**
 * Reads a retriever.
 *
 * @param size hits that the search wants, which a window of its own choice is not shorter than
 * @param wanted hits that it reads: those of the pages before as well
 * @param indices those that are searched and have `semantic_text` fields, one of each that are mapped alike
 * @throws {EngineError} 400 for what is malformed, and for kinds that are not available over a cluster
 */
export function readRetriever(
  text: string,
  span: Span,
  size: number,
  wanted: number,
  indices: readonly SemanticIndex[],
): Node {
  const node = read(text, span, { size, wanted, indices, filters: [], depth: 0, read: { lists: 0 } });
  checkLists(count(node));
  return node;
}

/** What a retriever is read in. */
interface Around {
  readonly size: number;
  /** Hits that whatever is around it wants. */
  readonly wanted: number;
  readonly filters: readonly Span[];
  readonly depth: number;
  readonly indices: readonly SemanticIndex[];
  /** Counts the lists that were read so far. */
  readonly read: { lists: number };
}

type Value = (name: string) => unknown;

function read(text: string, span: Span, around: Around): Node {
  if (around.depth > MAX_DEPTH)
    throw illegal(`the nested depth of retrievers exceeds the maximum nested depth [${String(MAX_DEPTH)}]`);
  const kinds = kindAt(text, span) === 'object' ? members(text, span.start) : [];
  const [kind, second] = kinds;
  if (kind === undefined || second !== undefined) throw unparsable('retriever malformed, must hold one retriever');
  if (!KINDS.includes(kind.name)) throw notOverCluster(`retriever [${kind.name}]`);
  if (kindAt(text, kind) !== 'object') throw unparsable(`[${kind.name}] retriever malformed`);
  const parts = members(text, kind.start);
  const own = parts.filter(({ name }) => name === 'filter');
  const listed = own.flatMap((it) => (kindAt(text, it) === 'array' ? elements(text, it.start) : [it]));
  const inside = listed.length === 0 ? around : { ...around, filters: [...around.filters, ...listed] };
  if (inside.filters.length > MAX_CLAUSES)
    throw illegal(`a retriever takes at most [${String(MAX_CLAUSES)}] filters, with those of the retrievers around it`);
  const value: Value = (name) => {
    const part = parts.find((it) => it.name === name);
    return part === undefined ? undefined : valueOf(text, part);
  };
  if (kind.name === 'standard' || kind.name === 'knn') around.read.lists += 1;
  // Each keeps its filters, so that a body may not have any number of them.
  if (around.read.lists > MOST_READ) checkLists(around.read.lists);
  if (kind.name === 'standard') return standard(kind, parts, value, inside);
  if (kind.name === 'knn') {
    const hits = around.depth === 0 ? around.size : around.wanted;
    const others = parts.filter(({ name }) => name !== 'min_score');
    const knn = readKnn(text, kind, others, 'section', hits, around.filters);
    return leaf({ span: kind, knn, hits, minScore: number('min_score', value('min_score')), name: nameOf(value) });
  }
  if (kind.name === RERANKER) return rerankerOf(text, kind, parts, value, inside);
  if (kind.name === RESCORER) return rescorerOf(text, kind, parts, value, inside);
  if (kind.name === DIVERSIFY) return diversifyOf(text, kind, parts, value, inside);
  if (kind.name === PINNED) return pinnedOf(text, kind, parts, value, inside);
  return fusionOf(text, kind, parts, value, inside);
}

function standard(kind: Member, parts: readonly Member[], value: Value, { depth, filters, wanted }: Around): Leaf {
  checkKeys('standard', parts, ['query', 'filter', 'min_score', '_name', ...OF_STANDARD]);
  const sections = parts.filter(({ name }) => OF_STANDARD.includes(name));
  const lone = sections.find(({ name }) => OF_LONE.includes(name));
  if (depth > 0 && lone !== undefined) throw notOverCluster(`[${lone.name}] of a retriever below another`);
  const query = parts.find(({ name }) => name === 'query');
  return leaf({
    span: kind,
    query,
    filters,
    minScore: number('min_score', value('min_score')),
    sections,
    hits: wanted,
    name: nameOf(value),
  });
}

/** A reranker, which is a fusion of a single list. */
function rerankerOf(text: string, kind: Member, parts: readonly Member[], value: Value, around: Around): Fusion {
  const own = ['retriever', 'inference_id', 'inference_text', 'field'];
  checkKeys(kind.name, parts, [...own, 'chunk_rescorer', 'rank_window_size', 'filter', 'min_score', '_name']);
  const [id, asked, field] = own.slice(1).map((name) => textOf(value(name)));
  if (id === '') throw illegal('[inference_id] must not be empty');
  const list = parts.find(({ name }) => name === 'retriever');
  if (list === undefined || asked === undefined || field === undefined) {
    const missing = own.filter((name) => name !== 'inference_id' && textOf(value(name)) === undefined);
    throw unparsable(`Required [${missing.filter((name) => name !== 'retriever' || list === undefined).join(', ')}]`);
  }
  if (asked === '') throw invalid(`[${kind.name}] [inference_text] cannot be empty;`);
  const window = windowOf(kind.name, value('rank_window_size'), Math.max(RETRIEVER_WINDOW, around.size));
  const inside = { ...around, wanted: depthOf(window, around.wanted), depth: around.depth + 1 };
  return {
    ...fusionAs(kind.name, value, window, [{ node: read(text, list, inside), weight: 1, normalizer: 'none' }]),
    minScore: undefined,
    rerank: {
      ...{ id: id ?? '', text: asked, field, chunks: value('chunk_rescorer') },
      minScore: number('min_score', value('min_score')),
    },
  };
}

/** A retriever that keeps hits which differ from each other, which is a fusion of a single list. */
function diversifyOf(text: string, kind: Member, parts: readonly Member[], value: Value, around: Around): Fusion {
  const own = ['type', 'field', 'lambda', 'size', 'query_vector', 'query_vector_builder', 'min_score', '_name'];
  checkKeys(kind.name, parts, [...own, 'retriever', 'rank_window_size', 'filter']);
  const list = parts.find(({ name }) => name === 'retriever');
  const missing = ['retriever', 'type', 'field'].filter((name) => value(name) === undefined);
  if (list === undefined || missing.length > 0) throw unparsable(`Required [${missing.join(', ')}]`);
  // Which hits are kept depends on the whole window, so later pages have no wider window.
  const { size } = windowOf(kind.name, value('rank_window_size'), Math.max(RETRIEVER_WINDOW, around.size));
  const inside = { ...around, wanted: size, depth: around.depth + 1 };
  const given = own.map((name) => [name, value(name)] as const).filter(([, it]) => it !== undefined);
  const asked = { ...Object.fromEntries(given), rank_window_size: size, retriever: { standard: {} } };
  const input: Input = { node: read(text, list, inside), weight: 1, normalizer: 'none' };
  return {
    ...fusionAs(kind.name, value, { size, given: true }, [input]),
    minScore: undefined,
    diversify: { [kind.name]: asked },
  };
}

/** A rescorer, which is a fusion of a single list. */
function rescorerOf(text: string, kind: Member, parts: readonly Member[], value: Value, around: Around): Fusion {
  checkKeys(kind.name, parts, ['retriever', 'rescore', 'filter', 'min_score', '_name']);
  const [list, rescore] = ['retriever', 'rescore'].map((name) => parts.find((it) => it.name === name));
  if (list === undefined || rescore === undefined)
    throw unparsable(`Required [${list === undefined ? 'retriever' : 'rescore'}]`);
  const passes = [value('rescore')].flat();
  if (passes.length === 0) throw unparsable('Required [rescore]');
  const sizes = passes.map((pass) => (isObject(pass) ? Number(pass['window_size'] ?? RESCORED) : NaN));
  // Behind the narrowest pass hits would be scored by other means than those before.
  const size = Math.min(...sizes);
  if (!Number.isInteger(size) || size < 0) throw unparsable('[window_size] of [rescore] has to be a whole number');
  if (size > MAX_WINDOW) {
    throw illegal(
      `[rank_window_size] must be less than or equal to [${String(MAX_WINDOW)}] for [${kind.name}], but was [${String(size)}]`,
    );
  }
  const inside = { ...around, wanted: size, depth: around.depth + 1 };
  const input: Input = { node: read(text, list, inside), weight: 1, normalizer: 'none', rescore };
  return fusionAs(kind.name, value, { size, given: true }, [input]);
}

/** A retriever that ranks chosen documents above its list: the sum of two lists, of which the first has scores that the other does not reach. */
function pinnedOf(text: string, kind: Member, parts: readonly Member[], value: Value, around: Around): Fusion {
  checkKeys(kind.name, parts, ['retriever', 'ids', 'docs', 'rank_window_size', 'filter', 'min_score', '_name']);
  const list = parts.find(({ name }) => name === 'retriever');
  if (list === undefined) throw unparsable('Required [retriever]');
  const made = bestOf(pinnedDocuments({ ids: value('ids'), docs: value('docs') }));
  const window = windowOf(kind.name, value('rank_window_size'), Math.max(RETRIEVER_WINDOW, around.size));
  const hits = depthOf(window, around.wanted);
  const below = read(text, list, { ...around, wanted: hits, depth: around.depth + 1 });
  const sort = below.kind === 'leaf' ? below.sections.find(({ name }) => name === 'sort') : undefined;
  if (sort !== undefined && !isByScore(valueOf(text, sort)))
    throw illegal(`[${kind.name}] retriever only supports sorting by score`);
  // Filters are for the other list only.
  const inputs = [leaf({ span: kind, made, hits }), below].map((node): Input => ({
    node,
    weight: 1,
    normalizer: 'none',
  }));
  return fusionAs(kind.name, value, window, inputs);
}

/** Whether a `sort` is the usual order: that of the scores, highest first. */
function isByScore(sort: unknown): boolean {
  const usual = ['"_score"', '{"_score":"desc"}', '{"_score":{"order":"desc"}}', '{"_score":{}}'];
  return [sort].flat().every((one) => usual.includes(JSON.stringify(one)));
}

/** A retriever whose lists are added up as they are. */
function fusionAs(called: string, value: Value, window: Fusion['window'], inputs: readonly Input[]): Fusion {
  const minScore = number('min_score', value('min_score'));
  const method = { kind: 'linear' } as const;
  return { kind: 'fused', called, method, inputs, window, minScore, name: nameOf(value), form: 'retriever' };
}

function fusionOf(text: string, kind: Member, parts: readonly Member[], value: Value, around: Around): Fusion {
  const common = ['retrievers', 'query', 'fields', 'rank_window_size', 'filter', 'min_score', '_name'];
  checkKeys(kind.name, parts, [...common, kind.name === 'rrf' ? 'rank_constant' : 'normalizer']);
  const words = value('query');
  checkShort(kind.name, words, value);
  const short = words === undefined ? undefined : expanded(kind.name, shortForm(parts, value), around.indices);
  const usual = Math.max(short?.window.size ?? RETRIEVER_WINDOW, around.size);
  const own = windowOf(kind.name, value('rank_window_size'), usual);
  const hits = depthOf(own, around.wanted);
  const list = parts.find(({ name }) => name === 'retrievers');
  const inside = { ...around, wanted: hits, depth: around.depth + 1 };
  let inputs: readonly Input[];
  if (short !== undefined) {
    const { filters } = around;
    const asked = textOf(words) ?? '';
    inputs = short.lists.map((one) => {
      const found =
        'part' in one.list ? { passages: { ...one.list, text: asked } } : { made: wordsQuery(asked, one.list) };
      return {
        node: leaf({ span: kind, ...found, filters, hits }),
        weight: one.weight,
        normalizer: normalizer(one.normalizer),
      };
    });
  } else {
    if (list === undefined || kindAt(text, list) !== 'array') throw unparsable(`[${kind.name}] Required [retrievers]`);
    inputs = elements(text, list.start).map((item) => input(text, item, kind.name, (it) => read(text, it, inside)));
    const calibrated = inputs.filter((it) => it.normalizer === 'calibrated').length;
    if (calibrated > 0 && calibrated < inputs.length) {
      throw invalid(
        `[${kind.name}] the normalizer [calibrated] must be that of all [retrievers] or of none, as probabilities have no ` +
          'common scale with other scores;',
      );
    }
  }
  const fusion = fusionAs(kind.name, value, own, inputs);
  if (kind.name === 'linear') return fusion;
  return {
    ...fusion,
    method: { kind: 'rrf', rankConstant: short?.rank_constant ?? rankConstant(value('rank_constant')) },
  };
}

function nameOf(value: Value): string | undefined {
  return textOf(value('_name'));
}

/** The window that a request names, or the usual one. */
function windowOf(kind: string, given: unknown, usual: number): Fusion['window'] {
  return given === undefined ? { size: usual, given: false } : { size: window(kind, given), given: true };
}

/** What short forms stand for in indices, as long as what is known of these is believed. */
const EXPANDED = new WeakMap<readonly SemanticIndex[], Map<string, ShortForm>>();
const MOST_EXPANDED = 100;

/** The lists that a short form stands for, which do not depend on its text. */
function expanded(kind: string, form: Json, indices: readonly SemanticIndex[]): ShortForm {
  const known = EXPANDED.get(indices) ?? new Map<string, ShortForm>();
  EXPANDED.set(indices, known);
  const key = JSON.stringify([kind, { ...form, query: typeof form['query'] }]);
  const found = known.get(key);
  if (found !== undefined) return found;
  const made = expandShortForm(kind, form, indices);
  if (known.size >= MOST_EXPANDED) known.clear();
  known.set(key, made);
  return made;
}

/** What the native engine is told of a short form: all but its filters, which stay where they are. */
function shortForm(parts: readonly Member[], value: Value): Json {
  const names = parts.map(({ name }) => name).filter((name) => !['filter', 'min_score', '_name'].includes(name));
  return Object.fromEntries(names.map((name) => [name, value(name)]));
}

/** @throws {EngineError} 400 for parameters of the short form that do not go together */
function checkShort(kind: string, words: unknown, value: Value): void {
  const [custom, fields] = [value('retrievers') !== undefined, value('fields')];
  const messages: string[] = [];
  if (words === undefined && fields !== undefined) messages.push('[query] must be provided when [fields] is specified');
  else if (words === undefined && !custom) messages.push('must provide [retrievers] or [query]');
  else if (words !== undefined) {
    if (words === '') messages.push('[query] cannot be empty');
    if (Array.isArray(fields) && fields.length === 0) messages.push('[fields] cannot be empty');
    if (custom) messages.push('cannot combine [retrievers] and [query]');
  }
  if (kind === 'linear' && custom && value('normalizer') !== undefined)
    messages.push('[normalizer] cannot be provided when [retrievers] is specified');
  if (messages.length === 0) return;
  throw invalid(...messages.map((message) => `[${kind}] ${message};`));
}

function invalid(...messages: readonly string[]): Error {
  const all = messages.map((message, at) => `${String(at + 1)}: ${message}`).join('');
  return refusal(400, 'action_request_validation_exception', `Validation Failed: ${all}`);
}

/** Words in fields, any of them or all, their scores added; in all fields, where none are named. */
function wordsQuery(
  query: string,
  { fields, all }: { readonly fields: readonly (readonly [string, number])[]; readonly all: boolean },
): string {
  const named = fields.map(([name, weight]) => (weight === 1 ? name : `${name}^${String(weight)}`));
  // A pattern may stand for a field in which no words are looked for.
  const lenient = named.some((name) => name.includes('*')) ? { lenient: true } : {};
  const given = named.length === 0 ? {} : { fields: named, ...lenient };
  const operator = all ? { operator: 'and' } : {};
  return JSON.stringify({ multi_match: { query, type: 'most_fields', ...operator, ...given } });
}

function leaf(given: Pick<Leaf, 'span' | 'hits'> & Partial<Leaf>): Leaf {
  const nothing = { query: undefined, knn: undefined, made: undefined, passages: undefined, minScore: undefined };
  return { kind: 'leaf', ...nothing, filters: [], sections: [], name: undefined, ...given };
}

/** How far the lists of a window are read: those of the server's own choice in steps, each ten times as far as the one before. */
export function windows({ size, given, most = MAX_WINDOW }: Fusion['window'], wanted: number): readonly number[] {
  const all = [Math.min(size, most)];
  for (let last = all[0] ?? 0; !given && last < wanted && last < most; all.push(last)) {
    last = Math.min(last * 10, most);
  }
  return all;
}

/** How far the lists of a window are read at most. */
export function depthOf(window: Fusion['window'], wanted: number): number {
  return windows(window, wanted).at(-1) ?? 0;
}

function input(text: string, item: Span, kind: string, below: (span: Span) => Node): Input {
  const parts = kindAt(text, item) === 'object' ? members(text, item.start) : [];
  const retriever = parts.find(({ name }) => name === 'retriever');
  if (retriever === undefined) {
    if (kind === 'linear') throw unparsable('Required [retriever]');
    return { node: below(item), weight: 1, normalizer: 'none' };
  }
  checkKeys('retriever-component', parts, ['retriever', 'weight', ...(kind === 'linear' ? ['normalizer'] : [])]);
  const value = (name: string): unknown => {
    const part = parts.find((it) => it.name === name);
    return part === undefined ? undefined : valueOf(text, part);
  };
  const weight = number('weight', value('weight')) ?? 1;
  if (weight < 0) throw unparsable(`[weight] must be non-negative, found [${String(weight)}]`);
  return { node: below(retriever), weight, normalizer: normalizer(value('normalizer')) };
}

function normalizer(given: unknown): Normalizer {
  const name = (textOf(given) ?? 'none').toLowerCase();
  const found = NORMALIZERS.find((one) => one === name);
  if (found === undefined) throw illegal(`Unknown normalizer [${name}]`);
  return found;
}

function rankConstant(given: unknown): number {
  const constant = number('rank_constant', given) ?? RANK_CONSTANT;
  if (!Number.isInteger(constant) || constant < 1)
    throw illegal('[rank_constant] must be greater or equal to [1] for [rrf]');
  return constant;
}

function window(method: string, given: unknown): number {
  const size = number('rank_window_size', given) ?? 0;
  if (!Number.isInteger(size) || size < 1)
    throw illegal(`[rank_window_size] must be greater or equal to [1] for [${method}]`);
  if (size > MAX_WINDOW) {
    throw illegal(
      `[rank_window_size] must be less than or equal to [${String(MAX_WINDOW)}] for [${method}], but was [${String(size)}]`,
    );
  }
  return size;
}

function number(name: string, given: unknown): number | undefined {
  if (given === undefined) return undefined;
  const value = Number(given);
  if (!Number.isFinite(value)) throw unparsable(`[${name}] has to be a number`);
  return value;
}

function checkKeys(parser: string, parts: readonly Member[], known: readonly string[]): void {
  const unknown = parts.find(({ name }) => !known.includes(name));
  if (unknown !== undefined) throw unparsable(`[${parser}] unknown field [${unknown.name}]`);
}

function checkLists(lists: number): void {
  if (lists > MAX_LISTS)
    throw illegal(`[retriever] takes at most [${String(MAX_LISTS)}] result sets, but was [${String(lists)}]`);
}

function count(node: Node): number {
  return node.kind === 'leaf' ? 1 : node.inputs.reduce((sum, it) => sum + count(it.node), 0);
}

/** The sections in a tree by whose queries hits of its lists are scored again. */
export function rescoresOf(node: Node): readonly Span[] {
  if (node.kind === 'leaf') return [];
  return node.inputs.flatMap((it) => [...(it.rescore === undefined ? [] : [it.rescore]), ...rescoresOf(it.node)]);
}
