// Answers that nobody waits for any longer, behind one another on a connection.
import { once } from 'node:events';
import { type RequestListener, type Server, createServer } from 'node:http';
import { type AddressInfo, type Socket, connect } from 'node:net';

import { afterEach, describe, expect, it } from 'vitest';

import { Drain } from './drain.js';
import { onClose } from './gone.js';
import { InFlight } from './in-flight.js';
import { boundReading } from './slow-readers.js';

let server: Server;
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

/** A connection that asks so many times without waiting for an answer. */
async function ask(times: number, answer: RequestListener): Promise<Socket> {
  const drain = new Drain();
  server = createServer(drain.before(answer));
  drain.watch(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.pause();
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(times));
  return socket;
}

describe('when a connection with many requests on their way goes', () => {
  it('what was still to be sent is given back', async () => {
    const inFlight = new InFlight(1000, { memory: 0 });
    const bytes = Buffer.alloc(4 * 1024 * 1024);
    const socket = await ask(20, (_, outgoing) => {
      // As a search does: at once, no request would be read before the answer to the one in front is.
      setTimeout(() => {
        outgoing.end(bytes);
        boundReading(outgoing, inFlight, { key: undefined, from: '' });
      }, 50);
    });
    await expect.poll(() => inFlight.held).toBeGreaterThan(15 * bytes.length);
    socket.resetAndDestroy();
    await expect.poll(() => inFlight.held).toBe(0);
  });

  it('all who work on an answer hear of it, once', async () => {
    const heard: number[] = [];
    let asked = 0;
    const socket = await ask(20, (_, outgoing) => {
      const number = asked;
      asked += 1;
      onClose(outgoing, () => heard.push(number));
    });
    await expect.poll(() => asked).toBe(20);
    socket.resetAndDestroy();
    await expect.poll(() => heard.length).toBe(20);
    expect(new Set(heard).size).toBe(20);
  });

  it('an answer that is ready only then harms nobody', async () => {
    let ready: () => void = () => undefined;
    const gone = new Promise<void>((resolve) => (ready = resolve));
    let [asked, answered] = [0, 0];
    const inFlight = new InFlight(1000, { memory: 0 });
    const socket = await ask(20, (_, outgoing) => {
      asked += 1;
      void gone.then(() => {
        outgoing.writeHead(200, { 'Content-Length': '100000' });
        outgoing.end('x'.repeat(100_000));
        boundReading(outgoing, inFlight, { key: undefined, from: '' });
        answered += 1;
      });
    });
    await expect.poll(() => asked).toBe(20);
    socket.resetAndDestroy();
    await new Promise((resolve) => setTimeout(resolve, 50));
    ready();
    await expect.poll(() => answered).toBe(20);
    await expect.poll(() => inFlight.held).toBe(0);
  });
});

describe('work that begins after its client has gone', () => {
  it('hears of it all the same, unless it is over by then', async () => {
    let [late, tooLate] = [0, 0];
    const socket = await ask(2, (incoming, outgoing) => {
      void once(outgoing, 'close').then(() => {
        onClose(outgoing, () => (late += 1));
        onClose(outgoing, () => (tooLate += 1))();
      });
      if (!incoming.socket.destroyed) socket.destroy();
    });
    await expect.poll(() => late).toBeGreaterThan(0);
    expect(tooLate).toBe(0);
  });
});
