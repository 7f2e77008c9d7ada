import { expect, it } from 'vitest';

import { type Past, endedWith } from './history';

const task = (name: string): Past => ({ name, title: `copies ${name}`, begun: 1 });

it('remembers tasks that ended, those that did while nobody looked too', () => {
  const kept = new Map<string, string>();
  const storage = {
    getItem: (name: string) => kept.get(name) ?? null,
    setItem: (name: string, value: string) => void kept.set(name, value),
  } as Storage;
  expect(endedWith([task('a'), task('b')], storage)).toEqual([]);
  expect(endedWith([task('b')], storage)).toEqual([task('a')]);
  expect(endedWith([task('c')], storage)).toEqual([task('b'), task('a')]);
  expect(endedWith([], storage)).toEqual([task('c'), task('b'), task('a')]);
  kept.set('sparrow-tasks', 'nonsense');
  expect(endedWith([], storage)).toEqual([]);
});
