// The command line, as a user runs it.
import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';

const CLI = fileURLToPath(new URL('../../packages/server/dist/cli.js', import.meta.url));

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Running {
  readonly process: ChildProcess;
  readonly ended: Promise<Ended>;
}

/** Starts a command without a terminal; `input` is its standard input. */
export function begin(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  input: string | Readable = '',
): Running {
  // The test runner's own environment asks for colours.
  const environment = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => name !== 'FORCE_COLOR' && !name.startsWith('SPARROW_')),
  );
  const child = spawn(process.execPath, [CLI, ...args], { env: { ...environment, ...env } });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (stdout += chunk));
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (stderr += chunk));
  // A command that does not read its input closes it.
  child.stdin.on('error', () => undefined);
  if (typeof input === 'string') child.stdin.end(input);
  else input.pipe(child.stdin);
  const ended = new Promise<Ended>((resolve) => {
    child.on('close', (code) => {
      resolve({ code, stdout, stderr });
    });
  });
  return { process: child, ended };
}

/** Runs a command to its end. */
export function sparrow(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  input?: string,
): Promise<Ended> {
  return begin(args, env, input).ended;
}

/** What the help of a command says of its option `--json`. */
export async function told(words: string): Promise<string> {
  const { stdout } = await sparrow([...words.split(' '), '--help']);
  return /^ +--json(?: \[file\])? +(.*(?:\n {5,}.*)*)/m.exec(stdout)?.[1]?.replaceAll(/\s+/g, ' ') ?? '';
}
