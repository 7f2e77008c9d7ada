import { expect, it } from 'vitest';

import { shown } from '../../../cli/src/documents/shown-document';
import { type Hit, passageOf } from './results';

const passage = (text: string, title: string, hasTitle = true): string =>
  passageOf(
    {
      passages: { meaning: [text] },
      document: {
        title,
        titleField: hasTitle ? 'title' : undefined,
        text: 'the whole text',
        textField: 'text',
        rest: [],
      },
    } as unknown as Hit,
    'dense',
  );

it('a passage does not begin with the title that stands above it', () => {
  expect(passage('The Pool of Tears\n\nShe swam about.', 'The Pool of Tears')).toBe('She swam about.');
  expect(passage('The <em>Pool</em> of <em>Tears</em> She <em>swam</em>.', 'The Pool of Tears')).toBe(
    'She <em>swam</em>.',
  );
  for (const other of ['The Pool of Tearsdrops fell.', 'The Pool', 'She saw the Pool of Tears.'])
    expect(passage(other, 'The Pool of Tears'), other).toBe(other);
  // A title that is made of the text is no field of its own.
  expect(passage('She swam about. And on.', 'She swam', false)).toBe('She swam about. And on.');
});

it('nor does a text', () => {
  const text = (source: Record<string, string>): string => shown('1', source).text;
  expect(text({ title: 'Birds', text: 'Birds\n\nThey fly.' })).toBe('They fly.');
  expect(text({ title: 'Birds', text: 'Birds fly.' })).toBe('Birds fly.');
});
