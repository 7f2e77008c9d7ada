import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

import { afterAll, beforeAll, expect, it } from 'vitest';

import { exchange } from './exchange.js';

const server = createServer((request, response) => {
  void text(request).then((body) => {
    response.end(`${request.method ?? ''} ${body}`);
  });
});
let url = '';
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}/`;
});
afterAll(() => {
  server.close();
});

it.each(['GET', 'POST', 'PUT', 'DELETE'])('sends the body of a %s if it has one', async (method) => {
  const { signal } = new AbortController();
  for (const said of ['{"ids":["a"]}', '']) {
    const body = said === '' ? undefined : Buffer.from(said);
    const answered = await exchange(url, { method, headers: {}, body, signal });
    expect([answered.status, await text(answered.body)]).toEqual([200, `${method} ${said}`]);
  }
});
