// What a server sees of a cluster that misbehaves: the few answers that a start needs, and whatever a test puts in their place.
import { type IncomingMessage, type Server, createServer } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';

export interface Asked {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly body: string;
}

export interface Reply {
  readonly status?: number;
  readonly type?: string;
  readonly body: unknown;
  /** How long it says it is, of which only `body` comes and never the rest. */
  readonly length?: number;
  /** How many times `body` comes, one after the other. */
  readonly times?: number;
}

/** What answers a request; `drop` ends the connection without an answer, undefined is the usual answer. */
export type Answered = Reply | 'drop' | undefined;

/** Answers a request, when it wants to. */
export type Answering = (asked: Asked) => Answered | Promise<Answered>;

export interface Fake {
  readonly url: string;
  /** Everything that was asked, in order. */
  readonly asked: readonly Asked[];
  close(): Promise<void>;
}

/** Documents of Sparrow's own indices, which are kept as a cluster keeps them. */
class Kept {
  readonly #documents = new Map<string, { readonly source: unknown; readonly seqNo: number }>();

  answer({ method, path, query, body }: Asked): Reply {
    const known = this.#documents.get(path);
    if (method === 'GET') {
      if (known === undefined) return { status: 404, body: { found: false } };
      return { body: { found: true, _seq_no: known.seqNo, _primary_term: 1, _source: known.source } };
    }
    const expected = query.get('if_seq_no');
    const isOther = expected !== null && expected !== String(known?.seqNo);
    if (isOther || (query.get('op_type') === 'create' && known !== undefined))
      return { status: 409, body: { error: { type: 'version_conflict_engine_exception' }, status: 409 } };
    const seqNo = (known?.seqNo ?? -1) + 1;
    this.#documents.set(path, { source: JSON.parse(body) as unknown, seqNo });
    return { status: known === undefined ? 201 : 200, body: { _seq_no: seqNo, _primary_term: 1 } };
  }
}

function usual(kept: Kept, asked: Asked): Reply {
  const { path } = asked;
  if (path === '/') return { body: { version: { number: '2.19.1', distribution: 'opensearch' } } };
  if (path === '/_cat/plugins') return { body: [] };
  if (/^\/\.sparrow-\w+\/_doc\//.test(path)) return kept.answer(asked);
  if (path.endsWith('/_search')) return { body: { hits: { total: { value: 0, relation: 'eq' }, hits: [] } } };
  return { body: { acknowledged: true } };
}

/** Starts nodes of one cluster: what any of them keeps, all of them have. */
export function fakeNodes(count: number, answering: Answering): Promise<Fake[]> {
  const kept = new Kept();
  return Promise.all(Array.from({ length: count }, () => started(answering, kept)));
}

/** Starts a node; with a certificate, over TLS. */
export function fakeNode(answering: Answering, tls?: { cert: string; key: string }): Promise<Fake> {
  return started(answering, new Kept(), tls);
}

async function started(answering: Answering, kept: Kept, tls?: { cert: string; key: string }): Promise<Fake> {
  const asked: Asked[] = [];
  const server: Server = (tls === undefined ? createServer() : createSecureServer(tls)) as Server;
  server.on('request', (request: IncomingMessage, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const [path = '', query = ''] = (request.url ?? '').split('?');
      const body = Buffer.concat(chunks).toString();
      void answerTo({ method: request.method ?? '', path, query: new URLSearchParams(query), body });
    });
    const answerTo = async (one: Asked): Promise<void> => {
      asked.push(one);
      const reply = (await answering(one)) ?? usual(kept, one);
      if (reply === 'drop') {
        request.socket.destroy();
        return;
      }
      const { status = 200, type = 'application/json', body, length, times } = reply;
      response.writeHead(status, {
        'content-type': type,
        ...(length === undefined ? {} : { 'content-length': String(length) }),
      });
      const text = typeof body === 'string' ? body : JSON.stringify(body);
      if (length !== undefined) response.write(text);
      else if (times === undefined) response.end(text);
      else Readable.from(Array<string>(times).fill(text)).pipe(response);
    };
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`,
    asked,
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      }),
  };
}
