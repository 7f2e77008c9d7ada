import { type RequestListener, type Server, createServer } from 'node:http';
import { type AddressInfo, type Socket, connect } from 'node:net';

import { afterEach, expect, it } from 'vitest';

import { ParsedRequest, Pipelined } from './pipelined.js';
import { Strangers, recognize } from './strangers.js';

let server: Server | undefined;
const sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
  server?.closeAllConnections();
  server?.close();
});

async function listen(
  pipelined: Pipelined,
  answer: RequestListener,
  IncomingMessage?: typeof ParsedRequest,
): Promise<number> {
  const options = IncomingMessage === undefined ? {} : { IncomingMessage };
  const started = createServer(options, pipelined.before(answer));
  server = started;
  await new Promise<void>((resolve) => started.listen(0, '127.0.0.1', resolve));
  return (started.address() as AddressInfo).port;
}

/** Sends some bytes over a connection of their own; what has come back so far, and whether the connection has ended. */
function send(port: number, text: string): { said: string; isOver: boolean; readonly socket: Socket } {
  const socket = connect(port, '127.0.0.1', () => socket.write(text));
  sockets.push(socket);
  const got = { said: '', isOver: false, socket };
  socket.on('data', (chunk) => (got.said += chunk.toString()));
  socket.on('error', () => undefined);
  socket.on('close', () => (got.isOver = true));
  return got;
}

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;
const post = (path: string, body: string): string =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: ${String(body.length)}\r\n\r\n${body}`;

/** Answers with the path and the body, and remembers the turn of the event loop that each request was begun in. */
function turns(): { readonly answer: RequestListener; readonly begun: Map<string, number[]> } {
  const begun = new Map<string, number[]>();
  let turn = 0;
  return {
    begun,
    answer: (incoming, outgoing) => {
      setImmediate(() => (turn += 1));
      const of = (incoming.url ?? '').slice(0, 2);
      begun.set(of, [...(begun.get(of) ?? []), turn]);
      const parts: Buffer[] = [];
      incoming.on('data', (chunk: Buffer) => parts.push(chunk));
      incoming.on('end', () => outgoing.end(`<${incoming.url ?? ''} ${Buffer.concat(parts).toString()}>`));
    },
  };
}

it('begins no more than one waiting request of a connection in a turn of the event loop, and answers all in their order', async () => {
  const { answer, begun } = turns();
  const pipelined = new Pipelined();
  const port = await listen(pipelined, answer);
  const count = 3000;
  const many = send(port, Array.from({ length: count }, (_, n) => get(`/a${String(n)}`)).join(''));
  const few = send(port, get('/b0') + get('/b1'));
  await expect.poll(() => many.said.includes(`</a${String(count - 1)} >`), { timeout: 20_000 }).toBe(true);
  expect(few.said).toContain('</b1 >');
  const answers = [...many.said.matchAll(/<\/a(\d+) >/g)].map(([, n]) => Number(n));
  expect(answers).toEqual(Array.from({ length: count }, (_, n) => n));
  // Two where a piece of 64 KiB begins: its first request waits for nothing.
  for (const at of begun.values()) expect(at.length - new Set(at).size).toBeLessThan(10);
  expect(pipelined.waiting).toBe(0);
  // The other one waited for a few of them, not for all.
  const [last = 0] = begun.get('/b')?.slice(-1) ?? [];
  expect(begun.get('/a')?.filter((turn) => turn < last).length).toBeLessThan(count / 2);
});

it('reads on where requests have bodies, also one that comes in pieces', async () => {
  const { answer } = turns();
  const port = await listen(new Pipelined(), answer);
  const long = 'x'.repeat(300_000);
  const text = post('/a', 'one') + post('/b', long) + post('/c', long);
  const half = text.length - 100_000;
  const got = send(port, text.slice(0, half));
  await expect.poll(() => got.said.includes('</a one>')).toBe(true);
  got.socket.write(text.slice(half) + get('/d'));
  await expect.poll(() => got.said.includes('</d >'), { timeout: 10_000 }).toBe(true);
  expect(got.said).toContain(`</b ${long}>`);
  expect(got.said).toContain(`</c ${long}>`);
});

it('reads nothing more of a connection as long as its requests wait', async () => {
  const pipelined = new Pipelined();
  let most = 0;
  const port = await listen(pipelined, (_, outgoing) => {
    most = Math.max(most, pipelined.waiting);
    outgoing.end('x');
  });
  const count = 30_000;
  const got = send(port, get('/a').repeat(count));
  await expect.poll(() => got.said.match(/HTTP\/1.1 200/g)?.length, { timeout: 30_000 }).toBe(count);
  // As many as there are in one piece of 64 KiB.
  expect(most).toBeLessThan((64 * 1024) / get('/a').length + 1);
});

it('ends a connection that brings more than may wait, and begins nothing of what is left', async () => {
  let begun = 0;
  const pipelined = new Pipelined(100);
  const port = await listen(pipelined, () => (begun += 1));
  const got = send(port, get('/a').repeat(102));
  await expect.poll(() => got.isOver).toBe(true);
  expect(begun).toBe(1);
  await expect.poll(() => pipelined.waiting).toBe(0);
});

it('ends a connection without a key that sends many at once, and has no more of them parsed', async () => {
  let parsed = 0;
  class Counted extends ParsedRequest {
    constructor(socket: Socket) {
      super(socket);
      parsed += 1;
    }
  }
  let isKnown = false;
  const port = await listen(
    new Pipelined(),
    ({ socket }, outgoing) => {
      if (isKnown) recognize(socket);
      outgoing.end('x');
    },
    Counted,
  );
  if (server !== undefined) new Strangers({ ofAddress: 10, together: 10 }, { warn: () => undefined }).watch(server);
  const count = 1000;
  const stranger = send(port, get('/a').repeat(count));
  await expect.poll(() => stranger.isOver).toBe(true);
  expect(parsed).toBeLessThan(25);
  // A client with a key has shown it with its first request.
  isKnown = true;
  const known = send(port, get('/a').repeat(count));
  await expect.poll(() => known.said.match(/HTTP\/1.1 200/g)?.length, { timeout: 10_000 }).toBe(count);
  expect(known.isOver).toBe(false);
});
