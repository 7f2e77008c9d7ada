import { describe, expect, it } from 'vitest';

import { compact, filterPath, parseJson, pretty } from './json-text.js';

describe('JSON as text', () => {
  it.each([
    '{"a":1.0,"b":[1e-7,12345678901234567890,"x\\"y",null,true],"c":{},"d":[],"ü":"\\u00fc"}',
    '[]',
    '"only"',
    '-0.0',
  ])('comes back as it was: %s', (text) => {
    expect(compact(parseJson(text))).toBe(text);
  });

  it('ignores the space it came with', () => {
    expect(compact(parseJson(' { "a" : [ 1 , 2 ] ,\n "b" : { } } '))).toBe('{"a":[1,2],"b":{}}');
  });

  it('is laid out as the original does', () => {
    expect(pretty(parseJson('{"a":{"b":[1,{"c":2}]},"d":[],"e":{}}'))).toBe(
      [
        '{',
        '  "a" : {',
        '    "b" : [',
        '      1,',
        '      {',
        '        "c" : 2',
        '      }',
        '    ]',
        '  },',
        '  "d" : [ ],',
        '  "e" : { }',
        '}',
        '',
      ].join('\n'),
    );
  });

  it.each([
    ['took', '{"took":6}'],
    ['hits.hits._id,took', '{"took":6,"hits":{"hits":[{"_id":"1"},{"_id":"2"}]}}'],
    ['hits.total', '{"hits":{"total":{"value":2}}}'],
    ['**._id', '{"hits":{"hits":[{"_id":"1"},{"_id":"2"}]}}'],
    ['h*.t*', '{"hits":{"total":{"value":2}}}'],
    ['-hits', '{"took":6}'],
    ['-hits.hits._source', '{"took":6,"hits":{"total":{"value":2},"hits":[{"_id":"1"},{"_id":"2"}]}}'],
    ['hits,-hits.hits', '{"hits":{"total":{"value":2}}}'],
    ['took.deeper', '{}'],
    ['nothing', '{}'],
    ['hits.**.value', '{"hits":{"total":{"value":2}}}'],
    ['**.**.value', '{"hits":{"total":{"value":2}}}'],
    ['hits.total.**', '{"hits":{"total":{"value":2}}}'],
    ['-**._source,-took', '{"hits":{"total":{"value":2},"hits":[{"_id":"1"},{"_id":"2"}]}}'],
    ['-**', '{}'],
    ['hits.*,-**.hits', '{}'],
    ['took,hits.*,-**.hits.hits', '{"took":6,"hits":{"total":{"value":2}}}'],
    ['took,,', '{"took":6}'],
  ])('keeps what filter_path=%s names', (filter, expected) => {
    const whole =
      '{"took":6,"hits":{"total":{"value":2},"hits":[{"_id":"1","_source":{"n":1.0}},{"_id":"2","_source":{"n":2}}]}}';
    expect(compact(filterPath(parseJson(whole), filter))).toBe(expected);
  });

  it('is thinned out in time, whatever the paths', () => {
    const deep = `${'{"a":'.repeat(300)}1${'}'.repeat(300)}`;
    const begun = performance.now();
    expect(compact(filterPath(parseJson(deep), `${'**.'.repeat(60)}b`))).toBe('{}');
    const long = `{"${'a'.repeat(5000)}":1}`;
    expect(compact(filterPath(parseJson(long), `${'*a'.repeat(60)}b`))).toBe('{}');
    expect(performance.now() - begun).toBeLessThan(5000);
  });
});
