import { warningTexts } from '@sparrow-search/endpoints';
import { expect, it } from 'vitest';

import { warning } from './warnings.js';

it('reads the sentences that a header holds', () => {
  const sentences = ['100% of "it", 299 x', 'a \\ in größe, 日本%20 %zz', ''];
  expect(warningTexts(sentences.map(warning).join(', '))).toEqual(sentences);
  expect(warningTexts(null)).toEqual([]);
  expect(warningTexts('199 - "other"')).toEqual([]);
});
