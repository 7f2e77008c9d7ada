import { illegal, notOverCluster, unparsable } from './errors.js';
import { type Method, NORMALIZERS, type Normalizer } from './fusion.js';
import { type Member, type Span, elements, isObject, kindAt, members, textOf, valueOf } from './json.js';

/** A node of the tree of lists: one that a query finds, or one that is fused from others. */
export type Node = Leaf | Fusion;

/** A list that a query finds. */
export interface Leaf {
  readonly kind: 'leaf';
  /** Where the whole stands. */
  readonly span: Span;
  readonly query: Span | undefined;
  readonly filters: readonly Span[];
  readonly minScore: number | undefined;
  /** Sections of a search that a lone retriever may have. */
  readonly sections: readonly Member[];
}

export interface Fusion {
  readonly kind: 'fused';
  readonly method: Method;
  readonly inputs: readonly Input[];
  /** How far lists are read: as the request says, or so far and further for pages behind. */
  readonly window: { readonly size: number; readonly given: boolean };
  readonly minScore: number | undefined;
  /** What an answer shows: `rank` has `_rank` and no `max_score`. */
  readonly form: 'rank' | 'retriever';
}

export interface Input {
  readonly node: Node;
  readonly weight: number;
  readonly normalizer: Normalizer;
}

/** Longest window; the native engine has the same. */
const MAX_WINDOW = 10_000;
const MAX_DEPTH = 10;
const MAX_LISTS = 100;
const RANK_CONSTANT = 60;
/** The window of `rank`, and that of a retriever, where the request names none. */
const RANK_WINDOW = 100;
const RETRIEVER_WINDOW = 10;

const OF_STANDARD = ['sort', 'search_after', 'terminate_after', 'collapse'];

/**
 * Reads the `rank` section over queries.
 *
 * @throws {EngineError} 400
 */
export function readRank(text: string, span: Span, queries: readonly Span[]): Fusion {
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
  checkLists(queries.length);
  return {
    kind: 'fused',
    method: { kind: 'rrf', rankConstant: rankConstant(options['rank_constant']) },
    inputs: queries.map((query) => ({
      node: { kind: 'leaf', span: query, query, filters: [], minScore: undefined, sections: [] },
      weight: 1,
      normalizer: 'none',
    })),
    window: size === undefined ? { size: RANK_WINDOW, given: false } : { size: window('rrf', size), given: true },
    minScore: undefined,
    form: 'rank',
  };
}

/**
 * Reads a retriever.
 *
 * @param size hits that the search wants, which a window of its own choice is not shorter than
 * @throws {EngineError} 400 for what is malformed, and for kinds that are not available over a cluster
 */
export function readRetriever(text: string, span: Span, size: number): Node {
  const node = read(text, span, size, [], 0);
  checkLists(count(node));
  return node;
}

function read(text: string, span: Span, size: number, filters: readonly Span[], depth: number): Node {
  if (depth > MAX_DEPTH)
    throw illegal(`the nested depth of retrievers exceeds the maximum nested depth [${String(MAX_DEPTH)}]`);
  const kinds = kindAt(text, span) === 'object' ? members(text, span.start) : [];
  const [kind, second] = kinds;
  if (kind === undefined || second !== undefined) throw unparsable('retriever malformed, must hold one retriever');
  if (!['standard', 'rrf', 'linear'].includes(kind.name)) throw notOverCluster(`retriever [${kind.name}]`);
  if (kindAt(text, kind) !== 'object') throw unparsable(`[${kind.name}] retriever malformed`);
  const parts = members(text, kind.start);
  const own = parts.filter(({ name }) => name === 'filter');
  const restricting = [
    ...filters,
    ...own.flatMap((it) => (kindAt(text, it) === 'array' ? elements(text, it.start) : [it])),
  ];
  const value = (name: string): unknown => {
    const part = parts.find((it) => it.name === name);
    return part === undefined ? undefined : valueOf(text, part);
  };
  if (kind.name === 'standard') {
    checkKeys('standard', parts, ['query', 'filter', 'min_score', '_name', ...OF_STANDARD]);
    const sections = parts.filter(({ name }) => OF_STANDARD.includes(name));
    if (depth > 0 && sections[0] !== undefined)
      throw notOverCluster(`[${sections[0].name}] of a retriever below another`);
    if (parts.some(({ name }) => name === '_name')) throw notOverCluster('[_name] of a retriever');
    const query = parts.find(({ name }) => name === 'query');
    return {
      kind: 'leaf',
      span: kind,
      query,
      filters: restricting,
      minScore: number('min_score', value('min_score')),
      sections,
    };
  }
  const common = ['retrievers', 'rank_window_size', 'filter', 'min_score'];
  checkKeys(kind.name, parts, [...common, kind.name === 'rrf' ? 'rank_constant' : 'normalizer']);
  const list = parts.find(({ name }) => name === 'retrievers');
  if (list === undefined || kindAt(text, list) !== 'array') throw unparsable(`[${kind.name}] Required [retrievers]`);
  const ofAll = value('normalizer');
  const items = elements(text, list.start);
  const inputs = items.map((item) =>
    input(text, item, kind.name, ofAll, (it) => read(text, it, size, restricting, depth + 1)),
  );
  const given = value('rank_window_size');
  return {
    kind: 'fused',
    method:
      kind.name === 'rrf' ? { kind: 'rrf', rankConstant: rankConstant(value('rank_constant')) } : { kind: 'linear' },
    inputs,
    window:
      given === undefined
        ? { size: Math.max(RETRIEVER_WINDOW, size), given: false }
        : { size: window(kind.name, given), given: true },
    minScore: number('min_score', value('min_score')),
    form: 'retriever',
  };
}

function input(text: string, item: Span, kind: string, ofAll: unknown, below: (span: Span) => Node): Input {
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
  return { node: below(retriever), weight, normalizer: normalizer(value('normalizer') ?? ofAll) };
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
  if (unknown === undefined) return;
  if (['fields', 'query', '_name', 'normalizer'].includes(unknown.name))
    throw notOverCluster(`[${unknown.name}] of retriever [${parser}]`);
  throw unparsable(`[${parser}] unknown field [${unknown.name}]`);
}

function checkLists(lists: number): void {
  if (lists > MAX_LISTS)
    throw illegal(`[retriever] takes at most [${String(MAX_LISTS)}] result sets, but was [${String(lists)}]`);
}

function count(node: Node): number {
  return node.kind === 'leaf' ? 1 : node.inputs.reduce((sum, it) => sum + count(it.node), 0);
}
