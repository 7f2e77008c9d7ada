import { existsSync, readFileSync } from 'node:fs';

import type { Command } from 'commander';
import { Option } from 'commander';
import { type Leaf, leaves } from '@sparrow-search/endpoints';
import {
  type Hit,
  type Query,
  type SearchRequest,
  type SearchResponse,
  SparrowError,
  fileProblem,
} from '@sparrow-search/engine';
import { BY_WORDS, fieldsOfFilter, fieldsOfSearch, filterProblem, near } from '@sparrow-search/engine/diagnostics';

import { Context, type ServerOptions, integerOption, jsonOption, withServer } from '../context.js';
import { CommandError, UsageError } from '../errors.js';
import { whileWaiting } from '../progress.js';
import { kindsOf, mappingsOf, namingIndices } from '../searched-fields.js';
import { shown, titleFieldOf } from '../documents/shown-document.js';
import { noteFields } from '../unknown-fields.js';
import { type Sink, duration, inLine, number, oneLine } from '../terminal.js';

type Document = Readonly<Record<string, unknown>>;

/** Fields that can be searched, by how. */
interface Fields {
  readonly semantic: readonly Leaf[];
  readonly sparse: readonly string[];
  readonly text: readonly string[];
}

const WAYS = ['hybrid', 'meaning', 'words', 'sparse', 'dense'] as const;
type Way = (typeof WAYS)[number];
type Kind = 'sparse' | 'dense';

interface Options extends ServerOptions {
  readonly index: string;
  readonly by?: Way;
  readonly field?: readonly string[];
  readonly model: string;
  readonly size: number;
  readonly filter?: readonly string[];
  readonly body?: string;
}

/** Characters of a title beside an id. */
const LONGEST_TITLE = 60;
/** Fields that are named where one is asked for that is not there. */
const MOST_NAMED = 10;
/** Documents that a search by dense vectors finds, unless more are wanted. */
const NEIGHBOURS = 100;
/** How scores of different lists are made comparable: as in the short form, better than fusion by places in all collections that were measured. */
const NORMALIZER = 'zscore' as const;
/** Hits of each list that are fused, as was measured, unless more are wanted. */
const WINDOW = 100;
/** Characters of a text in which a passage is looked for. Without a bound, one book among the hits makes the whole search fail. */
const MOST_ANALYZED = 500_000;
/** Documents are found by so many fields at most; a search of more takes its time. */
const MOST_FIELDS = 32;

/** `sparrow search`: a question, and what an index has to say about it. */
export function addSearch(program: Command): void {
  withServer(
    program
      .command('search')
      .description('ask an index a question')
      .argument('[question...]', 'what to search for')
      .requiredOption('--index <name>', 'the index, or several separated by commas')
      .addOption(
        new Option(
          '--by <way>',
          'how to search: by words, by meaning (sparse and dense vectors, or one of them), or by all (hybrid, the default)',
        ).choices(WAYS),
      )
      .option('--field <name...>', 'search these fields only')
      .option(
        '--filter <query>',
        'only documents that match this, such as topic=health or "topic:health AND year:[2020 TO *]"; several all have to match',
        (filter: string, before: readonly string[] | undefined) => [...(before ?? []), luceneOf(filter)],
      )
      .option('--model <id>', 'model for sparse_vector fields', '.sparse_encoder_model_2')
      .addOption(integerOption('--size <n>', 'number of hits', 0).default(10))
      .option('--body <json>', 'a whole request body instead of a question, or @FILE to read one'),
    jsonOption('the answer of POST /INDEX/_search'),
  ).action(async (words: readonly string[], options: Options) => {
    const question = words.join(' ');
    if (question !== '' && options.body !== undefined)
      throw new UsageError('give a question, or a request with --body, and not both');
    if (question === '' && options.body === undefined)
      throw new UsageError(
        'a question is needed, or a request with --body; --field and --filter take all the words that follow them, so write them behind the question',
      );
    if (options.filter !== undefined && options.body !== undefined)
      throw new UsageError('a request with --body has filters of its own: leave out --filter');
    const context = new Context(options);
    const body = options.body === undefined ? undefined : readBody(options.body);
    const asked = ask(context, question, body, options);
    const waiting = 'waiting for the answer; if this question starts a model, that takes some seconds';
    const { answer, orders } = await whileWaiting(context.terminal.err, waiting, asked).catch(
      async (error: unknown) => {
        throw await namingIndices(context, aboutFilter(error, options));
      },
    );
    const named = body === undefined ? (options.filter ?? []).flatMap(fieldsOfFilter) : fieldsOfSearch(body);
    await noteFields(context, options.index, named, options.filter);
    context.show(answer, (out) => {
      const { total: all, hits: listed } = answer.hits;
      // Nothing speaks for what has a score of 0, and a fused list ends with such hits: behind the first, nothing else is found.
      const hits = body === undefined ? listed.filter(({ _score: score }) => score !== 0) : listed;
      const total = hits.length < listed.length ? { value: hits.length, relation: 'eq' as const } : all;
      const footer = out.dim(`${foundBy(orders, hits.length, total)}${duration(answer.took)}`);
      const titleField = titleFieldOf(hits.map(({ _source: source }) => (source as Document | undefined) ?? {}));
      return `${hits.map((hit, at) => described(out, hit, at, titleField)).join('')}${footer}\n`;
    });
  });
}

/** What a search puts in an order: documents that match, or all, which are near a question or good answers to it to some degree. */
type Orders = 'matching' | 'nearest' | 'best';

/** How many documents were found. Where a search orders all documents, the number of those that it looked at says nothing. */
function foundBy(orders: Orders, shown: number, total: SearchResponse<Document>['hits']['total']): string {
  if (orders !== 'matching' && shown > 0)
    return shown === 1 ? `the ${orders} document, ` : `the ${number(shown)} ${orders} documents, `;
  return total === undefined ? '' : `${total.relation === 'gte' ? 'at least ' : ''}${number(total.value)} found, `;
}

async function ask(
  context: Context,
  question: string,
  body: SearchRequest | undefined,
  options: Options,
): Promise<{ readonly answer: SearchResponse<Document>; readonly orders: Orders }> {
  const request = body ?? (await requestFor(context, question, options));
  const ordered = options.by === 'dense' ? 'nearest' : 'retriever' in request ? 'best' : 'matching';
  const answer = await context.sparrow.index<Document>(options.index).search(request);
  return { answer, orders: body === undefined ? ordered : 'matching' };
}

/** The request that `--body` gives, or that is in the file which it names behind an @. */
function readBody(given: string): SearchRequest {
  const file = given.startsWith('@') ? given.slice(1) : undefined;
  let text = given;
  if (file !== undefined) {
    try {
      text = readFileSync(file, 'utf8');
    } catch (cause) {
      throw new UsageError(`--body: cannot read the file [${inLine(file)}] named after the @: ${fileProblem(cause)}`, {
        cause,
      });
    }
  }
  const where = file === undefined ? '' : ` [${inLine(file)}]`;
  const hint =
    file === undefined && existsSync(given)
      ? `; did you mean the file, --body @${inLine(given)}?`
      : `; a request looks like {"query": {"match_all": {}}}`;
  let request: unknown;
  try {
    request = JSON.parse(text);
  } catch (cause) {
    const why = inLine(cause instanceof Error ? cause.message : String(cause));
    throw new UsageError(`--body${where} is not JSON (${why})${hint}`, { cause });
  }
  if (typeof request === 'object' && request !== null && !Array.isArray(request)) return request;
  throw new UsageError(`--body${where} is not a JSON object${hint}`);
}

async function requestFor(context: Context, question: string, options: Options): Promise<SearchRequest> {
  const { index, by = 'hybrid', field, size } = options;
  const mappings = await mappingsOf(context, index);
  if (mappings === undefined) {
    // The server finds the fields by itself.
    if (by !== 'hybrid')
      throw new CommandError(
        `--by needs to know the fields of [${index}], which this key may not see: use a key with view_index_metadata, or leave out --by`,
      );
    context.note(
      `this key may not see the fields of [${index}], which needs view_index_metadata, so the server chooses the fields to search`,
    );
    const fields = field === undefined ? {} : { fields: [...field] };
    return {
      retriever: { linear: { query: question, ...fields, ...filterOf(options) } },
      size,
    };
  }
  const all = Object.values(mappings).flatMap(({ mappings: { properties } }) => leaves(properties ?? {}));
  const unknown = field?.find((name) => !all.some(([known]) => known === name));
  if (unknown !== undefined) {
    const names = all.map(([known]) => known);
    const [meant] = near(unknown, names);
    const hint =
      meant === undefined ? `its fields are ${names.slice(0, MOST_NAMED).join(', ')}` : `did you mean [${meant}]?`;
    throw new CommandError(`[${index}] has no field [${unknown}]; ${hint}`);
  }
  const fields = sorted(all.filter(([name]) => field?.includes(name) ?? true));
  const semantic = fields.semantic.map(([name]) => name);
  // To mark words in other texts, a search by sparse vectors alone would run the model for every hit.
  const texts = by === 'sparse' && semantic.length > 0 ? [] : fields.text;
  const highlighted = [...new Set([...semantic, ...texts])].slice(0, 8);
  const highlight = {
    max_analyzed_offset: MOST_ANALYZED,
    fields: Object.fromEntries(highlighted.map((name) => [name, { number_of_fragments: 1 }])),
  };
  const base = { size, highlight };
  const isFused = by === 'hybrid' || by === 'meaning';
  const words = by === 'hybrid' ? fields.text : [];
  const isOneList = words.length === 0 && fields.semantic.length === 1 && fields.semantic.every(hasOneKind);
  if (isFused && semantic.length > 0 && fields.sparse.length === 0 && !isOneList) {
    // The server asks for every kind of vector that the fields hold, with the weights that were measured.
    return {
      retriever: {
        linear: { query: question, fields: [...words, ...semantic], ...filterOf(options) },
      },
      ...base,
    };
  }
  const lists = queriesFor(by, fields, question, options);
  const [only] = lists;
  if (only === undefined) throw new CommandError(`[${index}] has no ${WANTED[by]} to look in`);
  if (lists.length === 1) {
    const isFiltered = options.filter !== undefined;
    return { query: isFiltered ? { bool: { must: only, ...filterOf(options) } } : only, ...base };
  }
  return {
    retriever: {
      linear: {
        retrievers: [
          ...lists.map((query) => ({ retriever: { standard: { query } }, normalizer: NORMALIZER })),
          ...(words.length === 0 ? [] : [allWords(words, question)]),
        ],
        rank_window_size: Math.max(size, WINDOW),
        ...filterOf(options),
      },
    },
    ...base,
  };
}

/** The list of documents that have all words of the question in one field; the short form has a list like it. */
function allWords(fields: readonly string[], question: string) {
  const query = { multi_match: { query: question, fields: [...fields], operator: 'and' as const } };
  return { retriever: { standard: { query } }, normalizer: 'rarity' as const };
}

/** An error that says in other words what is wrong with a filter. */
function aboutFilter(error: unknown, { filter }: Options): unknown {
  if (!(error instanceof SparrowError)) return error;
  for (const one of filter ?? []) {
    for (const reason of reasonsIn(error.body)) {
      const message = reason.includes(`'${one}'`) ? filterProblem(reason, one) : reason;
      if (message !== reason) return new CommandError(message, { cause: error });
    }
  }
  return error;
}

/** The reasons that an error names, those of its causes too. */
function reasonsIn(error: unknown): string[] {
  if (typeof error !== 'object' || error === null) return [];
  return Object.entries(error).flatMap(([name, value]) =>
    name === 'reason' && typeof value === 'string' ? [value] : reasonsIn(value),
  );
}

/** What every list keeps to, without a part in the scores. */
function filterOf({ filter }: Pick<Options, 'filter'>): { readonly filter?: readonly Query[] } {
  return filter === undefined ? {} : { filter: filter.map((query) => ({ query_string: { query } })) };
}

/**
 * `field=value` in Lucene's syntax, whatever signs the value has; anything else is in that syntax already. What would be taken for
 * something else there, and find nothing, is refused.
 */
function luceneOf(filter: string): string {
  const [, compared, sign] = /(?:^|\s)([A-Za-z_][\w.-]*)\s*([<>]=?)/.exec(filter.replaceAll(/"[^"]*"/g, '')) ?? [];
  if (compared !== undefined && sign !== undefined)
    throw new UsageError(`--filter ${filter}: a comparison is written as ${compared}:${sign}50`);
  const [, field, value] = /^([A-Za-z_][\w.-]*)=([^]+)$/.exec(filter) ?? [];
  if (value !== undefined && / (?:AND|OR|NOT) /.test(value))
    throw new UsageError(
      `--filter ${filter}: everything after the = is one value; for several conditions write ${String(field)}:value AND …, or repeat --filter`,
    );
  return field === undefined || value === undefined ? filter : `${field}:"${value.replaceAll(/["\\]/g, '\\$&')}"`;
}

function hasOneKind([, property]: Leaf): boolean {
  return kindsOf(property).length === 1;
}

/** What a field has to be to be searched in some way. */
const WANTED: Readonly<Record<Way, string>> = {
  hybrid: 'text, semantic_text or sparse_vector field',
  meaning: 'semantic_text or sparse_vector field',
  words: 'text field',
  sparse: 'sparse_vector field or semantic_text of sparse vectors',
  dense: 'semantic_text field of dense vectors',
};

/** A query for each list that is fused. */
function queriesFor(by: Way, fields: Fields, question: string, { model, size }: Options): Query[] {
  const { semantic, sparse, text } = fields;
  const words = text.length === 0 ? [] : [{ multi_match: { query: question, fields: text } }];
  const vectors = sparse.map((name) => ({ sparse_vector: { field: name, inference_id: model, query: question } }));
  const holding = (kind: Kind): string[] => semantic.flatMap(([name, it]) => (kindsOf(it).includes(kind) ? name : []));
  switch (by) {
    case 'words':
      return words;
    case 'sparse':
      return [...holding('sparse').map((name) => ({ sparse_vector: { field: name, query: question } })), ...vectors];
    case 'dense': {
      const k = Math.max(size, NEIGHBOURS);
      const query_vector_builder = { text_embedding: { model_text: question } };
      return holding('dense').map((field) => ({ knn: { field, k, num_candidates: k, query_vector_builder } }));
    }
    default: {
      const meaning = [...semantic.map(([name]) => ({ semantic: { field: name, query: question } })), ...vectors];
      return by === 'meaning' ? meaning : [...words, ...meaning];
    }
  }
}

function sorted(fields: readonly Leaf[]): Fields {
  const of = (...types: string[]): Leaf[] =>
    [...new Map(fields.filter(([, { type = '' }]) => types.includes(type)))].slice(0, MOST_FIELDS);
  const names = (...types: string[]): string[] => of(...types).map(([name]) => name);
  return { semantic: of('semantic_text'), sparse: names('sparse_vector'), text: names(...BY_WORDS) };
}

function described(out: Sink, hit: Hit<Document>, at: number, titleField: string | undefined): string {
  const score = hit._score === null || hit._score === undefined ? '' : `  ${hit._score.toFixed(3)}`;
  const passage = passageOf(hit.highlight);
  const source = hit._source as Document | undefined;
  const named = shown(hit._id, source ?? {}, [], titleField);
  // A title that the line below begins with says nothing new.
  const isSaid = named.titleField === undefined || (passage ?? '').replaceAll(/<\/?em>/g, '').startsWith(named.title);
  const title = isSaid || passage === undefined ? '' : `  ${oneLine(named.title, LONGEST_TITLE)}`;
  const head = `${String(at + 1).padStart(2)}  ${out.bold(inLine(hit._id))}${out.dim(score)}${title}`;
  const text = passage === undefined ? summary(hit._source) : marked(out, oneLine(passage, out.columns + 9));
  return `${head}\n    ${oneLine(text, out.columns * 2)}\n`;
}

/**
 * The passage that shows best why a hit was found: one with the words that were looked for, or else the first. A single word, as that of a
 * category, shows nothing where there is more to read.
 */
export function passageOf(highlight: Hit<Document>['highlight']): string | undefined {
  const passages = Object.values(highlight ?? {}).flatMap((found) => found.slice(0, 1));
  const read = passages.filter((passage) => passage.trim().includes(' '));
  const best = (some: readonly string[]): string | undefined => some.find((one) => one.includes('<em>')) ?? some[0];
  return best(read) ?? best(passages);
}

/** The words that were looked for, as a terminal shows them. */
function marked(out: Sink, passage: string): string {
  return passage.replaceAll(/<em>(.*?)<\/em>/g, (_, text: string) => out.accent(text)).replaceAll(/<\/?em>?/g, '');
}

/** Types of values that fit into a line. */
const SHOWN: ReadonlySet<string> = new Set(['string', 'number', 'boolean']);

function summary(source: Document | undefined): string {
  const shown = Object.entries(source ?? {}).filter(([, value]) => SHOWN.has(typeof value));
  return shown.map(([name, value]) => `${name}: ${String(value)}`).join('  ');
}
