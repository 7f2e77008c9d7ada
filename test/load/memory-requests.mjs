// Requests by chance in which a text or a number of the client meets a number of buckets, hits or documents: the same numbers always make
// the same one.
import { many } from './expensive-requests.mjs';
import { aggregationBody, anyBody, query, retrieverBody, searchBody } from './memory-bodies.mjs';
import { MOST_BYTES, copied, count, either, listed, named, some, text } from './memory-texts.mjs';
import { INDICES } from './memory-world.mjs';

/** @param {import('../crash/random.mjs').Random} random */
export function trialOf(random) {
  random.left = MOST_BYTES;
  const [key, make] = random.weighted(FAMILIES);
  const calls = make(random);
  return {
    key,
    at: random.weighted([
      [6, 1],
      [2, 2],
      [1, 4],
      [1, 8],
    ]),
    calls,
  };
}

/** Parameters that change how an answer is written. */
const shape = (random) => {
  const given = some(
    random,
    {
      format: () => random.pick(['yaml', 'json']),
      pretty: 'true',
      human: 'true',
      typed_keys: 'true',
      filter_path: () =>
        either(random, ['**.value', '-**.x', () => many(count(random, 300), (at) => `**.*${at}*`).join(',')]),
    },
    0.08,
  );
  return Object.entries(given)
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
    .join('&');
};
const json = (value) => JSON.stringify(value);
const search = (random, make, index = 'many') => [`/${index}/_search?${shape(random)}`, make(random)];

/** @type {[weight: number, [key: 'read' | 'write', make: (random: any) => import('./memory-rows.mjs').Call[]]][]} */
const FAMILIES = [
  [12, 'read', (random) => [search(random, aggregationBody)]],
  [8, 'read', (random) => [search(random, searchBody)]],
  [3, 'read', (random) => [search(random, retrieverBody)]],
  [1, 'read', (random) => [search(random, anyBody, random.pick(['i*', 'many,i*']))]],
  [
    2,
    'read',
    (random) => [
      ['/many/_search?scroll=1m', searchBody(random)],
      ...many(1 + random.below(3), () => ['/_search/scroll', { scroll_id: '$scroll_id', scroll: '1m' }]),
    ],
  ],
  [
    1,
    'read',
    (random) => [
      ['/many/_pit?keep_alive=1m', undefined],
      ['/_search', { ...searchBody(random), pit: { id: '$pit' } }],
    ],
  ],
  [
    3,
    'read',
    (random) => {
      const [make, one] = [random.pick([searchBody, aggregationBody]), random.chance(0.5)];
      const first = make(random, 1000);
      const n = copied(random, 2000, first);
      return [
        ['/many/_msearch', many(n, (at) => `{}\n${json(one || at > 20 ? first : make(random, 100))}\n`).join('')],
      ];
    },
  ],
  [
    3,
    'read',
    (random) => {
      const request = searchBody(random, 1000);
      const n = copied(random, 3000, request);
      const id = text(random, 1, n);
      return [
        [
          '/many/_rank_eval',
          {
            requests: many(n, (at) => ({
              id: `${at}${id}`,
              request,
              ratings: many(count(random, Math.ceil(1000 / n), 40), (doc) => ({
                _index: 'many',
                _id: `${doc}`,
                rating: 1,
              })),
            })),
            metric: random.pick([
              { precision: { k: 1000 } },
              { dcg: { k: 1000 } },
              { mean_reciprocal_rank: { k: 100 } },
            ]),
          },
        ],
      ];
    },
  ],
  [
    2,
    'read',
    (random) => {
      const id = either(random, ['big', '1', () => text(random, 1, 1000)]);
      const docs = many(copied(random, random.pick([100, 3000, 20_000]), { _id: id }), () => ({
        _id: id,
        ...some(random, { _source: ['k', 'big.*'], stored_fields: ['k'] }, 0.1),
      }));
      return [[`/many/_mget?${shape(random)}`, { docs }]];
    },
  ],
  [
    3,
    'read',
    (random) => {
      const n = count(random, random.pick([1, 20, 1000]));
      const length = Math.ceil(2_000_000 / n);
      const words = random.pick([
        (at) => many(Math.ceil(length / 8), (word) => `w${at}x${word}`).join(' '),
        () => 'a '.repeat(length / 2),
      ]);
      return [
        [
          '/many/_mtermvectors',
          {
            docs: many(n, (at) => ({
              ...(random.chance(0.1) ? { _id: '1' } : { doc: { f: words(at) } }),
              ...some(random, {
                term_statistics: true,
                field_statistics: false,
                offsets: true,
                positions: true,
                filter: { max_num_terms: 1000 },
              }),
            })),
          },
        ],
      ];
    },
  ],
  [
    2,
    'read',
    (random) => [
      [
        `/${random.pick(['i*', 'many', many(INDICES, (at) => `i${at}`).join(',')])}/_validate/query?explain=true&${random.pick(['', 'rewrite=true', 'all_shards=true'])}`,
        { query: query(random) },
      ],
    ],
  ],
  [1, 'read', (random) => [[`/many/_explain/1?${shape(random)}`, { query: query(random) }]]],
  [1, 'read', (random) => [['/many/_count', { query: query(random) }]]],
  [
    1,
    'read',
    (random) => [
      [
        '/*/_field_caps',
        {
          fields: listed(random, 10_000, (at, n) => either(random, ['*', `f${at}`, () => text(random, n)])),
          index_filter: query(random),
        },
      ],
    ],
  ],
  [
    1,
    'read',
    (random) => [
      [
        '/many/_terms_enum',
        {
          field: 'k',
          size: count(random, 10_000),
          string: either(random, ['', 'v', () => text(random)]),
          case_insensitive: true,
        },
      ],
    ],
  ],
  [
    4,
    'write',
    (random) => {
      const [id, source] = [random.pick(['big', '1', 'none']), random.pick([true, ['big', 'k']])];
      const made = random.pick([
        () => `{"update":${json({ _id: id, _source: source })}}\n${json({ doc: { k: 'big' } })}\n`,
        () =>
          `{"update":${json({ _id: id, _source: source })}}\n${json({ doc: { n: 1 }, upsert: { f: text(random) } })}\n`,
        () => `{"index":{"_id":"${'x'.repeat(600)}"}}\n{"f":1}\n`,
        () => `{"index":{"_id":"q","if_seq_no":99,"if_primary_term":1}}\n${json({ f: text(random) })}\n`,
        () => `{"create":{"_id":"1"}}\n${json({ n: text(random) })}\n`,
        () => `{"index":{"_index":${json(text(random))}}}\n{}\n`,
        () => `{"index":{"_id":"s"}}\n${json({ [text(random)]: 1, s: named(random, 100, () => 1) })}\n`,
      ])();
      return [[`/written/_bulk?${shape(random)}`, made.repeat(copied(random, 3000, made))]];
    },
  ],
  [
    4,
    'write',
    (random) => {
      const n = count(random, 1000, 100);
      const processor = random.pick([
        (at) => ({
          set: { field: `a${at}`, value: text(random, n), tag: text(random, n), description: text(random, n) },
        }),
        () => ({ set: { field: 'text', value: '{{text}}{{text}}' } }),
        (at) => ({ append: { field: 'l', value: `${at}` } }),
        () => ({ fail: { message: '{{text}}', ignore_failure: true } }),
        (at) => ({ rename: { field: `none${at}`, target_field: text(random, n), ignore_failure: true } }),
        () => ({ gsub: { field: 'text', pattern: 'x', replacement: 'xx' } }),
        () => ({ split: { field: 'text', separator: '', target_field: 'l' } }),
      ]);
      const docs = random.pick([1, 10, 100, 1000]);
      return [
        [
          `/_ingest/pipeline/_simulate?verbose=${random.chance(0.5)}&${shape(random)}`,
          {
            pipeline: { description: text(random), processors: many(Math.min(n, 10_000 / docs), processor) },
            docs: many(docs, (at) => ({ _id: `${at}`, _source: { text: text(random, docs) } })),
          },
        ],
      ];
    },
  ],
  [
    4,
    'write',
    (random) => {
      const grows = () => ({ type: 'mapping', mappings: [`a => ${text(random, 4)}`] });
      return [
        [
          '/written/_analyze',
          {
            tokenizer: either(random, [
              'standard',
              'keyword',
              'whitespace',
              'letter',
              { type: 'ngram', min_gram: 1, max_gram: 2 },
              () => ({ type: 'path_hierarchy', delimiter: 'a', replacement: text(random) }),
            ]),
            char_filter: many(random.below(4), () =>
              either(random, [
                grows,
                () => ({ type: 'pattern_replace', pattern: 'a', replacement: text(random, 4) }),
                () => 'html_strip',
              ]),
            ),
            filter: many(random.below(8), () =>
              either(random, [
                'lowercase',
                'asciifolding',
                () => ({ type: 'shingle', max_shingle_size: 4, token_separator: text(random) }),
                () => ({ type: 'shingle', filler_token: text(random) }),
                { type: 'fingerprint', max_output_size: 1_000_000_000 },
                { type: 'edge_ngram', min_gram: 1, max_gram: 100, preserve_original: true },
                () => ({
                  type: 'synonym',
                  synonyms: listed(random, 100, (at, n) => `a => ${text(random, n).replaceAll(/[,\\]/gu, '')}`),
                }),
                () => ({ type: 'pattern_replace', pattern: 'a', replacement: text(random) }),
                { type: 'pattern_capture', patterns: many(20, (at) => `(a{${at + 1}})`) },
                { type: 'word_delimiter_graph', preserve_original: true, catenate_all: true },
              ]),
            ),
            text: listed(random, random.pick([1, 10, 1000]), (at, n) =>
              either(random, ['a '.repeat(Math.ceil(9000 / n)), () => text(random, n)]),
            ),
            ...some(random, { explain: true, attributes: ['keyword'] }),
          },
        ],
      ];
    },
  ],
  [
    1,
    'write',
    (random) => [
      [
        `/written/${random.pick(['_update_by_query', '_delete_by_query'])}?conflicts=proceed&max_docs=${count(random, 1000)}`,
        { query: query(random) },
      ],
    ],
  ],
  [
    1,
    'write',
    (random) => [
      [
        '/_reindex',
        {
          source: { index: 'many', query: query(random), size: count(random, 10_000) },
          dest: { index: 'copy' },
          max_docs: 1000,
        },
      ],
    ],
  ],
].map(([weight, key, make]) => [weight, [key, make]]);
