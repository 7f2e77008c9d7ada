// The shapes of answers (`filter_path`, `pretty`, `human`, `error_trace`, YAML): what the engine does over bytes, held against
// a second implementation over trees.
import { shapeAnswer } from '@sparrow-search/engine';
import { describe, expect, it } from 'vitest';

import { effort } from '../support/effort.js';
import { Random, SEED, rounds } from '../support/oracle/random.js';
import { readable } from '../support/twin/human.js';
import { type Json, compact, filterPath, parseJson, pretty } from '../support/twin/json-text.js';
import { withTraces } from '../support/twin/trace.js';
import { toYaml } from '../support/twin/yaml.js';

const shaped = async (text: string, shape: object): Promise<string | undefined> => {
  const bytes = await shapeAnswer(Buffer.from(text), shape);
  return typeof bytes === 'string' ? undefined : Buffer.from(bytes).toString();
};

const ROUNDS = rounds(4000);

describe('the shape of an answer', () => {
  it('is laid out as the original does', async () => {
    expect(await shaped('{"a":{"b":[1,{"c":2}]},"d":[],"e":{}}', { pretty: true })).toBe(
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
  ])('keeps what filter_path=%s names', async (filter, expected) => {
    const whole =
      '{"took":6,"hits":{"total":{"value":2},"hits":[{"_id":"1","_source":{"n":1.0}},{"_id":"2","_source":{"n":2}}]}}';
    expect(await shaped(whole, { filter_path: filter })).toBe(expected);
  });

  it(`is that of the twin for ${String(ROUNDS)} random answers`, async () => {
    const random = new Random(SEED);
    for (let round = 0; round < ROUNDS; round += 1) {
      const text = value(random, 4);
      const filter = random.chance(0.7) ? paths(random) : undefined;
      const [isPretty, human, yaml, traced] = [0, 1, 2, 3].map(() => random.chance(0.4));
      let expected: Json = parseJson(text);
      if (traced) expected = withTraces(expected, 'GET /x');
      if (human) expected = readable(expected);
      if (filter !== undefined) expected = filterPath(expected, filter);
      const shape = {
        ...(filter === undefined ? {} : { filter_path: filter }),
        ...(traced ? { trace: 'GET /x' } : {}),
        human,
        yaml,
        pretty: isPretty,
      };
      const twin = yaml ? toYaml(expected) : isPretty ? pretty(expected) : compact(expected);
      expect(await shaped(text, shape), `round ${String(round)}: ${JSON.stringify(shape)} of ${text}`).toBe(twin);
    }
  });

  it('is made in time, whatever the paths', async () => {
    const used = await effort(async () => {
      const deep = `${'{"a":'.repeat(300)}1${'}'.repeat(300)}`;
      expect(await shaped(deep, { filter_path: `${'**.'.repeat(5000)}b` })).toBe('{}');
      const long = `{"${'a'.repeat(5000)}":1}`;
      expect(await shaped(long, { filter_path: `${'*a'.repeat(60)}b` })).toBe('{}');
      const longer = `{"${'a'.repeat(100_000)}":1}`;
      expect(await shaped(longer, { filter_path: `*${'a'.repeat(5000)}b` })).toBeUndefined();
    });
    expect(used).toBeLessThan(5000);
  });
});

const NAMES = ['a', 'b', 'ab', 'a.b', 'error', 'caused_by', 'root_cause', 'type', 'reason', 'no', 'ü', ''];
const MEASURES = ['size_in_bytes', 'a_in_millis', 'start_time_in_millis', 'x_in_nanos', 'b_in_micros', 'creation_date'];
const ESCAPED = ['"\\u0061"', '"a\\"b"', '"\\ud83d\\ude00"', '"\\ud800"', '"x\\/y"', '"a\\\\u"', '"\\u0001"'];

function value(random: Random, depth: number): string {
  const kind = depth === 0 ? 0 : random.int(0, 3);
  const space = random.pick(['', '', ' ', '\n']);
  if (kind === 1) {
    return `[${Array.from({ length: random.int(0, 3) }, () => space + value(random, depth - 1)).join(`${space},`)}${space}]`;
  }
  if (kind >= 2) {
    const members = Array.from(
      { length: random.int(0, 4) },
      () => `${space}${key(random)}${space}:${value(random, depth - 1)}`,
    );
    return `{${members.join()}${space}}`;
  }
  return random.pick([
    ...['1.0', '-0', '1e-7', '12345678901234567890', 'true', 'null', '"text"', '""', '"1700000000000"'],
    ...['999', '1024', '1536', '1700000000000', '86400001', '-5', '0', '1234567'],
    ...ESCAPED,
  ]);
}

function key(random: Random): string {
  return random.chance(0.1) ? random.pick(ESCAPED) : JSON.stringify(random.pick([...NAMES, ...MEASURES]));
}

function paths(random: Random): string {
  const name = (): string =>
    random.pick(['a', 'b', '*', '**', 'a*', '*b', 'error', 'caused_by', 'a\\.b', 'ü', '\u{1f600}']);
  const path = (): string =>
    (random.chance(0.3) ? '-' : '') +
    Array.from({ length: random.int(1, 4) }, name).join('.') +
    (random.chance(0.1) ? ' ' : '');
  return Array.from({ length: random.int(1, 4) }, path).join(random.pick([',', ', ', ',,']));
}
