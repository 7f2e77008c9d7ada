import { EngineError } from '@sparrow-search/engine';
import { describe, expect, it } from 'vitest';

import { BulkBody } from './bulk-body.js';

function refusalOf(text: string): string {
  try {
    new BulkBody(Buffer.from(text), 'b');
  } catch (error) {
    if (error instanceof EngineError) return Buffer.from(error.body).toString();
  }
  return '';
}

describe('the lines of a bulk request', () => {
  it('are read with blank ones between actions, and of Windows', () => {
    const text = '\n{"index":{"_id":"1"}}\r\n{"a":1}\r\n\n{"delete":{"_index":"c","_id":"2"}}\n';
    const { items } = new BulkBody(Buffer.from(text), 'b');
    expect(items.map(({ kind, id, index, source }) => [kind, id, index, source.trim()])).toEqual([
      ['index', '1', 'b', '{"a":1}'],
      ['delete', '2', 'c', ''],
    ]);
  });

  it('go on as they came, with all characters', () => {
    const lines = ['{"index":{"_id":"ä"}}\n{"a":"ü 語 😀"}\n', '{"create":{"pipeline":"p","_id":"語"}}\n{"b":"é"}\n'];
    const { items } = new BulkBody(Buffer.from(lines.join('')), 'b');
    expect(items.map((item) => item.written())).toEqual([
      lines[0],
      '{"create":{"_index":"b","_id":"語"}}\n{"b":"é"}\n',
    ]);
    expect(items.map(({ source }) => source)).toEqual(['{"a":"ü 語 😀"}', '{"b":"é"}']);
  });

  it.each([
    ['\n\n{"index":{}}\n{}\n{"flush":{}}\n', 'line [5], expected field'],
    ['{"index":{}}\n', 'line [1], expected a document behind it'],
    ['{"index":{}}\n{}\n{"index":{}}\n\n{}\n', 'line [3], expected a document behind it'],
    ['{"index":{"_index":"a","_inde\\u0078":"b"}}\n{}\n', 'line [1], expected one string for [_index]'],
    ['{"index":{"_index":["a"]}}\n{}\n', 'line [1], expected one string for [_index]'],
    ['{"index":{},"ind\\u0065x":{}}\n{}\n', 'line [1], expected an object with one action'],
    ['{"index":7}\n{}\n', 'line [1], expected an object with one action'],
    ['{"index":{}}\n{}', 'must be terminated by a newline [\\\\n]"'],
    ['{"index":{}}{}', 'must be terminated by a newline [\\\\n]: the body has no line break. curl removes those'],
  ])('are named by their number where they are wrong: %j', (text, reason) => {
    expect(refusalOf(text)).toContain(reason);
  });
});
