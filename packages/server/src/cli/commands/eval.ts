import { createReadStream, existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { createGunzip } from 'node:zlib';

import { type SearchRequest, SparrowError } from '@sparrow-search/engine';
import { type Command, Option } from 'commander';

import { Context, type ServerOptions, integerOption, withServer } from '../context.js';
import { CommandError } from '../errors.js';
import { Progress } from '../progress.js';
import { ndcg, recall } from '../ranking-metrics.js';
import { counted, table } from '../terminal.js';

const INDEX = 'sparrow-eval';
const PIPELINE = 'sparrow-eval';
const SPARSE = '.sparse_encoder_model_2';
const DENSE = '.all-minilm-l6-v2';
const HYBRID = '.hybrid';
const DEPTH = 100;
const BATCH = 500;

interface Options extends ServerOptions {
  readonly queries?: number;
  readonly dense: boolean;
  readonly keep?: boolean;
}

interface Row {
  readonly _id: string;
  readonly title?: string;
  readonly text: string;
}

/** Query, then document, to its grade. */
type Judgements = ReadonlyMap<string, ReadonlyMap<string, number>>;

interface Measured {
  readonly search: string;
  readonly 'nDCG@10': number;
  readonly 'recall@100': number;
  readonly 'p50 ms': number;
}

/** `sparrow eval`: how good the ways to search are on a collection with judgements. */
export function addEval(program: Command): void {
  withServer(
    program
      .command('eval')
      .description('measure search quality (nDCG@10, recall@100) on a collection with relevance judgements')
      .argument(
        '<dir>',
        'corpus.jsonl(.gz) with {_id, title, text}, queries.jsonl(.gz) with {_id, text}, qrels.<split>.tsv',
      )
      .addOption(integerOption('--queries <n>', 'run only the first n queries', 1))
      .option('--no-dense', 'leave out the dense model, which takes longest')
      .option('--keep', 'keep the index afterwards'),
    new Option('--json [file]', 'print the result as JSON, or write it to a file'),
  ).action(async (directory: string, options: Options) => {
    const context = new Context({ ...options, json: options.json === true });
    const { file, judgements } = readJudgements(directory);
    context.note(`loading ${directory}`);
    await createIndex(context, options.dense);
    const begun = performance.now();
    const documents = await load(context, directory);
    const seconds = (performance.now() - begun) / 1000;
    context.note(`searching (${file})`);
    const { count, measured } = await evaluate(context, directory, judgements, options);
    if (options.keep !== true) {
      await context.remote.request('DELETE', `/${INDEX}`);
      await context.remote.request('DELETE', `/_ingest/pipeline/${PIPELINE}`);
    }
    const report = {
      command: commandOf(directory),
      judgements: file,
      documents,
      queries: count,
      seconds,
      table: measured,
    };
    if (typeof options.json === 'string') writeFileSync(options.json, `${JSON.stringify(report, null, 2)}\n`);
    context.show(report, (out) => {
      const heading = ['search', 'nDCG@10', 'recall@100', 'p50 ms'] as const;
      const rows = measured.map((one) => heading.map((name) => String(one[name])));
      return `${counted(documents, 'document')} in ${seconds.toFixed(1)} s, ${counted(count, 'query', 'queries')}\n${table(out, heading, rows, 'nDCG@10 recall@100')}`;
    });
  });
}

/** The command as it is written down with its figures: without the place of the collection, and without a secret. */
function commandOf(directory: string): string {
  const words = withoutKey(process.argv.slice(2)).filter((word) => word !== directory && word !== 'eval');
  return `npm run eval -- ${['DIR', ...words].join(' ')}`;
}

/** The words of a command without `--key` and what follows it: records are committed and shown. */
export function withoutKey(words: readonly string[]): string[] {
  return words.filter((word, at) => word !== '--key' && !word.startsWith('--key=') && words[at - 1] !== '--key');
}

/** Rows of a file of JSON lines, zipped or not. */
async function* rows(directory: string, name: string): AsyncGenerator<Row> {
  const [plain, zipped] = [join(directory, name), join(directory, `${name}.gz`)];
  const isZipped = existsSync(zipped);
  if (!isZipped && !existsSync(plain)) throw new CommandError(`${directory} holds no ${name} or ${name}.gz`);
  const input = isZipped ? createReadStream(zipped).pipe(createGunzip()) : createReadStream(plain);
  for await (const line of createInterface({ input })) if (line !== '') yield JSON.parse(line) as Row;
}

function readJudgements(directory: string): { readonly file: string; readonly judgements: Judgements } {
  let files: string[];
  try {
    files = readdirSync(directory).filter((name) => /^qrels\..*\.tsv$/.test(name));
  } catch (cause) {
    throw new CommandError(`cannot read ${directory} (${(cause as NodeJS.ErrnoException).code ?? ''})`, { cause });
  }
  const file = ['qrels.test.tsv', 'qrels.dev.tsv', ...files].find((name) => files.includes(name));
  if (file === undefined) throw new CommandError(`${directory} holds no qrels.<split>.tsv`);
  const judgements = new Map<string, Map<string, number>>();
  for (const line of readFileSync(join(directory, file), 'utf8').split('\n').slice(1)) {
    const [query = '', document, grade] = line.split('\t');
    if (document === undefined || !(Number(grade) > 0)) continue;
    const grades = judgements.get(query) ?? new Map<string, number>();
    judgements.set(query, grades.set(document, Number(grade)));
  }
  return { file, judgements };
}

async function createIndex({ remote, sparrow }: Context, dense: boolean): Promise<void> {
  await sparrow.index(INDEX).drop();
  const processors = [inference(SPARSE, 'tokens')];
  const properties: Record<string, object> = {
    body: {
      type: 'text',
      analyzer: 'english',
      ...(dense && { fields: { semantic: { type: 'semantic_text', inference_id: HYBRID } } }),
    },
    tokens: { type: 'sparse_vector' },
  };
  if (dense) {
    await remote
      .request('POST', `/_ml/trained_models/${DENSE}/deployment/_start`, {
        query: { number_of_allocations: 2, wait_for: 'started' },
      })
      .catch((error: unknown) => {
        const isStarted = error instanceof SparrowError && (error.status === 400 || error.status === 409);
        if (!isStarted) throw error;
      });
    processors.push(inference(DENSE, 'vector'));
    properties['vector'] = { type: 'dense_vector', dims: 384, similarity: 'cosine' };
  }
  await remote.request('PUT', `/_ingest/pipeline/${PIPELINE}`, { body: { processors } });
  await sparrow.index(INDEX).create({ mappings: { _source: { excludes: ['tokens', 'vector'] }, properties } });
}

function inference(model: string, output: string): object {
  return { inference: { model_id: model, input_output: [{ input_field: 'body', output_field: output }] } };
}

async function load({ sparrow, terminal, isJson }: Context, directory: string): Promise<number> {
  const progress = new Progress(terminal.err, 'document');
  async function* source(): AsyncGenerator<Row & { body: string }> {
    for await (const row of rows(directory, 'corpus.jsonl')) {
      const { title = '', text } = row;
      yield { ...row, body: title === '' ? text : `${title} ${text}` };
    }
  }
  const result = await sparrow.index<Row & { body: string }>(INDEX).bulk(source(), {
    id: ({ _id: id }) => id,
    toJson: ({ body }) => JSON.stringify({ body }),
    pipeline: PIPELINE,
    batchDocuments: BATCH,
    refresh: true,
    onProgress: ({ documents }) => {
      if (!isJson) progress.update(documents, undefined);
    },
  });
  progress.clear();
  const [failure] = result.failures;
  if (failure !== undefined) throw new CommandError(`document ${failure.id ?? ''}: ${failure.error.message}`);
  return result.written;
}

function searches(dense: boolean): Readonly<Record<string, (text: string) => SearchRequest>> {
  const lexical = (text: string): object => ({ match: { body: text } });
  const semantic = (text: string): object => ({ text_expansion: { tokens: { model_id: SPARSE, model_text: text } } });
  const builder = (text: string): object => ({ text_embedding: { model_id: DENSE, model_text: text } });
  return {
    lexical: (text) => ({ query: { ...lexical(text) } }),
    semantic: (text) => ({ query: { ...semantic(text) } }),
    ...(dense && {
      dense: (text: string) => ({
        knn: { field: 'vector', k: DEPTH, num_candidates: DEPTH, query_vector_builder: builder(text) },
      }),
    }),
    rrf: (text) => ({
      sub_searches: [{ query: lexical(text) }, { query: semantic(text) }],
      rank: { rrf: { rank_window_size: DEPTH } },
    }),
    ...(dense && { hybrid: (text: string) => ({ retriever: { rrf: { query: text } } }) }),
  };
}

async function evaluate(
  { sparrow, terminal, isJson }: Context,
  directory: string,
  judgements: Judgements,
  { dense, queries = Infinity }: Options,
): Promise<{ readonly count: number; readonly measured: readonly Measured[] }> {
  const progress = new Progress(terminal.err, 'query', 'queries');
  const ways = Object.entries(searches(dense)).map(([name, request]) => ({
    name,
    request,
    ndcg: 0,
    recall: 0,
    times: [] as number[],
  }));
  const total = Math.min(queries, judgements.size);
  const index = sparrow.index(INDEX);
  let count = 0;
  for await (const { _id: id, text } of rows(directory, 'queries.jsonl')) {
    const grades = judgements.get(id);
    if (grades === undefined || count >= queries) continue;
    count += 1;
    for (const way of ways) {
      const begun = performance.now();
      const { hits } = await index.search({ size: DEPTH, _source: false, ...way.request(text) });
      way.times.push(performance.now() - begun);
      const ranked = hits.hits.map((hit) => hit._id);
      way.ndcg += ndcg(ranked, grades);
      way.recall += recall(ranked, grades, DEPTH);
    }
    if (!isJson) progress.update(count, count / total);
  }
  progress.clear();
  if (count === 0) throw new CommandError(`${directory}: no query has a judgement`);
  const measured = ways.map(({ name, ndcg: gain, recall: found, times }) => ({
    search: name,
    'nDCG@10': Number((gain / count).toFixed(4)),
    'recall@100': Number((found / count).toFixed(4)),
    'p50 ms': Number((times.sort((a, b) => a - b)[count >> 1] ?? 0).toFixed(2)),
  }));
  return { count, measured };
}
