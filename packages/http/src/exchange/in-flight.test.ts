import { type Server, createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';

import { afterEach, describe, expect, it } from 'vitest';
import { HttpError } from '@sparrow-search/endpoints';

import { readIncoming } from './body.js';
import { Gathered } from './gathered.js';
import { InFlight } from './in-flight.js';
import { boundReading } from './slow-readers.js';

describe('what is in flight', () => {
  it('is bounded over all requests, and given back with each', () => {
    const inFlight = new InFlight(100_000, { memory: 5_000_000 });
    expect(inFlight.limit).toBe(500_000);
    const [first, second] = [inFlight.request(), inFlight.request()];
    first.take(300_000);
    expect(() => {
      second.take(200_001);
    }).toThrow(HttpError);
    // What was refused holds nothing.
    expect(inFlight.held).toBe(300_000);
    second.take(200_000);
    first.release();
    first.release();
    expect(inFlight.held).toBe(200_000);
  });

  it('leaves room for small requests, whatever others hold', () => {
    const inFlight = new InFlight(100_000, { memory: 0 });
    inFlight.request().force(1_000_000);
    const small = inFlight.request();
    small.take(30_000);
    small.takeAnswer(2_000);
    expect(() => {
      small.takeAnswer(1_000);
    }).toThrow(HttpError);
    expect(inFlight.held).toBe(1_000_000);
  });

  it('leaves room for what the engine has allocated', () => {
    const MB = 1024 * 1024;
    let room = 10 * MB;
    const inFlight = new InFlight(100 * MB, { memory: 0, room: () => room });
    const [first, second] = [inFlight.request(), inFlight.request()];
    first.take(8 * MB);
    expect(() => {
      second.take(3 * MB);
    }).toThrow(HttpError);
    room = 0;
    // So that an administrator can still raise the limit.
    second.take(MB);
    expect(() => {
      second.take(1);
    }).toThrow(HttpError);
    expect(inFlight.held).toBe(8 * MB);
  });

  it('does not take off answers twice, which are in the memory of the engine', () => {
    const MB = 1024 * 1024;
    let answers = 0;
    const inFlight = new InFlight(100 * MB, { memory: 0, room: () => 10 * MB - answers });
    const [body, answer, unread] = [inFlight.request(), inFlight.request(), inFlight.request()];
    body.take(2 * MB);
    answers = 6 * MB;
    answer.takeAnswer(4 * MB);
    const over = inFlight.unread(2 * MB, { key: 'a', from: '' }, Infinity, () => undefined);
    unread.takeAnswer(MB, 'a');
    expect(() => {
      body.take(2 * MB + 1);
    }).toThrow(HttpError);
    over();
  });

  it('tells the engine of bodies, and not of answers, when they have changed by much', () => {
    const MB = 1024 * 1024;
    const told: number[] = [];
    const inFlight = new InFlight(100 * MB, { memory: 0, keepBodies: (bytes) => told.push(bytes / MB) });
    const [first, second, third] = [inFlight.request(), inFlight.request(), inFlight.request()];
    first.take(7 * MB);
    second.take(20 * MB);
    second.takeAnswer(50 * MB);
    third.force(50 * MB);
    first.release();
    second.release();
    third.release();
    expect(told).toEqual([27, 0]);
    expect(inFlight.held).toBe(0);
  });

  it('always has room for two of the longest bodies', () => {
    expect(new InFlight(1000, { memory: 0 }).limit).toBe(2000);
  });
});

it('is no room for what was only announced', () => {
  const MB = 1024 * 1024;
  const gathered = new Gathered(100 * MB, 100 * MB);
  const piece = Buffer.alloc(MB, 'x');
  for (let at = 1; at <= 100; at += 1) {
    gathered.add(piece);
    expect(gathered.bytes().buffer.byteLength).toBeLessThanOrEqual(4 * gathered.length);
  }
  expect(gathered.bytes().equals(Buffer.alloc(100 * MB, 'x'))).toBe(true);
});

describe('a server', () => {
  let server: Server | undefined;
  afterEach(() => {
    server?.closeAllConnections();
    server?.close();
  });

  const listen = async (started: Server): Promise<number> => {
    server = started;
    await new Promise<void>((resolve) => started.listen(0, '127.0.0.1', resolve));
    return (started.address() as AddressInfo).port;
  };

  it('refuses a body for which there is no room with its first pieces', async () => {
    const inFlight = new InFlight(50_000, { memory: 0 });
    const port = await listen(
      createServer((incoming, outgoing) => {
        const hold = inFlight.request();
        readIncoming(incoming, 10_000_000, hold).then(
          (bytes) => outgoing.end(String(bytes.length)),
          (error: unknown) => outgoing.writeHead((error as HttpError).status).end(),
        );
      }),
    );
    const post = async (length: number): Promise<number> =>
      (await fetch(`http://127.0.0.1:${String(port)}/`, { method: 'POST', body: 'x'.repeat(length) })).status;
    expect(await post(40_000)).toBe(200);
    expect(await post(40_000)).toBe(200);
    expect(await post(40_000)).toBe(429);
  });

  it('puts a body of many pieces together as it was, whether its length is told or not', async () => {
    const inFlight = new InFlight(10_000_000, { memory: 0 });
    const port = await listen(
      createServer((incoming, outgoing) => {
        void readIncoming(incoming, 10_000_000, inFlight.request()).then((bytes) => outgoing.end(bytes));
      }),
    );
    const text = Array.from({ length: 100_000 }, (_, at) => String(at)).join();
    const url = `http://127.0.0.1:${String(port)}/`;
    expect(await (await fetch(url, { method: 'POST', body: text })).text()).toBe(text);
    const body = new Blob([text]).stream();
    const streamed = await fetch(url, { method: 'POST', body, duplex: 'half' } as RequestInit);
    expect(await streamed.text()).toBe(text);
  });

  it('counts an answer that is not read, until its connection is gone', async () => {
    const inFlight = new InFlight(1000, { memory: 0 });
    const bytes = Buffer.alloc(64 * 1024 * 1024);
    const port = await listen(
      createServer((_, outgoing) => {
        outgoing.end(bytes);
        boundReading(outgoing, inFlight, { key: undefined, from: '' });
      }),
    );
    const socket = connect(port, '127.0.0.1');
    socket.pause();
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await expect.poll(() => inFlight.held).toBeGreaterThan(bytes.length / 2);
    socket.destroy();
    await expect.poll(() => inFlight.held).toBe(0);
  });
});
