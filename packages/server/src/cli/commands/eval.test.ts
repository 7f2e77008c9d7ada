import { expect, it } from 'vitest';

import { withoutKey } from './eval.js';

it.each([[['eval', 'DIR', '--key', 'c2VjcmV0', '--keep']], [['eval', 'DIR', '--key=c2VjcmV0', '--keep']]])(
  'a record of %j names no key',
  (words) => {
    expect(withoutKey(words)).toEqual(['eval', 'DIR', '--keep']);
  },
);
