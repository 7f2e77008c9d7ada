import { expect, it } from 'vitest';

import { tokensSaid } from './said';

it.each([
  [
    'Agoraphobia makes people',
    ['ago', '##ob', '##ia', 'makes', 'space', 'people'],
    ['ago', '##ob', '##ia', 'makes', 'people'],
  ],
  ['hostels', ['hostel', '##s', 'is', 'hotel', 'dh'], ['hostel', '##s']],
  ['unbelievably', ['##bel', '##va', 'un', '##ie', '##bly', '##ble', 'she'], ['un', '##bel', '##ie', '##va', '##bly']],
  ['Zymurgy', ['z', '##ym', '##y', '##urg', '##ys', '##z', 'and'], ['z', '##ym', '##urg', '##y']],
  // A beginning, or an end, of a word is also a word that the model adds.
  ['walking', ['walk', 'step'], []],
  ['classes', ['##s', 'school'], []],
  // A word that is a token was not split.
  ['sleeps', ['sleeps', 'sleep', '##s'], ['sleeps']],
  ['Café 2024', ['cafe', '2024', 'coffee'], ['cafe', '2024']],
  ['', ['a'], []],
])('knows the tokens of %j among %j', (text, tokens, said) => {
  expect([...tokensSaid(text, tokens)]).toEqual(said);
});
