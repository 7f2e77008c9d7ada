import { afterEach, beforeEach, expect, it, vi } from 'vitest';

import { whileWaiting } from './progress.js';
import type { Sink } from './terminal.js';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** A sink that records text as it is written, and control sequences as `⌫`. */
function written(isTerminal: boolean): { readonly sink: Sink; readonly text: () => string } {
  let text = '';
  const plain = (part: string): string => part;
  const paints = { bold: plain, dim: plain, accent: plain, good: plain, bad: plain };
  const sink = {
    ...paints,
    isTerminal,
    columns: 80,
    write: (part: string) => void (text += part),
    steer: () => void (text += '⌫'),
  };
  return { sink, text: () => text };
}

it('says what is waited for where it takes long, and takes that away whatever comes of it', async () => {
  for (const [isTerminal, ms, shown] of [
    [true, 5000, 'waiting⌫'],
    [true, 10, ''],
    [false, 5000, ''],
  ] as const) {
    for (const fails of [false, true]) {
      const { sink, text } = written(isTerminal);
      const work = new Promise((resolve, reject) => setTimeout(fails ? reject : resolve, ms));
      const done = whileWaiting(sink, 'waiting', work).then(
        () => 'done',
        () => 'failed',
      );
      await vi.advanceTimersByTimeAsync(ms);
      expect([await done, text()]).toEqual([fails ? 'failed' : 'done', shown]);
    }
  }
});
