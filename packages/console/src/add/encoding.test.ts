import { expect, it } from 'vitest';

import { decoded } from './encoding';

const latin1 = (text: string): Uint8Array => Uint8Array.from(text, (letter) => letter.charCodeAt(0));

it('files that are not UTF-8 are Latin-1, or refused', () => {
  expect(decoded(new TextEncoder().encode('café €'))).toEqual({ text: 'café €', isLatin1: false });
  expect(decoded(latin1('n,text\n1,caf\xe9 \x80 5\n'))).toEqual({ text: 'n,text\n1,café € 5\n', isLatin1: true });
  // As Latin-1, what is right would become wrong.
  const mixed = Uint8Array.from([...new TextEncoder().encode('one\ncafé\n'), ...latin1('caf\xe9')]);
  expect(() => decoded(mixed)).toThrow('Line 3 is not UTF-8, as other lines are');
  expect(() => decoded(latin1('PK\u0003\u0004\xff\0'))).toThrow('This is not a text');
});
