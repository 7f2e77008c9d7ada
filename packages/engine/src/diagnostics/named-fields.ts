// The fields that searches name, for the server, the command line and the console. It has no imports, as it runs in browsers too.

/**
 * What a text in Lucene's syntax is made of: phrases, regular expressions and ranges, in which colons are letters, and runs of letters with
 * the colon behind them. Each takes all that it can and is a match with that, so no letter is looked at twice: this is read on the event loop.
 */
const TOKEN =
  /"(?:\\.|[^"\\])*"?|\/(?:\\.|[^/\\])*\/?|[[{](?:"(?:\\.|[^"\\])*"?|[^\]}"])*[\]}]?|(?:[^\s+!()[\]{}"/:\\^~]|\\.)+:?/gs;

/** What Lucene's parser came upon: `"<EOF>"`, `" ")" ") ""`, `" <AND> "AND ""`, and of a lexical error `"x"` or `<EOF>`. */
const ENCOUNTERED = /^Cannot parse '[^]*Encountered:? ([^]+?)(?: at line \d+, column \d+\.)?$/m;

/** What a field before a colon may be called; patterns and what has escaped signs are left out. */
const NAME = /^[\p{L}_][\p{L}\p{M}\p{N}_.-]*$/u;

/** Longest name that is looked for, and most dots in one: nobody misspells a longer one, and each dot is one more field to ask for. */
const MOST_LETTERS = 200;
const MOST_DOTS = 20;
/** Names of a search that are looked for: so many are written by programs. */
const MOST_NAMES = 200;

/** Queries that have a field as the name of a member. */
const BY_MEMBER: ReadonlySet<string> = new Set([
  ...['fuzzy', 'intervals', 'match', 'match_bool_prefix', 'match_phrase', 'match_phrase_prefix', 'prefix', 'range'],
  ...['regexp', 'term', 'terms', 'terms_set', 'text_expansion', 'weighted_tokens', 'wildcard'],
]);

/** Their members that are no fields. */
const OPTIONS: ReadonlySet<string> = new Set(['_name', 'boost', 'ignore_unmapped']);

/** Queries and retrievers that name a field as their `field`. */
const BY_FIELD: ReadonlySet<string> = new Set([
  ...['distance_feature', 'exists', 'knn', 'rank_feature', 'semantic', 'sparse_vector', 'text_similarity_reranker'],
]);

/** Queries and retrievers that name several as their `fields`. */
const BY_FIELDS: ReadonlySet<string> = new Set([
  ...['combined_fields', 'linear', 'more_like_this', 'multi_match', 'query_string', 'rrf', 'simple_query_string'],
]);

/** Members of a search that hold queries. */
const QUERYING = ['query', 'retriever', 'knn', 'post_filter', 'rescore'] as const;

/** Members of queries that hold no queries, or those of another index. */
const APART: ReadonlySet<string> = new Set([
  ...['_source', 'inner_hits', 'like', 'params', 'query_vector', 'query_vector_builder', 'script', 'unlike'],
]);

/** Field types that are searched by words. */
export const BY_WORDS: readonly string[] = ['text', 'match_only_text', 'search_as_you_type'];

/** A message of the server's; where it says that a filter cannot be parsed, a sentence that says what to change. */
export function filterProblem(message: string, filter: string): string {
  const found = ENCOUNTERED.exec(message)?.[1];
  if (found === undefined) return message;
  if (found.includes('<EOF>'))
    return `The filter “${filter}” ends too early: is a value, a quote or a bracket missing?`;
  const what = /^" (?:<\w+> )?"([^]+?) ?"/.exec(found)?.[1] ?? found.replace(/^"|"$/g, '');
  return `The filter “${filter}” cannot be read: “${what}” is not expected there.`;
}

/** Types whose values are ordered by their letters. */
const TEXTS: readonly string[] = [...BY_WORDS, 'keyword', 'constant_keyword', 'wildcard'];

/** A comparison with a number or a date, or a range that begins or ends with one. */
const COMPARED = /^(?:[<>]=?|[[{]\s*(?:\*\s+TO\s+)?)"?[-+]?\d/;

/** The fields that a text in Lucene's syntax names; patterns and what is no field are left out, as are names of unusual length. */
export function fieldsOfFilter(filter: string): string[] {
  const named = new Set<string>();
  for (const [token] of filter.matchAll(TOKEN)) {
    if (!token.endsWith(':')) continue;
    const name = token.slice(0, -1).replace(/^-+/, '');
    if (NAME.test(name) && name !== '_exists_') named.add(name);
  }
  return usual(named);
}

/**
 * The fields that a text in Lucene's syntax compares with numbers or dates, as in `price:<50` and `year:[2020 TO *]`; `known` is what
 * `_field_caps` shows for the fields that it names. Of these, those that are texts everywhere, with what they are: they compare letters, and
 * 9 is more than 50.
 */
export function textsCompared(filter: string, known: object): { readonly name: string; readonly type: string }[] {
  const compared = new Set<string>();
  let field = '';
  for (const [token] of filter.matchAll(TOKEN)) {
    if (token.endsWith(':')) field = token.slice(0, -1).replace(/^-+/, '');
    else if (COMPARED.test(token)) compared.add(field);
  }
  return usual(compared).flatMap((name) => {
    const types = Object.keys(
      Object.hasOwn(known, name) ? ((known as Readonly<Record<string, object>>)[name] ?? {}) : {},
    );
    const isText = types.length > 0 && types.every((type) => TEXTS.includes(type));
    return isText ? [{ name, type: types[0] === 'keyword' ? 'keyword' : 'text' }] : [];
  });
}

/** What is to be said about such a field: a sentence without its full stop. */
export function comparesLetters({ name, type }: { readonly name: string; readonly type: string }): string {
  return `[${name}] is a ${type}, so < and > compare letters, and 9 comes after 50: a field of numbers or dates compares values`;
}

/**
 * The fields that the queries and aggregations of a search's body name: in full, so without patterns, and without those that every index
 * has and names of unusual length.
 */
export function fieldsOfSearch(body: object): string[] {
  const named = new Set<string>();
  const members = body as Readonly<Record<string, unknown>>;
  for (const member of QUERYING) collect(member, members[member], named);
  return written([...named, ...fieldsOfAggregations(body)]);
}

/** The fields that the aggregations of a search's body name, as {@link fieldsOfSearch} lists them; those of its queries are left out. */
export function fieldsOfAggregations(body: object): string[] {
  const named = new Set<string>();
  const { aggs, aggregations = aggs } = body as Readonly<Record<string, unknown>>;
  collectAggregations(aggregations, named);
  return written([...named]);
}

/** Names in full, without those that every index has. */
function written(named: readonly string[]): string[] {
  return usual(new Set(named.filter((name) => name !== '' && !name.startsWith('_') && !/[*,]/.test(name))));
}

/** The first names that are no longer than people write them. */
function usual(names: Iterable<string>): string[] {
  return [...names]
    .filter((name) => name.length <= MOST_LETTERS && name.split('.', MOST_DOTS + 2).length <= MOST_DOTS + 1)
    .slice(0, MOST_NAMES);
}

function collect(kind: string, value: unknown, named: Set<string>): void {
  if (typeof value !== 'object' || value === null || APART.has(kind)) return;
  if (Array.isArray(value)) {
    for (const one of value) collect(kind, one, named);
    return;
  }
  if (BY_MEMBER.has(kind)) {
    for (const name of Object.keys(value)) if (!OPTIONS.has(name)) named.add(name);
    return;
  }
  const { field, fields, query } = value as Readonly<Record<string, unknown>>;
  if (BY_FIELD.has(kind) && typeof field === 'string') named.add(field);
  if (BY_FIELDS.has(kind) && Array.isArray(fields)) {
    for (const one of fields) if (typeof one === 'string') named.add(one.split('^', 1)[0] ?? '');
  }
  if (kind === 'query_string' && typeof query === 'string') for (const name of fieldsOfFilter(query)) named.add(name);
  for (const [name, inner] of Object.entries(value)) collect(name, inner, named);
}

/**
 * Aggregations by their names, as in a search, in one aggregation for each of its buckets, or as the sources of a composite one. One that
 * counts the documents without a field finds them also where no index has it.
 */
function collectAggregations(aggregations: unknown, named: Set<string>): void {
  for (const aggregation of membersOf(aggregations)) {
    for (const [kind, value] of Object.entries(aggregation)) {
      if (kind === 'aggs' || kind === 'aggregations') collectAggregations(value, named);
      else if (kind === 'filter') collect(kind, value, named);
      else if (kind !== 'meta' && typeof value === 'object' && value !== null) {
        const { field, sources, missing } = value as Readonly<Record<string, unknown>>;
        const countsMissing = kind === 'missing' || missing !== undefined;
        if (typeof field === 'string' && !countsMissing) named.add(field);
        for (const source of membersOf(sources)) collectAggregations(source, named);
      }
    }
  }
}

/** The objects among the members of an object or an array. */
function membersOf(value: unknown): object[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).filter((member) => typeof member === 'object' && member !== null) as object[];
}

/**
 * Those of `names` that are not among the fields that `_field_caps` shows for them. What is below a field, as are the features of
 * `rank_features`, belongs to it.
 */
export function unknownAmong(names: readonly string[], known: object): string[] {
  const isKnown = (name: string): boolean => Object.hasOwn(known, name);
  return names.filter(
    (name) => !isKnown(name) && !parents(name).some((parent) => isKnown(parent) && !isObject(known, parent)),
  );
}

/** `names` with those that are above them: what has to be asked for before {@link unknownAmong} can tell. */
export function withParents(names: readonly string[]): string[] {
  return [...new Set(names.flatMap((name) => [name, ...parents(name)]))];
}

function parents(name: string): string[] {
  const parts = name.split('.');
  return parts.slice(1).map((_, at) => parts.slice(0, at + 1).join('.'));
}

function isObject(known: object, name: string): boolean {
  const types = (known as Readonly<Record<string, object>>)[name] ?? {};
  return 'object' in types || 'nested' in types;
}
