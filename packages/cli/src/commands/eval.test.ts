import { expect, it } from 'vitest';

import { withoutSecrets } from './eval.js';

it.each([
  [['eval', 'DIR', '--key', 'c2VjcmV0', '--keep'], 'eval DIR --keep'],
  [['eval', 'DIR', '--key=c2VjcmV0', '--keep'], 'eval DIR --keep'],
  [['eval', 'DIR', '--url', 'http://me:secret@host:9200', '--tune'], 'eval DIR --url URL --tune'],
  [['eval', 'DIR', '--url=http://me:secret@host:9200'], 'eval DIR --url URL'],
  [
    ['eval', 'DIR', '--json', '/somewhere/result.json', '--data', '/somewhere/data'],
    'eval DIR --json FILE --data FOLDER',
  ],
  [['eval', 'DIR', '--json', '--queries', '5'], 'eval DIR --json --queries 5'],
])('a record of %j names no key, password or place', (words, recorded) => {
  expect(withoutSecrets(words).join(' ')).toBe(recorded);
});
