// Child processes of the scripts.
import { spawn, spawnSync } from 'node:child_process';
import process from 'node:process';

import { ROOT } from './paths.mjs';

/** A step that failed; `exitCode` is what the script ends with. */
export class StepFailed extends Error {
  constructor(message, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** npm is a shell script on Windows and must be started through a shell there. */
const NPM = process.platform === 'win32' ? 'npm.cmd' : 'npm';

/**
 * Runs a command and resolves with its exit code. `onLine` sees every line of its output, which still goes to the terminal
 * unless `quiet`; it is given the child too.
 */
export function run(command, args, { env = {}, cwd = ROOT, onLine, quiet = false } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd,
      env: { ...process.env, ...env },
      stdio: onLine || quiet ? ['ignore', 'pipe', 'pipe'] : ['ignore', 'inherit', 'inherit'],
      shell: command === NPM && process.platform === 'win32',
    });
    for (const [stream, out] of [
      [child.stdout, process.stdout],
      [child.stderr, process.stderr],
    ]) {
      if (stream === null) continue;
      let rest = '';
      stream.setEncoding('utf8');
      stream.on('data', (chunk) => {
        if (!quiet) out.write(chunk);
        if (!onLine) return;
        const lines = (rest + chunk).split('\n');
        rest = lines.pop() ?? '';
        lines.forEach((line) => onLine(line, child));
      });
      stream.on('end', () => {
        if (rest !== '' && onLine) onLine(rest, child);
      });
    }
    child.on('error', (error) => {
      reject(new StepFailed(`cannot start ${command}: ${error.message}`));
    });
    child.on('close', (code, signal) => {
      resolve(code ?? (signal === 'SIGINT' ? 130 : 1));
    });
  });
}

/** Like {@link run}, but anything but success ends the script. */
export async function mustRun(command, args, options) {
  const code = await run(command, args, options);
  if (code !== 0) {
    throw new StepFailed(`\`${[command, ...args].join(' ')}\` failed`, code);
  }
}

export function npm(args, options) {
  return mustRun(NPM, args, options);
}

/** What npm writes to its standard output. */
export function npmOutput(args) {
  const shell = process.platform === 'win32';
  const result = spawnSync(NPM, args, { encoding: 'utf8', cwd: ROOT, maxBuffer: 2 ** 28, shell });
  if (result.status !== 0) throw new StepFailed(`\`npm ${args[0]}\` failed: ${result.error ?? result.stderr}`);
  return result.stdout;
}

/** A tool of node_modules, started by Node itself: no shell, the same on every system. */
export function tool(file, args, options) {
  return run(process.execPath, [file, ...args], options);
}

/** The output of a command, or undefined if it is not there. */
export function output(command, args) {
  const result = spawnSync(command, args, { encoding: 'utf8', cwd: ROOT, maxBuffer: 2 ** 28 });
  return result.status === 0 ? result.stdout : undefined;
}

/** Runs a script's main function. What a user can mend is one line; a mistake of ours is a stack. */
export async function main(work) {
  try {
    process.exitCode = (await work(process.argv.slice(2))) ?? process.exitCode ?? 0;
  } catch (error) {
    if ([TypeError, ReferenceError, RangeError, SyntaxError].some((kind) => error instanceof kind)) throw error;
    console.error(`\nsparrow: ${error.message}`);
    process.exitCode = error.exitCode ?? 1;
  }
}
