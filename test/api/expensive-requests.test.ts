// Requests of a few kilobytes that ask for gigabytes or hours: each has a bound, and the server stays small and goes on.
// The table of docs/reliability.md ("Expensive requests") has the same rows.
import { readFileSync, writeFileSync } from 'node:fs';
import process from 'node:process';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

const DOCUMENTS = 5000;
let server: RunningServer;

const many = <T>(n: number, make: (at: number) => T): T[] => Array.from({ length: n }, (_, at) => make(at));
const nest = (n: number, open: string, inner: string, close: string): object =>
  JSON.parse(open.repeat(n) + inner + close.repeat(n)) as object;

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
  await server.request('PUT', '/base', {
    mappings: { properties: { f: { type: 'text' }, k: { type: 'keyword' }, d: { type: 'date' }, n: { type: 'long' } } },
  });
  const lines = many(DOCUMENTS, (at) => {
    const source = { f: `w${String(at)}`, k: `v${String(at)}`, n: at, d: 1_600_000_000_000 + at * 86_400_000 };
    return `{"index":{"_id":"${String(at)}"}}\n${JSON.stringify(source)}\n`;
  });
  await server.request('POST', '/base/_bulk?refresh=true', lines.join(''));
  for (let at = 0; at < 12; at += 1) {
    const next = many(10, () => ({ pipeline: { name: `p${String(at + 1)}`, ignore_failure: true } }));
    await server.request('PUT', `/_ingest/pipeline/p${String(at)}`, { processors: at === 11 ? [] : next });
  }
  for (let at = 0; at < 130; at += 1) {
    const processors = at === 129 ? [] : [{ pipeline: { name: `deep${String(at + 1)}` } }];
    await server.request('PUT', `/_ingest/pipeline/deep${String(at)}`, { processors });
  }
});
afterAll(async () => {
  await server.stop();
});

type Call = [path: string, body: unknown];
const simulated = (processors: unknown[], source: object): Call => [
  '/_ingest/pipeline/_simulate',
  { pipeline: { processors }, docs: [{ _source: source }] },
];
const searched = (body: object): Call => ['/base/_search', body];
const aggregated = (a: object): Call => searched({ size: 0, aggs: { a } });
const gsub = { gsub: { field: 'x', pattern: '.', replacement: '$0'.repeat(10) } };
const ALL = '{"match_all":{}}';

/** What is asked, what the answer says, seconds and megabytes more than before that it may take. */
const ROWS: [name: string, call: () => Call, answer: RegExp, seconds: number, megabytes: number][] = [
  [
    'ten `gsub`',
    () =>
      simulated(
        many(10, () => gsub),
        { x: 'a' },
      ),
    /the text would be longer|may add \[|interrupted after/u,
    20,
    900,
  ],
  [
    '`set` of `{{t}}{{t}}`, forty times',
    () =>
      simulated(
        many(40, () => ({ set: { field: 't', value: '{{t}}{{t}}' } })),
        { t: 'aaaaaaaaaa' },
      ),
    /the text would be longer|may add \[|interrupted after/u,
    20,
    900,
  ],
  [
    '`copy_from` of an object into itself, a hundred times',
    () =>
      simulated(
        many(100, (at) => ({ set: { field: `o.f${String(at)}`, copy_from: 'o' } })),
        { o: { a: 1 } },
      ),
    /may add \[|levels deep/u,
    20,
    900,
  ],
  [
    '`split` and `join`, forty times',
    () =>
      simulated(
        many(40, () => [
          { split: { field: 't', separator: '' } },
          { join: { field: 't', separator: 'a'.repeat(20) } },
        ]).flat(),
        { t: 'aaaaaaaa' },
      ),
    /would be longer|may add \[/u,
    30,
    1500,
  ],
  [
    'ten pipelines that call the next ten times',
    () => ['/base/_doc/x?pipeline=p0', { a: 1 }],
    /may run \[1000000\] times/u,
    30,
    400,
  ],
  ['a chain of 130 pipelines', () => ['/base/_doc/x?pipeline=deep0', { a: 1 }], /Too many nested pipelines/u, 5, 200],
  [
    'ten nested `foreach`',
    () =>
      simulated([nest(10, '{"foreach":{"field":"l","processor":', '{"append":{"field":"o","value":"x"}}', '}}')], {
        l: many(20, (at) => at),
      }),
    /may run \[1000000\] times|may add \[|cannot loop|"docs"/u,
    30,
    900,
  ],
  [
    '`gsub` with a quadratic expression',
    () => simulated([{ gsub: { field: 'x', pattern: '.*b|a', replacement: '' } }], { x: 'a'.repeat(300_000) }),
    /interrupted after \[10000\] ms|"docs"/u,
    30,
    300,
  ],
  [
    '`html_strip` of 600,000 open tags',
    () => simulated([{ html_strip: { field: 't' } }], { t: '<script '.repeat(600_000) }),
    /"docs"/u,
    15,
    400,
  ],
  [
    '`kv` of 200,000 times the same key',
    () =>
      simulated([{ kv: { field: 'x', field_split: ' ', value_split: '=' } }], {
        x: many(200_000, () => 'k=v').join(' '),
      }),
    /"docs"/u,
    15,
    400,
  ],
  [
    '`append` of 30,000 values without duplicates',
    () =>
      simulated([{ append: { field: 'x', value: many(30_000, (at) => at), allow_duplicates: false } }], {
        x: many(30_000, (at) => -at),
      }),
    /"docs"/u,
    15,
    400,
  ],
  [
    '`adjacency_matrix` of 500 filters',
    () =>
      aggregated({
        adjacency_matrix: {
          filters: Object.fromEntries(many(500, (at) => [`f${String(at)}`, { range: { n: { gte: at } } }])),
        },
      }),
    /Number of filters is too large, must be less than or equal to: \[100\] but was \[500\]/u,
    5,
    200,
  ],
  [
    '`adjacency_matrix` of 100 filters',
    () =>
      aggregated({
        adjacency_matrix: {
          filters: Object.fromEntries(many(100, (at) => [`f${String(at)}`, { range: { n: { gte: at } } }])),
        },
      }),
    /"buckets"/u,
    30,
    900,
  ],
  [
    '100,000 `date_range`s',
    () => aggregated({ date_range: { field: 'd', ranges: many(100_000, (at) => ({ from: at })) } }),
    /at most \[1024\]/u,
    10,
    500,
  ],
  [
    '20,000 `filters`',
    () => aggregated({ filters: { filters: many(20_000, (at) => ({ term: { n: at } })) } }),
    /at most \[1024\]/u,
    10,
    400,
  ],
  [
    '100 `filters` in 100 in 100',
    () =>
      aggregated({
        filters: { filters: many(100, () => ({ match_all: {} })) },
        aggs: {
          a: {
            filters: { filters: many(100, () => ({ match_all: {} })) },
            aggs: { a: { filters: { filters: many(100, () => ({ match_all: {} })) } } },
          },
        },
      }),
    /too many buckets/u,
    10,
    300,
  ],
  [
    'eight `filters`, seven levels deep',
    () =>
      aggregated(
        (
          nest(
            7,
            `{"a":{"filters":{"filters":[${many(8, () => ALL).join(',')}]},"aggs":`,
            '{"m":{"max":{"field":"n"}}}',
            '}}',
          ) as { a: object }
        ).a,
      ),
    /too many buckets/u,
    10,
    300,
  ],
  [
    '200,000 `percentile_ranks`',
    () => aggregated({ percentile_ranks: { field: 'n', values: many(200_000, (at) => at) } }),
    /at most \[1024\]/u,
    10,
    300,
  ],
  [
    '`fields: ["*"]`, 20,000 times',
    () => searched({ size: 1000, fields: many(20_000, () => '*') }),
    /"hits"/u,
    10,
    300,
  ],
  [
    '5,000 patterns of `fields`',
    () => searched({ size: 1000, fields: many(5000, (at) => `*${String(at)}*`) }),
    /at most \[1024\]/u,
    5,
    200,
  ],
  [
    '20,000 patterns of `_source`',
    () => searched({ size: 1000, _source: many(20_000, (at) => `*a*b*${String(at)}`) }),
    /at most \[1024\]/u,
    5,
    200,
  ],
  [
    '2,000 `highlight` fields',
    () => searched({ highlight: { fields: many(2000, () => ({ '*': {} })) } }),
    /at most \[256\]/u,
    5,
    200,
  ],
  [
    'a `regexp` that may take two thousand million states',
    () =>
      searched({
        query: { regexp: { k: { value: '((a{1,1000}){1,1000}){1,1000}', max_determinized_states: 2_000_000_000 } } },
      }),
    /too_complex_to_determinize_exception|"error"/u,
    10,
    400,
  ],
  [
    '10,001 tokens of `_analyze`',
    () => ['/_analyze', { analyzer: 'standard', text: 'a '.repeat(10_001) }],
    /exceeded the allowed maximum of \[10000\]/u,
    5,
    200,
  ],
  [
    'ten `pattern_replace` in a row',
    () => [
      '/_analyze',
      {
        tokenizer: 'keyword',
        char_filter: many(10, () => ({ type: 'pattern_replace', pattern: '.', replacement: '$0'.repeat(10) })),
        text: 'a',
      },
    ],
    /"tokens"/u,
    60,
    1500,
  ],
];

/** Megabytes of a line of the process's status. */
function megabytes(line: string): number {
  const status = readFileSync(`/proc/${String(server.process.pid)}/status`, 'utf8');
  return Number(new RegExp(`${line}:\\s+(\\d+)`, 'u').exec(status)?.[1] ?? 0) / 1024;
}

describe.runIf(process.platform === 'linux')('an expensive request', () => {
  it.each(ROWS)(
    '%s',
    async (_name, call, answer, seconds, most) => {
      const [path, body] = call();
      // The highest resident size counts from here on.
      writeFileSync(`/proc/${String(server.process.pid)}/clear_refs`, '5');
      const [before, start] = [megabytes('VmRSS'), performance.now()];
      const { status, text } = await server.request('POST', path, body);
      expect(status).toBeLessThan(500);
      expect(text.slice(0, 100_000)).toMatch(answer);
      const took = (performance.now() - start) / 1000;
      const more = megabytes('VmHWM') - before;
      expect(took).toBeLessThan(seconds);
      expect(more).toBeLessThan(most);
    },
    90_000,
  );
});
