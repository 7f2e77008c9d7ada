// The tables of pages that show what long tests counted: between `<!-- record: SUITE -->` and `<!-- end -->` stands what is made from the
// record of that suite. Where there is none yet, what stands there stays.
import { table as loadTable } from '../../test/load/measure.mjs';

const BLOCK = /<!-- record: (\w+) -->\n([\s\S]*?)<!-- end -->/g;

const n = (count) => count.toLocaleString('en-US');
const of = (count, all) => `${n(count)} of ${n(all)}`;

/** What is shown of each suite: a label, and its value from the counts of the record. */
const ROWS = {
  crash: [
    ['rounds', ({ rounds }) => n(rounds)],
    ['kills', ({ kills, terminations }) => `${n(kills)}, and ${n(terminations)} ends by SIGTERM`],
    ['operations acknowledged', ({ operations }) => n(operations)],
    ['documents compared', ({ documents }) => n(documents)],
    ['searches compared', ({ searches }) => n(searches)],
    ['upgrades of an index in the old format', ({ upgrades }) => n(upgrades)],
    ['lost', ({ lost }) => n(lost)],
    ['answered wrongly', ({ wrong }) => n(wrong)],
  ],
  faults: [
    [
      'operations of the workload, each failed once in each of three ways',
      ({ faults, faultsOf }) => of(faults, faultsOf),
    ],
    ['operations acknowledged, refused', ({ acknowledged, refused }) => `${n(acknowledged)}, ${n(refused)}`],
    [
      'operations of a recovery, each failed once in each of two ways',
      ({ recoveryFaults, recoveryFaultsOf }) => of(recoveryFaults, recoveryFaultsOf),
    ],
    ['power cuts, at any of so many changes', ({ powerCuts, changes }) => `${n(powerCuts)}, ${n(changes)}`],
  ],
  corruption: [
    ['files damaged', ({ damaged }) => n(damaged)],
    ['named when the index, the store or the model was opened', ({ detected }) => n(detected)],
    ['harmless: the file is not read, or made anew', ({ harmless }) => n(harmless)],
    ['answered wrongly, panics, no end', ({ wrong, panics, hangs }) => n(wrong + panics + hangs)],
  ],
  fuzz: [
    ['bad requests', ({ requests }) => n(requests ?? 0)],
    ['answered with 4xx, with 2xx', ({ answered4xx, answered2xx }) => `${n(answered4xx ?? 0)}, ${n(answered2xx ?? 0)}`],
    ['answered with 500 as in Elasticsearch', ({ documented500s }) => n(documented500s ?? 0)],
    [
      'other answers of 500 and above, no answer in ten seconds, connections cut off, deaths of the process',
      ({ fiveHundreds = 0, hangs = 0, cuts = 0, deaths = 0 }) => n(fiveHundreds + hangs + cuts + deaths),
    ],
    ['slowest answer', ({ slowestMs }) => `${n(slowestMs ?? 0)} ms`],
    ['inputs to decoders in Rust', ({ inputs, decoders }) => `${n(inputs ?? 0)}, to ${n(decoders ?? 0)} decoders`],
    ['panics, inputs that took five seconds', ({ crashes, decoderHangs }) => n((crashes ?? 0) + (decoderHangs ?? 0))],
  ],
  memory: [
    ['rows, requests by chance', ({ rows, requests }) => `${n(rows)}, ${n(requests)}`],
    [
      'answered with 200, 400, 429',
      ({ answered200, answered400, answered429 }) => [answered200, answered400, answered429].map(n).join(', '),
    ],
    ['most resident', ({ largestMiB }) => `${n(largestMiB)} MiB`],
    ['over the ceiling, ends of the process', ({ over, ended }) => `${n(over)}, ${n(ended)}`],
  ],
  soak: [
    ['requests, cut off by their clients', ({ requests, cut }) => `${n(requests)}, ${n(cut)}`],
    ['checks passed, failed', ({ passed, failed }) => `${n(passed)}, ${n(failed)}`],
  ],
  load: [],
};

/** Fills the blocks of a page. @param {string} page @param {Map<string, object>} records by suite */
export function fillCounts(page, records) {
  return page.replace(BLOCK, (_, suite, before) => {
    const record = records.get(suite);
    // A record of an older form counts nothing.
    const text = record?.counts === undefined ? before : `${block(record)}\n`;
    return `<!-- record: ${suite} -->\n${text}<!-- end -->`;
  });
}

function block(record) {
  const { command, date, commit, dirty, seconds, machine, suite, seed, counts, failures } = record;
  const others = machine.load.otherCores === null ? '' : `; other processes used ${machine.load.otherCores} of them`;
  const from = `commit ${commit?.slice(0, 10) ?? 'unknown'}${dirty ? ' with changes' : ''}`;
  const head = `\`${command}\`, ${date.slice(0, 10)}, ${from}, ${n(seconds)} s on ${machine.cores} cores of ${machine.cpu}${others} ([record](../benches/results/${suite}-full.json)).`;
  const rows = ROWS[suite].map(([label, value]) => [label, value(counts)]);
  rows.push(...growth(record), ['failures', n(failures.length)]);
  const lines = rows.map(([label, value]) => `| ${label} | ${value} |`);
  const table = [`| ${seed === null ? suite : `seed ${seed}`} | |`, '|---|---|', ...lines];
  return [head, '', ...(suite === 'load' ? [loadTable(record.rows)] : table)].join('\n');
}

/** What a soak compares of its first and its last quarter. */
function growth({ growth: figures = [] }) {
  const shown = (figure, value) => {
    if (figure === 'anonymousBytes') return `${(value / 2 ** 20).toFixed(0)} MiB`;
    return figure === 'p99' ? `${value.toFixed(1)} ms` : n(Math.round(value));
  };
  return figures.map(({ figure, name, first, last }) => [
    `${name}, in the first and the last quarter`,
    `${shown(figure, first)}, ${shown(figure, last)}`,
  ]);
}
