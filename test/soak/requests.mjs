// What the clients of the soak write, ask and get wrong. Texts come from a fixed set, so that what is kept of them (encodings, filters,
// dictionaries) has an end.

const WORDS =
  'river stone cloud harvest engine window market bridge garden winter letter doctor forest painter island harbor kitchen teacher mountain signal bread copper lantern voyage'.split(
    ' ',
  );
const TAGS = ['red', 'green', 'blue', 'amber', 'black'];
const TOKENS = Array.from({ length: 40 }, (_, at) => `token${at}`);
const BODIES = 400;
const DAY_MS = 86_400_000;

export const MODEL = '.sparse_encoder_model_2';

/** The mapping of the indices that are written to. */
export const PROPERTIES = {
  body: { type: 'text' },
  tag: { type: 'keyword' },
  n: { type: 'integer' },
  at: { type: 'date' },
  v: { type: 'sparse_vector' },
};

/** One of a fixed number of texts. */
function body(number) {
  return Array.from({ length: 6 }, (_, at) => WORDS[(number * (at + 3) + at * at) % WORDS.length]).join(' ');
}

/** The source of a document; `n` is what it is compared by. */
export function makeSource(random, n) {
  const tokens = Array.from({ length: 3 }, () => [random.pick(TOKENS), (1 + random.below(40)) / 8]);
  return {
    body: body(random.below(BODIES)),
    tag: random.pick(TAGS),
    n,
    at: 1_600_000_000_000 + random.below(365) * DAY_MS,
    v: Object.fromEntries(tokens),
  };
}

const words = (random) => `${random.pick(WORDS)} ${random.pick(WORDS)}`;
const expansion = (random) => ({
  text_expansion: { embedding: { model_id: MODEL, model_text: body(random.below(60)) } },
});

/** The bodies of searches by what they are; each gets the generator. */
export const SEARCHES = {
  expansion: { index: 'soak-embedded', body: (random) => ({ query: expansion(random), size: 10 }) },
  queryString: {
    index: 'soak-a,soak-b',
    body: (random) => ({
      query: {
        bool: {
          must: {
            query_string: { query: `body:(${random.pick(WORDS)} OR ${random.pick(WORDS)}~1) AND NOT tag:amber` },
          },
          filter: [{ terms: { tag: [random.pick(TAGS), random.pick(TAGS)] } }, { range: { n: { gte: 0 } } }],
        },
      },
      highlight: { fields: { body: {} } },
    }),
  },
  filters: {
    index: 'soak-*',
    body: (random) => ({
      query: {
        bool: {
          filter: [{ term: { tag: random.pick(TAGS) } }, { range: { at: { gte: '2020-10-01', lt: '2021-04-01' } } }],
        },
      },
      sort: [{ n: 'desc' }, '_doc'],
      size: 20,
    }),
  },
  sparse: {
    index: 'soak-a',
    body: (random) => ({
      query: { sparse_vector: { field: 'v', query_vector: { [random.pick(TOKENS)]: 2, [random.pick(TOKENS)]: 0.5 } } },
    }),
  },
  aggregations: {
    index: 'soak-a,soak-b',
    body: (random) => ({
      size: 0,
      query: { match: { body: words(random) } },
      aggs: {
        tags: { terms: { field: 'tag' }, aggs: { mean: { avg: { field: 'n' } }, top: { top_hits: { size: 2 } } } },
        months: { date_histogram: { field: 'at', calendar_interval: 'month' } },
        different: { cardinality: { field: 'n' } },
      },
    }),
  },
  retriever: {
    index: 'soak-embedded',
    body: (random) => ({
      retriever: {
        rrf: {
          retrievers: [
            { standard: { query: { match: { body: words(random) } } } },
            { standard: { query: expansion(random) } },
          ],
          rank_window_size: 20,
        },
      },
    }),
  },
  rank: {
    index: 'soak-embedded',
    body: (random) => ({
      sub_searches: [{ query: { match: { body: words(random) } } }, { query: expansion(random) }],
      rank: { rrf: { window_size: 20, rank_constant: 20 } },
      size: 10,
    }),
  },
};

/** Requests that are wrong, and the status that each is answered with. */
export const MISTAKES = [
  [400, { method: 'POST', path: '/soak-a/_search', body: '{"query": {"match":' }],
  [400, { method: 'POST', path: '/soak-a/_search', body: { query: { matches: { body: 'x' } } } }],
  [400, { method: 'POST', path: '/soak-a/_search', body: { from: 9000, size: 9000 } }],
  [400, { method: 'POST', path: '/soak-a/_search', body: { query: { query_string: { query: 'body:(' } } } }],
  [400, { method: 'POST', path: '/_bulk', text: '{"indexed":{}}\n{}\n' }],
  [400, { method: 'POST', path: '/soak-a/_doc', body: { n: 'not a number' } }],
  [400, { method: 'PUT', path: '/Soak-Upper', body: {} }],
  [400, { method: 'PUT', path: '/_ingest/pipeline/soak-wrong', body: { processors: [{ nothing: {} }] } }],
  [404, { method: 'GET', path: '/soak-not-there/_search' }],
  [404, { method: 'GET', path: '/soak-a/_doc/not-there' }],
  [400, { method: 'POST', path: '/_search/scroll', body: { scroll_id: 'c2NhbjsxOw==' } }],
  [405, { method: 'PUT', path: '/_search', body: {} }],
  [409, { method: 'PUT', path: '/soak-a/_doc/0-0?if_seq_no=999999999&if_primary_term=1', body: { n: 1 } }],
];
