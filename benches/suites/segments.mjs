// Sparse search inside an index on disk (tantivy's segments, memory-mapped): filters as queries, five segments with a fifth of the
// documents deleted, and a cold start. One thread, no HTTP, no JSON. The Rust program
// (crates/tantivy-index/examples/bench_search) compares answers with scoring all documents and makes the figures; each kind of search takes
// turns with the others, and the fastest of the passes counts for each question. The cold start drops the files' pages from the
// page cache first.
import { existsSync } from 'node:fs';

import { at } from '../../scripts/lib/paths.mjs';
import { StepFailed } from '../../scripts/lib/process.mjs';
import { captureJson, keptFolder, writeLines } from '../lib/programs.mjs';

export const title = 'sparse search inside an index: filters, segments, deletes, a cold start';
/** `--prepare` makes what a later run finds in the work folder. */
export const prepares = true;

const PROGRAM = 'bench_search';
const SIZES = {
  smoke: { documents: 600, questions: 30, passes: 1 },
  quick: { documents: 20_000, questions: 300, passes: 3 },
  full: { documents: 100_000, questions: 1000, passes: 3 },
};
const SEGMENTS = 5;
const DELETED = 0.2;
const TARGETS = { segments: 1.3, filter: 1.1 };
const CHECKED = 'every twentieth question of each kind with scoring all documents';

/** @param {import('../lib/context.mjs').Context} context */
export async function run(context) {
  const home = at('crates', 'tantivy-index', 'examples', PROGRAM);
  if (!existsSync(home) && !existsSync(`${home}.rs`)) {
    return { rows: [{ what: 'search inside an index', skipped: 'there is no program that measures it' }] };
  }
  const { documents, questions, passes } = SIZES[context.size];
  const docs = (await context.vectors('texts', documents)).prefix;
  const queries = (await context.vectors('questions', questions)).prefix;
  const program = await context.rustExample(PROGRAM);
  const made = {
    crates: ['analysis', 'tantivy-index', 'mapping', 'postings', 'segments', 'runtime', 'vectors'],
    files: ['packages/model-splade-tiny'],
    of: context.identity('texts'),
  };
  const work = keptFolder(context.work, `segments-${context.size}`, made);
  const texts = writeLines(work, 'texts', await context.texts(documents));
  const asked = writeLines(
    work,
    'questions',
    (await context.questions(questions)).map((text) => ({ text })),
  );
  const lines = await captureJson(program, [
    ...['--docs', docs, '--queries', queries, '--texts', texts, '--question-texts', asked, '--work', work],
    ...['--limit', `${documents}`, '--questions', `${questions}`, '--passes', context.prepare ? '1' : `${passes}`],
    ...['--segments', `${SEGMENTS}`, '--deleted', `${DELETED}`, '--only', 'warm,cold'],
  ]);
  return { rows: describe(lines, documents, context.size === 'full') };
}

/** @param {object[]} lines what the program printed @param {boolean} promised whether the targets are about this size */
export function describe(lines, documents, promised) {
  const where = `${documents.toLocaleString('en-US')} documents`;
  const warm = lines.filter((line) => line.part === 'warm');
  const [clean, split] = [...new Set(warm.map(({ index }) => index))];
  const find = (index, what) => warm.find((line) => line.index === index && line.what === what);
  const lone = find(clean, 'sparse');
  if (lone === undefined || split === undefined) throw new StepFailed('the program measured no sparse search');
  const row = (what, against, line, peer, most) => ({
    what: `${what}, ${where}, p50`,
    against,
    unit: 'ms',
    sparrow: line.p50_us / 1000,
    peer: peer.p50_us / 1000,
    target: promised && most !== undefined ? { at_most: most } : null,
    checked: CHECKED,
    detail: { sparrow: line, peer },
  });
  const rows = [row(split, clean, find(split, 'sparse'), lone, TARGETS.segments)];
  for (const line of warm.filter(
    ({ index, what }) => index === clean && what !== 'sparse' && what !== 'postings alone',
  )) {
    rows.push(row(line.what, 'the sparse clause alone', line, lone, filterTarget(line.what)));
  }
  const bare = find(clean, 'postings alone');
  if (bare !== undefined) rows.push(row('the whole search', 'its postings alone', lone, bare));
  for (const line of lines.filter(({ part }) => part === 'cold')) rows.push(...cold(line, where));
  return rows;
}

/** Filters are promised to cost nothing; a match beside the sparse clause has its own work to do. */
const filterTarget = (what) => (/^(new )?(terms?|range) /.test(what) ? TARGETS.filter : undefined);

function cold(line, where) {
  const row = (what, unit, sparrow) => ({
    what: `cold, ${line.index}, ${where}: ${what}`,
    unit,
    sparrow,
    detail: line,
  });
  return [
    row('open and first answer', 'ms', line.first_answer_ms),
    row('first 100 questions, p50', 'ms', line.first_100_p50_us / 1000),
    row('first 100 questions, p95', 'ms', line.first_100_p95_us / 1000),
    row('change of memory by them, anonymous', 'MB', line.after_100_anonymous_mb),
    row('change of memory by them, of mapped files', 'MB', line.after_100_file_mb),
  ];
}
