import process from 'node:process';

import { UnusablePathError, VERSION, rootReason } from '@sparrow-search/endpoints';
import { BindingError, EngineError, SparrowError } from '@sparrow-search/engine';
import { StoredFileError } from '@sparrow-search/http/files';
import { createLogger, formatFor } from '@sparrow-search/http/log';
import type { RunningServer } from '@sparrow-search/http/serve';
import { ConfigError, readConfig, usage } from '@sparrow-search/http/settings';

import { CommandError, UsageError } from './errors.js';
import { inLine, terminal } from './terminal.js';

/** The whole command line. Whatever goes wrong ends the process: with 2 where the command line itself is wrong, else with 1. */
export async function runCli(args: readonly string[]): Promise<void> {
  const [word] = args;
  if (word === 'help') return runCli([...args.slice(1), '--help']);
  if (word === 'version') return runCli(['--version', ...args.slice(1)]);
  const isServing = word === undefined || word.startsWith('-') || word === 'serve';
  try {
    // Whatever this process makes is for this user alone, also what the engine makes.
    process.umask(0o077);
    if (isServing) await serve(word === 'serve' ? args.slice(1) : args, word === 'serve');
    else await (await import('./program.js')).runCommand(args);
  } catch (error) {
    const said = isServing && error instanceof ConfigError ? await misplaced(args, error) : error;
    // Errors repeat what a server and its documents say.
    terminal().err.write(`sparrow: ${explain(said, isServing)}\n`);
    // The listening socket would keep a server alive whose engine did not open.
    process.exit(isUsage(error) ? 2 : 1);
  }
}

/** An error about the settings of a server; where a command follows an option, that its options follow it. */
async function misplaced(args: readonly string[], error: ConfigError): Promise<Error> {
  const { isCommand } = await import('./program.js');
  const [option = ''] = args;
  const command = args.find((arg) => isCommand(arg));
  if (!option.startsWith('-') || command === undefined) return error;
  const name = option.replace(/=.*/s, '');
  return new UsageError(`options such as ${name} follow the command: sparrow ${command} ${name} …`, { cause: error });
}

async function serve(args: readonly string[], isNamed: boolean): Promise<void> {
  const { command, config } = readConfig(args, process.env);
  if (command !== 'serve') {
    // The library for command lines is loaded where one is needed: a server starts without it.
    const help = async (): Promise<string> => (isNamed ? usage() : (await import('./program.js')).help());
    say(command === 'help' ? await help() : `${VERSION}\n`);
    return;
  }
  // What serves takes longer to load than most commands take in all.
  const [{ startServer }, { KeyStore }] = await Promise.all([
    import('@sparrow-search/http/serve'),
    import('@sparrow-search/http/keys'),
  ]);
  const logFormat = formatFor(config.logFormat, process.stderr.isTTY);
  const log = createLogger(config.logLevel, undefined, logFormat);
  say(`sparrow ${VERSION}: data in ${config.data}\n`);
  const server = await startServer({ ...config, logFormat }, log);
  stopOnSignals(server);
  say(`opening data and loading models …\n`);
  const { newOwnerKey } = await server.ready;
  if (newOwnerKey !== undefined) {
    const file = KeyStore.ownerKeyFile(config.data);
    // Output that does not go to a terminal is kept, by a journal or a container's log, and the key must not be in there.
    say(
      process.stdout.isTTY
        ? `\n  owner key (shown this once): ${newOwnerKey.encoded}\n  also in ${file}, readable by you only\n\n`
        : `the owner key is in ${file}, readable by you only\n`,
    );
  }
  say(`ready on ${server.url}  (console: ${server.url}/_console)\n`);
}

function stopOnSignals(server: RunningServer): void {
  let stopping = false;
  const stop = (signal: NodeJS.Signals): void => {
    // A second signal means now.
    if (stopping) process.exit(130);
    stopping = true;
    say(`\n${signal}: finishing requests and flushing …\n`);
    server.close().then(
      () => process.exit(0),
      (error: unknown) => {
        process.stderr.write(`sparrow: ${explain(error, true)}\n`);
        process.exit(1);
      },
    );
  };
  process.on('SIGINT', stop);
  process.on('SIGTERM', stop);
}

/** One line for what a person can mend, a stack for what only we can. */
function explain(error: unknown, isServing: boolean): string {
  if (error instanceof EngineError) {
    if (!error.reason.endsWith('is in use by another process')) return error.reason;
    const remedy = isServing
      ? 'is another server running? Pass --data to use another one.'
      : 'stop the server that has it open, and run this again.';
    return `${error.reason}: ${remedy}`;
  }
  // What a server and its documents say stays within the line; some of its own sentences have several.
  if (error instanceof CommandError || error instanceof SparrowError) {
    const said = error instanceof SparrowError ? rootReason(error) : error.message;
    return inLine(said.replaceAll(/\s*\n\s*/g, ' '));
  }
  const known = [ConfigError, BindingError, StoredFileError, UnusablePathError, UsageError];
  if (error instanceof Error && known.some((kind) => error instanceof kind)) return error.message;
  // The package for clusters is loaded only where there is one, so its errors are known by name.
  if (error instanceof Error && /^(?:UnsupportedCluster|ClusterSettings)Error$/.test(error.name)) return error.message;
  if (!(error instanceof Error)) return String(error);
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'EADDRINUSE') return `${error.message}: is another server running? Pass --port to take another one.`;
  return code === undefined ? (error.stack ?? error.message) : error.message;
}

/** Whether it was the command line, or the settings, that made no sense. */
function isUsage(error: unknown): boolean {
  return error instanceof UsageError || error instanceof ConfigError;
}

function say(text: string): void {
  process.stdout.write(text);
}
