import { readFileSync } from 'node:fs';

import type { Command } from 'commander';
import { Option } from 'commander';
import type { Hit, SearchRequest } from '@sparrow-search/engine';

import { Context, type ServerOptions, integerOption, withServer } from '../context.js';
import { CommandError, UsageError } from '../errors.js';
import { type Sink, duration, number, oneLine } from '../terminal.js';

type Document = Readonly<Record<string, unknown>>;

interface Property {
  readonly type?: string;
  readonly properties?: Properties;
  readonly fields?: Properties;
}

type Properties = Readonly<Record<string, Property>>;

/** Fields that can be searched, by how. */
interface Fields {
  readonly semantic: readonly string[];
  readonly sparse: readonly string[];
  readonly text: readonly string[];
}

const WAYS = ['hybrid', 'meaning', 'words'] as const;
type Way = (typeof WAYS)[number];

interface Options extends ServerOptions {
  readonly index: string;
  readonly by?: Way;
  readonly field?: readonly string[];
  readonly model: string;
  readonly size: number;
  readonly body?: string;
}

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
        new Option('--by <way>', 'how to search; by default hybrid, if the index has fields for both').choices(WAYS),
      )
      .option('--field <name...>', 'search these fields only')
      .option('--model <id>', 'model for sparse_vector fields', '.sparse_encoder_model_2')
      .addOption(integerOption('--size <n>', 'number of hits', 0).default(10))
      .option('--body <json>', 'a whole request body instead of a question, or @FILE to read one'),
  ).action(async (words: readonly string[], options: Options) => {
    const question = words.join(' ');
    if ((question === '') === (options.body === undefined))
      throw new UsageError('a question is needed, or a request with --body');
    const context = new Context(options);
    const request = options.body === undefined ? await requestFor(context, question, options) : readBody(options.body);
    const answer = await context.sparrow.index<Document>(options.index).search(request);
    context.show(answer, (out) => {
      const { total, hits } = answer.hits;
      const count =
        total === undefined ? '' : `${total.relation === 'gte' ? 'at least ' : ''}${number(total.value)} found, `;
      const footer = out.dim(`${count}${duration(answer.took)}`);
      return `${hits.map((hit, at) => described(out, hit, at)).join('')}${footer}\n`;
    });
  });
}

function readBody(given: string): SearchRequest {
  try {
    const text = given.startsWith('@') ? readFileSync(given.slice(1), 'utf8') : given;
    return JSON.parse(text) as SearchRequest;
  } catch (cause) {
    throw new UsageError(`--body: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}

async function requestFor(context: Context, question: string, options: Options): Promise<SearchRequest> {
  const { index, by, field, model, size } = options;
  const mappings = await context.remote.request<Readonly<Record<string, { mappings: { properties?: Properties } }>>>(
    'GET',
    `/${encodeURIComponent(index)}/_mapping`,
  );
  const all = Object.values(mappings).flatMap(({ mappings: { properties } }) => leaves(properties ?? {}));
  const unknown = field?.find((name) => !all.some(([known]) => known === name));
  if (unknown !== undefined) throw new CommandError(`[${index}] has no field [${unknown}]`);
  const fields = sorted(all.filter(([name]) => field?.includes(name) ?? true));
  const meaning = [
    ...fields.semantic.map((name) => ({ semantic: { field: name, query: question } })),
    ...fields.sparse.map((name) => ({ sparse_vector: { field: name, inference_id: model, query: question } })),
  ];
  const words = fields.text.length === 0 ? [] : [{ multi_match: { query: question, fields: fields.text } }];
  const highlighted = [...fields.semantic, ...fields.text].slice(0, 8);
  const highlight = { fields: Object.fromEntries(highlighted.map((name) => [name, { number_of_fragments: 1 }])) };
  const lists = by === 'words' ? words : by === 'meaning' ? meaning : [...words, ...meaning];
  const [only] = lists;
  if (only === undefined) {
    const wanted =
      by === 'words'
        ? 'text'
        : by === 'meaning'
          ? 'semantic_text or sparse_vector'
          : 'text, semantic_text or sparse_vector';
    throw new CommandError(`[${index}] has no ${wanted} field to look in`);
  }
  const base = { size, highlight };
  if (lists.length === 1) return { query: only, ...base };
  return {
    retriever: {
      rrf: { retrievers: lists.map((query) => ({ standard: { query } })), rank_window_size: Math.max(size, 50) },
    },
    ...base,
  };
}

function leaves(properties: Properties, prefix = ''): (readonly [string, string])[] {
  return Object.entries(properties).flatMap(([name, { type, properties: inner, fields }]) => [
    ...(type === undefined || type === 'object' || type === 'nested' ? [] : [[prefix + name, type] as const]),
    // What is inside `nested` cannot be searched from outside.
    ...(inner === undefined || type === 'nested' ? [] : leaves(inner, `${prefix}${name}.`)),
    ...(fields === undefined ? [] : leaves(fields, `${prefix}${name}.`)),
  ]);
}

function sorted(fields: readonly (readonly [string, string])[]): Fields {
  const of = (...types: string[]): string[] =>
    [...new Set(fields.flatMap(([name, type]) => (types.includes(type) ? [name] : [])))].slice(0, MOST_FIELDS);
  return { semantic: of('semantic_text'), sparse: of('sparse_vector'), text: of('text', 'match_only_text') };
}

function described(out: Sink, hit: Hit<Document>, at: number): string {
  const score = hit._score === null || hit._score === undefined ? '' : `  ${hit._score.toFixed(3)}`;
  const head = `${String(at + 1).padStart(2)}  ${out.bold(hit._id)}${out.dim(score)}`;
  const [passage] = Object.values(hit.highlight ?? {}).map(([first]) => first);
  const text = passage === undefined ? summary(hit._source) : marked(out, oneLine(passage, out.columns + 9));
  return `${head}\n    ${oneLine(text, out.columns * 2)}\n`;
}

/** The words that were looked for, as a terminal shows them. */
function marked(out: Sink, passage: string): string {
  return passage.replaceAll(/<em>(.*?)<\/em>/g, (_, text: string) => out.accent(text)).replaceAll(/<\/?em>?/g, '');
}

function summary(source: Document | undefined): string {
  const texts = Object.entries(source ?? {}).filter(
    ([, value]) => typeof value === 'string' || typeof value === 'number',
  );
  return texts.map(([name, value]) => `${name}: ${String(value)}`).join('  ');
}
