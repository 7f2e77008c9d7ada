// Bodies of searches by chance: queries, aggregations in aggregations, what is shown of hits, retrievers.
import { many } from './expensive-requests.mjs';
import { LENGTHS, copied, count, either, listed, named, nameOf, some, text } from './memory-texts.mjs';
import { DOCUMENTS } from './memory-world.mjs';

const FIELDS = ['k', 'n', 'd', 'f', 'none'];
const NUMBERS = ['n', 'd'];

function clause(random, of, at, copies = 1) {
  const name = random.chance(0.3) ? { _name: text(random, of, copies) } : {};
  return random.pick([
    () => ({ match_all: name }),
    () => ({ range: { n: { gte: at, ...name } } }),
    () => ({ term: { k: { value: random.chance(0.5) ? `v${at}` : text(random, of, copies), ...name } } }),
    () => ({ match: { f: { query: random.chance(0.5) ? 'red the fox' : text(random, of, copies), ...name } } }),
    () => ({ exists: { field: random.pick(FIELDS), ...name } }),
    () => ({ prefix: { k: { value: `v${at % 10}`, ...name } } }),
    () => ({ ids: { values: listed(random, 1000, String, 10 * copies), ...name } }),
    () => ({ constant_score: { filter: { term: { k: `v${at}` } }, ...name } }),
    () => ({ match_phrase: { f: { query: 'red fox the', slop: 50, ...name } } }),
  ])();
}

export function query(random) {
  return random.weighted([
    [3, () => ({ match_all: random.chance(0.5) ? { _name: text(random) } : {} })],
    [
      4,
      () => {
        const n = count(random, random.pick([10, 100, 1000, 16_000]), 60);
        // The same kind in all places: a list by chance of thousands takes long to make, not to search.
        const first = clause(random, 1, 1, n);
        return { bool: { should: many(n, (at) => (n > 100 ? first : clause(random, n, at))) } };
      },
    ],
    [1, () => ({ terms: { [random.pick(['k', 'n'])]: listed(random, 65_536, (at) => at) } })],
    [
      1,
      () => ({
        query_string: { query: text(random), fields: listed(random, 100, () => random.pick(['f', 'k', '*'])) },
      }),
    ],
    [
      1,
      () => ({
        simple_query_string: { query: many(count(random, 4000, 10), (at) => `w${at}`).join(' | '), fields: ['f', 'k'] },
      }),
    ],
    [1, () => ({ more_like_this: { fields: ['f'], like: text(random), min_term_freq: 1, min_doc_freq: 1 } })],
    [
      1,
      () => ({
        multi_match: { query: 'red the fox', type: 'cross_fields', fields: listed(random, 300, (at) => `f^${at + 1}`) },
      }),
    ],
    [
      1,
      () => ({
        function_score: {
          query: { match_all: {} },
          functions: listed(random, 200, (at) => ({ filter: { range: { n: { gte: at } } }, weight: 2 })),
        },
      }),
    ],
    [1, () => ({ sparse_vector: { field: 's', query_vector: named(random, 2000, () => 1) } })],
    [1, () => ({ dis_max: { queries: listed(random, 500, (at) => clause(random, 500, at)) } })],
    [
      1,
      () => ({
        knn: { field: 'v', query_vector: many(8, () => 0.5), k: count(random, 10_000), num_candidates: 10_000 },
      }),
    ],
    [
      1,
      () => ({
        intervals: { f: { any_of: { intervals: listed(random, 500, (at) => ({ match: { query: `w${at} red` } })) } } },
      }),
    ],
    [2, () => nested(random)],
    [1, () => ({ pinned: { ids: listed(random, 100, String), organic: { match_all: {} } } })],
  ])();
}

/** What is asked of the fields of documents, asked of those of their objects. */
const ofObjects = (asked) =>
  JSON.parse(
    JSON.stringify(asked)
      .replaceAll(/"field":"([kndfv])"/gu, '"field":"o.$1"')
      .replaceAll(/\{"(range|term|terms|match|match_phrase|prefix|exists)":\{"([kndf])"/gu, '{"$1":{"o.$2"'),
  );

/** Objects that match, some times with objects inside them, and what is shown of them. */
function nested(random) {
  const shown = () => ({
    inner_hits: { size: count(random, 100), ...ofObjects(hitParts(random)), ...innerName(random) },
  });
  const mode = { score_mode: random.pick(['avg', 'max', 'min', 'sum', 'none']) };
  const inside = () => ({
    nested: { path: 'o.in', query: { exists: { field: 'o.in.k' } }, ...(random.chance(0.5) ? shown() : {}) },
  });
  const first = random.pick([inside, () => ofObjects(clause(random, 100, 1, 100)), () => ({ match_all: {} })])();
  const made = { nested: { path: 'o', query: first, ...mode, ...(random.chance(0.4) ? shown() : {}) } };
  if (random.chance(0.7)) return made;
  const n = copied(random, 300, made);
  const numbered = (at) => ({ ...made.nested, inner_hits: { ...made.nested.inner_hits, name: `i${at}` } });
  return { bool: { should: many(n, (at) => (made.nested.inner_hits ? { nested: numbered(at) } : made)) } };
}
const innerName = (random) => (random.chance(0.3) ? { name: text(random, 100) } : {});

const format = (random) =>
  random.pick([
    () => text(random),
    () => '0'.repeat(count(random, random.pick(LENGTHS), 1)),
    () => `yyyy'${'x'.repeat(count(random, random.pick(LENGTHS), 1))}'`,
    () => "yyyy-MM-dd'T'HH:mm:ss.SSSXXX ".repeat(count(random, 3000, 30)),
  ])();

const METRICS = {
  stats: (random) => ({ field: 'n', ...some(random, { missing: 1, format: () => format(random) }) }),
  extended_stats: (random) => ({ field: 'n', sigma: 2, ...some(random, { format: () => format(random) }) }),
  avg: (random) => ({ field: random.pick(NUMBERS), ...some(random, { format: () => format(random) }) }),
  max: (random) => ({ field: 'd', ...some(random, { format: () => format(random) }) }),
  value_count: () => ({ field: 'k' }),
  cardinality: (random) => ({ field: random.pick(FIELDS.slice(0, 3)), precision_threshold: count(random, 40_000) }),
  percentiles: (random) => ({
    field: 'n',
    percents: listed(random, 1024, (at) => at / 11),
    ...some(random, { keyed: false, format: () => format(random) }),
    ...random.pick([{}, { tdigest: { compression: 10_000 } }, { hdr: { number_of_significant_value_digits: 5 } }]),
  }),
  percentile_ranks: (random) => ({
    field: 'n',
    values: listed(random, 1024, (at) => at),
    ...some(random, { keyed: false }),
  }),
  string_stats: () => ({ field: 'k', show_distribution: true }),
  median_absolute_deviation: (random) => ({ field: 'n', compression: count(random, 10_000) }),
  boxplot: (random) => ({ field: 'n', ...some(random, { format: () => format(random) }) }),
  weighted_avg: (random) => ({
    value: { field: 'n' },
    weight: { field: 'n' },
    ...some(random, { format: () => format(random) }),
  }),
  top_metrics: (random) => ({
    metrics: many(10, (at) => ({ field: random.pick(['n', 'd', 'k', `n${at}`]) })),
    sort: { n: 'desc' },
    size: count(random, 10),
  }),
  top_hits: (random) => ({
    size: count(random, 100),
    ...hitParts(random),
    ...some(random, { sort: () => sort(random) }),
  }),
};

const BUCKETS = {
  terms: (random) => ({
    field: random.pick(['k', 'n', 'd', 'none']),
    size: count(random, random.pick([100, DOCUMENTS, 65_536])),
    ...some(random, {
      missing: () => text(random),
      format: () => format(random),
      min_doc_count: 0,
      order: { _key: 'desc' },
      show_term_doc_count_error: true,
    }),
  }),
  rare_terms: (random) => ({ field: 'k', max_doc_count: count(random, 100) }),
  significant_terms: (random) => ({
    field: random.pick(['k', 'n', 'd']),
    size: count(random, DOCUMENTS),
    min_doc_count: count(random, 3),
    ...some(random, { background_filter: { match_all: {} }, percentage: {} }),
  }),
  significant_text: (random) => ({
    field: 'f',
    size: count(random, DOCUMENTS),
    min_doc_count: count(random, 3),
    ...some(random, { filter_duplicate_text: true, percentage: {} }),
  }),
  auto_date_histogram: (random) => ({
    field: 'd',
    buckets: count(random, 2183),
    ...some(random, { format: () => format(random), minimum_interval: 'day' }),
  }),
  variable_width_histogram: (random) => ({ field: 'n', buckets: count(random, 49_999) }),
  multi_terms: (random) => ({
    size: count(random, DOCUMENTS),
    terms: many(2 + random.below(4), () => ({
      field: random.pick(FIELDS),
      ...some(random, { missing: () => text(random, 4), format: () => format(random) }),
    })),
  }),
  composite: (random) => ({
    size: count(random, 65_536),
    sources: many(1 + random.below(8), (at) => ({
      [`${at}${nameOf(random, 2)}`]: either(random, [
        { terms: { field: 'k' } },
        { terms: { field: 'none', missing_bucket: true } },
        { histogram: { field: 'n', interval: 1 } },
        () => ({ date_histogram: { field: 'd', fixed_interval: '1d', format: format(random) } }),
      ]),
    })),
  }),
  histogram: (random) => ({
    field: 'n',
    interval: random.pick([1, 0.5, 10]),
    ...some(random, {
      format: () => format(random),
      keyed: true,
      min_doc_count: 0,
      extended_bounds: { min: 0, max: 60_000 },
    }),
  }),
  date_histogram: (random) => ({
    field: 'd',
    fixed_interval: random.pick(['1d', '12h', '30d']),
    ...some(random, {
      format: () => format(random),
      keyed: true,
      missing: '2020-01-01',
      time_zone: () => random.pick(['Europe/Berlin', '+01:00']),
    }),
  }),
  range: (random) => {
    const ranges = listed(random, 1024, (at, n) => ({
      from: at,
      ...some(random, { key: () => `${at}${text(random, n)}` }),
    }));
    return { field: 'n', ranges, ...some(random, { keyed: true, format: () => format(random) }) };
  },
  date_range: (random) => ({
    field: 'd',
    ranges: listed(random, 1024, (at) => ({ from: at })),
    ...some(random, { format: () => format(random), missing: '2020', keyed: true }, 0.5),
  }),
  filters: (random) => ({
    filters: named(random, random.pick([10, 100, 1024]), (at) => ({ range: { n: { gte: at } } })),
    ...some(random, { other_bucket: true, other_bucket_key: () => text(random) }),
  }),
  adjacency_matrix: (random) => ({
    filters: named(random, 100, (at) => ({ range: { n: { gte: at } } })),
    ...some(random, { separator: () => text(random) }, 0.5),
  }),
  filter: (random) => query(random),
  missing: () => ({ field: 'none' }),
};

const PIPELINES = [
  (of) => ({ derivative: { buckets_path: of } }),
  (of) => ({ cumulative_sum: { buckets_path: of } }),
  (of) => ({ serial_diff: { buckets_path: of } }),
  (of) => ({ normalize: { buckets_path: of, method: 'mean' } }),
  (of) => ({ bucket_sort: { sort: [{ [of]: 'desc' }] } }),
  (of) => ({ bucket_sort: { sort: many(100, () => ({ [of]: 'desc' })) } }),
  (of) => ({
    bucket_script: {
      buckets_path: { a: of },
      script: 'def l = []; for (int i = 0; i < 1000; i++) l.add(params.a); l[0]',
    },
  }),
  (of) => ({ bucket_selector: { buckets_path: { a: of }, script: 'params.a >= 0' } }),
];
const SIBLINGS = [
  (of) => ({ percentiles_bucket: { buckets_path: of, percents: many(1024, (at) => at / 11) } }),
  (of) => ({ max_bucket: { buckets_path: of } }),
  (of) => ({ extended_stats_bucket: { buckets_path: of } }),
];

/** Metrics of one kind or of many, up to as many as a request may have. */
function metrics(random) {
  const kinds = Object.keys(METRICS);
  const one = random.pick(kinds);
  const made = METRICS[one](random);
  const n = copied(random, random.pick([1, 1, 10, 100, 1900]), made);
  const name = nameOf(random, n);
  return Object.fromEntries(
    many(n, (at) => {
      const kind = n > 20 ? one : random.pick(kinds);
      return [`${at}${name}`, { [kind]: kind === one ? made : METRICS[kind](random), ...meta(random, n) }];
    }),
  );
}

const meta = (random, of) =>
  random.chance(0.1)
    ? { meta: random.pick([() => ({ m: text(random, of) }), () => named(random, Math.ceil(1000 / of), () => 1)])() }
    : {};

/** Buckets in buckets, with metrics in the last. */
function aggregations(random, levels = 1 + random.below(3)) {
  if (levels === 0) {
    const made = metrics(random);
    if (random.chance(0.1)) Object.assign(made, { s: { sum: { field: 'n' } }, p: random.pick(PIPELINES)('s') });
    return made;
  }
  if (random.chance(0.15)) return joined(random, levels);
  const kind = random.pick(Object.keys(BUCKETS));
  const name = `a${nameOf(random, 1, 0.2)}`;
  const one = { [kind]: BUCKETS[kind](random), aggs: aggregations(random, levels - 1), ...meta(random, 1) };
  return { [name]: one, ...(random.chance(0.1) ? { z: random.pick(SIBLINGS)(`${name}>_count`) } : {}) };
}

/** Aggregations of objects, some times of the documents around them again. */
function joined(random, levels) {
  const inner = aggregations(random, levels - 1);
  const back = { r: { reverse_nested: {}, aggs: inner }, ...(random.chance(0.3) ? ofObjects(metrics(random)) : {}) };
  const among = random.pick([
    () => ofObjects(inner),
    () => back,
    () => ({ t: { terms: { field: 'o.k', size: count(random, 65_536) }, aggs: back } }),
    () => ({ h: { histogram: { field: 'o.n', interval: 1 }, aggs: ofObjects(inner) } }),
    () => ({
      i: { nested: { path: 'o.in' }, aggs: { t: { terms: { field: 'o.in.k', size: count(random, 65_536) } } } },
    }),
  ])();
  return { o: { nested: { path: 'o' }, aggs: among } };
}

const sort = (random) =>
  many(1 + random.below(4), (at) =>
    either(random, [
      () => ({
        'o.n': {
          order: 'desc',
          mode: random.pick(['min', 'max', 'avg', 'sum']),
          nested: { path: 'o', ...(random.chance(0.5) ? { filter: ofObjects(clause(random, 100, at)) } : {}) },
        },
      }),
      () => ({ [random.pick(FIELDS)]: { order: 'desc', unmapped_type: 'keyword', missing: text(random, 4) } }),
      () => ({ d: { order: 'asc', format: format(random) } }),
      { n: { order: 'asc', missing: at } },
      '_score',
    ]),
  );

/** What is shown of each hit. */
const hitParts = (random) =>
  some(random, {
    _source: () => either(random, [false, true, () => listed(random, 1024, (at) => `*${at}*`), ['k']]),
    fields: () =>
      listed(random, random.pick([2, 1024]), (at) =>
        either(random, ['*', () => ({ field: 'd', format: format(random) }), `*${at}*`]),
      ),
    docvalue_fields: () =>
      listed(random, random.pick([2, 100]), () =>
        either(random, ['k', 'n', () => ({ field: 'd', format: format(random) })]),
      ),
    highlight: () => ({
      ...some(
        random,
        { pre_tags: () => [text(random)], post_tags: () => [text(random)], require_field_match: false },
        0.6,
      ),
      number_of_fragments: random.pick([0, 5, 100]),
      fragment_size: random.pick([1, 20, 1000]),
      no_match_size: random.pick([0, 1000]),
      fields: either(random, [{ f: {} }, { '*': {} }, () => named(random, 256, () => ({}))]),
      highlight_query: { match: { f: 'red the fox runs' } },
    }),
    explain: true,
    version: true,
    seq_no_primary_term: true,
    stored_fields: ['_none_'],
  });

export const searchBody = (random, most = 10_000) => ({
  size: count(random, random.pick([10, 1000, most])),
  ...hitParts(random),
  ...some(
    random,
    {
      query: () => query(random),
      sort: () => sort(random),
      profile: true,
      post_filter: () => query(random),
      stats: () => listed(random, 100, (at, n) => `${at}${text(random, n)}`),
      collapse: () => ({
        field: random.pick(['k', 'n']),
        inner_hits: random.chance(0.5)
          ? { name: text(random), size: 10, ...hitParts(random) }
          : listed(random, 20, (at, n) => ({ name: `${at}${text(random, n)}`, size: count(random, 100) })),
      }),
      rescore: () => ({ window_size: count(random, 10_000), query: { rescore_query: query(random) } }),
      knn: () =>
        listed(random, 10, (at) => ({
          field: 'v',
          query_vector: many(8, () => at),
          k: count(random, 10_000),
          num_candidates: 10_000,
        })),
      track_total_hits: true,
    },
    0.25,
  ),
});

export const aggregationBody = (random) => ({
  size: 0,
  aggs: aggregations(random),
  ...some(random, { query: () => query(random), profile: true }, 0.1),
});
export const anyBody = (random) => random.pick([searchBody, aggregationBody, retrieverBody])(random);

function retriever(random, levels) {
  const window = { rank_window_size: count(random, 10_000) };
  const name = random.chance(0.3) ? { _name: text(random, 30) } : {};
  const children = (make) => listed(random, random.pick([2, 10, 100]), () => make(retriever(random, levels - 1)));
  return random.weighted([
    [2, () => ({ standard: { query: query(random), ...name } })],
    [
      1,
      () => ({
        knn: { field: 'v', query_vector: many(8, () => 1), k: count(random, 10_000), num_candidates: 10_000, ...name },
      }),
    ],
    ...(levels === 0
      ? []
      : [
          [2, () => ({ rrf: { retrievers: children((one) => one), ...window, ...name } })],
          [
            1,
            () => ({
              linear: {
                retrievers: children((one) => ({ retriever: one, weight: 1, normalizer: 'minmax' })),
                ...window,
              },
            }),
          ],
          [
            1,
            () => ({
              rescorer: {
                retriever: retriever(random, levels - 1),
                rescore: { window_size: 10_000, query: { rescore_query: query(random) } },
              },
            }),
          ],
        ]),
  ])();
}
export const retrieverBody = (random) => ({
  retriever: retriever(random, 1 + random.below(2)),
  size: count(random, 10_000),
  ...hitParts(random),
});
