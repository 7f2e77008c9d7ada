// What a server sees of a cluster that misbehaves: the few answers that a start needs, and whatever a test puts in their place.
import { type IncomingMessage, type Server, createServer } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';

export interface Asked {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly body: string;
}

export interface Reply {
  readonly status?: number;
  readonly type?: string;
  readonly body: unknown;
}

/** Answers a request; `drop` ends the connection without an answer, undefined is the usual answer. */
export type Answering = (asked: Asked) => Reply | 'drop' | undefined;

export interface Fake {
  readonly url: string;
  /** Everything that was asked, in order. */
  readonly asked: readonly Asked[];
  close(): Promise<void>;
}

const CREATED = { _seq_no: 0, _primary_term: 1, result: 'created' };

function usual({ method, path }: Asked): Reply {
  if (path === '/') return { body: { version: { number: '2.19.1', distribution: 'opensearch' } } };
  if (path === '/_cat/plugins') return { body: [] };
  if (/^\/\.sparrow-\w+\/_doc\//.test(path)) {
    return method === 'GET' ? { status: 404, body: { found: false } } : { status: 201, body: CREATED };
  }
  if (path.endsWith('/_search')) return { body: { hits: { total: { value: 0, relation: 'eq' }, hits: [] } } };
  return { body: { acknowledged: true } };
}

/** Starts a node; with a certificate, over TLS. */
export async function fakeNode(answering: Answering, tls?: { cert: string; key: string }): Promise<Fake> {
  const asked: Asked[] = [];
  const server: Server = (tls === undefined ? createServer() : createSecureServer(tls)) as Server;
  server.on('request', (request: IncomingMessage, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const one = {
        method: request.method ?? '',
        path: (request.url ?? '').split('?')[0] ?? '',
        body: Buffer.concat(chunks).toString(),
      };
      asked.push(one);
      const reply = answering(one) ?? usual(one);
      if (reply === 'drop') {
        request.socket.destroy();
        return;
      }
      const { status = 200, type = 'application/json', body } = reply;
      response.writeHead(status, { 'content-type': type });
      response.end(typeof body === 'string' ? body : JSON.stringify(body));
    });
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
