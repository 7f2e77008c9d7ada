// Aggregations over generated documents, on one thread, without HTTP: over all documents and over three tenths of them that a range
// matches. The Rust program (crates/aggregations/examples/bench_aggregations) compares every answer with what counting the rows gives.
import { StepFailed } from '../../scripts/lib/process.mjs';
import { captureJson } from '../lib/programs.mjs';

export const title = 'aggregations';

const SIZES = {
  smoke: { documents: 3000, passes: 1 },
  quick: { documents: 50_000, passes: 5 },
  full: { documents: 200_000, passes: 9 },
};
/** "Tens of milliseconds". */
const TARGET = { at_most: 99 };
const CHECKED = 'every bucket and number with counting the rows';

/** @param {import('../lib/context.mjs').Context} context */
export async function run(context) {
  const { documents, passes } = SIZES[context.size];
  const program = await context.rustExample('bench_aggregations');
  const lines = await captureJson(program, [`${documents}`, `${passes}`]);
  return { rows: describe(lines, context.size === 'full') };
}

/** @param {object[]} lines what the program printed @param {boolean} promised whether the target is about this size */
export function describe(lines, promised) {
  if (lines.length === 0) throw new StepFailed('the program measured no aggregation');
  return lines.map((line) => ({
    what: `${line.case}, ${line.matching.toLocaleString('en-US')} of ${line.documents.toLocaleString('en-US')} documents`,
    unit: 'ms',
    sparrow: line.milliseconds,
    target: promised ? TARGET : null,
    checked: CHECKED,
    detail: line,
  }));
}
