// The figures of the table in docs/limits.md are those of the sources.
import { expect, it } from 'vitest';

import { read, rowsOf } from './pages.js';

const text = read('docs/limits.md');
const section = text.slice(text.indexOf('## In one table'), text.indexOf('## Memory'));
const rows = rowsOf(section).filter(([, limit]) => limit !== '');

const SETTINGS = 'crates/catalog/src/known_settings.rs';

/** Where each figure comes from: a file, and the name of a constant or a setting in it. */
const SOURCES: Readonly<Record<string, readonly [file: string, name: string]>> = {
  'bytes of an index name': ['crates/catalog/src/names.rs', 'MAX_BYTES'],
  'fields of an index': [SETTINGS, 'mapping.total_fields.limit'],
  'fields of an index, whatever is set': ['crates/mapping/src/types.rs', 'MOST_TOTAL_FIELDS'],
  '`dynamic_templates` of a new mapping': ['crates/mapping/src/dynamic.rs', 'MOST_TEMPLATES'],
  'patterns of all `dynamic_templates` of a new mapping': ['crates/mapping/src/dynamic.rs', 'MOST_TEMPLATE_PATTERNS'],
  'levels of objects in a mapping': [SETTINGS, 'mapping.depth.limit'],
  'characters of the name of a field': ['crates/mapping/src/types.rs', 'LONGEST_NAME'],
  'fields of type `nested`': [SETTINGS, 'mapping.nested_fields.limit'],
  'objects of `nested` fields in a document': [SETTINGS, 'mapping.nested_objects.limit'],
  'contexts of the inputs of `completion` fields in a document': [
    'crates/mapping/src/document/completion.rs',
    'MOST_CONTEXTS',
  ],
  'keys of a `flattened` object in a document': ['crates/mapping/src/document/flattened.rs', 'MOST_PATHS'],
  'different keys of the `flattened` objects of an index': ['crates/catalog/src/flattened_keys.rs', 'MOST_KEYS'],
  'dimensions of a dense vector': ['crates/mapping/src/dense.rs', 'MAX_DIMS'],
  'bytes of a `keyword` value': ['crates/mapping/src/document/leaf.rs', 'MAX_TERM'],
  'templates of each kind': ['crates/catalog/src/templates/mod.rs', 'MOST'],
  'steps that the patterns of a request take over names of indices and aliases': [
    'crates/request/src/name_steps.rs',
    'MOST_STEPS',
  ],
  'indices and aliases that a request to `_aliases` names, and changes that it makes': [
    'crates/admin/src/alias_api.rs',
    'MAX_CHANGES',
  ],
  'bytes of an id': ['crates/catalog/src/ids.rs', 'MAX_ID_BYTES'],
  'levels of objects in a document': ['crates/wire/src/strict_json.rs', 'MOST_LEVELS'],
  'passages of a document': ['crates/mapping/src/passages.rs', 'MAX_PASSAGES'],
  'tokens of a text that a model reads': ['crates/encoder/src/model/layout.rs', 'MAX_TOKENS'],
  'bytes of a body': ['packages/http/src/config.ts', 'maxBodyBytes'],
  'values (numbers, texts, lists, objects) in a body that holds no documents, or in one of several searches': [
    'crates/engine/src/operations.rs',
    'MOST_VALUES',
  ],
  'hits of a page: `from` and `size` together': [SETTINGS, 'max_result_window'],
  'hits that are counted exactly, unless you ask for more': ['crates/search-body/src/body.rs', 'DEFAULT_TRACKED_HITS'],
  'clauses of a query': ['crates/query/src/lib.rs', 'MAX_CLAUSES'],
  'queries by vectors or on `semantic_text` fields in a search over a cluster': [
    'packages/cluster/src/queries.ts',
    'MAX_NEAR',
  ],
  'words of an `intervals`, and rules that stand for words, in it': [
    'crates/tantivy-index/src/query/kinds/intervals/node.rs',
    'MOST_PARTS',
  ],
  'contexts that a `completion` asks for, each cell of a place being one': [
    'crates/mapping/src/completion_contexts.rs',
    'MOST_ASKED',
  ],
  'levels of nested queries': ['crates/query/src/kinds/dsl/mod.rs', 'MAX_DEPTH'],
  'names and patterns in a list of fields, and in the `_source` of a request or of a new mapping': [
    'crates/wire/src/glob.rs',
    'MOST_PATTERNS',
  ],
  'characters of a script': ['crates/scripts/src/script.rs', 'MOST_CHARACTERS'],
  'regular expressions of a script': ['crates/scripts/src/parser/literals.rs', 'MOST_PATTERNS'],
  'script fields of a search': ['crates/search-body/src/script_fields.rs', 'MOST_SCRIPT_FIELDS'],
  'groups of statistics that a search names': ['crates/search-body/src/body.rs', 'MOST_STATS_GROUPS'],
  'groups of statistics that an index keeps': ['crates/catalog/src/search_groups.rs', 'MOST_GROUPS'],
  'values of `terms`': [SETTINGS, 'max_terms_count'],
  'characters of a `regexp`': [SETTINGS, 'max_regex_length'],
  'terms that the patterns of a request may examine': ['crates/runtime/src/work/limits.rs', 'MOST_EFFORT'],
  '`num_candidates` of kNN': ['crates/query/src/neighbours.rs', 'MAX_CANDIDATES'],
  'levels of nested retrievers': ['crates/search-body/src/retriever/parse.rs', 'MAX_DEPTH'],
  'ranked lists of a search': ['crates/search-body/src/retriever/mod.rs', 'MAX_LISTS'],
  'window of a fusion': ['crates/search-body/src/window.rs', 'MAX_WINDOW'],
  'window of a rescore': [SETTINGS, 'max_rescore_window'],
  'keys of a sort': ['crates/tantivy-index/src/query/search/sorted/mod.rs', 'MAX_SORT_KEYS'],
  'numbers that `bucket_script` and `bucket_selector` read of a bucket, and keys of `bucket_sort` and of an `order`': [
    'crates/search-body/src/aggs/parse/parameter_reader.rs',
    'MOST_PATHS',
  ],
  'buckets in the window of `moving_fn`': ['crates/search-body/src/aggs/parse/moving.rs', 'MOST_WINDOW'],
  'documents that `pinned` names': ['crates/query/src/kinds/pinned.rs', 'MOST'],
  'parts of a text that `chunk_rescorer` reads': ['crates/search-body/src/retriever/rerank.rs', 'MOST_CHUNKS'],
  'hits for which `explain` names words': ['crates/search/src/explain/mod.rs', 'MAX_ATTRIBUTED'],
  'buckets of a response': ['crates/catalog/src/cluster_settings.rs', 'search.max_buckets'],
  'aggregations of a request': ['crates/search-body/src/aggs/parse/mod.rs', 'MOST_AGGREGATIONS'],
  'levels of nested aggregations': ['crates/search-body/src/aggs/parse/mod.rs', 'MOST_LEVELS'],
  'characters of what an answer repeats: a name, a key, a separator, a tag, a `missing`': [
    'crates/wire/src/lib.rs',
    'MOST_REPEATED',
  ],
  'characters of a format of dates or numbers': ['crates/wire/src/date_format/mod.rs', 'MOST_FORMAT'],
  'bytes of the `meta` of an aggregation': ['crates/search-body/src/aggs/parse/mod.rs', 'MOST_META'],
  'open scrolls': ['crates/catalog/src/cluster_settings.rs', 'search.max_open_scroll_context'],
  'open points in time': ['crates/search/src/contexts.rs', 'MAX_OPEN'],
  'texts that wait for a model': ['crates/models/src/deployments.rs', 'DEFAULT_QUEUE_CAPACITY'],
  'models created by requests': ['crates/models/src/manage.rs', 'MOST_MODELS'],
  'added tokens of a `tokenizer.json`': ['crates/encoder/src/tokenizer/parts.rs', 'MOST_ADDED'],
  'bytes of all added tokens of a `tokenizer.json`': ['crates/encoder/src/tokenizer/parts.rs', 'MOST_ADDED_BYTES'],
  'rules in lists, and pieces of templates, of a `tokenizer.json`': [
    'crates/encoder/src/tokenizer/parts.rs',
    'MOST_PARTS',
  ],
  'bytes of a pattern in a `tokenizer.json`': ['crates/encoder/src/tokenizer/parts.rs', 'MOST_PATTERN'],
  '`max_input_chars_per_word` of a `tokenizer.json`': ['crates/encoder/src/tokenizer/parts.rs', 'MOST_WORD'],
  'texts of a request to `/v1/embeddings`': ['packages/http/src/openai/embeddings.ts', 'MOST_TEXTS'],
  'documents of a request to `/v1/rerank`': ['packages/http/src/openai/rerank.ts', 'MOST_TEXTS'],
  'separators of `recursive` chunking': ['crates/mapping/src/chunking.rs', 'MOST_SEPARATORS'],
  'pipelines that a document runs through': ['crates/ingest/src/effort.rs', 'MOST_PIPELINES'],
  'bytes that a regular expression of a processor is compiled to': ['crates/ingest/src/config.rs', 'EXPRESSION_BYTES'],
  'bytes that a pipeline adds to a document': ['crates/ingest/src/effort.rs', 'MOST_ADDED'],
  "bytes of the terms of a document's texts": ['crates/segments/src/plugins/texts/document.rs', 'MAX_TERM_BYTES'],
  'jobs at once (reindexing and the like)': ['crates/tasks/src/tasks.rs', 'MOST_RUNNING'],
  'documents between two checkpoints of a job': ['crates/jobs/src/plan.rs', 'MOST_PER_CHUNK'],
  'documents that a job with a `sort` takes': ['crates/jobs/src/run.rs', 'MOST_ORDERED'],
  'long operations at once': ['crates/engine/src/executor.rs', 'LONG_CAPACITY'],
  'requests that wait in a lane': ['crates/engine/src/executor/state.rs', 'LANE_CAPACITY'],
  'snapshots of a repository': ['crates/snapshots/src/settings.rs', 'DEFAULT_SNAPSHOTS'],
  'bytes of a store of the data directory, or of the file of a snapshot': [
    'crates/file-system/src/operations.rs',
    'MOST_WHOLE',
  ],
  'bytes of a `tokenizer.json`': ['crates/encoder/src/small_file.rs', 'MOST'],
  'connections at once': ['packages/http/src/server.ts', 'MAX_CONNECTIONS'],
  'bytes of request line and headers': ['packages/http/src/server.ts', 'MAX_HEADER_BYTES'],
  'headers of a request': ['packages/http/src/exchange/header-lines.ts', 'MOST'],
  'bytes of a body in YAML': ['packages/http/src/exchange/yaml.ts', 'MAX_BODY'],
  'bodies in YAML of one key that wait to be read': ['packages/http/src/exchange/yaml.ts', 'MAX_OF_CALLER'],
  'bytes of a reason in an error': ['crates/wire/src/exception.rs', 'MAX_TEXT'],
  'bytes of a request body about keys, or for agents': ['packages/http/src/middleware/body.ts', 'MAX_LOCAL_BODY'],
  'messages for agents in one request': ['packages/http/src/mcp/bounds.ts', 'MOST_MESSAGES'],
  'values of JSON in a request for agents': ['packages/http/src/mcp/bounds.ts', 'MOST_VALUES'],
  'bytes of a request body to `/v1/embeddings` and the like': [
    'packages/endpoints/src/routes/openai-paths.ts',
    'MOST_BYTES',
  ],
  'values of JSON in a request body about keys': ['packages/http/src/security/request-body.ts', 'MOST_VALUES'],
  'API keys that a request names': ['packages/http/src/security/changes.ts', 'MOST_IDS'],
  'characters of an id by which a request names an API key': ['packages/http/src/security/changes.ts', 'MOST_ID'],
  'API keys': ['packages/http/src/config.ts', 'maxApiKeys'],
  'bytes of all API keys': ['packages/http/src/security/key-store.ts', 'MOST_BYTES'],
  'failed attempts per address and minute': ['packages/http/src/security/attempts.ts', 'MOST_FAILURES'],
};

/** The value that a source gives a name: of a constant, or the default of a setting. */
function valueOf([file, name]: readonly [string, string]): number {
  const source = read(file);
  const constant = new RegExp(String.raw`const ${name}(?:: \w+)? = ([\d_ *<]+);`).exec(source)?.[1];
  const setting = new RegExp(String.raw`\(\s*"${name.replaceAll('.', String.raw`\.`)}",[^"]*"(\d+)"`).exec(source)?.[1];
  const option = new RegExp(String.raw`\b${name}: setting\(\s*([\d_ *]+),`).exec(source)?.[1];
  const found = constant ?? setting ?? option;
  if (found === undefined) throw new Error(`${file} has no ${name}`);
  // A product or a shift of whole numbers.
  const [left = '', bits] = found.split('<<');
  const product = left.split('*').reduce((value, factor) => value * Number(factor.replaceAll('_', '').trim()), 1);
  return bits === undefined ? product : product * 2 ** Number(bits.trim());
}

function shown(limit: string): number {
  const [, number = '', unit] = /^([\d,]+)(?: (KiB|MiB))?/.exec(limit) ?? [];
  return Number(number.replaceAll(',', '')) * (unit === 'MiB' ? 2 ** 20 : unit === 'KiB' ? 2 ** 10 : 1);
}

it('every row of the table has its source', () => {
  expect(rows.map(([what]) => what)).toEqual(Object.keys(SOURCES));
});

it.each(rows.map(([what = '', limit = '']) => [what, limit] as const))('%s: %s', (what, limit) => {
  const source = SOURCES[what];
  if (source === undefined) throw new Error(`where does the figure of [${what}] come from?`);
  expect(shown(limit)).toBe(valueOf(source));
});
