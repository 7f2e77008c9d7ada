import type { ServerResponse } from 'node:http';
import { Writable } from 'node:stream';

import { afterEach, beforeEach, expect, it, vi } from 'vitest';

import { InFlight, type Reader } from './in-flight.js';
import { boundReading } from './slow-readers.js';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

const READER: Reader = { key: 'one', from: '192.0.2.1' };

/** An answer of so many bytes to a client that reads none of them. */
function unread(bytes: number): ServerResponse {
  const answer = new Writable({ write: () => undefined });
  answer.write(Buffer.alloc(bytes));
  return answer as ServerResponse;
}

it('ends it sooner where others need the room, first of those that have had the most time, and no more than are needed', async () => {
  const MB = 1024 * 1024;
  const inFlight = new InFlight(10 * MB, { memory: 0 });
  const answers = Array.from({ length: 4 }, () => unread(5 * MB));
  for (const answer of answers) boundReading(answer, inFlight, READER);
  const destroyed = (): boolean[] => answers.map((answer) => answer.destroyed);
  const large = inFlight.request();
  const isRefused = (): boolean => {
    try {
      large.take(6 * MB);
      return false;
    } catch {
      return true;
    }
  };
  // As long as each may still be reading.
  vi.advanceTimersByTime(9_000);
  expect(isRefused()).toBe(true);
  expect(destroyed()).toEqual([false, false, false, false]);
  // A request with a small body and a small answer is admitted all the same.
  const small = inFlight.request();
  small.take(1000);
  small.takeAnswer(30_000);
  expect(() => {
    inFlight.request().takeAnswer(33_000);
  }).toThrow('all of the memory');
  vi.advanceTimersByTime(1_500);
  expect(isRefused()).toBe(false);
  expect(destroyed()).toEqual([true, true, false, false]);
  // The memory of a connection that was ended is given back only once.
  await Promise.resolve();
  expect(inFlight.held).toBe(2 * 5 * MB + 6 * MB + 31_000);
  answers[3]?.destroy();
  await expect.poll(() => inFlight.held).toBe(5 * MB + 6 * MB + 31_000);
});

it('ends the connection of a client that does not read its answer, the later the longer it is', async () => {
  const inFlight = new InFlight(1000, { memory: 0 });
  const [short, long] = [unread(1000), unread(320 * 1024)];
  boundReading(short, inFlight, READER);
  boundReading(long, inFlight, READER);
  expect(inFlight.held).toBe(1000 + 320 * 1024);
  vi.advanceTimersByTime(30_000);
  expect([short.destroyed, long.destroyed]).toEqual([false, false]);
  vi.advanceTimersByTime(2_000);
  expect([short.destroyed, long.destroyed]).toEqual([true, false]);
  vi.advanceTimersByTime(7_000);
  expect(long.destroyed).toBe(false);
  vi.advanceTimersByTime(2_000);
  expect(long.destroyed).toBe(true);
  await expect.poll(() => inFlight.held).toBe(0);
});

it('takes no room for bytes that other answers have too, and ends the connection all the same', () => {
  const inFlight = new InFlight(1000, { memory: 0 });
  const answer = unread(1_000_000);
  boundReading(answer, inFlight, READER, true);
  expect(inFlight.held).toBe(0);
  vi.advanceTimersByTime(70_000);
  expect(answer.destroyed).toBe(true);
});

it('leaves as much to other keys as clients of a key do not read', async () => {
  const MB = 1024 * 1024;
  const inFlight = new InFlight(10 * MB, { memory: 0 });
  const answers = [unread(5 * MB), unread(6 * MB)];
  for (const answer of answers) boundReading(answer, inFlight, READER);
  const isRefused = (key: string, bytes: number): boolean => {
    const request = inFlight.request();
    try {
      request.takeAnswer(bytes, key);
      request.release();
      return false;
    } catch {
      return true;
    }
  };
  // 11 of 20 MB are its own.
  expect([isRefused('one', MB), isRefused('one', 1000), isRefused('two', 8 * MB)]).toEqual([true, false, false]);
  expect(inFlight.held).toBe(11 * MB);
  // The first of them has had its time.
  vi.advanceTimersByTime(10_500);
  expect(isRefused('two', 8 * MB)).toBe(false);
  expect(answers.map(({ destroyed }) => destroyed)).toEqual([false, false]);
  expect(isRefused('one', MB)).toBe(false);
  expect(answers.map(({ destroyed }) => destroyed)).toEqual([true, false]);
  answers[1]?.destroy();
  await expect.poll(() => inFlight.held).toBe(0);
  expect(isRefused('one', 20 * MB)).toBe(false);
});

it('tells the operator, and once a minute is enough', () => {
  const said: unknown[] = [];
  const inFlight = new InFlight(1000, { memory: 0, log: { warn: (message, fields) => said.push([message, fields]) } });
  for (const answer of [unread(100), unread(200)]) boundReading(answer, inFlight, READER);
  vi.advanceTimersByTime(32_000);
  const message = 'a client does not read its answer, and its connection is ended';
  expect(said).toEqual([[message, { from: '192.0.2.1', key_id: 'one', bytes: 100, times: 1 }]]);
  vi.advanceTimersByTime(60_000);
  boundReading(unread(300), inFlight, READER);
  vi.advanceTimersByTime(32_000);
  expect(said[1]).toEqual([message, { from: '192.0.2.1', key_id: 'one', bytes: 300, times: 2 }]);
});
