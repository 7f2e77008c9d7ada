import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';

import { embeddedModels, fileProblem } from '@sparrow-search/engine';
import { type Line, type Observation, logisticFit } from '@sparrow-search/evaluation';
import type { Command } from 'commander';

import { jsonOption } from '../context.js';
import { type Meaning, dictionary } from '../dictionary.js';
import { CommandError } from '../errors.js';
import { whileWaiting } from '../progress.js';
import { number, terminal } from '../terminal.js';
import { spread } from './model-quality.js';
import { type Trial, onModel } from './model-trial.js';

/** What a model directory has its calibration in. */
const FILE = 'calibration.json';
/** What a calibration reads, by what the model makes. */
const FEATURES: Readonly<Record<string, string>> = { text_embedding: 'cosine', text_expansion: 'unit_query' };
const TASKS: Readonly<Record<string, string>> = {
  text_embedding: 'text_embedding',
  text_expansion: 'sparse_embedding',
};
/** Words that are asked for of each kind: those whose definitions are there, and those whose are not. */
const QUESTIONS = 300;
const ENDPOINT = 'calibrated';
const INDEX = 'definitions';
/** The least share of pairs in which a right hit scores higher: by chance it is a half, give or take a few hundredths. */
const TELLING = 0.55;

interface Options {
  readonly force?: boolean;
  readonly json?: boolean;
}

/** The words that are asked for, with the definitions that answer them. */
interface Sample {
  readonly meanings: readonly Meaning[];
  readonly questions: readonly { readonly word: string; readonly relevant: ReadonlySet<string> }[];
}

interface Fitted extends Line {
  /** How often the first hit of a word scores higher where it is right than where it is wrong. */
  readonly telling: number;
  readonly feature: string;
}

interface Calibrated extends Fitted {
  readonly file: string;
  readonly questions: number;
  readonly texts: number;
}

/** `sparrow models calibrate`: writes the calibration of a model directory. */
export function addModelCalibrate(models: Command): void {
  models
    .command('calibrate')
    .description(
      'measure what the scores of a model directory mean, without a server, and write that into it for the normalizer [calibrated]',
    )
    .argument('<dir>', `the model directory, which gets a ${FILE}`)
    .option('--force', `replace a ${FILE} that is there`)
    .addOption(jsonOption('{file, feature, slope, intercept, telling, questions, texts}'))
    .action(async (directory: string, options: Options) => {
      const { out, err } = terminal();
      const made = await whileWaiting(
        err,
        'asking for words of the dictionary; a large model takes a minute',
        calibrate(directory, options.force === true),
      );
      out.write(options.json === true ? `${JSON.stringify(made)}\n` : shown(made));
    });
}

/**
 * Fits a calibration to the dictionary in the package, and writes it. A dictionary is not what people search: so the same is
 * fitted for the embedded model of the same kind, and what its own calibration, which four collections led to, says differently
 * is applied to the model.
 *
 * @throws {CommandError} when the directory is no model, cannot have a calibration or has one
 */
async function calibrate(directory: string, isForced: boolean): Promise<Calibrated> {
  const file = join(directory, FILE);
  if (!isForced && existsSync(file)) throw new CommandError(`${file} is there: --force replaces it`);
  const sample = sampleOf(dictionary().meanings);
  return replacing(file, () => written(directory, file, sample));
}

async function written(directory: string, file: string, sample: Sample): Promise<Calibrated> {
  const found = await onModel(directory, (trial) => fitted(trial, sample));
  if (!(found.slope > 0 && found.telling > TELLING)) {
    throw new CommandError(`the scores of ${directory} do not tell right answers from wrong ones: nothing is written`);
  }
  const [embedded, own] = embeddedFor(found.feature);
  const measure = await onModel(embedded, (trial) => fitted(trial, sample));
  const factor = own.slope / measure.slope;
  const slope = rounded(found.slope * factor);
  const intercept = rounded((found.intercept - measure.intercept) * factor + own.intercept);
  const stored = { feature: found.feature, slope, intercept, fitted_by: 'sparrow models calibrate' };
  try {
    writeFileSync(file, `${JSON.stringify(stored, null, 2)}\n`);
  } catch (cause) {
    throw new CommandError(`cannot write ${file}: ${fileProblem(cause)}`, { cause });
  }
  return {
    ...{ file, feature: found.feature, slope, intercept, telling: found.telling },
    ...{ questions: sample.questions.length, texts: sample.meanings.length },
  };
}

const rounded = (value: number): number => Number(value.toPrecision(5));

/** Writes a file anew while the old one is out of the way, with which a model may not be usable; it comes back unless that succeeds. */
async function replacing<T>(file: string, write: () => Promise<T>): Promise<T> {
  if (!existsSync(file)) return write();
  const aside = `${file}.before`;
  const restore = (): void => {
    if (existsSync(aside)) renameSync(aside, file);
  };
  renameSync(file, aside);
  // Ctrl-C ends the process in the middle.
  process.once('exit', restore);
  try {
    const result = await write();
    rmSync(aside);
    return result;
  } finally {
    restore();
    process.off('exit', restore);
  }
}

/** The directory of the embedded model with such a calibration, and the calibration. */
function embeddedFor(feature: string): readonly [string, Line] {
  for (const place of embeddedModels()) {
    const stored = JSON.parse(readFileSync(join(place, FILE), 'utf8')) as Line & { readonly feature: string };
    if (stored.feature === feature) return [place, stored];
  }
  throw new CommandError('the embedded models are not installed, with which others are compared');
}

/** Every second definition of a dictionary; words for some of these, and words for some of the others, which nothing there answers. */
function sampleOf(all: readonly Meaning[]): Sample {
  const meanings = all.filter((_, at) => at % 2 === 0);
  const byWord = new Map<string, Set<string>>();
  for (const { _id, words } of meanings) {
    for (const word of words) byWord.set(word, (byWord.get(word) ?? new Set<string>()).add(_id));
  }
  const others = all.filter(({ words }, at) => at % 2 === 1 && !words.some((word) => byWord.has(word)));
  const asked = [meanings, others].flatMap((from) => spread(from, QUESTIONS)).map(({ words: [first = ''] }) => first);
  const questions = [...new Set(asked)].map((word) => ({ word, relevant: byWord.get(word) ?? new Set<string>() }));
  return { meanings, questions };
}

/** Asks a model for each word of a sample, and fits how likely the first hit is right to its score. */
async function fitted(trial: Trial, { meanings, questions }: Sample): Promise<Fitted> {
  const feature = FEATURES[trial.kind];
  const task = TASKS[trial.kind];
  if (feature === undefined || task === undefined) {
    throw new CommandError('the model is a cross-encoder, whose scores [calibrated] does not read');
  }
  const path = { task_type: task, inference_id: ENDPOINT };
  const settings = { model_id: trial.id, num_allocations: 1, num_threads: 1 };
  await trial.ask('put_inference', { path }, { service: 'elasticsearch', service_settings: settings });
  const index = trial.sparrow.index<Meaning>(INDEX);
  const gloss = { type: 'semantic_text' as const, inference_id: ENDPOINT };
  await index.create({ mappings: { properties: { gloss } } });
  const { failures } = await index.bulk(meanings, {
    id: ({ _id }) => _id,
    toJson: ({ gloss: text }) => JSON.stringify({ gloss: text }),
    refresh: true,
  });
  const [failure] = failures;
  if (failure !== undefined) throw new CommandError(`cannot encode a definition: ${failure.error.message}`);
  const isAnswered = questions.filter(({ relevant }) => relevant.size > 0).length;
  const points: Observation[] = [];
  for (const { word, relevant } of questions) {
    const { hits } = await index.search({
      query: { semantic: { field: 'gloss', query: word } },
      size: 1,
      _source: false,
    });
    const [first] = hits.hits;
    const score = first?._score ?? 0;
    const x = feature === 'cosine' ? 2 * score - 1 : score / (await lengthOf(trial, word));
    // Words of both kinds count the same together.
    const weight = 1 / (relevant.size > 0 ? isAnswered : questions.length - isAnswered);
    points.push([x, first !== undefined && relevant.has(first._id), weight]);
  }
  return { ...logisticFit(points), telling: telling(points), feature };
}

/** The length of the token weights that a sparse model makes of a question. */
async function lengthOf(trial: Trial, word: string): Promise<number> {
  const answer = await trial.ask<{
    readonly sparse_embedding: readonly { readonly embedding: Readonly<Record<string, number>> }[];
  }>('infer', { path: { inference_id: ENDPOINT } }, { input: [word], input_type: 'search' });
  const weights = Object.values(answer.sparse_embedding[0]?.embedding ?? {});
  return Math.sqrt(weights.reduce((sum, weight) => sum + weight * weight, 0)) || 1;
}

/** The share of pairs of a right and a wrong hit in which the right one scores higher. */
function telling(points: readonly Observation[]): number {
  const [right, wrong] = [true, false].map((wanted) => points.filter(([, label]) => label === wanted));
  let [higher, all] = [0, 0];
  for (const [x, , weight] of right ?? []) {
    for (const [y, , other] of wrong ?? []) {
      higher += weight * other * (x > y ? 1 : x === y ? 0.5 : 0);
      all += weight * other;
    }
  }
  return all === 0 ? 0 : higher / all;
}

function shown({ file, slope, intercept, telling: share, questions, texts }: Calibrated): string {
  return (
    `${file} is written: slope ${String(slope)}, intercept ${String(intercept)}\n` +
    `Of ${number(questions)} words asked of ${number(texts)} definitions, right first hits score above wrong ones in ` +
    `${(100 * share).toFixed(0)}% of the pairs. Restart the servers that use the model.\n`
  );
}
