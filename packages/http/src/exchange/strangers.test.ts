import { Socket } from 'node:net';

import { expect, it } from 'vitest';

import { Strangers, isStranger, recognize } from './strangers.js';

/** A connection from an address. */
function from(remoteAddress: string): Socket {
  return Object.defineProperty(new Socket(), 'remoteAddress', { value: remoteAddress });
}

it('are ended where one address has too many, the oldest first, and never one that has shown a key', async () => {
  const said: unknown[] = [];
  const strangers = new Strangers({ ofAddress: 3, together: 100 }, { warn: (_, fields) => said.push(fields) });
  const [known, ...mine] = Array.from({ length: 5 }, () => from('192.0.2.1'));
  const other = from('192.0.2.2');
  if (known === undefined) throw new Error('there is one');
  for (const socket of [known, other, ...mine.slice(0, 2)]) strangers.add(socket);
  recognize(known);
  expect([isStranger(known), isStranger(other)]).toEqual([false, true]);
  for (const socket of mine.slice(2)) strangers.add(socket);
  expect([known, other, ...mine].map(({ destroyed }) => destroyed)).toEqual([false, false, true, false, false, false]);
  // One that has gone makes room.
  mine[1]?.destroy();
  await new Promise(setImmediate);
  strangers.add(from('192.0.2.1'));
  expect(mine.map(({ destroyed }) => destroyed)).toEqual([true, true, false, false]);
  // A line for each would fill the log.
  strangers.add(from('192.0.2.1'));
  expect(said).toEqual([{ from: '192.0.2.1', times: 1 }]);
});

it('leave room for clients with keys, however many addresses they come from', () => {
  const strangers = new Strangers({ ofAddress: 10, together: 4 }, { warn: () => undefined });
  const sockets = Array.from({ length: 6 }, (_, n) => from(`2001:db8:${String(n)}::1`));
  for (const socket of sockets) strangers.add(socket);
  expect(sockets.map(({ destroyed }) => destroyed)).toEqual([true, true, false, false, false, false]);
});
