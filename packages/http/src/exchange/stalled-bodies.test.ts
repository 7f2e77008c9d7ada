import { afterEach, beforeEach, expect, it, vi } from 'vitest';

import { StalledBodies } from './stalled-bodies.js';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

it('tells of a body of which nothing came in time, once, and of no other', () => {
  const bodies = new StalledBodies(1000);
  const stalled: string[] = [];
  const watch = (name: string) => bodies.watch(() => stalled.push(name));
  const [slow, over] = [watch('slow'), watch('over')];
  watch('stopped');
  for (let at = 0; at < 10; at += 1) {
    vi.advanceTimersByTime(400);
    slow.came();
    if (at === 1) over.over();
    if (at === 1) expect(stalled).toEqual([]);
  }
  expect(stalled).toEqual(['stopped']);
  vi.advanceTimersByTime(1500);
  expect(stalled).toEqual(['stopped', 'slow']);
});

it('gives every body its whole time, and begins anew after there was none', () => {
  const bodies = new StalledBodies(1000);
  let stalled = 0;
  for (const after of [0, 499, 5000]) {
    vi.advanceTimersByTime(after);
    const before = stalled;
    bodies.watch(() => (stalled += 1));
    vi.advanceTimersByTime(999);
    expect(stalled).toBe(before);
    vi.advanceTimersByTime(501);
    expect(stalled).toBe(before + 1);
  }
  expect(vi.getTimerCount()).toBe(1);
  vi.advanceTimersByTime(1000);
  expect(vi.getTimerCount()).toBe(0);
});
