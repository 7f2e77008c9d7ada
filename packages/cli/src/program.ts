import process from 'node:process';

import { Argument, Command, CommanderError } from 'commander';
import { VERSION } from '@sparrow-search/endpoints';
import { near } from '@sparrow-search/engine/diagnostics';
import { describeSettings, usage } from '@sparrow-search/http/settings';

import { addData } from './commands/data.js';
import { addDemo } from './commands/demo.js';
import { addEval } from './commands/eval.js';
import { addImport } from './commands/import.js';
import { addKeys } from './commands/keys.js';
import { addMcp } from './commands/mcp.js';
import { addMigrate } from './commands/migrate.js';
import { addModels } from './commands/models.js';
import { addSearch } from './commands/search.js';
import { addSnapshots } from './commands/snapshots.js';
import { addStatus } from './commands/status.js';
import { addTasks } from './commands/tasks.js';
import { SHELLS, completion } from './completion.js';
import { UsageError } from './errors.js';
import { toldFailure } from './remote.js';

/** All commands. `serve` is in it to be found and completed; what it takes is read elsewhere, from the one table of settings. */
function program(): Command {
  const sparrow = new Command('sparrow')
    .description('Sparrow: a semantic search server')
    .usage('[command] [options]')
    .version(VERSION, '-v, --version', 'print the version')
    .helpOption('-h, --help', 'print this help, or that of a command')
    .showSuggestionAfterError(true)
    .exitOverride()
    .configureOutput({
      // Said at the end, as all errors are.
      writeErr: () => undefined,
    });
  sparrow.command('serve').description('start the server, as happens without a command').helpOption(false);
  addDemo(sparrow);
  addImport(sparrow);
  addSearch(sparrow);
  addEval(sparrow);
  addStatus(sparrow);
  addModels(sparrow);
  addTasks(sparrow);
  addKeys(sparrow);
  addSnapshots(sparrow);
  addData(sparrow);
  addMigrate(sparrow);
  addMcp(sparrow);
  sparrow
    .command('completion')
    .description('print a script for completion: `source <(sparrow completion bash)`')
    .addArgument(new Argument('<shell>', 'the shell').choices(SHELLS))
    .action((shell: (typeof SHELLS)[number]) => {
      const settings = describeSettings().flatMap(({ flag, help }) =>
        flag === undefined ? [] : [{ text: flag, what: help }],
      );
      process.stdout.write(completion(sparrow, shell, [...settings, { text: '--config', what: 'file with settings' }]));
    });
  for (const command of everyCommand(sparrow)) {
    command
      .exitOverride()
      .configureOutput({ writeErr: () => undefined })
      .helpCommand(false);
  }
  return sparrow;
}

function everyCommand(command: Command): Command[] {
  return [command, ...command.commands.flatMap(everyCommand)];
}

/**
 * Carries out a command other than to serve.
 *
 * @throws {UsageError} for a command line that makes no sense
 */
export async function runCommand(args: readonly string[]): Promise<void> {
  const sparrow = program();
  refuseUnknown(sparrow, args);
  try {
    await sparrow.parseAsync([...args], { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw toldFailure(error);
    // Help and the version end in the same way, when everything is said.
    if (error.exitCode === 0) return;
    throw new UsageError(sentence(error, sparrow, args), { cause: error });
  }
}

/**
 * What commander tells less well: with `--help` behind it, a mistyped command is passed over and the help is that of all; a mistyped
 * word of a group is taken for an argument of the group's usual command; and where an option is needed, its own misspelling is not
 * told.
 */
function refuseUnknown(sparrow: Command, args: readonly string[]): void {
  const [word = '', next = ''] = args;
  const command = sparrow.commands.find((one) => one.name() === word);
  if (command === undefined) {
    const [meant] = near(word, namesOf(sparrow));
    const hint = meant === undefined ? '' : `, did you mean ${meant}?`;
    throw new UsageError(`unknown command '${word}'${hint} (see --help)`);
  }
  const part = command.commands.find((one) => one.name() === next);
  if (part === undefined && command.commands.length > 0 && next !== '' && !next.startsWith('-')) {
    const names = namesOf(command);
    const [meant] = near(next, names);
    const hint = meant === undefined ? `, it has ${names.join(', ')}` : `, did you mean ${meant}?`;
    throw new UsageError(`unknown command '${next}' of '${word}'${hint} (see --help)`);
  }
  refuseMisspelt(part ?? command, args);
}

/** Refuses an option in whose place another one is missing that is much like it. */
function refuseMisspelt({ options }: Command, args: readonly string[]): void {
  const end = args.includes('--') ? args.indexOf('--') : args.length;
  const given = args.slice(0, end).map((arg) => arg.replace(/=.*/s, ''));
  const missing = options.flatMap(({ mandatory, long }) => (mandatory ? [long ?? ''] : []));
  const takes = (long: string): boolean => options.some((option) => option.long === long);
  if (given.includes('--port') && takes('--url') && !takes('--port')) {
    throw new UsageError("unknown option '--port', say --url http://127.0.0.1:PORT (see --help)");
  }
  for (const option of given.filter((arg) => arg.startsWith('--') && !options.some(({ long }) => long === arg))) {
    const [meant] = near(
      option,
      missing.filter((long) => !given.includes(long)),
    );
    if (meant !== undefined) throw new UsageError(`unknown option '${option}', did you mean ${meant}? (see --help)`);
  }
}

const namesOf = ({ commands }: Command): string[] => commands.map((command) => command.name());

/** Whether there is a command of this name. */
export function isCommand(name: string): boolean {
  return namesOf(program()).includes(name);
}

/** What `sparrow --help` says. */
export function help(): string {
  return `${program().helpInformation()}\nTo start the server, with or without the word serve:\n\n${usage()}`;
}

/** Commander's sentence in the form of all other messages, with the name that was probably meant. */
function sentence({ code, message }: CommanderError, sparrow: Command, args: readonly string[]): string {
  const [word = '', next = ''] = args;
  // A group of commands without one of them: commander would show its help as an error.
  if (code === 'commander.help') {
    const group = sparrow.commands.find((command) => command.name() === word) ?? sparrow;
    return `'${word}' needs one of its commands: ${namesOf(group).join(', ')} (see --help)`;
  }
  const said = message
    .replace(/^error: /, '')
    .replace(/\n\(Did you mean (.*)\?\)$/s, ', did you mean $1?')
    .replaceAll(/\s*\n\s*/g, ' ');
  const command = sparrow.commands.find((one) => one.name() === word);
  const list = listBefore(command?.commands.find((one) => one.name() === next) ?? command, args);
  // The argument that is missing was taken for one of the option's.
  if (code === 'commander.missingArgument' && list !== undefined)
    return `${said}: ${list} takes all the words that follow it, so write it behind the arguments (see --help)`;
  return `${said} (see --help)`;
}

/** The option of a command line that takes several words and stands before them, if there is one. */
function listBefore(command: Command | undefined, args: readonly string[]): string | undefined {
  const lists = command?.options.flatMap(({ variadic, long }) => (variadic && long ? [long] : [])) ?? [];
  return lists.find((long) => args.includes(long));
}
