// What every record of a benchmark or a long test says of itself: how it was made, from what, and on which machine.
import { mkdirSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import { dirname, relative } from 'node:path';

import { ROOT } from '../../scripts/lib/paths.mjs';
import { machine, revision, watchOthers } from './machine.mjs';

/** A command as it goes into a record: paths as seen from the repository. */
export function commandLine(command, args) {
  const short = args.map((arg) => (arg.startsWith('/') ? relative(ROOT, arg) || '.' : arg));
  return short.length === 0 ? command : [command, ...(command.startsWith('npm ') ? ['--'] : []), ...short].join(' ');
}

/**
 * Begins a record. What comes back ends it with what was found.
 *
 * @param {object} head
 * @param {string} head.suite
 * @param {string} head.title
 * @param {string} head.command what was typed
 * @param {string[]} [head.watched] what the figures depend on, besides the sources of the server and the benchmarks
 */
export function beginRecord({ suite, title, command, watched = [] }) {
  const [begun, date] = [performance.now(), new Date().toISOString()];
  const [before, others] = [os.loadavg()[0], watchOthers()];
  return (found) => {
    const load = { before, after: os.loadavg()[0], otherCores: others() };
    const seconds = Math.round((performance.now() - begun) / 1000);
    const head = { suite, title, command, date, seconds, ...revision(watched) };
    return { ...head, machine: { ...machine(), load }, ...found };
  };
}

export function writeRecord(file, record) {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify(record, null, 2)}\n`);
}
