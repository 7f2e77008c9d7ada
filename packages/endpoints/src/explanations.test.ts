import { expect, it } from 'vitest';

import { type Explanation, reasonOf } from './explanations.js';

const node = (description: string, ...details: Explanation[]): Explanation => ({ value: 2, description, details });

it.each([
  [
    'weighted score: [0.5] in query at index [1] computed as [1.0 * 0.5] using score normalizer [minmax]',
    { kind: 'list', at: 1 },
  ],
  ['weighted score: [0], result not found in query at index [2] [mine]', { kind: 'list', at: 2 }],
  ['calibrated score in query at index [0] with weight [1.5]', { kind: 'list', at: 0, weight: 1.5 }],
  [
    'weight(about.title:stamp in 3) [PerFieldSimilarity], result of:',
    { kind: 'word', field: 'about.title', word: 'stamp' },
  ],
  ['weight(title:"old stamp" in 0), result of:', { kind: 'word', field: 'title', word: '"old stamp"' }],
  ['weight(Synonym(title:stamp) in 3), result of:', { kind: 'word', field: 'title', word: 'stamp' }],
  ['max of:', { kind: 'best' }],
  ['sum of:', undefined],
])('says what a node stands for: %s', (description, reason) => {
  expect(reasonOf(node(description))).toEqual(reason);
});

it('says of a token its weights and the word that it comes from', () => {
  const details = [
    { value: 3, description: 'w, weight of this function' },
    {
      value: 4,
      description: 'S, feature value',
      details: [node('encoded from the word [soup] of field [text], at 20')],
    },
  ];
  const token = { kind: 'token', field: 'v', weights: [3, 4], word: 'soup' };
  const said = (feature: string): string =>
    `Linear function on the v field for the ${feature}, computed as w * S from:`;
  expect(reasonOf(node(said('run feature'), ...details))).toEqual({ ...token, token: 'run' });
  expect(reasonOf(node(said('##ing feature (-ing)'), ...details))).toEqual({
    ...token,
    token: '##ing',
    readable: '-ing',
  });
});
