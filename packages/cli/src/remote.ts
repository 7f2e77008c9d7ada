import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { join } from 'node:path';

import { type Endpoint, ENDPOINTS, warningTexts } from '@sparrow-search/endpoints';
import {
  type Cancel,
  type EngineReply,
  type EngineRequest,
  type Operation,
  type SearchEngine,
  EngineError,
  SparrowError,
  fileProblem,
} from '@sparrow-search/engine';

import { CommandError } from './errors.js';
import { type Answered, exchange } from './exchange.js';
import { commandName } from './shell.js';
import { inLine } from './terminal.js';

/** Where a server is, and who asks. */
export interface Target {
  readonly url: string;
  /** The key as it goes into the `Authorization` header; undefined where none was found. */
  readonly key: string | undefined;
  /** Where the key is from, in words, without the key; what can be done, where no key was found. */
  readonly keyFrom: string;
}

/** What a command line says about a server. */
export interface TargetOptions {
  readonly url?: string;
  readonly key?: string;
  readonly data?: string;
}

/** Longest answer that is read. */
const MOST_BYTES = 64 * 1024 * 1024;

/** How long an answer may take that only has to be looked up, and one that work or waiting goes before: a bulk, a snapshot. */
const READING_MS = 30_000;
const WRITING_MS = 300_000;

/** The slowest that a server encodes the texts of a request: a busy one takes minutes for a book in one document. */
const BYTES_PER_MS = 2;

/** How long a request may take, in milliseconds, from its method and the bytes of its body. */
export function patienceFor(method: string, bytes: number): number {
  return method === 'GET' ? READING_MS : WRITING_MS + Math.ceil(bytes / BYTES_PER_MS);
}

/** Characters that are shown of an answer that makes no sense. */
const MOST_SHOWN = 100;

const USUAL_URL = 'http://127.0.0.1:9200';

/** Finds the server and the key: options win over the environment, that over what a server on this machine leaves for its user. */
export function findTarget(options: TargetOptions, environment: Readonly<NodeJS.ProcessEnv>): Target {
  const url = addressOf(options.url ?? present(environment['SPARROW_URL']) ?? USUAL_URL);
  const data = options.data ?? dataOf(environment);
  const keyFile = present(environment['SPARROW_API_KEY_FILE']);
  const given =
    options.key ??
    present(environment['SPARROW_API_KEY']) ??
    (keyFile === undefined ? undefined : readKey(keyFile, 'SPARROW_API_KEY_FILE'));
  if (given !== undefined) {
    const keyFrom =
      options.key !== undefined
        ? '--key'
        : present(environment['SPARROW_API_KEY']) !== undefined
          ? 'SPARROW_API_KEY'
          : `${String(keyFile)} (SPARROW_API_KEY_FILE)`;
    return { url, key: checkedKey(given, keyFrom), keyFrom };
  }
  // The key of a server here is nobody else's business.
  if (!isHere(url)) return { url, key: undefined, keyFrom: 'give one with --key or SPARROW_API_KEY' };
  const file = join(data, 'owner.key');
  let key: string | undefined;
  let unread = `there is no ${file}`;
  try {
    key = readFileSync(file, 'utf8').trim();
  } catch (error) {
    // One that is there is the one that was meant.
    const { code = '' } = error as NodeJS.ErrnoException;
    if (!['ENOENT', 'ENOTDIR'].includes(code)) unread = `${file} cannot be read: ${fileProblem(error)}`;
  }
  if (key !== undefined) return { url, key: checkedKey(key, file), keyFrom: file };
  const none = `give one with --key or SPARROW_API_KEY, or name the server's data directory with --data (${unread})`;
  return { url, key, keyFrom: none };
}

/** A key as it can stand in a header. An error about a header would show the key. */
function checkedKey(key: string, from: string): string {
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  throw new CommandError(`the key of ${from} is not a key: a key is one word of ASCII characters`);
}

/** The data directory of a server that is started here. */
export function dataOf(environment: Readonly<NodeJS.ProcessEnv>): string {
  return present(environment['SPARROW_DATA']) ?? 'data';
}

function present(value: string | undefined): string | undefined {
  return value === '' ? undefined : value;
}

function readKey(file: string, from: string): string {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (cause) {
    throw new CommandError(`${from}: cannot read ${file}: ${fileProblem(cause)}`, { cause });
  }
}

function addressOf(text: string): string {
  try {
    const { origin, pathname } = new URL(/^https?:\/\//.test(text) ? text : `http://${text}`);
    return origin + pathname.replace(/\/$/, '');
  } catch (cause) {
    // Up to the last @ there may be a password.
    const shown = inLine(text.replace(/^.*@/s, '…@'));
    throw new CommandError(`[${shown}] is not an address of a server`, { cause });
  }
}

function isHere(url: string): boolean {
  const host = new URL(url).hostname.replace(/^\[|\]$/g, '');
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

/** What a request to the REST interface has besides method and path. */
export interface RemoteRequest {
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  /** A list is sent as one JSON text a line. */
  readonly body?: object | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A server elsewhere, as an engine: operations become requests to their routes. */
export class Remote implements SearchEngine {
  /** @param warn is told what the server warns of when something is set up */
  constructor(
    readonly target: Target,
    readonly warn: (sentence: string) => void = () => undefined,
  ) {}

  /**
   * Sends a request and reads its answer, which is JSON.
   *
   * @throws {SparrowError} when the server refuses it
   * @throws {CommandError} when there is no server, no key, or an answer that no Sparrow server gives
   */
  async request<T = unknown>(
    method: string,
    path: string,
    { query = {}, body, signal }: RemoteRequest = {},
  ): Promise<T> {
    const parameters = Object.entries(query).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, String(value)] as [string, string]],
    );
    const uri = parameters.length === 0 ? path : `${path}?${String(new URLSearchParams(parameters))}`;
    const isLines = Array.isArray(body);
    const text = isLines ? body.map((line) => `${JSON.stringify(line)}\n`).join('') : JSON.stringify(body);
    const bytes = body === undefined ? undefined : Buffer.from(text);
    const type = isLines ? 'application/x-ndjson' : 'application/json';
    const { status, body: answer } = await this.#send(method, uri, type, bytes, signal);
    const value = this.#read(status, answer);
    if (status >= 400) throw SparrowError.of(new EngineError(status, answer));
    return value as T;
  }

  async execute({ op, path, query }: EngineRequest, body?: Uint8Array, cancel?: Cancel): Promise<EngineReply> {
    const endpoint = endpointOf(op, path);
    const filled = endpoint.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(path[name] ?? ''));
    const parameters = new URLSearchParams(query);
    const uri = parameters.size === 0 ? filled : `${filled}?${String(parameters)}`;
    const controller = new AbortController();
    const end = cancel?.(() => {
      controller.abort();
    });
    try {
      const type = endpoint.ndjson === true ? 'application/x-ndjson' : 'application/json';
      const reply = await this.#send(endpoint.method, uri, type, body, controller.signal);
      this.#read(reply.status, reply.body);
      // Also a 404 about a document that is not there: who asks for one knows that error.
      if (reply.status >= 400) throw new EngineError(reply.status, reply.body);
      return reply;
    } finally {
      end?.();
    }
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  /** The value of an answer. What is no JSON, or no object or list of it, comes of a proxy or of another kind of server. */
  #read(status: number, body: Uint8Array): object {
    const text = Buffer.from(body.buffer, body.byteOffset, body.length).toString();
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      // Told below.
    }
    if (typeof value === 'object' && value !== null) {
      // Without an error: that a document is not there, and what the server does while it does not serve.
      const isKnown = status < 400 || status === 404 || 'error' in value || 'status' in value;
      if (isKnown) {
        answeredUrl = this.target.url;
        return value;
      }
    }
    const start = inLine(text.slice(0, MOST_SHOWN));
    throw new CommandError(`${strange(this.target.url)}: it answered with status ${String(status)} and [${start}]`);
  }

  async #send(
    method: string,
    uri: string,
    type: string,
    body: Uint8Array | undefined,
    signal: AbortSignal | undefined,
  ): Promise<EngineReply> {
    const { url, key, keyFrom } = this.target;
    const silence = new AbortController();
    const patience = patienceFor(method, body?.length ?? 0);
    let timer: NodeJS.Timeout | undefined;
    const silent = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        const seconds = String(Math.round(patience / 1000));
        reject(
          new CommandError(
            `the server at ${url} gave no answer within ${seconds} seconds: it may be busy, and may still carry out the request`,
          ),
        );
        silence.abort();
      }, patience);
    });
    let response;
    let bytes;
    try {
      const asked = exchange(url + uri, {
        method,
        headers: {
          ...(key === undefined ? {} : { authorization: `ApiKey ${key}` }),
          ...(body === undefined ? {} : { 'content-type': type }),
        },
        body,
        signal: signal === undefined ? silence.signal : AbortSignal.any([signal, silence.signal]),
      });
      response = await Promise.race([asked, silent]);
      bytes = await Promise.race([bounded(response, url), silent]);
    } catch (cause) {
      signal?.throwIfAborted();
      throw cause instanceof CommandError ? cause : new CommandError(noServer(url, cause), { cause });
    } finally {
      clearTimeout(timer);
    }
    const { status } = response;
    // Of what is set up, such as a mapping. What is deprecated in a search is the command's own affair.
    if (method === 'PUT') {
      for (const sentence of warningTexts(response.headers['warning'] ?? null)) this.warn(inLine(sentence));
    }
    if (status !== 401) return { status, body: bytes };
    if (key === undefined) throw new CommandError(`the server at ${url} requires a key: ${keyFrom}`);
    // Throws if the body is not what a Sparrow server answers: then the key is not the problem.
    this.#read(status, bytes);
    // The server cannot say where the key is from.
    const reason = `the server at ${url} does not accept the key from ${inLine(keyFrom)}: it may belong to another server, or have expired or been revoked; give a valid key with --key or SPARROW_API_KEY, or name the server's data directory with --data`;
    return { status, body: Buffer.from(JSON.stringify({ error: { type: 'security_exception', reason }, status })) };
  }
}

/** The bytes of an answer. One without end would take all memory. */
async function bounded({ body }: Answered, url: string): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body as AsyncIterable<Uint8Array>) {
    length += chunk.length;
    if (length > MOST_BYTES) throw new CommandError(`the server at ${url} answers with more than 64 MB`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, length);
}

/** Errors of certificates, as OpenSSL and Node call them. */
const CERTIFICATE = /CERT|^UNABLE_TO_VERIFY|^HOSTNAME_MISMATCH|^INVALID_(?:CA|PURPOSE)/;

/** Errors of OpenSSL when what answers is no TLS: as codes, or in the message of `EPROTO`. */
const PLAIN = /wrong[ _]version[ _]number|packet[ _]length[ _]too[ _]long/i;

function noServer(url: string, error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  // The error of a request that cannot be made may repeat parts of the request, such as the key.
  const why = error instanceof TypeError ? 'the request cannot be made' : (code ?? message);
  if (CERTIFICATE.test(why)) {
    const [what, remedy] = /EXPIRED|NOT_YET_VALID/.test(why)
      ? ['is out of date', 'renew it, or set the clock of this machine']
      : /ALTNAME|HOSTNAME/.test(why)
        ? ['is for another name', 'say with --url how the certificate calls the server']
        : ['is not trusted', 'name the file of its authority in NODE_EXTRA_CA_CERTS'];
    return `the certificate of the server at ${url} ${what} (${why}): ${remedy}`;
  }
  if (PLAIN.test(`${why} ${message}`)) {
    const plain = url.replace(/^https:/, 'http:');
    return `the server at ${url} speaks http, not https: its address is ${plain} (--url or SPARROW_URL)`;
  }
  return `no server answers at ${url} (${why}): start one with \`${commandName().replace(/ --$/, '')}\`, or say where it is with --url`;
}

/**
 * A failure of a command as it is told: where an answer had been read that the command then could not make sense of, it was an
 * answer of another kind of server.
 */
export function toldFailure(error: unknown): unknown {
  // What looking into a value of another type, or one nested too deeply, comes to.
  const isOfValue = error instanceof TypeError || error instanceof RangeError || error instanceof SyntaxError;
  return isOfValue && answeredUrl !== undefined ? new CommandError(strange(answeredUrl), { cause: error }) : error;
}

/** The address of the server whose answer this command read last; none until one could be read as JSON. */
let answeredUrl: string | undefined;

/** The sentence about the server at `url` when an answer of it cannot be understood. */
export function strange(url: string): string {
  return `the server at ${url} is not a Sparrow server, or not the version of this command`;
}

/** The route of an operation that takes just these parameters in its path. */
function endpointOf(op: Operation, path: Readonly<Record<string, string>>): Endpoint {
  const wanted = Object.keys(path).sort().join();
  const candidates = ENDPOINTS.filter(
    ({ handler, path: route }) =>
      'engine' in handler &&
      handler.engine === op &&
      [...route.matchAll(/\{(\w+)\}/g)]
        .map(([, name]) => name)
        .sort()
        .join() === wanted,
  );
  // A body cannot be sent with GET.
  const endpoint = candidates.find(({ method }) => method !== 'GET' && method !== 'HEAD') ?? candidates[0];
  if (endpoint === undefined) throw new TypeError(`no route for [${op}] with [${wanted}]`);
  return endpoint;
}
