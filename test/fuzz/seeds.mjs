// Good requests of every family, for mutations to start from. Besides these there are the recorded ones (test/fixtures/recorded).

const term = { term: { tag: 'a' } };
const match = {
  match: { title: { query: 'brown fox', operator: 'and', fuzziness: 'AUTO', minimum_should_match: '75%' } },
};
const terms = { terms: { field: 'tag', size: 5, order: [{ _count: 'desc' }, { _key: 'asc' }], min_doc_count: 0 } };

const QUERIES = [
  term,
  match,
  {
    bool: {
      must: [match],
      filter: [term],
      should: [{ match_all: { boost: 2 } }],
      must_not: [{ exists: { field: 'x' } }],
      minimum_should_match: 1,
    },
  },
  {
    query_string: {
      query: '(title:fox OR "quick brown"~2^3) AND n:[1 TO 5} AND NOT tag:/a.*|b{2,3}/',
      fields: ['title^2', 'tag'],
      default_operator: 'AND',
    },
  },
  {
    simple_query_string: {
      query: '"fried eggs" +(eggplant | potato) -frittata fo* ab~1',
      fields: ['title'],
      flags: 'OR|AND|PREFIX',
    },
  },
  {
    regexp: {
      tag: { value: 'a[b-d]{1,3}(e|f)?<1-20>~g', flags: 'ALL', max_determinized_states: 1000, case_insensitive: true },
    },
  },
  { wildcard: { tag: { value: 'a*b?c', case_insensitive: true, rewrite: 'constant_score' } } },
  { prefix: { tag: { value: 'a' } } },
  { fuzzy: { tag: { value: 'abc', fuzziness: 2, prefix_length: 1, max_expansions: 50, transpositions: true } } },
  {
    range: {
      date: {
        gte: 'now-1d/d',
        lt: '2030-01-01||+1M/d',
        format: 'strict_date||epoch_millis',
        time_zone: '+01:00',
        relation: 'within',
      },
    },
  },
  { range: { n: { gt: 1, lte: 5, boost: 2 } } },
  { ids: { values: ['1', '2'] } },
  { match_phrase: { title: { query: 'quick brown', slop: 2, zero_terms_query: 'all' } } },
  { match_phrase_prefix: { title: { query: 'quick br', max_expansions: 10 } } },
  { match_bool_prefix: { title: 'quick br' } },
  { multi_match: { query: 'brown fox', fields: ['title^3', 'tag'], type: 'cross_fields', tie_breaker: 0.3 } },
  {
    intervals: {
      title: {
        all_of: {
          ordered: true,
          max_gaps: 3,
          intervals: [{ match: { query: 'quick' } }, { any_of: { intervals: [{ prefix: { prefix: 'br' } }] } }],
          filter: { not_containing: { match: { query: 'x' } } },
        },
      },
    },
  },
  {
    function_score: {
      query: match,
      functions: [
        { filter: term, weight: 3 },
        { gauss: { n: { origin: 1, scale: 2, offset: 1, decay: 0.3 } } },
        { field_value_factor: { field: 'n', factor: 1.2, modifier: 'log1p', missing: 1 } },
        { random_score: { seed: 1, field: '_seq_no' } },
      ],
      score_mode: 'sum',
      boost_mode: 'multiply',
      max_boost: 10,
    },
  },
  { constant_score: { filter: term, boost: 1.2 } },
  { dis_max: { queries: [term, match], tie_breaker: 0.7 } },
  { boosting: { positive: match, negative: term, negative_boost: 0.5 } },
  {
    more_like_this: {
      fields: ['title'],
      like: ['a fox', { _index: 'books', _id: '1' }],
      min_term_freq: 1,
      min_doc_freq: 1,
      max_query_terms: 12,
    },
  },
  { rank_feature: { field: 'v.fox', saturation: { pivot: 8 } } },
  {
    sparse_vector: {
      field: 'v',
      query_vector: { fox: 1.5, dog: 0.2 },
      prune: true,
      pruning_config: { tokens_freq_ratio_threshold: 5, tokens_weight_threshold: 0.4 },
    },
  },
  { text_expansion: { v: { model_id: '.elser_model_2', model_text: 'a fox' } } },
  { knn: { field: 'e', query_vector: [0.1, 0.2, 0.3], k: 3, num_candidates: 10, filter: term, similarity: 0.1 } },
  { semantic: { field: 's', query: 'where is the fox' } },
  { nested: { path: 'o', query: { term: { 'o.a': 1 } }, score_mode: 'avg' } },
  { terms: { tag: ['a', 'b'] } },
  { terms: { tag: { index: 'books', id: '1', path: 'tag' } } },
  { terms_set: { tag: { terms: ['a', 'b'], minimum_should_match_field: 'n' } } },
  { pinned: { ids: ['1'], organic: match } },
  { wrapper: { query: Buffer.from('{"term":{"tag":"a"}}').toString('base64') } },
  { combined_fields: { query: 'fox', fields: ['title'] } },
  { distance_feature: { field: 'date', pivot: '7d', origin: 'now' } },
];

const AGGREGATIONS = [
  { a: { ...terms, aggs: { b: { avg: { field: 'n' } }, c: { bucket_sort: { sort: [{ b: 'desc' }], size: 2 } } } } },
  {
    a: {
      date_histogram: {
        field: 'date',
        calendar_interval: 'month',
        time_zone: 'Europe/Berlin',
        offset: '+1d',
        extended_bounds: { min: '2020-01-01', max: '2020-06-01' },
        min_doc_count: 0,
      },
    },
  },
  { a: { date_histogram: { field: 'date', fixed_interval: '12h', format: 'yyyy-MM-dd', keyed: true } } },
  { a: { histogram: { field: 'n', interval: 2, offset: 1, hard_bounds: { min: 0, max: 10 } } } },
  { a: { range: { field: 'n', ranges: [{ to: 2 }, { from: 2, to: 4, key: 'm' }, { from: 4 }] } } },
  { a: { date_range: { field: 'date', ranges: [{ from: 'now-10y/y', to: 'now' }] } } },
  { a: { ip_range: { field: 'ip', ranges: [{ mask: '10.0.0.0/8' }] } } },
  { a: { filters: { filters: { x: term, y: match }, other_bucket: true } } },
  { a: { adjacency_matrix: { filters: { x: term, y: match } } } },
  {
    a: {
      composite: {
        size: 3,
        sources: [
          { t: { terms: { field: 'tag', missing_bucket: true } } },
          { h: { histogram: { field: 'n', interval: 2 } } },
        ],
        after: { t: 'a', h: 2 },
      },
    },
  },
  { a: { percentiles: { field: 'n', percents: [1, 50, 99.9], tdigest: { compression: 100 } } } },
  { a: { percentile_ranks: { field: 'n', values: [1, 2], hdr: { number_of_significant_value_digits: 3 } } } },
  { a: { cardinality: { field: 'tag', precision_threshold: 100 } } },
  { a: { extended_stats: { field: 'n', sigma: 2 } } },
  { a: { top_hits: { size: 2, sort: [{ n: 'desc' }], _source: ['title'], highlight: { fields: { title: {} } } } } },
  { a: { significant_terms: { field: 'tag', min_doc_count: 1, jlh: {} } } },
  { a: { significant_text: { field: 'title', filter_duplicate_text: true } } },
  { a: { sampler: { shard_size: 10 }, aggs: { b: terms } } },
  { a: { multi_terms: { terms: [{ field: 'tag' }, { field: 'n' }] } } },
  { a: { rare_terms: { field: 'tag', max_doc_count: 2 } } },
  { a: { auto_date_histogram: { field: 'date', buckets: 5 } } },
  { a: { variable_width_histogram: { field: 'n', buckets: 2 } } },
  { a: { weighted_avg: { value: { field: 'n' }, weight: { field: 'n', missing: 1 } } } },
  {
    a: {
      histogram: { field: 'n', interval: 1 },
      aggs: {
        s: { sum: { field: 'n' } },
        d: { derivative: { buckets_path: 's' } },
        c: { cumulative_sum: { buckets_path: 's' } },
        m: { moving_fn: { buckets_path: 's', window: 3, script: 'MovingFunctions.min(values)' } },
      },
    },
    z: { max_bucket: { buckets_path: 'a>s' } },
  },
  { a: { missing: { field: 'nothing' } }, b: { global: {}, aggs: { c: { value_count: { field: 'n' } } } } },
  { a: { nested: { path: 'o' }, aggs: { b: { reverse_nested: {} } } } },
  {
    a: { string_stats: { field: 'tag' } },
    b: { median_absolute_deviation: { field: 'n' } },
    c: { boxplot: { field: 'n' } },
  },
];

const SEARCHES = [
  {
    query: match,
    from: 1,
    size: 3,
    sort: [{ n: { order: 'desc', missing: '_last', unmapped_type: 'long', mode: 'max' } }, '_score', { _doc: 'asc' }],
    track_total_hits: 3,
    min_score: 0.1,
  },
  { query: match, search_after: [3, 'a'], sort: [{ n: 'asc' }, { tag: 'desc' }], size: 2 },
  {
    query: match,
    highlight: {
      pre_tags: ['<b>'],
      post_tags: ['</b>'],
      fields: {
        title: {
          type: 'unified',
          number_of_fragments: 2,
          fragment_size: 20,
          highlight_query: term,
          boundary_scanner: 'word',
        },
        '*': {},
      },
    },
  },
  {
    query: match,
    _source: { includes: ['ti*'], excludes: ['o.*'] },
    fields: ['title', { field: 'date', format: 'epoch_millis' }],
    docvalue_fields: ['n'],
    stored_fields: ['_none_'],
    explain: true,
    version: true,
    seq_no_primary_term: true,
  },
  {
    query: match,
    collapse: {
      field: 'tag',
      inner_hits: { name: 'i', size: 2, sort: [{ n: 'asc' }] },
      max_concurrent_group_searches: 2,
    },
  },
  {
    query: match,
    rescore: [
      {
        window_size: 10,
        query: { rescore_query: term, query_weight: 0.7, rescore_query_weight: 1.2, score_mode: 'max' },
      },
    ],
  },
  {
    retriever: {
      rrf: {
        retrievers: [
          { standard: { query: match } },
          { knn: { field: 'e', query_vector: [1, 0, 0], k: 3, num_candidates: 10 } },
        ],
        rank_window_size: 10,
        rank_constant: 60,
      },
    },
  },
  {
    retriever: {
      linear: {
        retrievers: [{ retriever: { standard: { query: match } }, weight: 2, normalizer: 'minmax' }],
        rank_window_size: 10,
      },
    },
  },
  {
    retriever: {
      text_similarity_reranker: {
        retriever: { standard: { query: match } },
        field: 'title',
        inference_text: 'fox',
        rank_window_size: 5,
      },
    },
  },
  { knn: [{ field: 'e', query_vector: [0.1, 0.2, 0.3], k: 2, num_candidates: 5, boost: 2 }], query: term },
  {
    knn: {
      field: 'e',
      query_vector_builder: { text_embedding: { model_id: '.all-minilm-l6-v2', model_text: 'fox' } },
      k: 2,
      num_candidates: 5,
    },
  },
  {
    suggest: {
      text: 'quik',
      a: { term: { field: 'title', suggest_mode: 'always' } },
      b: { phrase: { field: 'title' } },
      c: { prefix: 'qu', completion: { field: 'c', fuzzy: { fuzziness: 1, unicode_aware: true } } },
      d: {
        prefix: 'qu',
        completion: { field: 'cc', contexts: { g: [{ context: { lat: 1, lon: 2 }, neighbours: [3], boost: 2 }] } },
      },
    },
    query: match,
  },
  {
    query: match,
    profile: true,
    timeout: '1s',
    terminate_after: 2,
    stats: ['a'],
    indices_boost: [{ books: 2 }],
    slice: { id: 0, max: 2 },
    post_filter: term,
  },
  { query: match, runtime_mappings: { r: { type: 'keyword' } }, script_fields: { a: { script: '1' } }, ext: {} },
  ...QUERIES.map((query) => ({ query, size: 2 })),
  ...AGGREGATIONS.map((aggs) => ({ size: 0, aggs })),
];

const processors = [
  { set: { field: 'a', value: '{{title}}', override: false } },
  { gsub: { field: 'title', pattern: 'f(o+)', replacement: '$1' } },
  { date: { field: 'd', formats: ['yyyy-MM-dd', 'ISO8601', 'UNIX_MS'], timezone: 'UTC', ignore_failure: true } },
  { dissect: { field: 'title', pattern: '%{a} %{+a/2} %{?b}', ignore_failure: true } },
  { kv: { field: 'title', field_split: ' ', value_split: '=', ignore_failure: true } },
  { csv: { field: 'title', target_fields: ['x', 'y'], ignore_failure: true } },
  { foreach: { field: 'l', processor: { uppercase: { field: '_ingest._value' } }, ignore_failure: true } },
  { convert: { field: 'n', type: 'integer', ignore_failure: true } },
  { html_strip: { field: 'title' } },
  { json: { field: 'title', ignore_failure: true } },
  { rename: { field: 'title', target_field: 't.u', ignore_missing: true } },
  { dot_expander: { field: '*' } },
  { date_index_name: { field: 'd', date_rounding: 'M', index_name_prefix: 'm-', ignore_failure: true } },
  { uri_parts: { field: 'u', ignore_failure: true } },
  {
    inference: {
      model_id: '.elser_model_2',
      input_output: [{ input_field: 'title', output_field: 'v' }],
      ignore_failure: true,
    },
  },
  { script: { source: 'ctx.a = 1', ignore_failure: true } },
  { sort: { field: 'l', order: 'desc', ignore_failure: true } },
  { split: { field: 'title', separator: '\\s+' } },
  { pipeline: { name: 'p', ignore_missing_pipeline: true } },
  { fail: { message: 'no {{title}}', if: 'ctx.x == 1' } },
];

/** A document of the index that the seeds are about. */
const doc = (n) => ({
  ...{ title: `quick brown fox ${n}`, tag: ['a', 'b', 'c'][n % 3], n, date: `2020-0${1 + (n % 9)}-01`, ip: '10.0.0.1' },
  ...{ v: { fox: 1 + n, dog: 0.5 }, e: [0.1 * n, 0.2, 0.3], o: [{ a: n }], flag: n % 2 === 0 },
});

/** What is there before the first input, and again after the indices are removed. */
export const WORLD = [
  {
    method: 'PUT',
    path: '/books',
    body: {
      settings: { number_of_replicas: 0 },
      mappings: {
        properties: {
          ...{
            title: { type: 'text' },
            tag: { type: 'keyword' },
            n: { type: 'integer' },
            date: { type: 'date' },
            ip: { type: 'ip' },
          },
          ...{
            v: { type: 'sparse_vector' },
            e: { type: 'dense_vector', dims: 3 },
            o: { type: 'object' },
            flag: { type: 'boolean' },
          },
        },
      },
    },
  },
  {
    method: 'POST',
    path: '/books/_bulk?refresh=true',
    text: Array.from({ length: 12 }, (_, n) => `{"index":{"_id":"${n}"}}\n${JSON.stringify(doc(n))}\n`).join(''),
  },
  { method: 'PUT', path: '/_ingest/pipeline/p', body: { processors: [processors[0]] } },
  { method: 'PUT', path: '/_snapshot/r', body: { type: 'fs', settings: { location: 'r' } } },
];

export const SEEDS = [
  ...WORLD,
  ...SEARCHES.map((body) => ({ method: 'POST', path: '/books/_search', body })),
  ...QUERIES.map((query) => ({ method: 'POST', path: '/books/_count', body: { query } })),
  ...QUERIES.slice(0, 8).map((query) => ({ method: 'POST', path: '/books/_explain/1', body: { query } })),
  ...QUERIES.map((query) => ({ method: 'POST', path: '/books/_validate/query?explain=true', body: { query } })),
  {
    method: 'POST',
    path: '/_msearch',
    text: `{"index":"books"}\n${JSON.stringify(SEARCHES[0])}\n{}\n${JSON.stringify(SEARCHES[1])}\n`,
  },
  { method: 'PUT', path: '/books/_doc/1?refresh=true', body: doc(1) },
  { method: 'PUT', path: '/books/_create/x', body: doc(2) },
  {
    method: 'POST',
    path: '/books/_update/1',
    body: { doc: { n: 3 }, doc_as_upsert: true, detect_noop: true, _source: true },
  },
  {
    method: 'POST',
    path: '/_bulk',
    text: '{"index":{"_index":"books","_id":"1","if_seq_no":1,"if_primary_term":1}}\n{"n":1}\n{"update":{"_index":"books","_id":"2","retry_on_conflict":2}}\n{"doc":{"n":2}}\n{"delete":{"_index":"books","_id":"3"}}\n{"create":{"_index":"other","pipeline":"p","dynamic_templates":{"a":"b"}}}\n{"a":{"b":"c"}}\n',
  },
  {
    method: 'POST',
    path: '/_mget',
    body: {
      docs: [
        { _index: 'books', _id: '1', _source: ['n'] },
        { _index: 'books', _id: '2', stored_fields: ['n'] },
      ],
    },
  },
  {
    method: 'POST',
    path: '/books/_termvectors/1',
    body: { fields: ['title'], offsets: true, term_statistics: true, filter: { max_num_terms: 3 } },
  },
  { method: 'POST', path: '/books/_mtermvectors', body: { ids: ['1', '2'], parameters: { fields: ['title'] } } },
  {
    method: 'POST',
    path: '/_analyze',
    body: {
      tokenizer: 'standard',
      char_filter: ['html_strip', { type: 'mapping', mappings: ['a => b'] }],
      filter: [
        'lowercase',
        { type: 'stop', stopwords: ['the'] },
        { type: 'edge_ngram', min_gram: 1, max_gram: 2 },
        { type: 'synonym', synonyms: ['a, b => c'] },
        { type: 'shingle' },
      ],
      text: ['<b>The</b> Quick', 'fox'],
      explain: true,
      attributes: ['keyword'],
    },
  },
  { method: 'POST', path: '/books/_analyze', body: { field: 'title', text: 'Quick fox' } },
  {
    method: 'PUT',
    path: '/books/_mapping',
    body: {
      properties: {
        extra: {
          type: 'text',
          analyzer: 'english',
          fields: { k: { type: 'keyword', ignore_above: 20, null_value: 'x' } },
          copy_to: ['title'],
        },
        d2: { type: 'date', format: 'yyyy||epoch_second' },
        o2: { properties: { x: { type: 'long' } }, dynamic: 'strict' },
        f: { type: 'flattened' },
        c: { type: 'completion', preserve_separators: false, max_input_length: 9 },
        cc: { type: 'completion', contexts: [{ name: 'g', type: 'geo', precision: '5km', path: 'at' }] },
        r: { type: 'integer_range' },
        tc: { type: 'token_count', analyzer: 'standard' },
        s2: { type: 'semantic_text', inference_id: '.elser-2-elasticsearch' },
        al: { type: 'alias', path: 'title' },
      },
      dynamic_templates: [{ t: { match_mapping_type: 'string', match: 'a*', mapping: { type: 'keyword' } } }],
      _source: { excludes: ['z'] },
      date_detection: true,
      numeric_detection: true,
    },
  },
  {
    method: 'PUT',
    path: '/books/_settings',
    body: { index: { refresh_interval: '1s', max_result_window: 10000, 'search.slowlog.threshold.query.warn': '10s' } },
  },
  {
    method: 'PUT',
    path: '/analyzed',
    body: {
      settings: {
        analysis: {
          analyzer: { mine: { type: 'custom', tokenizer: 't', filter: ['lowercase', 's'], char_filter: ['c'] } },
          tokenizer: { t: { type: 'pattern', pattern: '\\W+' } },
          filter: { s: { type: 'snowball', language: 'German' } },
          char_filter: { c: { type: 'pattern_replace', pattern: '(\\d+)', replacement: '#$1' } },
          normalizer: { nn: { type: 'custom', filter: ['asciifolding'] } },
        },
        index: { sort: {} },
      },
      mappings: { properties: { a: { type: 'text', analyzer: 'mine' } } },
      aliases: { all: { filter: term, routing: '1', is_write_index: true } },
    },
  },
  {
    method: 'POST',
    path: '/_aliases',
    body: {
      actions: [
        { add: { index: 'books', alias: 'b', filter: term } },
        { remove: { index: 'books', alias: 'gone', must_exist: false } },
      ],
    },
  },
  {
    method: 'PUT',
    path: '/_index_template/t',
    body: {
      index_patterns: ['t-*'],
      priority: 5,
      template: { settings: { number_of_shards: 1 }, mappings: { properties: { a: { type: 'keyword' } } } },
      composed_of: ['c'],
      ignore_missing_component_templates: ['c'],
    },
  },
  {
    method: 'PUT',
    path: '/_component_template/c',
    body: { template: { mappings: { properties: { b: { type: 'long' } } } } },
  },
  { method: 'PUT', path: '/_template/l', body: { index_patterns: ['l-*'], order: 1, mappings: { properties: {} } } },
  {
    method: 'POST',
    path: '/_ingest/pipeline/_simulate?verbose=true',
    body: {
      pipeline: { processors, on_failure: [{ set: { field: 'error', value: '{{_ingest.on_failure_message}}' } }] },
      docs: [{ _index: 'i', _id: '1', _source: { ...doc(1), d: '2020-01-01', l: [2, 1], u: 'http://a/b?c' } }],
    },
  },
  ...processors.map((processor) => ({
    method: 'POST',
    path: '/_ingest/pipeline/_simulate',
    body: {
      pipeline: { processors: [processor] },
      docs: [{ _source: { ...doc(1), d: '2020-01-01', l: ['2', '1'], u: 'http://a/b?c' } }],
    },
  })),
  {
    method: 'PUT',
    path: '/_ingest/pipeline/q',
    body: { description: 'd', version: 1, processors: processors.slice(0, 3), _meta: {} },
  },
  {
    method: 'POST',
    path: '/_reindex?wait_for_completion=true',
    body: {
      source: { index: 'books', query: match, size: 5, _source: ['n'], sort: [{ n: 'asc' }], slice: { id: 0, max: 2 } },
      dest: { index: 'copy', op_type: 'create', version_type: 'external', pipeline: 'p', routing: 'keep' },
      max_docs: 3,
      conflicts: 'proceed',
    },
  },
  { method: 'POST', path: '/books/_update_by_query?conflicts=proceed&slices=2', body: { query: term, max_docs: 2 } },
  {
    method: 'POST',
    path: '/books/_delete_by_query?scroll_size=5',
    body: { query: { term: { tag: 'nothing' } }, max_docs: 2 },
  },
  { method: 'POST', path: '/_search/scroll', body: { scroll: '1m', scroll_id: 'abc' } },
  { method: 'POST', path: '/books/_pit?keep_alive=1s' },
  { method: 'POST', path: '/_search', body: { pit: { id: 'abc', keep_alive: '1s' }, query: match } },
  { method: 'POST', path: '/books/_field_caps?fields=*', body: { index_filter: term, runtime_mappings: {} } },
  {
    method: 'POST',
    path: '/_ml/trained_models/.elser_model_2/_infer',
    body: {
      docs: [{ text_field: 'a fox' }],
      inference_config: {
        text_expansion: { results_field: 'r', tokenization: { bert: { truncate: 'first', span: -1 } } },
      },
    },
  },
  {
    method: 'PUT',
    path: '/_inference/sparse_embedding/mine',
    body: {
      service: 'elasticsearch',
      service_settings: {
        model_id: '.elser_model_2',
        num_allocations: 1,
        num_threads: 1,
        adaptive_allocations: { enabled: true, min_number_of_allocations: 0, max_number_of_allocations: 1 },
      },
      chunking_settings: { strategy: 'sentence', max_chunk_size: 50, sentence_overlap: 1 },
    },
  },
  {
    method: 'POST',
    path: '/_inference/sparse_embedding/.elser-2-elasticsearch',
    body: { input: ['a fox', 'a dog'], input_type: 'search' },
  },
  {
    method: 'PUT',
    path: '/_ml/trained_models/up',
    body: {
      model_type: 'pytorch',
      inference_config: { text_expansion: {} },
      input: { field_names: ['text_field'] },
      description: 'd',
      tags: ['x'],
    },
  },
  {
    method: 'PUT',
    path: '/_ml/trained_models/up/vocabulary',
    body: { vocabulary: ['[PAD]', '[UNK]', 'a'], merges: [], scores: [] },
  },
  {
    method: 'PUT',
    path: '/_ml/trained_models/up/definition/0',
    body: { definition: 'AAAA', total_definition_length: 4, total_parts: 2 },
  },
  {
    method: 'POST',
    path: '/_security/api_key',
    body: {
      name: 'k',
      expiration: '1d',
      role_descriptors: { r: { cluster: ['monitor'], indices: [{ names: ['b*'], privileges: ['read'] }] } },
      metadata: { a: 1 },
    },
  },
  {
    method: 'PUT',
    path: '/_cluster/settings',
    body: { persistent: { 'search.max_buckets': 1000 }, transient: { action: { destructive_requires_name: true } } },
  },
  { method: 'POST', path: '/books/_rollover', body: { conditions: { max_docs: 1, max_age: '1d', max_size: '1gb' } } },
  {
    method: 'PUT',
    path: '/_snapshot/r/s?wait_for_completion=true',
    body: { indices: 'books', include_global_state: false, metadata: { a: 1 } },
  },
  {
    method: 'POST',
    path: '/_snapshot/r/s/_restore?wait_for_completion=true',
    body: {
      indices: 'books',
      rename_pattern: '(.+)',
      rename_replacement: 'restored-$1',
      index_settings: { 'index.number_of_replicas': 0 },
      ignore_index_settings: ['index.refresh_interval'],
    },
  },
  { method: 'POST', path: '/books/_clone/cloned', body: { settings: { 'index.number_of_replicas': 0 }, aliases: {} } },
];
