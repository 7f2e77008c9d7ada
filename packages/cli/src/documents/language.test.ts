import { expect, it } from 'vitest';

import { foreignLanguage } from './language.js';

it.each([
  ['Der Hund ist nicht im Haus und das ist gut für die Katze.', 'German'],
  ['Wie kann ich Schmerzen nach dem Laufen vermeiden?', 'German'],
  ['Le chat est dans la maison et il ne dort pas.', 'French'],
  ['El perro no está en la casa y el gato es muy grande.', 'Spanish'],
  ['Il cane non è nella casa e la gatta è più grande.', 'Italian'],
  ['De hond is niet in het huis en dat is goed voor de kat.', 'Dutch'],
  ['これは日本語の文章です。', 'Japanese'],
  ['Собака не в доме', 'Russian or another language in Cyrillic'],
])('%s is told', (text, language) => {
  expect(foreignLanguage(text)).toBe(language);
});

it.each([
  'how to avoid pain after running',
  'The fear of open spaces.',
  'die hard movies',
  'las vegas hotels',
  'A person who collects postage stamps',
  'no',
  '',
  '12345',
  'in the year 2000 the die was cast and the man was there',
])('%s is not', (text) => {
  expect(foreignLanguage(text)).toBeUndefined();
});
