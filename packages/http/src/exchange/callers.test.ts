import { Socket } from 'node:net';

import { expect, it } from 'vitest';

import { Callers } from './callers.js';

it('a client that asks one thing after the other is alone, several that ask at the same time are not', () => {
  const callers = new Callers();
  const [one, other] = [new Socket(), new Socket()];
  const asked = (socket: Socket, ...times: number[]) => times.map((now) => callers.concurrent(socket, now));
  expect(asked(one, 0, 0.1, 0.2, 50)).toEqual([false, false, false, false]);
  expect(asked(other, 51.9)).toEqual([true]);
  expect(asked(one, 52)).toEqual([true]);
  expect(asked(one, 52.1, 55, 71.9)).toEqual([true, true, true]);
  expect(asked(one, 72.1)).toEqual([false]);
  // As seldom as this nobody waits for the other.
  expect([...asked(other, 80), ...asked(one, 90)]).toEqual([false, false]);
});
