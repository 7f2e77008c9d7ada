// Bodies of searches. Nothing here touches the page, so that a test can send every one to a real server.
import type { Kind, Way } from './fields';

export const HITS = 10;
/** Most fields whose passages are shown. */
const HIGHLIGHTED = 8;
/** Characters of a text in which passages are looked for. Without a bound, one book among the hits makes the whole search fail. */
const MOST_ANALYZED = 500_000;
/** Nearest documents that a search by dense vectors finds. */
const NEIGHBOURS = 100;
/** How scores of different lists are made comparable: as in the short form, better than fusion by places in all collections that were measured. */
const NORMALIZER = 'zscore';
/** How much a list counts, and how many of its hits are fused: as in the short form. */
const WEIGHTS: Readonly<Record<Kind, number>> = { words: 1, meaning: 0.7, dense: 1.5, hybrid: 1 };
const WINDOW = 100;

export interface Models {
  readonly sparse: string;
  readonly dense: string;
}

export const DEFAULT_MODELS: Models = { sparse: '.sparse_encoder_model_2', dense: '.all-minilm-l6-v2' };

export interface SearchOptions {
  /** All ways of the index: what `hybrid` is fused from. */
  readonly ways: readonly Way[];
  readonly models?: Models;
  /** Fields whose passages are shown. */
  readonly marked?: readonly string[];
  /**
   * Those of them that hold passages. In other texts, a search by sparse vectors would mark what each token comes from, for which the model
   * reads every hit: that takes hundreds of times as long as the search, so only words are marked there.
   */
  readonly passages?: readonly string[];
  /** Fields that are left out of the hits' sources. */
  readonly hidden?: readonly string[];
  /** In Lucene's syntax; restricts without scoring. */
  readonly filter?: string;
  readonly from?: number;
  readonly size?: number;
  readonly explain?: boolean;
  readonly profile?: boolean;
}

type Json = Readonly<Record<string, unknown>>;

/** The query of a way that is not fused. */
export function queryOf(way: Way, text: string, models: Models = DEFAULT_MODELS): Json {
  const { fields } = way;
  const field = fields[0] ?? '';
  switch (way.type) {
    case 'semantic_text':
      return { semantic: { field, query: text } };
    case 'hybrid_text':
      return way.kind === 'dense'
        ? { knn: { field, k: NEIGHBOURS, query_vector_builder: { text_embedding: { model_text: text } } } }
        : { sparse_vector: { field, query: text } };
    case 'sparse_vector':
      return { sparse_vector: { field, inference_id: models.sparse, query: text } };
    case 'rank_features':
      return { text_expansion: { [field]: { model_id: models.sparse, model_text: text } } };
    case 'dense_vector':
      return {
        knn: {
          field,
          k: NEIGHBOURS,
          query_vector_builder: { text_embedding: { model_id: models.dense, model_text: text } },
        },
      };
    default:
      return fields.length === 1
        ? { match: { [field]: text } }
        : { multi_match: { query: text, type: 'most_fields', fields } };
  }
}

/** One of the lists that `hybrid` is fused from; an index without texts has no way to search them by words. */
export interface FusedList {
  readonly kind: Kind;
  readonly way: Way | undefined;
}

/** The list of documents that have all words of the question: it counts as words, and no column shows it. */
const ALL_WORDS: FusedList = { kind: 'words', way: undefined };

/** The lists that `hybrid` is fused from, in the order in which it explains them. */
export function fusedLists(ways: readonly Way[]): FusedList[] {
  const words: FusedList = { kind: 'words', way: ways.find(({ kind }) => kind === 'words') };
  if (!hasShortForm(ways)) {
    const others = (['meaning', 'dense'] as const).map((kind) => ({
      kind,
      way: ways.find((way) => way.kind === kind),
    }));
    const found = [words, ...others].filter(({ way }) => way !== undefined);
    return words.way === undefined ? found : [...found, ALL_WORDS];
  }
  // The server goes through the fields by their names, and through each one's sparse vectors before its dense ones.
  const semantic = ways.filter(isVectors).sort((a, b) => {
    const [one = '', other = ''] = [a.fields[0], b.fields[0]];
    return one === other ? 0 : one < other ? -1 : 1;
  });
  return [words, ...semantic.map((way) => ({ kind: way.kind, way })), ALL_WORDS];
}

function isVectors({ kind }: Way): boolean {
  return kind === 'meaning' || kind === 'dense';
}

/** Whether one line asks for everything: it leaves out vectors that are not those of a `semantic_text`. */
function hasShortForm(ways: readonly Way[]): boolean {
  const vectors = ways.filter(isVectors);
  return vectors.length > 0 && vectors.every(({ type }) => type === 'semantic_text' || type === 'hybrid_text');
}

function fusion(ways: readonly Way[], text: string, models: Models | undefined, window: number): Json {
  if (hasShortForm(ways)) return { query: text };
  const list = (query: Json, normalizer: string, weight = 1): Json => ({
    ...{ retriever: { standard: { query } }, weight, normalizer },
  });
  return {
    retrievers: fusedLists(ways).map(({ way }) => {
      if (way !== undefined) return list(queryOf(way, text, models), NORMALIZER, WEIGHTS[way.kind]);
      const fields = ways.find(({ kind }) => kind === 'words')?.fields ?? [];
      return list({ multi_match: { query: text, type: 'most_fields', operator: 'and', fields } }, 'rarity');
    }),
    rank_window_size: window,
  };
}

export function searchBody(way: Way, text: string, options: SearchOptions): Json {
  const { ways, models, marked = [], hidden = [], filter = '', from = 0, size = HITS, explain, profile } = options;
  const only = filter.trim() === '' ? [] : [{ query_string: { query: filter } }];
  const filtered = (query: Json): Json => (only.length === 0 ? query : { bool: { must: [query], filter: only } });
  const what =
    way.kind === 'hybrid'
      ? {
          retriever: {
            linear: {
              ...fusion(ways, text, models, Math.max(WINDOW, from + size)),
              ...(only.length === 0 ? {} : { filter: only }),
            },
          },
        }
      : { query: filtered(queryOf(way, text, models)) };
  const fields = Object.fromEntries(
    marked.slice(0, HIGHLIGHTED).map((name) => {
      const isPassages = options.passages?.includes(name) ?? false;
      const words = way.kind === 'meaning' && !isPassages ? { highlight_query: { match: { [name]: text } } } : {};
      return [name, { number_of_fragments: 2, order: 'score', ...words }];
    }),
  );
  return {
    ...what,
    size,
    ...(from > 0 ? { from } : {}),
    ...(hidden.length > 0 ? { _source: { excludes: hidden } } : {}),
    ...(marked.length > 0 ? { highlight: { max_analyzed_offset: MOST_ANALYZED, fields } } : {}),
    ...(explain === true ? { explain } : {}),
    ...(profile === true ? { profile } : {}),
  };
}
