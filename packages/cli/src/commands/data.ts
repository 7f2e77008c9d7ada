import process from 'node:process';

import type { Command } from 'commander';

import { type Said, checkDirectory, checkSnapshots, repairDirectory } from '../check.js';
import { jsonOption } from '../context.js';
import { UsageError } from '../errors.js';

/** `sparrow check` and `sparrow repair`: a data directory that no server has open, or a snapshot repository. */
export function addData(program: Command): void {
  program
    .command('check')
    .description('find damaged files in a data directory that no server has open, or in a snapshot repository')
    .argument('[data]', 'the data directory')
    .option('--repository <dir>', 'check a snapshot repository instead; servers may be using it')
    .addOption(
      jsonOption(
        '{data, indices, problems}; of a repository {repository, snapshots, blobs, bytes, unneeded, problems}',
      ),
    )
    .action(async (data: string | undefined, options: { repository?: string; json?: boolean }) => {
      const { repository, json = false } = options;
      if (data !== undefined && repository === undefined) say(await checkDirectory(data, json));
      else if (data === undefined && repository !== undefined) say(checkSnapshots(repository, json));
      else throw new UsageError('name a data directory or, with --repository, a snapshot repository');
    });
  program
    .command('repair')
    .description('save what can be saved of a damaged data directory in a new one; the old one stays as it is')
    .argument('<data>', 'the data directory')
    .requiredOption('--into <dir>', 'the new data directory')
    .addOption(jsonOption('{found, into, indices, left_out}'))
    .action(async (data: string, { into, json = false }: { into: string; json?: boolean }) => {
      say(await repairDirectory(data, into, json));
    });
}

function say({ text, exitCode }: Said): void {
  process.stdout.write(text);
  process.exitCode = exitCode;
}
