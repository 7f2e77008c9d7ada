// npm run bench [-- OPTIONS]
//
// Runs the suites of benches/suites/, each of which measures one part of Sparrow against what a user could take instead, in one
// run, and checks answers: which ones, its rows say. `--help` lists the options.
//
// A wrong answer ends the run with 1. A target that is not reached is marked: it may be the machine. Except in smoke, each
// suite leaves benches/results/<suite>-<size>.json.
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import process from 'node:process';
import { pathToFileURL } from 'node:url';

import { ROOT, at, targetDir } from '../scripts/lib/paths.mjs';
import { StepFailed, main } from '../scripts/lib/process.mjs';
import { bold, duration, line, step, table } from '../scripts/lib/terminal.mjs';
import { readOptions, usage, wholeNumber } from '../scripts/lib/test-command.mjs';
import { createContext } from './lib/context.mjs';
import { beginRecord, commandLine, writeRecord } from './lib/record.mjs';
import { cells, completeRow } from './lib/rows.mjs';

const SUITES = at('benches', 'suites');
const RESULTS = at('benches', 'results');

const COMMAND = 'npm run bench';
const SUMMARY = `Measures each part of Sparrow against what a user could take instead, and checks answers. Without options: a quick form of
all suites, some minutes. A wrong answer ends the run with 1; a target that is not reached is marked. Each suite leaves
benches/results/<suite>-<size>.json, unless it is a smoke run. docs/performance.md has examples.

Suites: ${suites().join(', ')}`;
const OPTIONS = {
  full: {
    type: 'boolean',
    default: false,
    help: 'the published tables; they want --data and --peers, and a row says why it is skipped without',
  },
  smoke: { type: 'boolean', default: false, help: 'a few seconds a suite, answers only, as the tests do' },
  only: { type: 'string', value: 'SUITES', help: 'only these, with commas between them' },
  data: {
    type: 'string',
    value: 'DIR',
    default: process.env.SPARROW_BENCH_DATA,
    help: 'real texts (or SPARROW_BENCH_DATA); docs/performance.md says which files',
  },
  peers: {
    type: 'string',
    value: 'DIR',
    default: process.env.SPARROW_BENCH_PEERS,
    help: 'launchers of other engines (or SPARROW_BENCH_PEERS)',
  },
  'quick-peers': {
    type: 'boolean',
    default: false,
    help: 'fetches other engines from the registries and draws five charts beside them; with --data, --cache, --out, --documents',
  },
  cache: { type: 'string', value: 'DIR', help: 'for --quick-peers: keeps what is fetched [a temporary folder]' },
  out: {
    type: 'string',
    value: 'DIR',
    default: join('dist', 'quick-peers'),
    help: 'for --quick-peers: gets the charts',
  },
  documents: { type: 'string', value: 'N', help: 'for --quick-peers: how many [30000]' },
  base: { type: 'string', value: 'DIR', help: 'a built tree of another commit, for the suite `commits`' },
  million: {
    type: 'string',
    value: 'N',
    help: 'for the suite `cluster-two-vectors`: also loads N passages, which takes an hour for a million; SIGUSR2 ends the loading, and measures what is there',
  },
  work: {
    type: 'string',
    value: 'DIR',
    default: process.env.SPARROW_BENCH_WORK ?? join(targetDir(), 'bench'),
    help: 'keeps what is expensive to make (or SPARROW_BENCH_WORK)',
  },
  prepare: { type: 'boolean', default: false, help: 'makes what is expensive, and measures nothing' },
  json: { type: 'string', value: 'FILE', help: 'write a summary of the run' },
  help: { type: 'boolean', short: 'h', default: false, help: 'this text' },
};

await main(async (args) => {
  const values = readOptions(args, OPTIONS);
  if (values.help) {
    console.log(usage(COMMAND, SUMMARY, OPTIONS));
    return 0;
  }
  if (values.full && values.smoke) throw new StepFailed('--full and --smoke exclude each other');
  const size = values.full ? 'full' : values.smoke ? 'smoke' : 'quick';
  // A smoke run needs nothing but the repository, whatever the environment offers.
  const given = (path) => (path === undefined || size === 'smoke' ? undefined : existing(path));
  const [data, peers, base] = [values.data, values.peers, values.base].map(given);
  const command = commandLine(COMMAND, args);
  if (values['quick-peers']) {
    const documents = wholeNumber(values, 'documents', 1);
    const { cache, out, smoke } = values;
    // Its packages are there only once they are built, and `--help` has to work before.
    const { quickPeers } = await import('./quick-peers/run.mjs');
    return quickPeers({ data, cache, out: resolve(out), documents, smoke, command });
  }
  const million = wholeNumber(values, 'million', 1);
  const options = { size, data, peers, base, million, work: resolve(values.work) };
  mkdirSync(options.work, { recursive: true });
  const log = (text) => line(text);
  const context = createContext({ ...options, prepare: values.prepare, log });

  const outcomes = [];
  for (const name of chosen(values.only)) {
    outcomes.push(await runSuite(name, context, command));
  }
  return report(outcomes, values.json);
});

function existing(path) {
  if (!existsSync(path)) throw new StepFailed(`there is no ${path}`);
  return resolve(path);
}

/** The names of all suites. */
function suites() {
  return readdirSync(SUITES)
    .filter((name) => name.endsWith('.mjs'))
    .map((name) => name.slice(0, -4))
    .sort();
}

function chosen(only) {
  const all = suites();
  if (only === undefined) return all;
  const wanted = only.split(',');
  const unknown = wanted.filter((name) => !all.includes(name));
  if (unknown.length > 0) throw new StepFailed(`no suite [${unknown}]; there are ${all.join(', ')}`);
  return wanted;
}

/** Runs one suite to its end; what it throws is a wrong answer or a broken benchmark, and does not keep the others from running. */
async function runSuite(name, context, command) {
  const { title, run, prepares = false } = await import(pathToFileURL(join(SUITES, `${name}.mjs`)).href);
  // Most suites have nothing that is worth keeping.
  if (context.prepare && !prepares) return { name, failed: false, rows: [] };
  step(`${name}: ${title}`);
  const begun = performance.now();
  const endRecord = beginRecord({ suite: name, title, command });
  try {
    const answer = await run(context);
    if (context.prepare) return { name, failed: false, rows: [] };
    const rows = answer.rows.map(completeRow);
    const notes = answer.notes ?? [];
    const peers = answer.peers === undefined ? {} : { peers: answer.peers };
    const record = endRecord({ corpus: answer.corpus ?? context.corpus.source(), ...peers, rows, notes });
    console.log();
    table(cells(rows));
    for (const row of rows) if (row.skipped !== undefined) line(`skipped: ${row.what}: ${row.skipped}`);
    for (const note of notes) line(note);
    line(`${duration(performance.now() - begun)}; other processes used ${record.machine.load.otherCores ?? '?'} cores`);
    if (context.size !== 'smoke') {
      const file = join(RESULTS, `${name}-${context.size}.json`);
      writeRecord(file, record);
      line(`written to ${relative(ROOT, file)}`);
    }
    return { name, failed: false, rows };
  } catch (error) {
    console.error(`\n${name} failed: ${error instanceof StepFailed ? error.message : (error?.stack ?? error)}`);
    return { name, failed: true, rows: [] };
  }
}

function report(outcomes, json) {
  const rows = outcomes.flatMap((outcome) => outcome.rows);
  const count = (test) => rows.filter(test).length;
  const failed = outcomes.filter((outcome) => outcome.failed).map(({ name }) => name);
  const summary = {
    suites: { passed: outcomes.length - failed.length, failed: failed.length },
    rows: {
      met: count((row) => row.met === true),
      notReached: count((row) => row.met === false),
      withoutTarget: count((row) => row.met === null && row.skipped === undefined),
      skipped: count((row) => row.skipped !== undefined),
    },
  };
  if (json !== undefined) writeFileSync(json, `${JSON.stringify(summary)}\n`);
  const { met, notReached, withoutTarget, skipped } = summary.rows;
  console.log(
    bold(
      `\nbench: ${summary.suites.passed} suites passed, ${failed.length} failed${failed.length > 0 ? ` (${failed.join(', ')})` : ''}; ` +
        `rows: ${met} met, ${notReached} not reached, ${withoutTarget} without a target, ${skipped} skipped`,
    ),
  );
  return failed.length > 0 ? 1 : 0;
}
