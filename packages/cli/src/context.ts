import process from 'node:process';

import { Sparrow } from '@sparrow-search/engine';
import { type Command, InvalidArgumentError, Option } from 'commander';

import { Remote, type TargetOptions, findTarget } from './remote.js';
import { type Sink, type Terminal, terminal } from './terminal.js';

/** Options that every command about a server has. */
export interface ServerOptions extends TargetOptions {
  readonly json?: boolean | string;
}

/** What a command works with. */
export class Context {
  readonly terminal: Terminal = terminal();
  readonly remote: Remote;
  /** The typed interface over the server. */
  readonly sparrow: Sparrow;
  readonly isJson: boolean;

  constructor(options: ServerOptions) {
    this.remote = new Remote(findTarget(options, process.env), (sentence) => {
      this.note(`warning: ${sentence}`);
    });
    this.sparrow = Sparrow.over(this.remote);
    this.isJson = options.json !== undefined && options.json !== false;
  }

  /** Shows a result: as a line of JSON where that is asked for, else as `show` writes it. */
  show(value: unknown, show: (out: Sink) => string): void {
    const { out } = this.terminal;
    out.write(this.isJson ? `${JSON.stringify(value)}\n` : show(out));
  }

  /** Says something that is not the result. Nothing where the result is for a program. */
  note(text: string): void {
    if (!this.isJson) this.terminal.err.write(`${text}\n`);
  }
}

/** The option to print a result as JSON; `result` says in words what it is, with the names of its members in braces. */
export function jsonOption(result: string): Option {
  return new Option('--json', `print one line of JSON: ${result}`);
}

/** Gives a command the options that say where the server is and who asks. */
export function withTarget(command: Command): Command {
  return command
    .option('--url <url>', 'address of the server (SPARROW_URL, http://127.0.0.1:9200)')
    .option('--key <key>', 'API key (SPARROW_API_KEY, SPARROW_API_KEY_FILE, or owner.key of the data directory)')
    .option('--data <dir>', "the server's data directory, for its owner key (SPARROW_DATA, ./data)");
}

/** Gives a command the options that say where the server is and who asks, and `--json` for its result. */
export function withServer(command: Command, json: Option): Command {
  return withTarget(command).addOption(json);
}

/** An option whose value is a whole number from `min` on. */
export function integerOption(flags: string, description: string, min: number): Option {
  return new Option(flags, description).argParser((value: string) => {
    const parsed = /^\d+$/.test(value) ? Number(value) : NaN;
    if (!(parsed >= min)) throw new InvalidArgumentError(`it must be a whole number, at least ${String(min)}.`);
    return parsed;
  });
}

/** Ends with Ctrl-C: the first one asks, the second one ends the process. */
export function interruptible(): { readonly signal: AbortSignal; readonly done: () => void } {
  const controller = new AbortController();
  const stop = (): void => {
    if (controller.signal.aborted) process.exit(130);
    controller.abort(new Error('interrupted'));
  };
  process.on('SIGINT', stop);
  process.on('SIGTERM', stop);
  return {
    signal: controller.signal,
    done: () => {
      process.off('SIGINT', stop);
      process.off('SIGTERM', stop);
    },
  };
}
