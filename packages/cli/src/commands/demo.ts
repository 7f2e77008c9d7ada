import type { Index, IndexDefinition, SearchRequest } from '@sparrow-search/engine';
import type { Command } from 'commander';

import { Context, type ServerOptions, jsonOption, withServer } from '../context.js';
import { type Meaning, type Question, dictionary } from '../dictionary.js';
import { CommandError, UsageError } from '../errors.js';
import { progressBeside } from '../progress.js';
import { commandName } from '../shell.js';
import { type Sink, counted, duration, oneLine } from '../terminal.js';

interface Options extends ServerOptions {
  readonly index: string;
  readonly remove?: boolean;
}

interface Answer {
  readonly ms: number;
  readonly hits: readonly { readonly words: readonly string[]; readonly gloss: string }[];
}

interface Asked extends Question {
  readonly words: Answer;
  readonly hybrid: Answer;
}

/** What an index of the demo's own is known by: a member of its mapping's `_meta`. */
const MARK = 'sparrow_demo';

const DEFINITION: IndexDefinition = {
  mappings: {
    _meta: { [MARK]: 1 },
    properties: {
      words: { type: 'text' },
      gloss: {
        type: 'text',
        analyzer: 'english',
        fields: { semantic: { type: 'semantic_text', inference_id: '.hybrid' } },
      },
      part_of_speech: { type: 'keyword' },
    },
  },
};

const HITS = 3;
const BATCH = 250;
/** Characters that the words take in a list of hits, with the gap behind them. */
const WORD_WIDTH = 20;

const byWords = (query: string): SearchRequest => ({ query: { match: { gloss: query } } });
const hybrid = (query: string): SearchRequest => ({
  retriever: { linear: { query } },
});

/** `sparrow demo`: a dictionary that finds the word for a meaning, by words alone and by words and meaning together. */
export function addDemo(program: Command): void {
  withServer(
    program
      .command('demo')
      .description('load a small dictionary, and find words by what they mean')
      .argument('[question...]', 'a meaning to find the word for, in place of the usual ones')
      .option('--index <name>', 'index to load it into', 'demo')
      .option('--remove', 'delete the index again'),
    jsonOption('{index, loaded, ms, questions}; with --remove {index, removed}'),
  ).action(async (words: readonly string[], options: Options) => {
    const context = new Context(options);
    const index = context.sparrow.index<Meaning>(options.index);
    const question = words.join(' ').trim();
    if (options.remove === true) {
      if (question !== '') throw new UsageError('--remove takes no question');
      await remove(context, index);
      return;
    }
    const { questions, meanings } = dictionary();
    const loaded = await load(context, index, meanings);
    const asked: Asked[] = [];
    for (const one of question === '' ? questions : [{ text: question, wanted: [] }]) {
      asked.push({ ...one, words: await ask(index, byWords(one.text)), hybrid: await ask(index, hybrid(one.text)) });
    }
    context.show({ index: index.name, loaded: loaded.documents, ms: loaded.ms, questions: asked }, (out) => {
      const head =
        loaded.documents === 0
          ? ''
          : `Loaded ${counted(loaded.documents, 'definition')} in ${duration(loaded.ms)}, each with a sparse and a dense vector.\n`;
      return `${head}${asked.map((one) => shown(out, one)).join('')}${next(out, options, context.remote.target.url, question === '')}`;
    });
  });
}

/** Loads the dictionary, unless all of it is there. */
async function load(
  context: Context,
  index: Index<Meaning>,
  meanings: readonly Meaning[],
): Promise<{ readonly documents: number; readonly ms: number }> {
  const begun = performance.now();
  if (!(await index.ensure(DEFINITION))) {
    await mustBeOurs(context, index);
    if ((await index.count()) === meanings.length) return { documents: 0, ms: 0 };
  }
  const progress = progressBeside(context.isJson, context.terminal.err, 'meaning');
  try {
    const { rejected, failures } = await index.bulk(meanings, {
      id: ({ _id }) => _id,
      toJson: ({ words, gloss, part_of_speech }) => JSON.stringify({ words, gloss, part_of_speech }),
      batchDocuments: BATCH,
      onProgress: ({ written }) => {
        progress.update(written, written / meanings.length);
      },
    });
    const [failure] = failures;
    if (failure !== undefined) {
      throw new CommandError(`[${index.name}] refused ${counted(rejected, 'meaning')}: ${failure.error.message}`);
    }
  } finally {
    progress.clear();
  }
  await index.refresh();
  return { documents: meanings.length, ms: Math.round(performance.now() - begun) };
}

async function remove(context: Context, index: Index<Meaning>): Promise<void> {
  const removed = await index.exists();
  if (removed) {
    await mustBeOurs(context, index);
    await index.drop();
  }
  context.show({ index: index.name, removed }, () =>
    removed ? `[${index.name}] is deleted\n` : `there is no index [${index.name}]\n`,
  );
}

/** Nobody's own index of that name is written to, or deleted. */
async function mustBeOurs({ sparrow }: Context, { name }: Index<Meaning>): Promise<void> {
  const found = await sparrow.execute<
    Readonly<Record<string, { mappings: { _meta?: Readonly<Record<string, unknown>> } }>>
  >('get_mapping', { path: { index: name } });
  const isOurs = Object.keys(found).join() === name && found[name]?.mappings._meta?.[MARK] !== undefined;
  if (!isOurs)
    throw new CommandError(`[${name}] is one of your own indices: name another one for the demo with --index`);
}

async function ask(index: Index<Meaning>, request: SearchRequest): Promise<Answer> {
  const begun = performance.now();
  const { hits } = await index.search({ ...request, size: HITS });
  const ms = performance.now() - begun;
  return { ms: Math.round(ms * 10) / 10, hits: hits.hits.map(({ _source: { words, gloss } }) => ({ words, gloss })) };
}

function shown(out: Sink, { text, wanted, words, hybrid: both }: Asked): string {
  const list = (title: string, { hits, ms }: Answer): string => {
    const lines = hits.map(({ words: names, gloss }) => {
      const hit = names.find((name) => wanted.includes(name));
      const name = oneLine(hit ?? names[0] ?? '', WORD_WIDTH - 2).padEnd(WORD_WIDTH);
      const width = Math.max(WORD_WIDTH, out.columns - WORD_WIDTH - 7);
      return `    ${hit === undefined ? `  ${name}` : out.good(`▸ ${name}`)}${oneLine(gloss, width)}\n`;
    });
    return `  ${out.dim(`${title}, ${ms.toFixed(1)} ms`)}\n${lines.join('') || '      nothing\n'}`;
  };
  return `\n${out.accent(out.bold(`“${text}”`))}\n${list('by words', words)}${list('by words and meaning', both)}`;
}

/** What to try now. */
function next(out: Sink, { index }: Options, url: string, isUsual: boolean): string {
  if (!isUsual) return '';
  const sparrow = commandName();
  const own = index === 'demo' ? '' : ` --index ${index}`;
  const lines = [
    [`${sparrow} demo "someone who bakes"${own}`, 'ask for a meaning of your own'],
    [`${sparrow} search "…" --index ${index}`, 'the same as any index is asked'],
    [`${sparrow} import FILE --semantic FIELD`, 'load a file of your own'],
    [url, 'the console, in a browser'],
    [`${sparrow} demo --remove${own}`, 'delete the dictionary again'],
  ] as const;
  const width = Math.max(...lines.map(([what]) => what.length));
  return `\n${out.dim(lines.map(([what, why]) => `  ${what.padEnd(width)}   ${why}`).join('\n'))}\n`;
}
