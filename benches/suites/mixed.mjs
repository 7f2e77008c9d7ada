// `bool` queries that mix a sparse clause with texts and filters, against the sum of what their scoring clauses cost alone (a filter
// counts as free). One thread, no HTTP, no JSON. The Rust program (crates/tantivy-index/examples/bench_search) compares answers and totals
// with adding up the scores that every clause gives every document; clauses and mixes take turns question by question, and the
// fastest of the passes counts.
import { StepFailed } from '../../scripts/lib/process.mjs';
import { captureJson, keptFolder, writeLines } from '../lib/programs.mjs';

export const title = 'a sparse clause mixed with texts and filters';
/** `--prepare` makes what a later run finds in the work folder. */
export const prepares = true;

const SIZES = {
  smoke: { documents: 600, questions: 120, passes: 1 },
  quick: { documents: 20_000, questions: 300, passes: 3 },
  full: { documents: 200_000, questions: 1000, passes: 3 },
};
const TARGET = { at_most: 1.3 };
const CHECKED = 'hits, scores and totals of every hundredth question with adding up all scores of all clauses';

/** @param {import('../lib/context.mjs').Context} context */
export async function run(context) {
  const { documents, questions, passes } = SIZES[context.size];
  const docs = (await context.vectors('texts', documents)).prefix;
  const queries = (await context.vectors('questions', questions)).prefix;
  const program = await context.rustExample('bench_search');
  const made = {
    crates: ['analysis', 'tantivy-index', 'mapping', 'postings', 'segments', 'runtime', 'vectors'],
    files: ['packages/model-splade-tiny'],
    of: context.identity('texts'),
  };
  const work = keptFolder(context.work, `mixed-${context.size}`, made);
  const texts = writeLines(work, 'texts', await context.texts(documents));
  const asked = (await context.questions(questions)).map((text) => ({ text }));
  const lines = await captureJson(program, [
    ...['--docs', docs, '--queries', queries, '--texts', texts, '--work', work],
    ...['--question-texts', writeLines(work, 'questions', asked)],
    ...['--limit', `${documents}`, '--questions', `${questions}`, '--passes', context.prepare ? '1' : `${passes}`],
    ...['--segments', '5', '--deleted', '0.2', '--only', 'mixes'],
  ]);
  return { rows: describe(lines, documents, context.size === 'full') };
}

/** @param {object[]} lines what the program printed @param {boolean} promised whether the target is about this size */
export function describe(lines, documents, promised) {
  const mixes = lines.filter((line) => line.part === 'mix');
  if (mixes.length === 0) throw new StepFailed('the program measured no mixed search');
  return mixes.map((line) => ({
    what: `${line.what}, ${documents.toLocaleString('en-US')} documents, ${line.index}, p50`,
    against: 'its scoring clauses alone, added up',
    unit: 'ms',
    sparrow: line.p50_us / 1000,
    peer: line.clauses_p50_us / 1000,
    target: promised ? TARGET : null,
    checked: CHECKED,
    detail: line,
  }));
}
