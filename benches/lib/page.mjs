// The tables of the performance page, made from the records in benches/results/: between `<!-- bench: NAME -->` and
// `<!-- end -->` stands what is generated, the rest of the page is written by hand.
import { figure, targetText } from './rows.mjs';

const BLOCK = /<!-- bench: ([\w-]+) -->\n[\s\S]*?<!-- end -->/g;
/** The block that lists what is not better than what it is compared with, over all records that the page shows. */
const BEHIND = 'not-ahead';
/** The block that names the machines of these records. */
const MACHINES = 'machines';
const LESS_IS_BETTER = new Set(['ms', 's', 'µs', 'ns', 'bytes a document', 'exponent', 'filters']);

/**
 * Fills the blocks of a page. @param {string} page @param {Map<string, object>} records by suite
 */
export function fillPage(page, records) {
  const shown = [...page.matchAll(BLOCK)].map(([, name]) => records.get(name)).filter((record) => record !== undefined);
  return page.replace(BLOCK, (_, name) => {
    const special = { [BEHIND]: behind, [MACHINES]: machines };
    const text = special[name]?.(shown) ?? block(records.get(name), name);
    return `<!-- bench: ${name} -->\n${text}\n<!-- end -->`;
  });
}

function block(record, name) {
  if (record === undefined) return `No record yet: \`npm run bench -- --full --only ${name}\` makes it.`;
  const { machine, load } = { machine: record.machine, load: record.machine.load };
  const commit = `${record.commit?.slice(0, 10) ?? 'unknown'}${record.dirty ? ' with changes' : ''}`;
  const others = load.otherCores === null ? '' : `; other processes used ${load.otherCores} of ${machine.cores} cores`;
  const head = `\`${record.command}\`, ${record.date.slice(0, 10)}, commit ${commit}, ${record.seconds} s on ${machine.cpu}${others} ([record](../benches/results/${record.suite}-${sizeOf(record)}.json)).`;
  return [head, '', ...markdownTable(record.rows), ...notes(record.notes)].join('\n');
}

const sizeOf = (record) => (/(^|\s)--full(\s|$)/.test(record.command) ? 'full' : 'quick');

function markdownTable(rows) {
  const line = (cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  const body = rows.map((row) =>
    line([
      row.what,
      row.against ?? '',
      row.skipped === undefined ? withUnit(row.sparrow, row.unit) : `skipped: ${row.skipped}`,
      withUnit(row.peer, row.unit),
      row.ratio === null ? '' : figure(row.ratio),
      targetText(row.target),
      row.met === null ? '' : row.met ? 'reached' : '**not reached**',
    ]),
  );
  return [line(['', 'against', 'Sparrow', 'peer', 'ratio', 'target', '']), '|---|---|--:|--:|--:|--:|---|', ...body];
}

const withUnit = (value, unit) => (value === null ? '' : `${figure(value)} ${unit}`.trim());
const notes = (lines) => (lines.length === 0 ? [] : ['', ...lines.map((line) => `- ${line}`)]);

/** One line a machine; several when the records are not all from one. */
function machines(records) {
  const lines = records.map(({ machine: { cpu, cores, flags, memoryBytes, kernel, node, rustc } }) => {
    const memory = `${Math.round(memoryBytes / 2 ** 30)} GiB`;
    return `- ${cpu}, ${cores} cores (${flags.join(', ')}), ${memory}; ${kernel}; Node ${node}, ${rustc}`;
  });
  return lines.length === 0 ? 'No record yet.' : [...new Set(lines)].join('\n');
}

/** Rows that miss their target, and rows without one in which the other side is better. */
function behind(records) {
  const lines = records.flatMap((record) =>
    record.rows.filter(isBehind).map((row) => {
      const against = row.against === null ? '' : ` against ${row.against}`;
      const values =
        row.peer === null
          ? withUnit(row.sparrow, row.unit)
          : `${figure(row.sparrow)} and ${withUnit(row.peer, row.unit)}`;
      const ratio = row.ratio === null ? '' : `, ${figure(row.ratio)} times`;
      const target = row.target === null ? '' : `; asked for: ${targetText(row.target)}`;
      return `- ${record.suite}: ${row.what}${against}: ${values}${ratio}${target}`;
    }),
  );
  return lines.length === 0 ? 'Nothing in the records above.' : lines.join('\n');
}

/** @param {import('./rows.mjs').Row} row */
export function isBehind({ met, ratio, unit, target, skipped }) {
  if (skipped !== undefined) return false;
  if (met !== null) return !met;
  if (ratio === null || target !== null) return false;
  // Memory has its kind behind the unit: `MB RSS`.
  return LESS_IS_BETTER.has(unit) || unit.startsWith('MB') ? ratio > 1 : ratio < 1;
}
