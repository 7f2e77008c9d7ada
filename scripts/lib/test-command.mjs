// The long tests that are commands of their own: each reads its options, closes with one line, and leaves a record where it is told to.
import process from 'node:process';
import { parseArgs } from 'node:util';

import { beginRecord, commandLine, writeRecord } from '../../benches/lib/record.mjs';
import { StepFailed, main } from './process.mjs';

const COMMON = {
  json: { type: 'string', value: 'FILE', help: 'write a record of the run' },
  help: { type: 'boolean', short: 'h', default: false, help: 'this text' },
};

/**
 * What a test found.
 *
 * @typedef {object} Found
 * @property {number} [seed] absent for a test without random choices
 * @property {Record<string, number>} counts
 * @property {string} closing the line that the test ends with
 * @property {string[]} failures one text for each; the command ends with 1 if there are any
 */

/**
 * Runs such a test.
 *
 * @param {object} test
 * @param {string} test.suite what its record is called
 * @param {string} test.title
 * @param {string} test.command how it is started, without options
 * @param {Record<string, object>} test.options as `parseArgs` takes them, each with `help`, and `value`: what stands for its value
 * @param {(values: Record<string, any>) => Promise<Found & Record<string, unknown>>} test.run other members than those of {@link
 *   Found} go into the record as they are
 */
export function testCommand({ suite, title, command, options, run }) {
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(130));
  return main(async (args) => {
    const values = readOptions(args, { ...options, ...COMMON });
    if (values.help) {
      console.log(usage(command, title, { ...options, ...COMMON }));
      return 0;
    }
    const endRecord = beginRecord({ suite, title, command: commandLine(command, args), watched: ['test'] });
    const found = await run(values);
    if (values.json !== undefined) writeRecord(values.json, recordOf(endRecord, found));
    for (const failure of found.failures) console.log(`FAILED  ${failure}`);
    console.log(`\n${found.closing}`);
    return found.failures.length > 0 ? 1 : 0;
  });
}

/**
 * The record of a run: what all have comes first.
 *
 * @param {(found: object) => Record<string, any>} endRecord
 * @param {Found & Record<string, unknown>} found
 */
export function recordOf(endRecord, { seed = null, counts, closing, failures, ...more }) {
  return endRecord({ seed, counts, closing, failures, ...more });
}

/** The values of a command's options. One that there is not is an error in one line. */
export function readOptions(args, options) {
  try {
    return parseArgs({ args, options }).values;
  } catch (error) {
    throw new StepFailed(`${error.message}; --help tells what there is`);
  }
}

/** What `--help` prints: each option with its `help`. */
export function usage(command, title, options) {
  const rows = Object.entries(options).map(([name, { value, help, default: usual }]) => [
    `--${name}${value === undefined ? '' : ` ${value}`}`,
    `${help}${typeof usual === 'string' && usual !== '' ? ` [${usual}]` : ''}`,
  ]);
  const width = Math.max(...rows.map(([name]) => name.length));
  const lines = rows.map(([name, help]) => `  ${name.padEnd(width)}  ${help}`);
  return [`Usage: ${command}${command.startsWith('npm ') ? ' --' : ''} [options]`, '', title, '', ...lines].join('\n');
}

/** The value of an option that wants a whole number; undefined if it was not given. */
export function wholeNumber(values, name, least = 0) {
  if (values[name] === undefined) return undefined;
  const number = Number(values[name]);
  if (!/^\d+$/.test(values[name]) || number < least || !Number.isSafeInteger(number)) {
    throw new StepFailed(`--${name} wants a whole number${least > 0 ? ` from ${least} on` : ''}`);
  }
  return number;
}
