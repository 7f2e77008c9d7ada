import { expect, it } from 'vitest';

import { additionsFor, isByMeaning, mappingFor } from './mapping';

const THERE = {
  title: { type: 'text' },
  plot: { type: 'text', copy_to: ['meaning'] },
  about: { properties: { note: { type: 'text', fields: { semantic: { type: 'semantic_text' } } } } },
  meaning: { type: 'semantic_text' },
};

it('adds to an index that is there what it lacks', () => {
  const wish = { meaning: ['plot', 'about.note', 'review'], dense: true, keywords: ['title', 'genre'] };
  expect(additionsFor(wish, THERE)).toEqual({
    properties: { genre: { type: 'keyword' }, review: { type: 'text', copy_to: ['meaning'] } },
  });
  expect(additionsFor(wish, {})).toEqual(mappingFor(wish).mappings);
  expect(additionsFor({ meaning: ['plot'], dense: false }, THERE)).toEqual({ properties: {} });
});

it('knows which columns of an index are searched by meaning', () => {
  const names = ['title', 'plot', 'about.note', 'meaning', 'review', 'constructor'];
  expect(names.filter((name) => isByMeaning(THERE, name))).toEqual(['plot', 'about.note', 'meaning']);
});
