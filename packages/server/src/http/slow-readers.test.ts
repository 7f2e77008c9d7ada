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
