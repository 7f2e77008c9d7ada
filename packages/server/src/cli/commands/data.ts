import process from 'node:process';

import type { Command } from 'commander';

import { type Said, checkDirectory, checkSnapshots, repairDirectory } from '../../check.js';
import { UsageError } from '../errors.js';

/** `sparrow check` and `sparrow repair`: a data directory that no server has open, or a snapshot repository. */
export function addData(program: Command): void {
  program
    .command('check')
    .description(
      'which files of a data directory, which no server may have open, or of a snapshot repository are damaged?',
    )
    .argument('[data]', 'the data directory')
    .option('--repository <dir>', 'a snapshot repository instead, which a server may have in use')
    .option('--json', 'answer in JSON')
    .action(async (data: string | undefined, options: { repository?: string; json?: boolean }) => {
      const { repository, json = false } = options;
      if (data !== undefined && repository === undefined) say(await checkDirectory(data, json));
      else if (data === undefined && repository !== undefined) say(checkSnapshots(repository, json));
      else throw new UsageError('name a data directory or, with --repository, a snapshot repository');
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
