#!/usr/bin/env node
import { realpathSync } from 'node:fs';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

import { BindingError, EngineError } from '@sparrow-search/engine';

import { DATA_COMMANDS, UsageError, runDataCommand } from './check.js';
import { ConfigError, readConfig, usage } from './config.js';
import { StoredFileError } from './durable-file.js';
import { VERSION } from './identity.js';
import { createLogger } from './log.js';
import { KeyStore } from './security/key-store.js';
import { type RunningServer, startServer } from './server.js';

/** The whole command: reads the settings, serves, and ends the process when it is told to. */
export async function runCli(args: readonly string[]): Promise<void> {
  try {
    // Whatever this process makes is for this user alone, also what the engine makes.
    process.umask(0o077);
    if (DATA_COMMANDS.some((word) => word === args[0])) {
      const { text, exitCode } = await runDataCommand(args);
      say(text);
      process.exitCode = exitCode;
      return;
    }
    const { command, config } = readConfig(args, process.env);
    if (command !== 'serve') {
      say(command === 'help' ? usage() : `${VERSION}\n`);
      return;
    }
    const log = createLogger(config.logLevel, undefined, config.logFormat);
    say(`sparrow ${VERSION}: data in ${config.data}\n`);
    const server = await startServer(config, log);
    stopOnSignals(server);
    say(`opening data and loading models …\n`);
    const { newOwnerKey } = await server.ready;
    if (newOwnerKey !== undefined) {
      say(
        `\n  owner key (shown this once): ${newOwnerKey.encoded}\n` +
          `  also in ${KeyStore.ownerKeyFile(config.data)}, readable by you only\n\n`,
      );
    }
    say(`ready on ${server.url}  (console: ${server.url}/_console)\n`);
  } catch (error) {
    process.stderr.write(`sparrow: ${explain(error)}\n`);
    // The listening socket would keep a server alive whose engine did not open.
    process.exit(1);
  }
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
        process.stderr.write(`sparrow: ${explain(error)}\n`);
        process.exit(1);
      },
    );
  };
  process.on('SIGINT', stop);
  process.on('SIGTERM', stop);
}

/** One line for what a person can mend, a stack for what only we can. */
function explain(error: unknown): string {
  if (error instanceof EngineError) return error.reason;
  const known = [ConfigError, BindingError, StoredFileError, UsageError];
  if (error instanceof Error && known.some((kind) => error instanceof kind)) return error.message;
  // The package for clusters is loaded only where there is one, so its errors are known by name.
  if (error instanceof Error && /^(?:UnsupportedCluster|ClusterSettings)Error$/.test(error.name)) return error.message;
  if (!(error instanceof Error)) return String(error);
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'EADDRINUSE') return `${error.message}: is another server running? Pass --port to take another one.`;
  return code === undefined ? (error.stack ?? error.message) : error.message;
}

function say(text: string): void {
  process.stdout.write(text);
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  await runCli(process.argv.slice(2));
}
