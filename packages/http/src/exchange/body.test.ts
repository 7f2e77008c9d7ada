// Bodies of connections that end too early.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';

import { expect, it } from 'vitest';

import { readIncoming } from './body.js';

it.each(['destroy', 'end'] as const)(
  'a client that goes (%s) before its body was there is no fault of the server',
  async (way) => {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const read = new Promise((resolve) => {
      server.once('request', (incoming) => {
        readIncoming(incoming, 1000, { take: () => undefined } as never).catch(resolve);
      });
    });
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc', () => {
      socket[way]();
    });
    expect(await read).toMatchObject({
      status: 408,
      message: 'the connection closed before all of the body was there',
    });
    server.closeAllConnections();
    server.close();
  },
);
