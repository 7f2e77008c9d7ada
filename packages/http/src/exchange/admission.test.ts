import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { HttpError } from '@sparrow-search/endpoints';

import { Admission } from './admission.js';

describe('admission', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('refuses reads once they wait too long, and never the first of them or anything else', () => {
    const admission = new Admission();
    const leave = Array.from({ length: 500 }, () => admission.admit('search'));
    vi.advanceTimersByTime(501);
    // None was answered in half a second.
    expect(() => admission.admit('search')).toThrow(HttpError);
    admission.admit('bulk');
    admission.admit('cluster_health');
    for (const one of leave.splice(127)) one?.leave();
    leave.push(admission.admit('get_doc'));
    expect(() => admission.admit('get_doc')).toThrow(HttpError);
    // What was once says nothing for ever.
    for (const one of leave) one?.leave();
    vi.advanceTimersByTime(6000);
    for (let at = 0; at < 300; at += 1) admission.admit('get_doc');
  });

  it('refuses nobody because of what one key sends', () => {
    const admission = new Admission();
    const isAdmitted = (key: string): boolean => {
      try {
        admission.admit('search', key);
        return true;
      } catch {
        return false;
      }
    };
    for (let at = 0; at < 500; at += 1) admission.admit('search', 'many');
    vi.advanceTimersByTime(501);
    expect(isAdmitted('many')).toBe(false);
    // As many as are its part of those that are always admitted.
    expect(Array.from({ length: 70 }, () => isAdmitted('few')).filter(Boolean)).toHaveLength(64);
    expect([isAdmitted('another'), isAdmitted('many')]).toEqual([true, false]);
    // The same where the engine is full, or turns of the event loop take long.
    admission.refused('search');
    expect([isAdmitted('fourth'), isAdmitted('many')]).toEqual([true, false]);
    vi.advanceTimersByTime(100);
    for (let turn = 0; turn < 10; turn += 1) {
      for (let at = 0; at < 200; at += 1) isAdmitted('many');
      admission.turned(200);
    }
    expect(Array.from({ length: 9 }, (_, n) => isAdmitted(`new ${String(n)}`))).not.toContain(false);
  });

  it('admits as many as are answered in half a second', () => {
    const admission = new Admission();
    const waiting = Array.from({ length: 200 }, () => admission.admit('search'));
    // A thousand are answered in a second.
    for (let at = 0; at < 1000; at += 1) {
      waiting.shift()?.leave();
      waiting.push(admission.admit('search'));
      vi.advanceTimersByTime(1);
    }
    let refused = false;
    while (!refused && waiting.length < 2000) {
      try {
        waiting.push(admission.admit('search'));
      } catch {
        refused = true;
      }
    }
    expect(waiting.length).toBeGreaterThan(400);
    expect(waiting.length).toBeLessThan(600);
  });

  it('does not count those whose bodies do not come, until they do', async () => {
    const admission = new Admission();
    let come: (body: string) => void = () => undefined;
    const body = new Promise<string>((resolve) => (come = resolve));
    const slow = Array.from({ length: 500 }, () => {
      const place = admission.admit('search');
      const read = place?.whileReading(body).then(
        () => 'came',
        () => 'refused',
      );
      return { place, read };
    });
    vi.advanceTimersByTime(1000);
    // Everybody else is admitted as long as they do not come, and none of them costs a place for ever.
    for (let at = 0; at < 1000; at += 1) {
      admission.admit('search')?.leave();
      vi.advanceTimersByTime(1);
    }
    come('{}');
    const found = await Promise.all(slow.map(({ read }) => read));
    expect(found.filter((outcome) => outcome === 'came')).toHaveLength(500);
    // Now they wait for the server, as any other.
    vi.advanceTimersByTime(501);
    expect(() => admission.admit('search')).toThrow(HttpError);
    for (const { place } of slow) place?.leave();
    vi.advanceTimersByTime(6000);
    for (let at = 0; at < 300; at += 1) admission.admit('get_doc');
  });

  it('admits no more than fit for a moment after the engine has refused one', () => {
    const admission = new Admission();
    const places = Array.from({ length: 5 }, () => admission.admit('search'));
    admission.refused('search');
    places.pop()?.leave();
    expect(() => admission.admit('search')).toThrow(HttpError);
    admission.admit('bulk');
    // Where one ends, there is room for one.
    places.pop()?.leave();
    places.push(admission.admit('search'));
    expect(() => admission.admit('search')).toThrow(HttpError);
    vi.advanceTimersByTime(60);
    places.push(admission.admit('search'));
    // What was admitted by mistake, while others were on their way to being refused, is seen as they are.
    admission.refused('search');
    places.pop()?.leave();
    admission.refused('bulk');
    expect(() => admission.admit('search')).toThrow(HttpError);
  });

  it('admits one at least, though the engine has refused the only one', () => {
    const admission = new Admission();
    const only = admission.admit('search');
    admission.refused('search');
    only?.leave();
    admission.admit('get_doc');
    expect(() => admission.admit('get_doc')).toThrow(HttpError);
  });

  it('refuses a share of the reads while a turn of the event loop that many came with takes too long', () => {
    const admission = new Admission();
    const refusedOf = (count: number): number => {
      let refused = 0;
      for (let at = 0; at < count; at += 1) {
        try {
          admission.admit('search')?.leave();
        } catch {
          refused += 1;
        }
      }
      return refused;
    };
    expect(refusedOf(100)).toBe(0);
    admission.turned(1000);
    expect(refusedOf(100)).toBe(0);
    admission.turned(1000);
    expect(refusedOf(100)).toBeGreaterThan(10);
    admission.turned(1000);
    expect(refusedOf(100)).toBeGreaterThan(25);
    for (let at = 0; at < 10; at += 1) admission.turned(10);
    expect(refusedOf(100)).toBe(0);
  });
});
