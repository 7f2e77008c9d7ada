// Requests of a few kilobytes that ask for gigabytes or hours: the rows of the table "Expensive requests" of docs/reliability.md.
// `test/api/expensive-requests.test.ts` holds each to its bounds, `expensive.mjs` measures them.

/** Documents of the index that they ask about. */
const DOCUMENTS = 5000;

export const many = (n, make) => Array.from({ length: n }, (_, at) => make(at));
const nest = (n, open, inner, close) => JSON.parse(open.repeat(n) + inner + close.repeat(n));

/** @typedef {[path: string, body: unknown]} Call */

/** @type {(processors: unknown[], source: object) => Call} */
const simulated = (processors, source) => [
  '/_ingest/pipeline/_simulate',
  { pipeline: { processors }, docs: [{ _source: source }] },
];
/** @type {(body: object, index?: string) => Call} */
export const searched = (body, index = 'base') => [`/${index}/_search`, body];
/** @type {(a: object) => Call} */
const aggregated = (a) => searched({ size: 0, aggs: { a } });
const gsub = { gsub: { field: 'x', pattern: '.', replacement: '$0'.repeat(10) } };
const ALL = '{"match_all":{}}';

/** A `bool` of many clauses. */
export const should = (n, make) => ({ query: { bool: { should: many(n, make) } }, size: 0 });

/**
 * What is asked, what the answer says, seconds and megabytes more than before that it may take.
 *
 * @type {[name: string, call: () => Call, answer: RegExp, seconds: number, megabytes: number][]}
 */
export const ROWS = [
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
        many(100, (at) => ({ set: { field: `o.f${at}`, copy_from: 'o' } })),
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
          filters: Object.fromEntries(many(500, (at) => [`f${at}`, { range: { n: { gte: at } } }])),
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
          filters: Object.fromEntries(many(100, (at) => [`f${at}`, { range: { n: { gte: at } } }])),
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
        nest(
          7,
          `{"a":{"filters":{"filters":[${many(8, () => ALL).join(',')}]},"aggs":`,
          '{"m":{"max":{"field":"n"}}}',
          '}}',
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
    () => searched({ size: 1000, fields: many(5000, (at) => `*${at}*`) }),
    /at most \[1024\]/u,
    5,
    200,
  ],
  [
    '20,000 patterns of `_source`',
    () => searched({ size: 1000, _source: many(20_000, (at) => `*a*b*${at}`) }),
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
    /"tokens"|circuit_breaking_exception.*<http_request>/u,
    60,
    1500,
  ],
  ['4,000 `wildcard`s', () => searched(should(4000, (at) => ({ wildcard: { k: `*${at}*` } }))), /"hits"/u, 60, 900],
  [
    '16,000 `fuzzy`s',
    () => searched(should(16_000, (at) => ({ fuzzy: { f: { value: `w${at}x`, fuzziness: 2 } } }))),
    /maxClauseCount is set to 16384/u,
    60,
    900,
  ],
  [
    'ten searches with 8,000 `wildcard`s each, in one `_msearch`',
    () => [
      '/base/_msearch',
      many(
        10,
        (number) => `{}\n${JSON.stringify(should(8000, (at) => ({ wildcard: { k: `*${number}${at}*` } })))}\n`,
      ).join(''),
    ],
    /clauses of one request may look at \[134217728\] terms/u,
    60,
    900,
  ],
  [
    '1,000 `regexp`s of 8,192 states each',
    () =>
      searched(
        should(1000, (at) => ({ regexp: { k: { value: `(a|b)*a(a|b){12}${at}`, max_determinized_states: 100_000 } } })),
      ),
    /clauses of one request may look at \[134217728\] terms/u,
    60,
    900,
  ],
  [
    '101 lists of `inner_hits`',
    () => searched({ collapse: { field: 'k', inner_hits: many(101, (at) => ({ name: `i${at}` })) } }),
    /at most \[100\] are possible/u,
    5,
    200,
  ],
  [
    '1,000 groups with 100 lists of `inner_hits` each',
    () => searched({ size: 1000, collapse: { field: 'k', inner_hits: many(100, (at) => ({ name: `i${at}` })) } }),
    /at most \[10000\] are possible/u,
    5,
    200,
  ],
  [
    '100 groups with 100 lists of `inner_hits` each',
    () =>
      searched({ size: 100, collapse: { field: 'k', inner_hits: many(100, (at) => ({ name: `i${at}`, size: 100 })) } }),
    /"inner_hits"/u,
    60,
    400,
  ],
  [
    '`gsub` with a quadratic expression, in twenty documents of one bulk',
    () => ['/base/_bulk?pipeline=quadratic', many(20, () => `{"index":{}}\n{"x":"${'a'.repeat(300_000)}"}\n`).join('')],
    /interrupted after \[30000\] ms/u,
    60,
    300,
  ],
];

/**
 * As {@link ROWS}, where a request may take {@link LIMIT}.
 *
 * @type {[name: string, call: () => Call, answer: RegExp, seconds: number, megabytes: number][]}
 */
export const LIMITED_ROWS = [
  [
    'five `pattern_replace` in a row, and as many tokens as characters',
    () => [
      '/_analyze',
      {
        tokenizer: { type: 'ngram', min_gram: 1, max_gram: 1 },
        char_filter: many(5, () => ({ type: 'pattern_replace', pattern: '.', replacement: '$0'.repeat(10) })),
        text: 'a'.repeat(100),
      },
    ],
    /circuit_breaking_exception.*<http_request>/u,
    20,
    400,
  ],
  [
    '`_mget` of a document of 1 MB, 300 times',
    () => ['/base/_mget', { ids: many(300, () => 'big') }],
    /circuit_breaking_exception.*<http_request>/u,
    20,
    500,
  ],
  [
    '`_mget` of 300,000 documents without a name',
    () => ['/_mget', { docs: many(300_000, () => ({})) }],
    /illegal_argument_exception.*at most \[500000\]/u,
    20,
    400,
  ],
  [
    '500,000 searches of eleven bytes in one `_msearch`',
    () => ['/base/_msearch', '{}\n{"size":0}\n'.repeat(500_000)],
    /circuit_breaking_exception.*<http_request>/u,
    20,
    400,
  ],
  [
    '`_msearch` of a document of 1 MB, 300 times',
    () => ['/base/_msearch', '{}\n{"query":{"ids":{"values":["big"]}}}\n'.repeat(300)],
    /circuit_breaking_exception/u,
    20,
    500,
  ],
  [
    'a list of 1,500,000 numbers',
    () => searched({ query: { terms: { n: many(1_500_000, () => 1) } } }),
    /illegal_argument_exception.*at most \[500000\]/u,
    20,
    200,
  ],
  [
    '`inner_hits` that hold a document of 1 MB',
    () =>
      searched({
        query: { term: { k: 'big' } },
        collapse: { field: 'k', inner_hits: many(80, (at) => ({ name: `i${at}` })) },
      }),
    /circuit_breaking_exception.*<http_request>/u,
    20,
    500,
  ],
];

/** The setting of the cluster for {@link LIMITED_ROWS}. */
export const LIMIT = '64mb';

/** Makes the indices and pipelines that the requests are about; `send` sends one, a text as lines. */
export async function prepare(send) {
  await send('PUT', '/base', {
    mappings: {
      properties: {
        f: { type: 'text' },
        k: { type: 'keyword' },
        d: { type: 'date' },
        n: { type: 'long' },
        big: { enabled: false },
      },
    },
  });
  const lines = many(DOCUMENTS, (at) => {
    const source = { f: `w${at}`, k: `v${at}`, n: at, d: 1_600_000_000_000 + at * 86_400_000 };
    return `{"index":{"_id":"${at}"}}\n${JSON.stringify(source)}\n`;
  });
  await send('POST', '/base/_bulk?refresh=true', lines.join(''));
  await send('PUT', '/base/_doc/big?refresh=true', { k: 'big', big: { text: 'x'.repeat(1 << 20) } });
  await send('PUT', '/_ingest/pipeline/quadratic', {
    processors: [{ gsub: { field: 'x', pattern: '.*b|a', replacement: '' } }, { remove: { field: 'x' } }],
  });
  for (let at = 0; at < 12; at += 1) {
    const next = many(10, () => ({ pipeline: { name: `p${at + 1}`, ignore_failure: true } }));
    await send('PUT', `/_ingest/pipeline/p${at}`, { processors: at === 11 ? [] : next });
  }
  for (let at = 0; at < 130; at += 1) {
    const processors = at === 129 ? [] : [{ pipeline: { name: `deep${at + 1}` } }];
    await send('PUT', `/_ingest/pipeline/deep${at}`, { processors });
  }
}
