import type { ServerResponse } from 'node:http';
import { Writable } from 'node:stream';

import { afterEach, beforeEach, expect, it, vi } from 'vitest';

import { InFlight } from './in-flight.js';
import { boundReading } from './slow-readers.js';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

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
  for (const answer of answers) boundReading(answer, inFlight);
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
  boundReading(short, inFlight);
  boundReading(long, inFlight);
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
