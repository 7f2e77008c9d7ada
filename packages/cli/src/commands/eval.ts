import { closeSync, openSync, writeFileSync } from 'node:fs';

import {
  type Properties,
  type Property,
  type Query,
  type SearchRequest,
  SparrowError,
  fileProblem,
} from '@sparrow-search/engine';
import {
  type Fusion,
  type Grades,
  type List,
  DEFAULTS,
  FUSIONS,
  QueryLists,
  WINDOW,
  ndcg,
  recall,
  settingsFor,
  tune,
} from '@sparrow-search/evaluation';
import { type Command, Option } from 'commander';

import { Context, type ServerOptions, integerOption, withServer } from '../context.js';
import { CommandError, UsageError } from '../errors.js';
import { type Judgements, type Row, judgedQueries, readJudgements, rows } from '../evaluation/collection.js';
import { type Part, bodyFor, partsOf } from '../evaluation/lists.js';
import { type Recommended, type Report as Tuned, reported, shownTuning } from '../evaluation/report.js';
import { Progress } from '../progress.js';
import { namingIndices } from '../searched-fields.js';
import { counted, inLine, number, table } from '../terminal.js';

const INDEX = 'sparrow-eval';
const SPARSE = '.sparse_encoder_model_2';
const DENSE = '.all-minilm-l6-v2';
const HYBRID = '.hybrid';
const DEPLOYMENT = `/_ml/trained_models/${DENSE}/deployment`;
const BATCH = 500;

/** How many hits of a search are judged. */
const DEPTH = WINDOW;
/** For which share of the queries the server's fusion and its repetition here may rank differently. */
const MOST_APART = 0.05;

interface Options extends ServerOptions {
  readonly queries?: number;
  readonly dense: boolean;
  readonly keep?: boolean;
  readonly index?: string;
  readonly tune?: boolean;
  readonly fusion?: Fusion;
}

interface Measured {
  readonly search: string;
  readonly 'nDCG@10': number;
  readonly 'recall@100': number;
  readonly 'p50 ms': number;
}

/** What `--json` shows. */
interface Report {
  readonly command: string;
  /** Name of the file with the judgements. */
  readonly judgements: string;
  readonly index?: string;
  /** How many documents were loaded, and how long that took; nothing if the index was there. */
  readonly documents?: number;
  readonly queries: number;
  readonly seconds?: number;
  readonly table: readonly Measured[];
  readonly tuning?: Tuned;
}

/** A way to search that is measured. */
interface Way {
  readonly name: string;
  readonly request: (text: string) => SearchRequest;
}

/** Takes the hits of one query, from each of the ways to search. */
type OnQuery = (hits: readonly List['hits'][], grades: Grades) => void;

/** `sparrow eval`: how good the ways to search are on a collection with judgements. */
export function addEval(program: Command): void {
  withServer(
    program
      .command('eval')
      .description(
        'measure search quality (nDCG@10, recall@100) with relevance judgements; with --tune, propose weights',
      )
      .argument(
        '<dir>',
        'queries.jsonl(.gz) with {_id, text}, qrels.<split>.tsv and, unless --index is given, corpus.jsonl(.gz) with {_id, title, text}',
      )
      .option('--index <name>', 'measure an index of your own, whose ids are those in the judgements, and load nothing')
      .option('--tune', 'look for better weights of hybrid search, and say whether the judgements are enough to tell')
      .addOption(new Option('--fusion <kind>', 'tune only this kind of fusion').choices(FUSIONS))
      .addOption(integerOption('--queries <n>', 'run only the first n queries', 1))
      .option('--no-dense', 'leave out the dense model, which takes longest')
      .option(
        '--keep',
        'keep the index that was loaded, with its pipeline and the model that was started; later runs leave it alone',
      ),
    new Option(
      '--json [file]',
      'print one line of JSON, or write it to a file: {command, judgements, index, documents, queries, seconds, table, tuning}',
    ),
  ).action(async (directory: string, options: Options) => {
    refuseMeaningless(options);
    const context = new Context({ ...options, json: options.json === true });
    // Before anything is measured: a result that cannot be written would be lost.
    if (typeof options.json === 'string') mustBeWritable(options.json);
    const report = await (options.index === undefined && options.tune !== true
      ? measure(context, directory, options)
      : measureHybrid(context, directory, options));
    if (typeof options.json === 'string') writeFileSync(options.json, `${JSON.stringify(report, null, 2)}\n`);
    context.show(report, (out) => {
      const { documents, seconds, queries, table: measured } = report;
      const heading = ['search', 'nDCG@10', 'recall@100', 'p50 ms'] as const;
      const lines = measured.map((one) => heading.map((name) => String(one[name])));
      const loaded =
        documents === undefined ? '' : `${counted(documents, 'document')} in ${(seconds ?? 0).toFixed(1)} s, `;
      const tuned = report.tuning === undefined ? '' : shownTuning(out, report.tuning);
      return `${loaded}${counted(queries, 'query', 'queries')}\n${table(out, heading, lines, 'nDCG@10 recall@100')}${tuned}`;
    });
  });
}

/** @throws {CommandError} if a file cannot be written */
function mustBeWritable(file: string): void {
  try {
    closeSync(openSync(file, 'a'));
  } catch (cause) {
    throw new CommandError(`cannot write ${file}: ${fileProblem(cause)}`, { cause });
  }
}

function refuseMeaningless({ index, tune: tunes, fusion, dense, keep }: Options): void {
  if (index !== undefined && (!dense || keep === true)) {
    throw new UsageError(`${dense ? '--keep' : '--no-dense'} applies only to the index that is loaded without --index`);
  }
  if (tunes === true && !dense) throw new UsageError('--tune needs the dense vectors that --no-dense leaves out');
  if (fusion !== undefined && tunes !== true) throw new UsageError('--fusion needs --tune');
}

/** Loads a collection, and measures the ways to search that the documented workflow has. */
async function measure(context: Context, directory: string, options: Options): Promise<Report> {
  const { file, judgements } = readJudgements(directory);
  return withLoadedIndex(context, directory, encoded(options.dense), options, async ({ index, documents, seconds }) => {
    await mustHoldJudged(context, index, file, judgements);
    context.note(`searching (${file})`);
    const { count, measured } = await evaluate(context, index, searches(options.dense), directory, judgements, options);
    return { command: commandOf(directory), judgements: file, documents, queries: count, seconds, table: measured };
  });
}

/** Measures what hybrid search does in an index, and chooses weights for it. */
async function measureHybrid(context: Context, directory: string, options: Options): Promise<Report> {
  const { index } = options;
  const { file, judgements } = readJudgements(directory);
  const inIndex = (name: string, loaded: Partial<Loaded>): Promise<Report> =>
    measureIn(context, name, loaded, directory, file, judgements, options);
  try {
    return await (index === undefined
      ? withLoadedIndex(context, directory, SEMANTIC, options, (loaded) => inIndex(loaded.index, loaded))
      : inIndex(index, {}));
  } catch (error) {
    throw await namingIndices(context, error, MISSING);
  }
}

/** Measures the searches of hybrid search in an existing index; `loaded` holds documents and seconds if this run has loaded it. */
async function measureIn(
  context: Context,
  index: string,
  loaded: Partial<Loaded>,
  directory: string,
  file: string,
  judgements: Judgements,
  options: Options,
): Promise<Report> {
  const { fusion, tune: tunes = false } = options;
  const shortForms = tunes ? { ...SHORT_FORMS, linear: OF_LISTS } : SHORT_FORMS;
  const parts = await partsOf(context, index);
  await mustHoldJudged(context, index, file, judgements);
  context.note(`searching (${file})`);
  const ways: Way[] = [
    ...parts.map(({ name, retriever }) => ({ name, request: (text: string) => ({ retriever: retriever(text) }) })),
    ...FUSIONS.map((name) => ({ name, request: shortForms[name] })),
  ];
  const queries: QueryLists[] = [];
  const differing: Record<Fusion, number> = { rrf: 0, linear: 0 };
  const keep: OnQuery = (hits, grades) => {
    const query = new QueryLists(listsOf(parts, hits), grades);
    queries.push(query);
    for (const [at, name] of FUSIONS.entries()) {
      if (!query.isRanked(DEFAULTS[name], hits[parts.length + at] ?? [])) differing[name] += 1;
    }
  };
  const run = await evaluate(context, index, ways, directory, judgements, options, tunes ? keep : undefined);
  const { count, measured } = run;
  const report = {
    command: commandOf(directory),
    judgements: file,
    index,
    ...loaded,
    queries: count,
    table: measured,
  };
  if (!tunes) return report;
  if (!queries.some((query) => query.findsRelevant)) {
    throw new CommandError(
      `no search finds a document that ${file} judges in [${inLine(index)}]: there is nothing to tune`,
    );
  }
  const apart = FUSIONS.find((name) => differing[name] > Math.max(1, MOST_APART * count));
  if (apart !== undefined) {
    throw new CommandError(
      `for ${number(differing[apart])} of ${counted(count, 'query', 'queries')}, the server's ${apart} ranks differently from the same fusion of its lists: were documents written in the meantime?`,
    );
  }
  const parity = FUSIONS.map((name) => {
    const server = measured.find(({ search }) => search === name)?.['nDCG@10'] ?? 0;
    const here = queries.reduce((sum, query) => sum + query.ndcg(DEFAULTS[name]), 0) / count;
    return { fusion: name, server, here: Number(here.toFixed(4)) };
  });
  const kinds = parts.map(({ kind }) => kind);
  const tuning = tune(queries, settingsFor(kinds, fusion === undefined ? FUSIONS : [fusion]));
  const best = (text: string): SearchRequest => bodyFor(parts, tuning.best.setting, text);
  const request = { defaults: SHORT_FORMS.rrf, linear: OF_LISTS, tuned: best }[tuning.choice];
  let body: Recommended = { request: request('QUESTION') };
  if (tuning.choice === 'tuned') {
    // The gain was calculated here. The server is asked whether it has it too.
    context.note('searching with the new weights');
    const again = await evaluate(context, index, [{ name: 'tuned', request }], directory, judgements, options);
    body = { ...body, measured: again.measured[0]?.['nDCG@10'] ?? 0 };
  }
  return { ...report, tuning: reported(tuning, parity, body) };
}

/** Ids that are looked for in one request. No index is asked for more hits at once than the searches ask for. */
const IDS_AT_ONCE = DEPTH;

/**
 * Says how many of the judged documents an index lacks, if it is most of them, and whether several indices hold the same one.
 *
 * @throws {CommandError} if it holds none: every figure would be 0, and say nothing
 */
async function mustHoldJudged(context: Context, index: string, file: string, judgements: Judgements): Promise<void> {
  const judged = [...new Set([...judgements.values()].flatMap((grades) => [...grades.keys()]))];
  const held = new Map<string, number>();
  for (let from = 0; from < judged.length; from += IDS_AT_ONCE) {
    for (const id of await idsHeld(context, index, judged.slice(from, from + IDS_AT_ONCE))) {
      held.set(id, (held.get(id) ?? 0) + 1);
    }
  }
  if (held.size === 0) {
    throw new CommandError(
      `[${inLine(index)}] holds no document that ${file} judges: the ids in ${file} have to be the ids of the documents`,
    );
  }
  if (held.size < judged.length / 2) {
    context.note(
      `warning: [${inLine(index)}] holds only ${number(held.size)} of the ${counted(judged.length, 'document')} that ${file} judges relevant; what is missing counts as not found`,
    );
  }
  const repeated = [...held.values()].filter((times) => times > 1).length;
  if (repeated > 0) {
    context.note(
      `several indices of [${inLine(index)}] hold the same judged id (${number(repeated)} of ${number(held.size)}): an id counts once in each list, at its first rank`,
    );
  }
}

/** Which of some ids documents of an index have; an id comes once for each index that holds it. */
async function idsHeld(context: Context, index: string, ids: readonly string[]): Promise<readonly string[]> {
  const { hits } = await context.sparrow
    .index(index)
    .search({ size: IDS_AT_ONCE, _source: false, track_total_hits: true, query: { ids: { values: ids } } });
  // Of several indices, there may be more hits than fit into one answer.
  if ((hits.total?.value ?? 0) <= hits.hits.length || ids.length === 1) return hits.hits.map(({ _id: id }) => id);
  const middle = ids.length >> 1;
  return [
    ...(await idsHeld(context, index, ids.slice(0, middle))),
    ...(await idsHeld(context, index, ids.slice(middle))),
  ];
}

/** What somebody can do who named an index that is not there. */
const MISSING =
  'make it with `sparrow import FILE --index NAME --semantic FIELD`, or leave out --index to load the corpus of the folder';

const SHORT_FORMS: Readonly<Record<Fusion, Way['request']>> = {
  rrf: (query) => ({ retriever: { rrf: { query } } }),
  linear: (query) => ({ retriever: { linear: { query } } }),
};

/** The sum of the lists that are tuned alone, without that of the documents which have all words of a question. */
const OF_LISTS: Way['request'] = (query) => ({ retriever: { linear: { query, normalizer: 'zscore' } } });

function listsOf(parts: readonly Part[], hits: readonly List['hits'][]): List[] {
  return parts.map(({ kind, share }, at) => ({ kind, share, hits: hits[at] ?? [] }));
}

/** The command as it is written down with its figures: without places on this machine, and without a secret. */
function commandOf(directory: string): string {
  const words = withoutSecrets(process.argv.slice(2)).filter((word) => word !== directory && word !== 'eval');
  const command = process.env['npm_lifecycle_event'] === 'eval' ? 'npm run eval --' : 'sparrow eval';
  return [command, 'DIR', ...words].join(' ');
}

/** Options whose value is left out of a record, and what stands in its place. */
const PRIVATE: Readonly<Record<string, string>> = { '--url': 'URL', '--data': 'FOLDER', '--json': 'FILE' };

/**
 * The words of a command without its key and without values that may hold a password or name a place on this machine: records are
 * committed and shown.
 */
export function withoutSecrets(words: readonly string[]): string[] {
  const kept: string[] = [];
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at] ?? '';
    const [name = ''] = word.split('=', 1);
    const hasOwnValue = word.length > name.length;
    const next = words[at + 1];
    const hasValue = !hasOwnValue && next !== undefined && !next.startsWith('--');
    if (name === '--key') at += hasValue ? 1 : 0;
    else if (Object.hasOwn(PRIVATE, name) && (hasOwnValue || hasValue)) {
      kept.push(name, PRIVATE[name] ?? '');
      at += hasValue ? 1 : 0;
    } else kept.push(word);
  }
  return kept;
}

/** What a loaded index has besides the text: what the documented workflow encodes in a pipeline. */
function encoded(dense: boolean): Fields {
  return {
    pipeline: [inference(SPARSE, 'tokens'), ...(dense ? [inference(DENSE, 'vector')] : [])],
    hasSemantic: dense,
    properties: {
      tokens: { type: 'sparse_vector' },
      ...(dense && { vector: { type: 'dense_vector', dims: 384, similarity: 'cosine' } }),
    },
  };
}

/** Only what hybrid search in one line needs. */
const SEMANTIC: Fields = { pipeline: [], hasSemantic: true, properties: {} };

interface Fields {
  readonly pipeline: readonly object[];
  readonly hasSemantic: boolean;
  readonly properties: Readonly<Record<string, object>>;
}

interface Loaded {
  readonly index: string;
  readonly documents: number;
  /** How long loading took. */
  readonly seconds: number;
}

/**
 * Loads the corpus of a folder, uses the index, and removes it, even if something failed; an error in removing it does not hide
 * what failed before.
 */
async function withLoadedIndex<T>(
  context: Context,
  directory: string,
  fields: Fields,
  options: Options,
  use: (loaded: Loaded) => Promise<T>,
): Promise<T> {
  const cleaning = new Cleaning(context, await freeName(context));
  const end = async (): Promise<void> => {
    if (options.keep === true) cleaning.tellHow();
    else await cleaning.run();
  };
  let result: T;
  try {
    result = await use(await loadAnew(context, directory, fields, cleaning, options.keep === true));
  } catch (error) {
    await end().catch(() => undefined);
    throw error;
  }
  await end();
  return result;
}

/** What says in the mapping of an index that `sparrow eval` made it. */
const MADE_BY = 'sparrow eval';

/** How many indices that were kept are passed over. */
const MOST_KEPT = 99;

/**
 * A name for the index to load: the first one that no index has which an earlier run kept. What a run that was interrupted left is
 * replaced.
 *
 * @throws {CommandError} if somebody else has an index of that name
 */
async function freeName(context: Context): Promise<string> {
  const kept: string[] = [];
  while (kept.length < MOST_KEPT) {
    const name = kept.length === 0 ? INDEX : `${INDEX}-${String(kept.length + 1)}`;
    if (await mayBeReplaced(context, name)) {
      if (kept.length > 0) context.note(`kept by earlier runs, and left alone: ${kept.join(', ')}`);
      return name;
    }
    kept.push(name);
  }
  throw new CommandError(
    `${String(MOST_KEPT)} indices of earlier runs are kept, ${INDEX} and those after it: delete some`,
  );
}

/**
 * Whether a name is free, or that of an index that `sparrow eval` has made and was not told to keep.
 *
 * @throws {CommandError} if somebody else has an index of the name
 */
async function mayBeReplaced({ remote }: Context, name: string): Promise<boolean> {
  const answer = await remote.request('GET', `/${name}/_mapping`).catch((error: unknown) => {
    if (error instanceof SparrowError && error.status === 404) return undefined;
    throw error;
  });
  if (answer === undefined) return true;
  const mappings = Object.values(
    answer as Record<string, { mappings?: { _meta?: { made_by?: unknown; kept?: unknown } } }>,
  ).map(({ mappings: own }) => own?._meta);
  if (mappings.every((own) => own?.made_by === MADE_BY)) return !mappings.some((own) => own?.kept === true);
  throw new CommandError(
    `there is an index or alias [${name}] that sparrow eval did not create and would have to delete: rename it, or measure it with --index ${name}`,
  );
}

/** Loads the corpus of a folder into an index of its own, in place of what an earlier run left. */
async function loadAnew(
  context: Context,
  directory: string,
  fields: Fields,
  cleaning: Cleaning,
  keeps: boolean,
): Promise<Loaded> {
  const { index } = cleaning;
  context.note(`loading ${directory} into [${index}]`);
  await createIndex(context, fields, cleaning, keeps);
  const begun = performance.now();
  const documents = await load(context, index, directory, fields.pipeline.length > 0);
  return { index, documents, seconds: (performance.now() - begun) / 1000 };
}

/** Takes away what a run has made on the server. */
class Cleaning {
  /** Whether the run has started the dense model, which nobody else was using. */
  hasStarted = false;
  hasPipeline = false;

  constructor(
    readonly context: Context,
    /** The name of the index, which its pipeline has too. */
    readonly index: string,
  ) {}

  /** Says how to do it by hand. */
  tellHow(): void {
    const { index } = this;
    const requests = [`DELETE /${index}`, ...(this.hasPipeline ? [`DELETE /_ingest/pipeline/${index}`] : [])];
    const model = this.hasStarted ? `, and \`sparrow models stop ${DENSE}\` stops the model that was started` : '';
    this.context.note(
      `kept: the index [${index}]; to delete what was made for it, send \`${requests.join('` and `')}\`${model}`,
    );
  }

  async run(): Promise<void> {
    const { remote, sparrow } = this.context;
    await sparrow.index(this.index).drop();
    await remote.request('DELETE', `/_ingest/pipeline/${this.index}`).catch((error: unknown) => {
      if (!(error instanceof SparrowError && error.status === 404)) throw error;
    });
    if (!this.hasStarted) return;
    await remote.request('POST', `${DEPLOYMENT}/_stop`).catch((error: unknown) => {
      // Somebody else has begun to use it, or has stopped it.
      if (!(error instanceof SparrowError && error.status < 500)) throw error;
    });
  }
}

async function createIndex(
  { remote, sparrow }: Context,
  fields: Fields,
  cleaning: Cleaning,
  keeps: boolean,
): Promise<void> {
  const { index } = cleaning;
  await sparrow.index(index).drop();
  if (fields.pipeline.length > 1) {
    const query = { number_of_allocations: 2, wait_for: 'started' };
    try {
      await remote.request('POST', `${DEPLOYMENT}/_start`, { query });
      cleaning.hasStarted = true;
    } catch (error) {
      const isStarted = error instanceof SparrowError && (error.status === 400 || error.status === 409);
      if (!isStarted) throw error;
    }
  }
  if (fields.pipeline.length > 0) {
    cleaning.hasPipeline = true;
    await remote.request('PUT', `/_ingest/pipeline/${index}`, { body: { processors: fields.pipeline } });
  }
  const semantic: { fields: Properties } = { fields: { semantic: { type: 'semantic_text', inference_id: HYBRID } } };
  const body: Property = { type: 'text', analyzer: 'english', ...(fields.hasSemantic && semantic) };
  await sparrow.index(index).create({
    mappings: {
      _meta: { made_by: MADE_BY, ...(keeps && { kept: true }) },
      _source: { excludes: ['tokens', 'vector'] },
      properties: { body, ...fields.properties },
    },
  });
}

function inference(model: string, output: string): object {
  return { inference: { model_id: model, input_output: [{ input_field: 'body', output_field: output }] } };
}

async function load(
  { sparrow, terminal, isJson }: Context,
  index: string,
  directory: string,
  usesPipeline: boolean,
): Promise<number> {
  const progress = new Progress(terminal.err, 'document');
  async function* source(): AsyncGenerator<Row & { body: string }> {
    for await (const row of rows(directory, 'corpus.jsonl')) {
      const { title = '', text } = row;
      yield { ...row, body: title === '' ? text : `${title} ${text}` };
    }
  }
  const result = await sparrow.index<Row & { body: string }>(index).bulk(source(), {
    id: ({ _id: id }) => id,
    toJson: ({ body }) => JSON.stringify({ body }),
    ...(usesPipeline && { pipeline: index }),
    batchDocuments: BATCH,
    refresh: true,
    onProgress: ({ documents }) => {
      if (!isJson) progress.update(documents, undefined);
    },
  });
  progress.clear();
  const [failure] = result.failures;
  if (failure !== undefined) {
    throw new CommandError(inLine(`document ${failure.id ?? ''}: ${failure.error.message}`));
  }
  return result.written;
}

/** The ways to search that the documented workflow has, called as those of an index of one's own are. */
function searches(hasDense: boolean): readonly Way[] {
  const words = (text: string): Query => ({ match: { body: text } });
  const sparse = (text: string): Query => ({ text_expansion: { tokens: { model_id: SPARSE, model_text: text } } });
  const dense = (text: string): SearchRequest => ({
    knn: {
      ...{ field: 'vector', k: DEPTH, num_candidates: DEPTH },
      query_vector_builder: { text_embedding: { model_id: DENSE, model_text: text } },
    },
  });
  const wordsAndSparse = (text: string): SearchRequest => ({
    sub_searches: [{ query: words(text) }, { query: sparse(text) }],
    rank: { rrf: { rank_window_size: DEPTH } },
  });
  return [
    { name: 'words', request: (text) => ({ query: words(text) }) },
    { name: 'sparse', request: (text) => ({ query: sparse(text) }) },
    ...(hasDense ? [{ name: 'dense', request: dense }] : []),
    { name: 'words and sparse', request: wordsAndSparse },
    ...(hasDense ? FUSIONS.map((name) => ({ name, request: SHORT_FORMS[name] })) : []),
  ];
}

/** Runs every judged query in every way, and measures the answers. */
async function evaluate(
  { sparrow, terminal, isJson }: Context,
  name: string,
  ways: readonly Way[],
  directory: string,
  judgements: Judgements,
  { queries = Infinity }: Options,
  onQuery?: OnQuery,
): Promise<{ readonly count: number; readonly measured: readonly Measured[] }> {
  const progress = new Progress(terminal.err, 'query', 'queries');
  const figures = ways.map((way) => ({ ...way, ndcg: 0, recall: 0, times: [] as number[] }));
  let count = 0;
  const total = Math.min(queries, judgements.size);
  const index = sparrow.index(name);
  try {
    for await (const { text, grades } of judgedQueries(directory, judgements, queries)) {
      const hitsByWay: List['hits'][] = [];
      for (const way of figures) {
        const begun = performance.now();
        const request = { size: DEPTH, _source: false, seq_no_primary_term: true, ...way.request(text) };
        const { hits } = await index.search(request);
        way.times.push(performance.now() - begun);
        const ranked = hits.hits.map((hit) => hit._id);
        way.ndcg += ndcg(ranked, grades);
        way.recall += recall(ranked, grades, DEPTH);
        hitsByWay.push(
          hits.hits.map((hit, at) => ({
            ...{ index: hit._index, id: hit._id, score: hit._score ?? 0 },
            order: (hit as { readonly _seq_no?: number })._seq_no ?? at,
          })),
        );
      }
      onQuery?.(hitsByWay, grades);
      count += 1;
      if (!isJson) progress.update(count, count / total);
    }
  } finally {
    progress.clear();
  }
  if (count === 0) throw new CommandError(`${directory}: no query has a judgement`);
  const measured = figures.map(({ name: search, ndcg: gain, recall: share, times }) => ({
    search,
    'nDCG@10': Number((gain / count).toFixed(4)),
    'recall@100': Number((share / count).toFixed(4)),
    'p50 ms': Number((times.sort((a, b) => a - b)[count >> 1] ?? 0).toFixed(2)),
  }));
  return { count, measured };
}
