import { existsSync, readFileSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import process from 'node:process';

import type { Json } from '@sparrow-search/engine';
import type { Command } from 'commander';

import { integerOption, jsonOption } from '../context.js';
import { CommandError } from '../errors.js';
import { bytes, number, terminal } from '../terminal.js';
import { type Quality, TEXTS, crossEncoderQuality, encoderQuality, shownQuality, textsFor } from './model-quality.js';
import { type Trial, onModel, ownSettings } from './model-trial.js';

/** Vectors or scores that a model is to make of texts, in its directory. */
const REFERENCE = 'reference.json';
/** Largest such file, and most of its entries that are looked at. */
const LARGEST_REFERENCE = 256 * 1024 * 1024;
const MOST_REFERENCES = 10_000;
/** Texts of one request. */
const BATCH = 32;
/** Words of a passage, drawn from these: what a model makes of them does not matter, how many tokens they are does. */
const WORDS =
  'the old harbour town keeps a museum of letters and stamps where visitors learn how mail was carried over the sea in winter'.split(
    ' ',
  );

interface Options {
  readonly seconds: number;
  readonly words: number;
  readonly texts?: number;
  readonly json?: boolean;
}

interface Reference {
  readonly text: string;
  readonly question?: string;
  readonly vector?: readonly number[];
  readonly tokens?: Readonly<Record<string, number>>;
  readonly score?: number;
}

interface Figures {
  readonly texts: number;
  readonly tokens: number;
  readonly busy_seconds: number;
}

interface Agreement {
  readonly entries: number;
  /** Least and mean cosine of vectors, dense or sparse. */
  readonly cosine?: { readonly least: number; readonly mean: number };
  /** The largest difference of a number of a vector, of a weight or of a score. */
  readonly difference: number;
}

/** `sparrow models test`: tries a model directory without a server. */
export function addModelTest(models: Command): void {
  models
    .command('test')
    .description(
      'try a model directory without a server: what it is, its speed, its memory, its agreement with reference vectors, its quality on a small task',
    )
    .argument('<dir>', `the model directory; ${REFERENCE} in it may say what it is to make of texts`)
    .addOption(integerOption('--seconds <n>', 'how long to measure the speed (default: 5)', 1).default(5, '5'))
    .addOption(integerOption('--words <n>', 'words of a passage (default: 100)', 1).default(100, '100'))
    .addOption(
      integerOption(
        '--texts <n>',
        'definitions to measure the quality by, 0 for none (default: 2000, fewer for a slow model)',
        0,
      ),
    )
    .addOption(jsonOption('{directory, kind, recognised, bytes, memory, load_seconds, speed, agreement, quality}'))
    .action(async (directory: string, options: Options) => {
      const references = readReferences(resolve(directory));
      const report = await onModel(directory, (trial) => measured(trial, { directory, references, options }));
      const { out } = terminal();
      out.write(options.json === true ? `${JSON.stringify(report)}\n` : shown(report));
    });
}

interface Report {
  readonly directory: string;
  readonly kind: string;
  readonly recognised: Json;
  readonly bytes: number;
  readonly memory: { readonly before: number; readonly loaded: number; readonly working: number };
  readonly load_seconds: number;
  readonly speed: {
    readonly passages: number;
    readonly tokens: number;
    readonly seconds: number;
    readonly passages_per_second: number;
    readonly tokens_per_second: number;
  };
  readonly agreement?: Agreement;
  readonly quality?: Quality;
}

async function measured(
  trial: Trial,
  {
    directory,
    references,
    options,
  }: { directory: string; references: readonly Reference[] | undefined; options: Options },
): Promise<Report> {
  const config = await trial.look();
  const path = { model: trial.id };
  const before = process.memoryUsage.rss();
  const begun = performance.now();
  // Without a cache: what is measured is the model.
  await trial.ask('start_deployment', { path, query: { cache_size: '0b', number_of_allocations: '1' } });
  const loading = (performance.now() - begun) / 1000;
  const loaded = process.memoryUsage.rss();
  const loadedAs = await trial.look();
  const agreement = references === undefined ? undefined : await agreementOf(trial, references);
  await trial.infer(passages(options.words, 0), QUESTION);
  const start = await figures(trial);
  const started = performance.now();
  for (let round = 1; performance.now() - started < options.seconds * 1000; round += 1) {
    await trial.infer(passages(options.words, round * BATCH), QUESTION);
  }
  const seconds = (performance.now() - started) / 1000;
  const end = await figures(trial);
  const [texts, tokens] = [end.texts - start.texts, end.tokens - start.tokens];
  const working = process.memoryUsage.rss();
  const sample = Math.min(TEXTS, options.texts ?? textsFor(tokens / seconds));
  const quality = sample === 0 ? undefined : await qualityOf(trial, sample);
  return {
    directory,
    kind: KINDS[trial.kind] ?? trial.kind,
    // In what a large model computes is chosen when it is first loaded.
    recognised: loadedAs?.metadata?.recognised ?? {},
    bytes: config?.model_size_bytes ?? 0,
    memory: { before, loaded, working },
    load_seconds: loading,
    speed: {
      passages: texts,
      tokens,
      seconds,
      passages_per_second: texts / seconds,
      tokens_per_second: tokens / seconds,
    },
    ...(agreement === undefined ? {} : { agreement }),
    ...(quality === undefined ? {} : { quality }),
  };
}

async function figures(trial: Trial): Promise<Figures> {
  return (await trial.ask<{ readonly encoder: Figures }>('instruments')).encoder;
}

function qualityOf(trial: Trial, sample: number): Promise<Quality> {
  if (trial.kind !== 'text_similarity') return encoderQuality(trial.sparrow, trial.id, sample);
  return crossEncoderQuality(trial.sparrow, (texts, question) => trial.infer(texts, question), sample);
}

const QUESTION = 'how was mail carried over the sea';
const KINDS: Readonly<Record<string, string>> = {
  text_expansion: 'sparse encoder',
  text_embedding: 'dense encoder',
  text_similarity: 'cross-encoder',
};

/** Texts of so many words, each another one. */
function passages(words: number, first: number): string[] {
  return Array.from({ length: BATCH }, (_, at) =>
    Array.from({ length: words }, (_word, word) => WORDS[(word * 7 + first + at) % WORDS.length]).join(' '),
  );
}

/** The entries of a directory's reference; none where it has no such file. */
function readReferences(directory: string): readonly Reference[] | undefined {
  const path = join(directory, REFERENCE);
  let text: string;
  try {
    const file = statSync(path);
    if (!file.isFile()) throw new CommandError(`${REFERENCE} is not a file`);
    if (file.size > LARGEST_REFERENCE) throw new CommandError(`${REFERENCE} is larger than 256 MiB`);
    text = readFileSync(path, 'utf8');
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw cause instanceof CommandError ? cause : new CommandError(`cannot read ${path}`, { cause });
  }
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (cause) {
    throw new CommandError(`${REFERENCE} is not JSON`, { cause });
  }
  if (!Array.isArray(parsed) || parsed.length === 0 || !parsed.every(isReference)) {
    throw new CommandError(
      `${REFERENCE} is not a list of {"text", "vector"}, {"text", "tokens"} or {"question", "text", "score"}`,
    );
  }
  return parsed.slice(0, MOST_REFERENCES);
}

function isReference(value: unknown): value is Reference {
  const { text, question, vector, tokens, score } = (value ?? {}) as Record<string, unknown>;
  if (typeof text !== 'string') return false;
  if (Array.isArray(vector)) return vector.every((one) => Number.isFinite(one));
  if (typeof score === 'number') return Number.isFinite(score) && typeof question === 'string';
  return typeof tokens === 'object' && tokens !== null && Object.values(tokens).every((one) => Number.isFinite(one));
}

/** Compares what a model makes of texts with what it is to make of them. */
async function agreementOf(trial: Trial, references: readonly Reference[]): Promise<Agreement> {
  const cosines: number[] = [];
  let difference = 0;
  for (const one of references) {
    const [made] = await trial.infer([one.text], one.question ?? '');
    const expected = entriesOf(one.score ?? one.tokens ?? one.vector ?? []);
    const found = entriesOf(made);
    const isScore = typeof made === 'number';
    if (isScore !== (one.score !== undefined)) {
      throw new CommandError(`${REFERENCE} has entries that a ${KINDS[trial.kind] ?? 'model'} does not make`);
    }
    for (const key of new Set([...expected.keys(), ...found.keys()])) {
      difference = Math.max(difference, Math.abs((expected.get(key) ?? 0) - (found.get(key) ?? 0)));
    }
    if (!isScore) cosines.push(cosine(expected, found));
  }
  const mean = cosines.reduce((sum, one) => sum + one, 0) / cosines.length;
  return {
    entries: references.length,
    ...(cosines.length > 0 && { cosine: { least: Math.min(...cosines), mean } }),
    difference,
  };
}

/** The numbers of a vector, a sparse vector or a score by their names. */
function entriesOf(value: unknown): ReadonlyMap<string, number> {
  if (typeof value === 'number') return new Map([['', value]]);
  return new Map(Object.entries((value ?? {}) as Record<string, number>));
}

/** Of two vectors without a number that is not 0 it is 1, as they are the same. */
function cosine(one: ReadonlyMap<string, number>, other: ReadonlyMap<string, number>): number {
  const dot = (a: ReadonlyMap<string, number>, b: ReadonlyMap<string, number>): number =>
    [...a].reduce((sum, [key, value]) => sum + value * (b.get(key) ?? 0), 0);
  const lengths = Math.sqrt(dot(one, one) * dot(other, other));
  return lengths === 0 ? Number(dot(one, one) === dot(other, other)) : dot(one, other) / lengths;
}

/** Where a folder in the form of Hugging Face says how tokens become one vector. */
const POOLING = join('1_Pooling', 'config.json');

/** The words behind the way of pooling that say it was assumed, if no file of the folder names one; otherwise nothing. */
function assumed(directory: string, name: string, value: unknown): string {
  const isSaid = name !== 'pooling' || value !== 'mean over tokens' || existsSync(join(directory, POOLING));
  return isSaid || ownSettings(directory).pooling !== undefined
    ? ''
    : ` (assumed, as there is no ${POOLING}: many models take the first token)`;
}

function shown({
  directory,
  kind,
  recognised,
  bytes: size,
  memory,
  load_seconds: loading,
  speed,
  agreement,
  quality,
}: Report): string {
  const facts = Object.entries(recognised as Record<string, unknown>).map(
    ([name, value]) =>
      `${name} ${typeof value === 'string' ? value : JSON.stringify(value)}${assumed(directory, name, value)}`,
  );
  const lines = [
    ['kind', kind],
    ['recognised', facts.join(', ')],
    ['files', bytes(size)],
    ['memory', `${bytes(memory.loaded - memory.before)} loaded, ${bytes(memory.working - memory.before)} at work`],
    ['loaded in', `${loading.toFixed(2)} s`],
    [
      'speed',
      `${speed.passages_per_second.toFixed(1)} passages/s, ${number(Math.round(speed.tokens_per_second))} tokens/s ` +
        `(one worker, ${(speed.tokens / Math.max(speed.passages, 1)).toFixed(0)} tokens a passage, ${speed.seconds.toFixed(1)} s)`,
    ],
    ['agreement', agreed(agreement)],
    ...(quality === undefined ? [] : [['quality', shownQuality(quality)]]),
  ];
  return lines.map(([name = '', value = '']) => `${name.padEnd(12)}${value}\n`).join('');
}

function agreed(agreement: Agreement | undefined): string {
  if (agreement === undefined) return `not looked at: there is no ${REFERENCE}`;
  const { entries, cosine: of, difference } = agreement;
  const cosines = of === undefined ? '' : `cosine ${of.least.toFixed(6)} at least, ${of.mean.toFixed(6)} on average; `;
  return `${number(entries)} entries: ${cosines}largest difference ${difference.toExponential(1)}`;
}
