// Requests of a few kilobytes that ended a server, and their neighbours: what each is sent with, and what it sends.
// `memory.mjs` sends them under a ceiling of memory, `memory-requests.mjs` makes more of their kind by chance.
import { many, searched as searchedIn, should } from './expensive-requests.mjs';
import { INDICES } from './memory-world.mjs';

/** @typedef {[path: string, body?: unknown]} Call */
/** @typedef {{ name?: string, key: 'read' | 'write', at: number, calls: Call[] }} Trial `at`: how often at the same time */

const searched = (body) => searchedIn(body, 'many');
const aggregated = (aggs) => searched({ size: 0, aggs });
const all = { match_all: {} };
const TERMS = { field: 'k', size: 20_000 };
const DAYS = { field: 'd', fixed_interval: '1d' };

/** Terms of 20,000 buckets with so many metrics in each. */
const metrics = (n, metric, name = (at) => `m${at}`) =>
  aggregated({ a: { terms: TERMS, aggs: Object.fromEntries(many(n, (at) => [name(at), metric])) } });
const lines = (n, line) => many(n, line).join('');
const long = (length) => 'x'.repeat(length);
const stats = { stats: { field: 'n' } };
const percents = many(1024, (at) => (at + 1) / 11);
/** Creates an index with analyzers. */
const analyzed = (index, analysis) => [`/${index}`, { settings: { analysis } }, { method: 'PUT' }];
const synonymous = {
  filter: {
    same: { type: 'synonym_graph', synonyms: many(5000, (at) => `quick${at}, fast${at}, rapid${at}`) },
    ...Object.fromEntries(many(100, (at) => [`f${at}`, { type: 'stop', stopwords: [`s${at}`] }])),
  },
  analyzer: Object.fromEntries(many(100, (at) => [`a${at}`, { tokenizer: 'standard', filter: [`f${at}`, 'same'] }])),
};
const simulated = (verbose) => [
  `/_ingest/pipeline/_simulate?verbose=${verbose}`,
  {
    pipeline: { processors: many(100, () => ({ set: { field: 'a', value: 1 } })) },
    docs: many(60, () => ({ _source: { text: long(200_000) } })),
  },
];
const separated = (explain) => [
  '/written/_analyze',
  {
    tokenizer: { type: 'keyword' },
    filter: many(3, () => ({
      type: 'word_delimiter_graph',
      preserve_original: true,
    })),
    char_filter: [{ type: 'mapping', mappings: many(50, (at) => `a${at} => ${long(20_000)}`) }],
    text: many(50, (at) => `a${at} `.repeat(20)),
    explain,
  },
];
const artificial = (n, words) => [
  '/many/_mtermvectors',
  {
    docs: many(n, (at) => ({
      doc: { f: many(words, (word) => `w${at}x${word}`).join(' ') },
      term_statistics: true,
      offsets: true,
      positions: true,
    })),
  },
];
/** An update that changes nothing and shows a source of 1 MB. */
const shown = '{"update":{"_id":"big","_source":true}}\n{"doc":{"k":"big"}}\n';
const lookup = { terms: { k: { index: 'many', id: 'big', path: 'big.text' } } };
const liked = (n) =>
  searched({
    size: 0,
    query: {
      more_like_this: { fields: ['f'], min_term_freq: 1, like: many(n, () => ({ _index: 'many', _id: 'big' })) },
    },
  });
const zeros = `[0${',0'.repeat(999_999)}]`;
const rated = (n, request) => [
  '/many/_rank_eval',
  {
    requests: many(n, (at) => ({ id: `r${at}`, request, ratings: [{ _index: 'many', _id: '1', rating: 1 }] })),
    metric: { precision: { k: 1000 } },
  },
];

/** A script that puts a text into a list 1,000 times. */
const lists = (length, into = 'ctx') => ({
  source: `List l = []; for (int i = 0; i < 1000; i++) { l.add(params.s) } ${into}.big = ['l': l]`,
  params: { s: long(length) },
});

const objects = (inner_hits, query = all) => ({ nested: { path: 'o', query, inner_hits } });
const ofObjects = (aggs) => ({
  o: { nested: { path: 'o' }, aggs: { t: { terms: { field: 'o.k', size: 60_000 }, aggs } } },
});
/** Buckets of objects, in each the documents around them, in each of these the objects in it, and so on. */
const thereAndBack = (times) =>
  times === 0
    ? { n: stats }
    : ofObjects({ r: { reverse_nested: {}, aggs: { d: { terms: TERMS, aggs: thereAndBack(times - 1) } } } });

/** Patterns that each take a look at a whole name, and match none. */
const patterns = many(1024, (at) => `*i*l*_*x${at}`);
const inAllFields = (kind, words) => ({
  query: { [kind]: { query: many(words, (at) => `v${at}`).join(' '), fields: ['*'] } },
});

/** @type {[name: string, key: 'read' | 'write', calls: () => Call[], at?: number][]} */
export const MEMORY_ROWS = [
  ['100 `stats` in 20,000 buckets', 'read', () => [metrics(100, stats)]],
  [
    '1,990 `min_bucket` over 60,000 equal buckets',
    'read',
    () => [
      aggregated({
        a: { histogram: { field: 'n', interval: 0.35, min_doc_count: 0, extended_bounds: { min: 0, max: 20_900 } } },
        ...Object.fromEntries(
          many(1990, (at) => [`s${at}`, { min_bucket: { buckets_path: 'a>_count', gap_policy: 'insert_zeros' } }]),
        ),
      }),
    ],
  ],
  [
    'a pipeline of 1,000 large regular expressions',
    'write',
    () => [
      [
        '/_ingest/pipeline/_simulate',
        {
          pipeline: {
            processors: many(1000, (at) => ({ gsub: { field: 't', pattern: `\\w{15}x${at}`, replacement: 'y' } })),
          },
          docs: [{ _source: { t: 'a' } }],
        },
      ],
    ],
  ],
  [
    'three pipelines that double a text 22 times in 100 documents',
    'write',
    () => [
      [
        '/_ingest/pipeline/_simulate?verbose=true',
        {
          pipeline: {
            processors: [
              { script: { source: "String s = 'a'; for (int i = 0; i < 22; i++) { s = s + s } ctx.a = s" } },
            ],
          },
          docs: many(100, () => ({ _source: { a: 'x' } })),
        },
      ],
    ],
    3,
  ],
  [
    'buckets sorted by 100 and by 10,000 keys',
    'read',
    () =>
      [100, 10_000].map((n) =>
        aggregated({ a: { terms: TERMS, aggs: { s: { bucket_sort: { sort: many(n, () => '_key') } } } } }),
      ),
  ],
  [
    'an `order` of 100 and of 20,000 metrics over 20,000 buckets',
    'read',
    () =>
      [100, 20_000].map((n) =>
        aggregated({ a: { terms: { ...TERMS, order: many(n, () => ({ 'm.max': 'asc' })) }, aggs: { m: stats } } }),
      ),
    2,
  ],
  [
    '`intervals` of 1,000 and of 8,000 words',
    'read',
    () =>
      [1000, 8000].flatMap((n) => [
        searched({ query: { intervals: { f: { match: { query: many(n, (at) => `v${at}`).join(' ') } } } } }),
        searched({
          query: { intervals: { f: { any_of: { intervals: many(n, () => ({ match: { query: 'red' } })) } } } },
        }),
      ]),
    4,
  ],
  [
    'a body of 480,000 values of a few bytes, and of 2,800,000',
    'read',
    () =>
      [240_000, 1_400_000].map((n) =>
        searched({
          query: { script_score: { query: all, script: { source: '1', params: { a: many(n, () => ({ '': 0 })) } } } },
        }),
      ),
    16,
  ],
  [
    '`significant_text` that names a source field 500 times',
    'read',
    () => [
      aggregated({ a: { significant_text: { field: 'f', min_doc_count: 1, source_fields: many(500, () => 'f') } } }),
    ],
    4,
  ],
  [
    'a phrase of 16,000 words inside other clauses, and 127 of 500',
    'read',
    () => {
      const words = (n) => many(n, (at) => (at % 2 === 0 ? 'fox' : 'red')).join(' ');
      const phrase = (n) => ({ match_phrase: { f: words(n) } });
      return [
        searched({ query: { bool: { filter: [phrase(16_000)] } } }),
        searched({ query: { query_string: { default_field: 'f', query: `"${words(16_000)}"` } } }),
        searched({ query: { bool: { must: many(127, () => phrase(500)) } } }),
      ];
    },
    4,
  ],
  [
    '16,000 clauses that each have a set of all documents',
    'read',
    () => [
      searched(should(16_000, () => ({ exists: { field: 'k' } }))),
      searched({ query: { terms: { d: many(60_000, (at) => 1_600_000_000_000 + at) } } }),
    ],
    4,
  ],
  [
    'scripts with long constants over 20,000 buckets',
    'read',
    () => [
      aggregated({
        a: {
          terms: TERMS,
          aggs: {
            s: {
              bucket_script: {
                buckets_path: { n: '_count' },
                script: { source: 'params.n', params: { x: many(20_000, () => 'x') } },
              },
            },
          },
        },
      }),
    ],
  ],
  ['50 `extended_stats` in 20,000 buckets', 'read', () => [metrics(50, { extended_stats: { field: 'n' } })]],
  [
    '`percentiles` of 1,024 values in 20,000 buckets',
    'read',
    () => [metrics(1, { percentiles: { field: 'n', percents } })],
  ],
  [
    '`percentile_ranks` of 1,024 values in 20,000 buckets',
    'read',
    () => [metrics(1, { percentile_ranks: { field: 'n', values: percents, keyed: false } })],
  ],
  ['60 `boxplot`s in 20,000 buckets', 'read', () => [metrics(60, { boxplot: { field: 'n' } })]],
  [
    '50 `string_stats` in 20,000 buckets',
    'read',
    () => [metrics(50, { string_stats: { field: 'k', show_distribution: true } })],
  ],
  ['a metric with a name of 100 kB in 20,000 buckets', 'read', () => [metrics(1, stats, () => long(100_000))]],
  [
    'a metric with a name of 1,000 controls in 20,000 buckets',
    'read',
    () => [metrics(20, stats, (at) => `${at}${'\u0001'.repeat(990)}`)],
  ],
  [
    'a metric with `meta` of 100 kB in 20,000 buckets',
    'read',
    () => [metrics(1, { ...stats, meta: { m: long(100_000) } })],
  ],
  [
    '`filters` with long keys and `other_bucket_key` in 1,000 buckets',
    'read',
    () => [
      aggregated({
        a: {
          terms: { field: 'k', size: 1000 },
          aggs: {
            b: {
              filters: {
                filters: Object.fromEntries(many(30, (at) => [`${at}${long(30_000)}`, all])),
                other_bucket_key: long(100_000),
              },
            },
          },
        },
      }),
    ],
  ],
  [
    '`significant_text` of 20,000 texts in 250 buckets each',
    'read',
    () => [
      aggregated({
        a: {
          filters: { filters: many(250, () => all) },
          aggs: { w: { significant_text: { field: 'f', min_doc_count: 1, filter_duplicate_text: true } } },
        },
      }),
    ],
  ],
  [
    '`significant_terms` of every value in 250 buckets',
    'read',
    () => [
      aggregated({
        a: {
          filters: { filters: many(250, () => all) },
          aggs: {
            w: { significant_terms: { field: 'k', min_doc_count: 1, background_filter: all }, aggs: { n: stats } },
          },
        },
      }),
    ],
  ],
  [
    '`auto_date_histogram` of 2,183 intervals in 250 buckets, with 20 `stats`',
    'read',
    () => [
      aggregated({
        a: {
          filters: { filters: many(250, () => all) },
          aggs: {
            d: {
              auto_date_histogram: { field: 'd', buckets: 2183 },
              aggs: Object.fromEntries(many(20, (at) => [`s${at}`, stats])),
            },
          },
        },
      }),
    ],
  ],
  [
    '`variable_width_histogram` of 20,000 values with 100 `stats`',
    'read',
    () => [
      aggregated({
        a: {
          variable_width_histogram: { field: 'n', buckets: 10 },
          aggs: Object.fromEntries(many(100, (at) => [`s${at}`, stats])),
        },
      }),
    ],
  ],
  [
    '`range`s with long keys in 3,000 buckets',
    'read',
    () => [
      aggregated({
        a: {
          terms: { field: 'k', size: 3000 },
          aggs: { b: { range: { field: 'n', ranges: many(20, (at) => ({ from: at, key: `${at}${long(30_000)}` })) } } },
        },
      }),
    ],
  ],
  [
    '`adjacency_matrix` with a long separator in 10 buckets',
    'read',
    () => [
      aggregated({
        a: {
          terms: { field: 'k', size: 10 },
          aggs: {
            b: {
              adjacency_matrix: {
                separator: long(50_000),
                filters: Object.fromEntries(many(60, (at) => [`f${at}`, all])),
              },
            },
          },
        },
      }),
    ],
  ],
  [
    '`terms` with a long `missing`',
    'read',
    () => [
      aggregated({
        a: {
          terms: { field: 'n', size: 20_000 },
          aggs: { b: { terms: { field: 'none', missing: long(100_000) } } },
        },
      }),
    ],
  ],
  [
    '`composite` with long names of sources',
    'read',
    () => [
      aggregated({
        a: {
          composite: {
            size: 20_000,
            sources: many(4, (at) => ({ [`${at}${long(20_000)}`]: { terms: { field: 'k' } } })),
          },
        },
      }),
    ],
  ],
  [
    '`histogram` with a format of 100,000 zeros',
    'read',
    () => [aggregated({ a: { histogram: { field: 'n', interval: 1, format: '0'.repeat(100_000) } } })],
  ],
  [
    '`date_histogram` with a format of 100 kB',
    'read',
    () => [aggregated({ a: { date_histogram: { ...DAYS, format: "yyyy-MM-dd'T'HH:mm:ss.SSSXXX ".repeat(3500) } } })],
  ],
  [
    '`multi_terms` of long `missing` values',
    'read',
    () => [
      aggregated({
        a: { multi_terms: { size: 20_000, terms: [{ field: 'k' }, { field: 'none', missing: long(100_000) }] } },
      }),
    ],
  ],
  [
    '`weighted_avg` with a long format in 20,000 buckets',
    'read',
    () => [
      metrics(1, { weighted_avg: { value: { field: 'n' }, weight: { field: 'n' }, format: '0'.repeat(100_000) } }),
    ],
  ],
  [
    '`cardinality` in 20,000 buckets',
    'read',
    () => [metrics(20, { cardinality: { field: 'k', precision_threshold: 40_000 } })],
  ],
  [
    '10,000 hits with a long `missing` of a sort',
    'read',
    () => [
      searched({
        size: 10_000,
        _source: false,
        sort: [{ none: { missing: long(100_000), unmapped_type: 'keyword' } }],
      }),
    ],
  ],
  [
    '10,000 hits with a long `missing` of a sort by a keyword',
    'read',
    () => [
      searched({
        size: 10_000,
        _source: false,
        query: { exists: { field: 'n' } },
        sort: [{ big: { missing: long(100_000), unmapped_type: 'keyword' } }],
      }),
    ],
  ],
  [
    '10,000 hits with a long `_name`',
    'read',
    () => [searched({ size: 10_000, _source: false, query: { match_all: { _name: long(100_000) } } })],
  ],
  [
    '10,000 hits with 100 `_name`s',
    'read',
    () => [
      searched({
        size: 10_000,
        _source: false,
        query: { bool: { should: many(100, (at) => ({ match_all: { _name: `${at}${long(900)}` } })) } },
      }),
    ],
  ],
  [
    '10,000 hits with a long `_name`, by a scroll',
    'read',
    () => [
      ['/many/_search?scroll=1m', { size: 10_000, _source: false, query: { match_all: { _name: long(100_000) } } }],
      ['/_search/scroll', { scroll_id: '$scroll_id', scroll: '1m' }],
    ],
  ],
  [
    '10,000 hits with a long `_name`, by `_rank_eval`',
    'read',
    () => [rated(1, { size: 10_000, query: { match_all: { _name: long(100_000) } } })],
  ],
  [
    '10,000 hits with a long format of a date',
    'read',
    () => [searched({ size: 10_000, _source: false, fields: [{ field: 'd', format: "yyyy'x'".repeat(15_000) }] })],
  ],
  [
    '10,000 hits with long tags of a highlight',
    'read',
    () => [
      searched({
        size: 10_000,
        _source: false,
        query: { match: { f: 'red the fox' } },
        highlight: { pre_tags: [long(30_000)], post_tags: [long(30_000)], fields: { f: { number_of_fragments: 0 } } },
      }),
    ],
  ],
  [
    '`explain` of 1,000 clauses over 10,000 hits',
    'read',
    () => [
      searched({
        ...should(1000, (at) => ({ range: { n: { gte: -at } } })),
        size: 10_000,
        explain: true,
        _source: false,
      }),
    ],
  ],
  [
    '`top_hits` with `explain` in 20,000 buckets',
    'read',
    () => [
      searched({
        size: 0,
        query: { bool: { should: many(50, (at) => ({ range: { n: { gte: -at } } })) } },
        aggs: { a: { terms: TERMS, aggs: { t: { top_hits: { explain: true } } } } },
      }),
    ],
  ],
  ['`_mtermvectors` of 1,000 artificial documents', 'read', () => [artificial(1000, 800)]],
  ['`_mtermvectors` of 20 long artificial documents', 'read', () => [artificial(20, 100_000)]],
  ['`_rank_eval` of 3,000 requests', 'read', () => [rated(3000, { size: 1000, query: all })]],
  [
    `\`_validate/query?explain\` over ${INDICES} indices`,
    'read',
    () => [
      [
        '/i*/_validate/query?explain=true&all_shards=true',
        { query: should(8000, (at) => ({ term: { k: `v${at}` } })).query },
      ],
    ],
  ],
  [
    '`_msearch` of 1,000 searches with 1,000 hits each',
    'read',
    () => [['/many/_msearch', lines(1000, () => '{}\n{"size":1000}\n')]],
  ],
  ['`_mget` of a document of 1 MB, 3,000 times', 'read', () => [['/many/_mget', { ids: many(3000, () => 'big') }]]],
  ['eight times 20 `stats` in 20,000 buckets', 'read', () => [metrics(20, stats)], 8],
  [
    'eight times 10,000 hits in YAML',
    'read',
    () => [['/many/_search?format=yaml', { size: 10_000, fields: ['*'], docvalue_fields: ['d', 'n', 'k'] }]],
    8,
  ],
  ['`_bulk` of 3,000 updates that show a source of 1 MB', 'write', () => [['/written/_bulk', shown.repeat(3000)]]],
  ['`_simulate` of large documents', 'write', () => [simulated(false)], 8],
  ['`_simulate`, verbose, of large documents', 'write', () => [simulated(true)]],
  ['`_analyze` with replacements of 1 MB', 'write', () => [separated(false)]],
  ['`_analyze` with replacements of 1 MB, explained', 'write', () => [separated(true)]],
  [
    '`_analyze` with separators of 1 MB',
    'write',
    () => [
      [
        '/written/_analyze',
        {
          tokenizer: 'standard',
          filter: [{ type: 'shingle', token_separator: long(1 << 20) }],
          text: 'a b c d '.repeat(1000),
        },
      ],
    ],
  ],
  [
    '`_analyze` with a `fingerprint` of separators of 1 MB',
    'write',
    () => [
      [
        '/written/_analyze',
        {
          tokenizer: 'standard',
          filter: [{ type: 'fingerprint', separator: long(1 << 20).slice(0, 1), max_output_size: 1 << 30 }],
          char_filter: [{ type: 'pattern_replace', pattern: 'a', replacement: long(1 << 20) }],
          text: 'a b '.repeat(4000),
        },
      ],
    ],
  ],
  [
    '100 analyzers of 100 expressions each, which they share',
    'write',
    () => [
      analyzed('analyzed', {
        filter: Object.fromEntries(
          many(100, (at) => [`f${at}`, { type: 'pattern_replace', pattern: `[a-zäöü]{180}${at}` }]),
        ),
        analyzer: Object.fromEntries(
          many(100, (at) => [`a${at}`, { tokenizer: 'standard', filter: many(100, (other) => `f${other}`) }]),
        ),
      }),
    ],
    4,
  ],
  [
    '100 analyzers that read 5,000 synonyms in 100 ways',
    'write',
    () => many(3, (index) => analyzed(`analyzed${index}`, synonymous)),
    2,
  ],
  [
    'a `_reindex` of documents of a million zeros',
    'write',
    () => [
      [
        '/written/_bulk?refresh=true',
        lines(24, (at) => `{"index":{"_id":"z${at}"}}\n{"k":"zeros","big":{"t":${zeros}}}\n`),
      ],
      ['/_reindex', { source: { index: 'written', query: { term: { k: 'zeros' } } }, dest: { index: 'copy' } }],
    ],
  ],
  ['objects in documents in objects in documents', 'read', () => [aggregated(thereAndBack(3))], 4],
  ['`top_hits` in 40,000 buckets of objects', 'read', () => [aggregated(ofObjects({ t: { top_hits: { size: 10 } } }))]],
  ['10,000 hits with `inner_hits`', 'read', () => [searched({ size: 10_000, query: objects({ size: 2 }) })], 2],
  [
    '100 lists of `inner_hits` of a document of 9,000 objects',
    'read',
    () => [
      searched({
        query: {
          bool: {
            filter: { term: { k: 'objects' } },
            should: many(100, (at) => objects({ name: `${at}${long(900)}`, size: 100, explain: true, fields: ['*'] })),
          },
        },
      }),
    ],
    4,
  ],
  [
    '10,000 hits sorted by 30 values of objects that match a pattern',
    'read',
    () => [
      searched({
        size: 10_000,
        sort: many(30, (at) => ({
          'o.n': { mode: 'max', nested: { path: 'o', filter: { wildcard: { 'o.k': `*${at}*` } } } },
        })),
      }),
    ],
  ],
  // As long as a text may be that an answer repeats.
  [
    '1,000 `filters` with keys of 990 characters in 60 buckets',
    'read',
    () => [
      aggregated({
        a: {
          terms: { field: 'k', size: 60 },
          aggs: {
            b: { filters: { filters: Object.fromEntries(many(1000, (at) => [`${at}${long(990)}`, all])) } },
          },
        },
      }),
    ],
    4,
  ],
  [
    '`adjacency_matrix` of 100 keys of 990 characters in 10 buckets',
    'read',
    () => [
      aggregated({
        a: {
          terms: { field: 'k', size: 10 },
          aggs: {
            b: {
              adjacency_matrix: {
                separator: long(999),
                filters: Object.fromEntries(many(100, (at) => [`${at}${long(990)}`, all])),
              },
            },
          },
        },
      }),
    ],
    4,
  ],
  [
    'a metric with `meta` of 10 kB in 20,000 buckets',
    'read',
    () => [metrics(1, { ...stats, meta: { m: long(9900) } })],
    2,
  ],
  [
    '`composite` with 30 names of sources of 990 characters',
    'read',
    () => [
      aggregated({
        a: {
          composite: {
            size: 60_000,
            sources: many(30, (at) => ({ [`${at}${long(990)}`]: { terms: { field: 'k' } } })),
          },
        },
      }),
    ],
    2,
  ],
  [
    '10,000 hits with a field that a script makes of a parameter of 1 MB',
    'read',
    () => [
      searched({
        size: 10_000,
        _source: false,
        script_fields: { a: { script: { source: 'params.s', params: { s: long(1 << 20) } } } },
      }),
    ],
  ],
  [
    '`_simulate` of scripts that make lists of long texts',
    'write',
    () => [
      [
        '/_ingest/pipeline/_simulate?verbose=true',
        {
          pipeline: { processors: many(50, () => ({ script: lists(3000) })) },
          docs: many(50, () => ({ _source: { a: 1 } })),
        },
      ],
    ],
    4,
  ],
  [
    '`_update_by_query` with a script that makes lists of long texts',
    'write',
    () => [['/written/_update_by_query?conflicts=proceed', { script: lists(10_000, 'ctx._source') }]],
  ],
  ['`more_like_this` of 600 times a document of 1 MB', 'read', () => [liked(600)], 8],
  ['400 lookups of a document of 1 MB', 'read', () => [searched({ size: 0, ...should(400, () => lookup) })], 8],
  [
    '600 lookups of a document of 1 MB, each in a filter of its own',
    'read',
    () => [aggregated({ a: { filters: { filters: Object.fromEntries(many(600, (at) => [`f${at}`, lookup])) } } })],
    4,
  ],
  [
    '`_field_caps` of all fields of many indices, and of where they are not',
    'read',
    () => [['/wide*/_field_caps?include_unmapped=true', { fields: ['*'] }]],
    20,
  ],
  [
    '8,000 words in 990 fields',
    'read',
    () => [
      searchedIn(inAllFields('simple_query_string', 8000), 'wide0'),
      searchedIn(inAllFields('query_string', 8000), 'wide0'),
    ],
    4,
  ],
  [
    '1,024 patterns over 990 fields',
    'read',
    () => [
      searchedIn({ query: { multi_match: { query: 'v', fields: patterns } } }, 'wide0'),
      ['/wide0/_field_caps', { fields: patterns }],
    ],
    2,
  ],
];

/** The rows as trials: what is sent, and by whom. @returns {Trial[]} */
export const rowTrials = () =>
  MEMORY_ROWS.map(([name, key, calls, at = 1]) => ({
    name,
    key,
    at,
    get calls() {
      return calls();
    },
  }));
