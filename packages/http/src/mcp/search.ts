import { SparrowError } from '@sparrow-search/engine';
import { z } from 'zod';

import { Fields } from './fields.js';
import { type RestInterface, ToolError, pathOf } from './rest-interface.js';
import { type Call, ID, INDEX, OBJECT, tool } from './tool.js';
import { type JsonObject, briefly, slice, textsIn } from './values.js';

/** Hits of a page: a model reads all of them. */
const USUAL_HITS = 5;
const MOST_HITS = 20;
/** Hits that can be paged through: what is further down is never what was meant. */
const MOST_DEPTH = 1000;
/** Characters of a question. */
const LONGEST_QUERY = 4000;
const MOST_FILTERS = 20;
const MOST_VALUES = 100;
/** Passages of a hit in each field, on a page of many hits and on one of a few. */
const PASSAGES = { ofMany: 1, ofFew: 2 };
/** Characters of a passage that are shown: those of the usual size, 250 words, are shown whole. */
const LONGEST_PASSAGE = 2500;
/** Fields of which passages are shown. */
const MOST_FIELDS = 8;
/** Characters of a text in which passages are looked for. Without a bound, one book among the hits makes the whole search fail. */
const MOST_ANALYZED = 500_000;
/** Characters of a document that similar ones are looked for with. */
const LONGEST_TEXT = 1500;

/**
 * From the first relevance on, a hit mostly answers; docs/hybrid-search.md has the figures behind it. The second one is low, as right
 * answers in a small index, or in quite different words than the question, often score between 0.02 and 0.2.
 */
const LIKELY = 0.3;
const UNLIKELY = 0.02;

const VALUE = z.union([z.string().max(1000), z.number(), z.boolean()]);
const CONDITION = z.union([
  VALUE,
  z.array(VALUE).min(1).max(MOST_VALUES),
  z.strictObject(
    { from: VALUE.optional(), to: VALUE.optional() },
    {
      error:
        'an object here is a range, {"from": 1, "to": 2}; the keys of a flattened field are named with a dot: {"labels.color": "red"}',
    },
  ),
]);

const FILTERS = z
  .record(z.string().max(500), CONDITION)
  .describe(
    'Conditions that every hit has to meet, as pairs of a field and a value, a list of values of which one is enough, or a range: {"status": "open", "country": ["AT", "CH"], "year": {"from": 2020, "to": 2024}}. Keys of a flattened field are named with a dot: {"labels.color": "red"}. describe_index shows fields and values.',
  );

const ASSESSMENTS = ['relevant', 'uncertain', 'nothing_relevant', 'not_assessed'] as const;
type Assessment = (typeof ASSESSMENTS)[number];

const ADVICE: Readonly<Record<Assessment, string>> = {
  relevant: 'At least the first hit probably is about what was asked.',
  uncertain: 'The hits may or may not be about what was asked: read their passages before you rely on them.',
  nothing_relevant:
    'Nothing here seems to be about what was asked. Try other words once; if that finds nothing either, say so instead of answering from these hits.',
  not_assessed: 'How relevant the hits are is not known: read their passages before you rely on them.',
};

const HIT = z.object({
  index: z.string(),
  id: z.string(),
  relevance: z.number().optional().describe('Estimated probability that the hit is relevant, from 0 to 1'),
  fields: OBJECT.describe('Short values of the document; get_document shows all'),
  cut: z.array(z.string()).optional().describe('Fields of which something was left out'),
  passages: z.array(z.object({ field: z.string(), text: z.string() })).describe('What fits the query best'),
});

const FOUND = z.object({
  assessment: z.enum(ASSESSMENTS),
  advice: z.string(),
  hits: z.array(HIT),
  next_page: z.number().optional().describe('The page to ask for if more hits are needed; absent at the end'),
});

type Found = z.output<typeof FOUND>;

/** A hit of the REST interface. */
interface RestHit {
  readonly _index: string;
  readonly _id: string;
  readonly _score: number | null;
  readonly _source?: JsonObject;
  readonly highlight?: Readonly<Record<string, readonly string[]>>;
}

/** A search as the tool was asked for it: index, question, filters, page. */
interface Wanted {
  readonly index: string;
  readonly query?: string | undefined;
  readonly filter: readonly object[];
  readonly from: number;
  readonly size: number;
  readonly minRelevance?: number | undefined;
}

/**
 * The retriever that searches by words and by every kind of meaning that an index has.
 *
 * @param minRelevance the least probability of a hit, where scores are probabilities
 */
export function retriever(
  query: string,
  normalizer: 'calibrated' | 'zscore',
  filter: readonly object[],
  minRelevance?: number,
): object {
  const least = minRelevance === undefined || normalizer === 'zscore' ? {} : { min_score: minRelevance };
  // Without a name, the server takes `zscore`, and one more list of the documents that have all words.
  const named = normalizer === 'zscore' ? {} : { normalizer };
  return { linear: { query, ...named, ...(filter.length === 0 ? {} : { filter }), ...least } };
}

/**
 * Carries out a search whose scores are probabilities, or where a model has no such scale, another one.
 *
 * @param ask makes the request with a normalizer
 */
export async function calibrated<T>(
  ask: (normalizer: 'calibrated' | 'zscore') => Promise<T>,
): Promise<{ readonly answer: T; readonly isCalibrated: boolean }> {
  try {
    return { answer: await ask('calibrated'), isCalibrated: true };
  } catch (error) {
    if (!(error instanceof SparrowError) || error.status !== 400 || !error.message.includes('calibrat')) throw error;
    return { answer: await ask('zscore'), isCalibrated: false };
  }
}

export const SEARCH = tool({
  name: 'search',
  title: 'Search an index',
  description:
    'Finds documents of an index by words and by meaning at once, and shows their best passages. Ask as you would ask a person, in a phrase or a sentence. The answer says whether anything relevant was found.',
  effect: 'read',
  input: z.strictObject({
    index: INDEX.describe('The index, or several separated by commas'),
    query: z.string().optional().describe('What to look for. May be left out where filters alone say what is wanted'),
    filters: FILTERS.optional(),
    size: z.int().min(1).max(MOST_HITS).default(USUAL_HITS).describe('Hits of a page'),
    page: z.int().min(1).default(1),
    min_relevance: z
      .number()
      .min(0)
      .max(1)
      .optional()
      .describe('Leave out hits below this relevance, from 0 to 1; 0.3 keeps what is probably right'),
  }),
  output: FOUND,
  run: async ({ index, query, filters = {}, size, page, min_relevance: minRelevance }, { rest, signal }) => {
    const from = (page - 1) * size;
    if (from + size > MOST_DEPTH) {
      throw new ToolError(
        `Page ${String(page)} is too deep: only the first ${String(MOST_DEPTH)} hits can be paged through. Narrow the search down with filters or a more precise query.`,
      );
    }
    if (query !== undefined) checkQuery(query);
    if (query === undefined && Object.keys(filters).length === 0) {
      throw new ToolError('There is no query: say in words what to look for, or give filters.');
    }
    if (Object.keys(filters).length > MOST_FILTERS) {
      throw new ToolError(`There are more than ${String(MOST_FILTERS)} filters: give fewer.`);
    }
    const fields = await Fields.of(rest, index, signal);
    const filter = fields.clauses(filters);
    return find(rest, fields, { index, query, filter, from, size, minRelevance }, page, signal);
  },
});

export const SIMILAR = tool({
  name: 'similar',
  title: 'Find similar documents',
  description: 'Finds documents that are about the same as a document which is known by its id, such as that of a hit.',
  effect: 'read',
  input: z.strictObject({
    index: INDEX,
    id: ID,
    filters: FILTERS.optional(),
    size: z.int().min(1).max(MOST_HITS).default(USUAL_HITS),
  }),
  output: FOUND.omit({ next_page: true }),
  run: async ({ index, id, filters = {}, size }, { rest, signal }) => {
    const fields = await Fields.of(rest, index, signal);
    const text = await textOf(index, id, fields, { rest, signal });
    const filter = [...fields.clauses(filters), { bool: { must_not: { ids: { values: [id] } } } }];
    const found = await find(rest, fields, { index, query: text, filter, from: 0, size }, 1, signal);
    // There are no pages: what is further down is hardly similar.
    const { assessment, advice, hits } = found;
    return { assessment, advice, hits };
  },
});

/** @throws {ToolError} for a question that says nothing, or too much */
export function checkQuery(query: string): void {
  if (query.trim() === '') throw new ToolError('The query is empty: say in words what to look for.');
  if (query.length > LONGEST_QUERY) {
    throw new ToolError(
      `The query has ${String(query.length)} characters, more than ${String(LONGEST_QUERY)}: say in a sentence what to look for.`,
    );
  }
}

async function find(
  rest: RestInterface,
  fields: Fields,
  wanted: Wanted,
  page: number,
  signal: AbortSignal,
): Promise<Found> {
  const { index, query, filter, from, size, minRelevance } = wanted;
  const shown = {
    from,
    // One more than is shown tells whether there is another page.
    size: size + 1,
    track_total_hits: false,
    // Fields that are shown as passages may be long, and the numbers of a vector say nothing to a reader.
    _source: { excludes: [...fields.passageSources, ...fields.vectors.map(({ name }) => name)] },
  };
  if (query === undefined) {
    const body = { ...shown, query: { bool: { filter } }, highlight: highlight(fields, size) };
    const { hits } = await request(rest, index, body, signal);
    return {
      assessment: 'not_assessed',
      advice: 'These are documents that meet the filters, in no order.',
      ...paged(hits, size, page, false),
    };
  }
  const { answer, isCalibrated } = await calibrated((normalizer) => {
    const body = {
      ...shown,
      retriever: retriever(query, normalizer, filter, minRelevance),
      highlight: highlight(fields, size),
    };
    return request(rest, index, body, signal);
  });
  const assessment = isCalibrated ? assess(answer.hits[0]) : 'not_assessed';
  return { assessment, advice: ADVICE[assessment], ...paged(answer.hits, size, page, isCalibrated) };
}

async function request(
  rest: RestInterface,
  index: string,
  body: object,
  signal: AbortSignal,
): Promise<{ readonly hits: readonly RestHit[] }> {
  const answer = await rest.request<{ hits: { hits: readonly RestHit[] } }>('POST', pathOf(index, '_search'), {
    body,
    signal,
  });
  return answer.hits;
}

function assess(best: RestHit | undefined): Assessment {
  const relevance = best?._score ?? 0;
  if (relevance >= LIKELY) return 'relevant';
  return relevance >= UNLIKELY ? 'uncertain' : 'nothing_relevant';
}

/** Passages of the fields that are searched by meaning, else of texts. */
function highlight(fields: Fields, size: number): object {
  const semantic = fields.semantic.map(({ name }) => name);
  const shown = (semantic.length > 0 ? semantic : fields.texts.map(({ name }) => name)).slice(0, MOST_FIELDS);
  const one = {
    number_of_fragments: size > USUAL_HITS ? PASSAGES.ofMany : PASSAGES.ofFew,
    order: 'score',
    pre_tags: [''],
    post_tags: [''],
  };
  return {
    max_analyzed_offset: MOST_ANALYZED,
    fields: Object.fromEntries(shown.map((name) => [name, one])),
  };
}

function paged(
  hits: readonly RestHit[],
  size: number,
  page: number,
  isCalibrated: boolean,
): Pick<Found, 'hits' | 'next_page'> {
  const shown = hits.slice(0, size).map((hit) => shownHit(hit, isCalibrated));
  const hasMore = hits.length > size && (page + 1) * size <= MOST_DEPTH;
  return { hits: shown, ...(hasMore ? { next_page: page + 1 } : {}) };
}

function shownHit(hit: RestHit, isCalibrated: boolean): Found['hits'][number] {
  const { _index: index, _id: id, _score: score, _source: source = {}, highlight: found = {} } = hit;
  const { fields, cut } = briefly(source);
  const seen = new Set<string>();
  const passages = Object.entries(found).flatMap(([field, texts]) =>
    texts.flatMap((text) => {
      // Several fields may hold the same passage, and a short one may be the whole value of a field that is shown already.
      if (seen.has(text) || Object.values(fields).includes(text)) return [];
      seen.add(text);
      return [{ field, text: text.length > LONGEST_PASSAGE ? `${slice(text, 0, LONGEST_PASSAGE)}…` : text }];
    }),
  );
  return {
    index,
    id,
    ...(isCalibrated && score !== null ? { relevance: rounded(score) } : {}),
    fields,
    ...(cut.length === 0 ? {} : { cut: [...cut] }),
    passages,
  };
}

/** Three digits say all that there is to say about a probability. */
export function rounded(score: number): number {
  return Math.round(score * 1000) / 1000;
}

/** What a document is about: its texts that are searched by meaning, or else all its texts. */
async function textOf(index: string, id: string, fields: Fields, { rest, signal }: Call): Promise<string> {
  const names = fields.semantic.length > 0 ? fields.passageSources : fields.texts.map(({ name }) => name);
  const source = await sourceOf(rest, index, id, names, signal);
  const texts = [...textsIn(source)].map(([, text]) => text.trim()).filter((text) => text !== '');
  if (texts.length === 0) {
    throw new ToolError(`The document [${id}] has no text to compare with others. Use search with a query instead.`);
  }
  return slice(texts.join('\n'), 0, LONGEST_TEXT);
}

/**
 * The fields of a document.
 *
 * @param names the fields, which may be patterns; all of them if there are none
 * @throws {ToolError} when it is not there
 */
export async function sourceOf(
  rest: RestInterface,
  index: string,
  id: string,
  names: readonly string[],
  signal: AbortSignal,
): Promise<JsonObject> {
  const query = names.length === 0 ? {} : { _source_includes: names.join(',') };
  try {
    const path = pathOf(index, '_doc', id);
    const { _source: source } = await rest.request<{ _source?: JsonObject }>('GET', path, { query, signal });
    return source ?? {};
  } catch (error) {
    if (!(error instanceof SparrowError) || error.status !== 404 || error.type === 'index_not_found_exception')
      throw error;
    throw new ToolError(`There is no document with the id [${id}] in [${index}]. Use an id that search has shown.`);
  }
}
