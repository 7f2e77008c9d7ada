import process from 'node:process';

import type { Command } from 'commander';

import { type Said, checkDirectory, repairDirectory } from '../../check.js';

/** `sparrow check` and `sparrow repair`: a data directory that no server has open. */
export function addData(program: Command): void {
  program
    .command('check')
    .description('which files of a data directory are damaged? (no server may have it open)')
    .argument('<data>', 'the data directory')
    .option('--json', 'answer in JSON')
    .action(async (data: string, { json = false }: { json?: boolean }) => {
      say(await checkDirectory(data, json));
    });
  program
    .command('repair')
    .description('keep in a new directory what can be kept of a damaged one, which stays as it is')
    .argument('<data>', 'the data directory')
    .requiredOption('--into <dir>', 'the new one')
    .option('--json', 'answer in JSON')
    .action(async (data: string, { into, json = false }: { into: string; json?: boolean }) => {
      say(await repairDirectory(data, into, json));
    });
}

function say({ text, exitCode }: Said): void {
  process.stdout.write(text);
  process.exitCode = exitCode;
}
