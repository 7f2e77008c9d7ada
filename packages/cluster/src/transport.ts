import { readFileSync } from 'node:fs';
import type { Readable } from 'node:stream';

import { EngineError, fileProblem } from '@sparrow-search/engine';
import { Pool, errors } from 'undici';

import { refusal } from './errors.js';
import { parseAnswer } from './json.js';
import type { VectorEngine } from './product.js';

/** Where the cluster is and how one gets in. */
export interface ClusterOptions {
  /** Addresses of nodes, any of which is asked. */
  readonly nodes: readonly string[];
  /** A PEM file of those who signed the nodes' certificates; those that Node.js trusts without one. */
  readonly caFile?: string | undefined;
  /** A file with `user:password` or an encoded API key; none for a cluster that asks for neither. */
  readonly credentialsFile?: string | undefined;
  /** Whether to go on with tasks whose node is gone: not for a program that is not one of the nodes. True unless it is said. */
  readonly takesTasks?: boolean;
  /** What makes and searches the graphs of dense vectors in OpenSearch: `lucene` unless it is said. */
  readonly vectorEngine?: VectorEngine | undefined;
}

/** What is asked of the cluster. */
export interface Asked {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE';
  /** Path, encoded, with a slash before it. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>> | undefined;
  readonly body?: Uint8Array | string | undefined;
  /** Whether the body is a JSON text a line. */
  readonly ndjson?: boolean;
  readonly signal?: AbortSignal | undefined;
  /** Whether asking twice is as good as asking once, for what looks as if it wrote; reads always are. */
  readonly repeatable?: boolean;
}

/** What the cluster answered. */
export interface Answered {
  readonly status: number;
  readonly body: Buffer;
  /** Whether it is plain text, as tables of `_cat` are; else it is JSON. */
  readonly text: boolean;
}

/** Connections to each node; a search takes one while it runs. */
const CONNECTIONS = 64;

const CONNECT_MS = 5_000;

/** Longest answer that is read: all of it is in memory, and a string of it has to be possible. */
export const MOST_ANSWER = 256 * 1024 * 1024;

/** A node that did not answer is asked again after this, unless no other one does. */
const REST_MS = 5_000;

/** Answers of a node that cannot serve now, which another may: those of proxies. */
const AWAY: ReadonlySet<number> = new Set([502, 504]);

interface Node {
  readonly url: string;
  readonly pool: Pool;
  restsUntil: number;
}

/** The cluster's nodes, each with a pool of connections. */
export class Transport {
  readonly #nodes: readonly Node[];
  readonly #authorization: string | undefined;
  #next = 0;

  /** @throws {ClusterSettingsError} for addresses and files that cannot be used */
  constructor({ nodes, caFile, credentialsFile }: ClusterOptions) {
    const ca = caFile === undefined ? undefined : readSetting('--cluster-ca', caFile);
    this.#authorization =
      credentialsFile === undefined
        ? undefined
        : authorizationOf(readSetting('--cluster-credentials', credentialsFile).trim());
    this.#nodes = nodes.map((url) => ({
      url: checkedUrl(url),
      pool: new Pool(checkedUrl(url), {
        connections: CONNECTIONS,
        connect: { timeout: CONNECT_MS, ...(ca === undefined ? {} : { ca }) },
        // Forcing a merge or waiting for a task may take long: it ends when the client ends it.
        headersTimeout: 0,
        bodyTimeout: 0,
      }),
      restsUntil: 0,
    }));
  }

  /**
   * Asks a node, another one if it does not answer.
   *
   * @throws {EngineError} 503 when no node answers, 502 when what answers is no such cluster, turns Sparrow's credentials away or
   *   answers with more than can be read
   */
  async ask(asked: Asked): Promise<Answered> {
    const failures: string[] = [];
    for (const node of this.#order()) {
      try {
        const answered = await this.#askNode(node, asked);
        if (AWAY.has(answered.status) && isRepeatable(asked)) {
          failures.push(`${node.url}: status ${String(answered.status)}`);
          node.restsUntil = Date.now() + REST_MS;
          continue;
        }
        node.restsUntil = 0;
        return checked(answered, node.url);
      } catch (error) {
        if (error instanceof EngineError || error instanceof URIError) throw error;
        if (asked.signal?.aborted === true) throw cancelled();
        node.restsUntil = Date.now() + REST_MS;
        failures.push(`${node.url}: ${described(error)}`);
        // What may have reached the node is not sent a second time, unless that changes nothing.
        if (!isRepeatable(asked) && !neverSent(error)) throw gone(failures);
      }
    }
    throw gone(failures);
  }

  /** Asks, and reads the answer as JSON. */
  async json(asked: Asked): Promise<{ readonly status: number; readonly body: unknown }> {
    const { status, body } = await this.ask(asked);
    return { status, body: body.length === 0 ? undefined : parseAnswer(body) };
  }

  async close(): Promise<void> {
    await Promise.all(this.#nodes.map(({ pool }) => pool.destroy()));
  }

  /** Nodes in turn; those that did not answer a moment ago come last. */
  #order(): readonly Node[] {
    const first = this.#next++ % this.#nodes.length;
    const turned = [...this.#nodes.slice(first), ...this.#nodes.slice(0, first)];
    const now = Date.now();
    return turned.sort((a, b) => Number(a.restsUntil > now) - Number(b.restsUntil > now));
  }

  async #askNode({ url, pool }: Node, asked: Asked): Promise<Answered> {
    const { method, path, query, body, ndjson, signal } = asked;
    const headers: Record<string, string> = { accept: 'application/json' };
    if (path.startsWith('/_cat/') && query?.['format'] !== 'json') headers['accept'] = 'text/plain';
    if (this.#authorization !== undefined) headers['authorization'] = this.#authorization;
    if (body !== undefined) headers['content-type'] = ndjson === true ? 'application/x-ndjson' : 'application/json';
    const reply = await pool.request({
      method,
      path,
      headers,
      ...(query === undefined ? {} : { query: { ...query } }),
      ...(body === undefined ? {} : { body }),
      ...(signal === undefined ? {} : { signal }),
    });
    // A HEAD is answered with the length of what is not sent.
    const announced = method === 'HEAD' ? 0 : Number(reply.headers['content-length'] ?? 0);
    const bytes = await whole(reply.body, announced, () => tooLong(url, asked));
    const type = String(reply.headers['content-type'] ?? '');
    return { status: reply.statusCode, body: bytes, text: bytes.length > 0 && kindOf(type) };
  }
}

/** Reads an answer; of one that is too long nothing more is read, which ends its connection. */
async function whole(body: Readable, announced: number, refused: () => Error): Promise<Buffer> {
  // An answer that is destroyed before its end emits an error, which nobody else listens for: unheard, it would end the process.
  body.on('error', () => undefined);
  const chunks: Buffer[] = [];
  let length = 0;
  if (announced <= MOST_ANSWER) {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length > MOST_ANSWER) break;
      chunks.push(chunk);
    }
    if (length <= MOST_ANSWER) return Buffer.concat(chunks, length);
  }
  body.destroy();
  throw refused();
}

/** Settings of the cluster that cannot be used. */
export class ClusterSettingsError extends Error {
  override readonly name = 'ClusterSettingsError';
}

/** Whether an answer is plain text; anything that is neither that nor JSON is marked by its absence. */
function kindOf(type: string): boolean {
  if (type.includes('json')) return false;
  if (type.startsWith('text/plain')) return true;
  throw new Error(`it answered with [${type === '' ? 'no media type' : type}] and not with JSON`);
}

function checked(answered: Answered, url: string): Answered {
  const { status, body } = answered;
  // Of a body that is too long for it, a node says nothing but that.
  if (status === 413 && body.length === 0)
    throw refusal(
      413,
      'content_too_long_exception',
      `the request is longer, with its vectors and passages, than the cluster at ${url} takes one ([http.max_content_length]): ` +
        'send fewer or shorter documents at once',
    );
  if (status !== 401 && status !== 403) return answered;
  const text = body.toString();
  // A refusal of credentials is Sparrow's business; a block on an index, which has the same status, is the caller's.
  if (status === 403 && /cluster_block_exception|index_create_block/.test(text)) return answered;
  let cause: unknown;
  try {
    cause = (JSON.parse(text) as { error?: unknown }).error;
  } catch {
    cause = text.slice(0, 200);
  }
  throw refusal(
    502,
    'cluster_access_exception',
    `the cluster at ${url} refused Sparrow's own credentials with status ${String(status)}`,
    typeof cause === 'object' && cause !== null ? cause : { type: 'security_exception', reason: String(cause) },
  );
}

function isRepeatable({ method, repeatable }: Asked): boolean {
  return repeatable ?? (method === 'GET' || method === 'HEAD');
}

/** Whether a request certainly never reached a node. */
function neverSent(error: unknown): boolean {
  if (error instanceof errors.ConnectTimeoutError) return true;
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ECONNREFUSED' || code === 'ENOTFOUND' || code === 'EHOSTUNREACH' || code === 'EAI_AGAIN';
}

function gone(failures: readonly string[]): EngineError {
  return refusal(503, 'cluster_unreachable_exception', `no node of the cluster answers: ${failures.join('; ')}`);
}

const LESS = 'ask for less at once';

/** Whether an answer was not read because it is too long. */
export function isTooLong(error: unknown): boolean {
  return error instanceof EngineError && Buffer.from(error.body).includes(LESS);
}

function tooLong(url: string, asked: Asked): EngineError {
  const done = isRepeatable(asked) ? '' : '; it may have carried out the request';
  return refusal(
    502,
    'cluster_answer_exception',
    `the cluster at ${url} answered with more than [${String(MOST_ANSWER)}] bytes, which is more than Sparrow reads: ${LESS}${done}`,
  );
}

export function cancelled(): EngineError {
  return refusal(400, 'task_cancelled_exception', 'task cancelled');
}

function described(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code } = error as NodeJS.ErrnoException;
  return error.message === '' ? (code ?? error.name) : error.message;
}

function readSetting(option: string, file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new ClusterSettingsError(`${option}: cannot read ${file}: ${fileProblem(cause)}`, { cause });
  }
}

/** `user:password`, or an API key in its encoded form, which has no colon. */
function authorizationOf(credentials: string): string {
  if (credentials === '' || /\s/.test(credentials)) {
    throw new ClusterSettingsError(
      '--cluster-credentials: the file has to hold one line, `user:password` or an encoded API key',
    );
  }
  return credentials.includes(':') ? `Basic ${Buffer.from(credentials).toString('base64')}` : `ApiKey ${credentials}`;
}

function checkedUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') {
    throw new ClusterSettingsError(`--cluster: [${text}] is not an address such as https://host:9200`);
  }
  if (url.username !== '' || url.password !== '') {
    throw new ClusterSettingsError('--cluster: credentials belong into the file of --cluster-credentials');
  }
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '') {
    throw new ClusterSettingsError(`--cluster: [${text}] has a path, which no node of a cluster has`);
  }
  return url.origin;
}
