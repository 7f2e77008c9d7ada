import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, readFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

import { undocumented } from './documented.js';

const CLI = fileURLToPath(new URL('../../packages/server/dist/cli.js', import.meta.url));

/** An answer as it came over the socket. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  /** Parsed if it is JSON, else the text. Tests look into answers of every shape, so it is not typed. */
  readonly body: any;
}

export interface RequestOptions {
  readonly headers?: Readonly<Record<string, string>>;
  /** Another key than the owner's; `null` for none. */
  readonly apiKey?: string | null;
}

/** A server in its own process, with the real engine on a real socket. */
export interface RunningServer {
  readonly url: string;
  /** The owner key, as it goes into the `Authorization` header. */
  readonly apiKey: string;
  readonly data: string;
  readonly process: ChildProcess;
  /** Everything it wrote to standard output and standard error. */
  output(): string;
  /** Sends a request, also a GET with a body. A string goes as NDJSON, bytes as they are, anything else as JSON. */
  request(method: string, path: string, body?: unknown, options?: RequestOptions): Promise<Answer>;
  /** Ends it in good order; resolves with the exit code. */
  stop(): Promise<number | null>;
  /** Ends it as a power failure would. */
  kill(): Promise<void>;
}

/**
 * Lines of a server's log, parsed, from a position in {@link RunningServer.output} on. They come over another pipe than the answers: what a
 * request logs may be there a moment after its answer.
 */
export function logLines(server: RunningServer, from = 0): Record<string, any>[] {
  const lines = server.output().slice(from).split('\n');
  return lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as Record<string, any>);
}

export interface StartOptions {
  /** An existing data directory, to start again on. */
  readonly data?: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** The command line's script; packaging tests start an installed one. */
  readonly cli?: string;
  readonly cwd?: string;
  /** Another Node than this one. */
  readonly node?: string;
  /** A program and its arguments that start the server in place of themselves, for one that lives under limits. */
  readonly under?: readonly string[];
}

/** Starts a server on a free port and waits until it is ready. */
export async function startServer(options: StartOptions = {}): Promise<RunningServer> {
  const data = options.data ?? (await mkdtemp(join(tmpdir(), 'sparrow-e2e-')));
  const line = [
    ...(options.under ?? []),
    options.node ?? process.execPath,
    options.cli ?? CLI,
    ...['--port', '0', '--data', data],
    ...(options.args ?? []),
  ];
  const [program = process.execPath, ...args] = line;
  const child = spawn(program, args, {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const exited = new Promise<number | null>((resolve) => {
    child.on('exit', (code) => {
      resolve(code);
    });
  });
  let output = '';
  const url = await new Promise<string>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on('line', (line) => {
        output += `${line}\n`;
        if (!line.startsWith('{')) return;
        const event = JSON.parse(line) as { msg?: string; url?: string };
        if (event.msg === 'ready') resolve(event.url ?? '');
      });
    }
    void exited.then((code) => {
      reject(new Error(`the server ended with ${String(code)}:\n${output}`));
    });
  });
  const given = options.env?.['SPARROW_API_KEY'];
  // A cluster's own answers are passed on as they are.
  const overCluster = line.includes('--cluster') || options.env?.['SPARROW_CLUSTER'] !== undefined;
  const apiKey = given ?? (await readFile(join(data, 'owner.key'), 'utf8')).trim();
  return {
    url,
    apiKey,
    data,
    process: child,
    output: () => output,
    request: (method, path, body, request = {}) => send(url, apiKey, method, path, body, request, !overCluster),
    stop: async () => {
      child.kill('SIGTERM');
      return exited;
    },
    kill: async () => {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

function send(
  url: string,
  ownerKey: string,
  method: string,
  path: string,
  body: unknown,
  { headers = {}, apiKey = ownerKey }: RequestOptions,
  isHeldAgainstDocument: boolean,
): Promise<Answer> {
  const payload = body === undefined || typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      url + path,
      {
        method,
        headers: {
          ...(apiKey === null ? {} : { authorization: `ApiKey ${apiKey}` }),
          ...(payload === undefined
            ? {}
            : {
                'content-type': typeof body === 'string' ? 'application/x-ndjson' : 'application/json',
                'content-length': String(Buffer.byteLength(payload)),
              }),
          ...headers,
        },
      },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString();
          const answer = { status: response.statusCode ?? 0, headers: response.headers, text, body: parse(text) };
          // Whatever a test asks: the OpenAPI document has to say the same.
          const isJson = response.headers['content-type']?.includes('json') === true;
          const said = isJson ? answer.body : undefined;
          const problem = undocumented({ method, path, request: body, status: answer.status, answer: said });
          if (problem === undefined || !isHeldAgainstDocument) resolve(answer);
          else reject(new Error(problem));
        });
      },
    );
    request.on('error', reject);
    request.end(payload);
  });
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
