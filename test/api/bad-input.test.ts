// Bad input, for every endpoint: each kind of it gets a 4xx of the documented shape, and leaves the state as it was.
import { ENDPOINTS, type Endpoint, parameter } from '@sparrow-search/server';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { BODIES, operationOf, pathOf, populate } from '../support/examples.js';
import { type Answer, type RunningServer, startServer } from '../support/server.js';

let server: RunningServer;

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
  await populate(server);
});

afterAll(async () => {
  await server.stop();
});

/** Operations whose body is a document: any key is good. */
const DOCUMENTS = new Set(['index_doc', 'create_doc']);

/** Keys without which a body means nothing. */
const REQUIRED: Readonly<Record<string, readonly string[]>> = {
  create_api_key: ['name'],
  invalidate_api_keys: ['ids'],
  update_aliases: ['actions'],
  analyze: ['text'],
  mget: ['docs'],
  close_point_in_time: ['id'],
  rank_eval: ['requests', 'metric'],
  terms_enum: ['field'],
  put_pipeline: ['processors'],
  simulate_pipeline: ['docs'],
  put_index_template: ['index_patterns'],
  put_component_template: ['template'],
  put_template: ['index_patterns'],
  update_deployment: ['number_of_allocations'],
  infer_trained_model: ['docs'],
  embed_sparse: ['inputs'],
  openai_embeddings: ['input', 'model'],
  cohere_rerank: ['model', 'query', 'documents'],
  reindex: ['source', 'dest'],
  search_template: ['source'],
  put_script: ['script'],
};

/** Operations that need a body, of whatever kind. */
const NEEDS_BODY = new Set([
  ...Object.keys(REQUIRED),
  ...['put_mapping', 'put_settings', 'index_doc', 'create_doc', 'update_doc', 'bulk', 'msearch', 'msearch_template'],
]);

const TYPES: Readonly<Record<string, readonly string[]>> = {
  boolean: ['maybe', '2'],
  integer: ['few', '99999999999', '1.5'],
  long: ['few', '99999999999999999999'],
  float: ['few', ''],
  time: ['soon', '5', '1.5s'],
};

const JSON_TYPE = { 'content-type': 'application/json' };
const DEEP = 20_000;

/** Bodies that are good for nothing: not JSON, not an object, or not to be read. */
const MALFORMED: readonly (readonly [string, string | Buffer])[] = [
  ['cut off', '{"a":'],
  ['not JSON', 'not json'],
  ['an unquoted key', '{a:1}'],
  ['something behind it', '{} {'],
  ['a list', '[]'],
  ['a string', '"text"'],
  ['a number', '5'],
  ['not UTF-8', Buffer.from([...Buffer.from('{"a":"'), 0xff, 0xfe, ...Buffer.from('"}')])],
  ['a byte order mark of UTF-16', Buffer.from('\ufeff{"a":1}', 'utf16le')],
  ['deep lists', `{"zzz":${'['.repeat(DEEP)}${']'.repeat(DEEP)}}`],
  ['deep objects', `${'{"zzz":'.repeat(DEEP)}1${'}'.repeat(DEEP)}`],
  ['a key twice', '{"zzz":1,"zzz":2}'],
  ['a number out of all bounds', '{"zzz":1e999999}'],
  ['a lone surrogate', '{"zzz":"\\ud800"}'],
];

/** What a search, a list of indices and the stored definitions say, to see that nothing changed. */
async function state(): Promise<unknown> {
  const paths = [
    '/_cat/indices?format=json&h=index,status,docs.count&s=index',
    '/_cat/aliases?format=json&h=alias,index&s=alias',
    '/_settings',
    '/_mapping',
    '/_ingest/pipeline',
    '/_index_template',
    '/_component_template',
    '/_template',
    '/_security/api_key',
    '/_scripts/1',
    '/_ml/trained_models/_stats?filter_path=**.deployment_stats.state',
    '/_tasks?actions=*reindex*&filter_path=nodes',
  ];
  await server.request('POST', '/_refresh');
  return Promise.all(paths.map(async (path) => [path, (await server.request('GET', path)).body as unknown]));
}

/** Whether an answer refuses in the documented shape; what is wrong with it otherwise. */
function complaint({ status, body, text }: Answer): string | undefined {
  const shown = `${String(status)} ${text.slice(0, 300)}`;
  if (status < 400 || status >= 500) return shown;
  if (typeof body?.error === 'string') return body.status === undefined || body.status === status ? undefined : shown;
  const { error } = body ?? {};
  const causes = error?.root_cause as unknown;
  // The form of OpenAI's interface.
  if (typeof error?.message === 'string') {
    return /^message,type,param,code(,stack_trace)?$/.test(Object.keys(error as object).join()) ? undefined : shown;
  }
  const good =
    body?.status === status &&
    typeof error?.type === 'string' &&
    typeof error?.reason === 'string' &&
    Array.isArray(causes) &&
    causes.length > 0;
  return good ? undefined : shown;
}

/** Items of a bulk request or a search among several fail one by one. */
function complaintOfItems(answer: Answer): string | undefined {
  if (answer.status !== 200) return complaint(answer);
  const { errors, responses } = answer.body as { errors?: boolean; responses?: { error?: unknown }[] };
  return errors === true || responses?.every(({ error }) => error !== undefined) === true ? undefined : answer.text;
}

/** A query that cannot be read is not valid: that is what was asked. */
function complaintOfQuery(answer: Answer): string | undefined {
  return answer.status === 200 && answer.body.valid === false ? undefined : complaint(answer);
}

const authorized = ENDPOINTS.filter(({ action, method }) => action !== 'public' && method !== 'HEAD');
const title = ({ method, path }: Endpoint): string => `${method} ${path}`;

/** Tries requests that must all be refused, and sees that nothing changed. */
async function tryAll(
  requests: readonly (readonly [name: string, send: () => Promise<string | undefined>])[],
): Promise<void> {
  const before = await state();
  const wrong: string[] = [];
  for (const [name, send] of requests) {
    const problem = await send();
    if (problem !== undefined) wrong.push(`${name}: ${problem}`);
  }
  expect(wrong).toEqual([]);
  expect(await state(), 'the state as it was').toEqual(before);
}

describe('parameters', () => {
  it.each(authorized.map((endpoint) => [title(endpoint), endpoint] as const))('%s refuses', async (_, endpoint) => {
    const { method } = endpoint;
    const body = endpoint.body ? BODIES[operationOf(endpoint)] : undefined;
    const send = (query: string) => (): Promise<string | undefined> =>
      server.request(method, `${pathOf(endpoint)}?${query}`, body).then(complaint);
    const ofType = endpoint.params.flatMap((name) => {
      const known = parameter(name);
      const values = known?.values === undefined ? (TYPES[known?.type ?? ''] ?? []) : ['nope'];
      return values.map((value) => `${name}=${encodeURIComponent(value)}`);
    });
    const unknown = async (): Promise<string | undefined> => {
      const answer = await server.request(method, `${pathOf(endpoint)}?zzz_unknown=1`, body);
      return answer.text.includes('unrecognized parameter: [zzz_unknown]') ? complaint(answer) : answer.text;
    };
    const queries = ['pretty=maybe', 'error_trace=maybe', 'human=maybe', 'format=nope', '%zz=1', 'pretty=%', ...ofType];
    await tryAll([['an unknown one', unknown], ...queries.map((query) => [query, send(query)] as const)]);
  });
});

describe('bodies', () => {
  const without = authorized.filter(({ body }) => !body);
  it.each(without.map((endpoint) => [title(endpoint), endpoint] as const))('%s takes none', async (_, endpoint) => {
    const send = (): Promise<string | undefined> =>
      server.request(endpoint.method, pathOf(endpoint), {}).then(complaint);
    await tryAll([['a body', send]]);
  });

  // Messages for agents have errors of their own, which test/api/mcp.test.ts tries.
  const taking = authorized.filter((endpoint) => endpoint.body && operationOf(endpoint) !== 'mcp');
  it.each(taking.map((endpoint) => [title(endpoint), endpoint] as const))('%s refuses', async (_, endpoint) => {
    const { method, ndjson = false } = endpoint;
    const operation = operationOf(endpoint);
    const example = BODIES[operation];
    const check = ndjson ? complaintOfItems : operation === 'validate_query' ? complaintOfQuery : complaint;
    const send =
      (body: string | Buffer | undefined, headers: Record<string, string> = JSON_TYPE) =>
      () =>
        server.request(method, pathOf(endpoint), body, { headers }).then(check);
    const text = typeof example === 'string' ? example : JSON.stringify(example);
    const requests: (readonly [string, () => Promise<string | undefined>])[] = [
      ['another type', send(text, { 'content-type': 'text/plain' })],
      ['no type', send(text, { 'content-type': '' })],
      ['a malformed type', send(text, { 'content-type': 'application/json; charset' })],
      ['another version', send(text, { 'content-type': 'application/vnd.elasticsearch+json;compatible-with=10' })],
      ['another encoding', send(text, { ...JSON_TYPE, 'content-encoding': 'rot13' })],
      ['no gzip', send(text, { ...JSON_TYPE, 'content-encoding': 'gzip' })],
      ['no zstd', send(text, { ...JSON_TYPE, 'content-encoding': 'zstd' })],
      ...MALFORMED.map(([name, body]) => [name, send(ndjson ? lined(operation, body) : body)] as const),
    ];
    if (NEEDS_BODY.has(operation)) requests.push(['no body', send(undefined, {})]);
    if (!ndjson && !DOCUMENTS.has(operation)) {
      requests.push(['an unknown key', send('{"zzz_unknown":1}')]);
      for (const [key, value] of Object.entries(example as object)) {
        // The pipeline of the path is the one that runs.
        if (key === 'pipeline' && endpoint.path.includes('{pipeline}')) continue;
        const member = `${JSON.stringify(key)}:${JSON.stringify(value)}`;
        requests.push([`[${key}] twice`, send(`{${member},${member}}`)]);
        for (const other of othersThan(value)) {
          requests.push([
            `[${key}] = ${JSON.stringify(other)}`,
            send(JSON.stringify({ ...(example as object), [key]: other })),
          ]);
        }
      }
    }
    for (const key of REQUIRED[operation] ?? []) {
      const rest = Object.entries(example as object).filter(([name]) => name !== key);
      requests.push([`without [${key}]`, send(JSON.stringify(Object.fromEntries(rest)))]);
    }
    await tryAll(requests);
  });
});

describe('texts that an answer repeats', () => {
  const long = (length: number): string => 'x'.repeat(length);
  const aggs = (a: object): object => ({ size: 0, aggs: { a } });
  const terms = { field: 'k' };
  const range = { field: 'n', ranges: [{ to: 1 }] };
  const all = { match_all: {} };
  const source = (name: string, more: object = {}): object => ({ [name]: { terms: { field: 'k', ...more } } });
  /** Bodies of searches with a text of some length, and the most that it may have. */
  const SEARCHES: readonly (readonly [string, number, (text: string) => object])[] = [
    ['the name of an aggregation', 1000, (text) => ({ size: 0, aggs: { [text]: { terms } } })],
    ['of one in another', 1000, (text) => aggs({ terms, aggs: { [text]: { stats: { field: 'n' } } } })],
    ['of a filter', 1000, (text) => aggs({ filters: { filters: { [text]: all } } })],
    ['of the other bucket', 1000, (text) => aggs({ filters: { filters: { a: all }, other_bucket_key: text } })],
    ['of a range', 1000, (text) => aggs({ range: { ...range, ranges: [{ key: text, to: 1 }] } })],
    ['of a range of dates', 1000, (text) => aggs({ date_range: { field: 'd', ranges: [{ key: text, to: 'now' }] } })],
    ['of a source', 1000, (text) => aggs({ composite: { sources: [source(text)] } })],
    ['of a set', 1000, (text) => aggs({ adjacency_matrix: { filters: { [text]: all } } })],
    ['a separator', 1000, (text) => aggs({ adjacency_matrix: { filters: { a: all }, separator: text } })],
    ['a missing value', 1000, (text) => aggs({ terms: { ...terms, missing: text } })],
    ['that of tuples', 1000, (text) => aggs({ multi_terms: { terms: [terms, { ...terms, missing: text }] } })],
    ['that of a sort', 1000, (text) => ({ sort: [{ k: { missing: text } }] })],
    ['that of a sort of hits', 1000, (text) => aggs({ top_hits: { sort: [{ k: { missing: text } }] } })],
    ['the name of a query', 1000, (text) => ({ query: { match_all: { _name: text } } })],
    ['of one inside', 1000, (text) => ({ query: { bool: { must: { term: { k: { value: 1, _name: text } } } } } })],
    ['of a retriever', 1000, (text) => ({ retriever: { standard: { query: all, _name: text } } })],
    ['of hits of a group', 1000, (text) => ({ collapse: { field: 'k', inner_hits: { name: text } } })],
    [
      'of hits of objects',
      1000,
      (text) => ({ query: { nested: { path: 'o', query: all, inner_hits: { name: text } } } }),
    ],
    ['a tag', 1000, (text) => ({ query: all, highlight: { pre_tags: [text], post_tags: '', fields: { t: {} } } })],
    [
      'a closing tag of a field',
      1000,
      (text) => ({ query: all, highlight: { fields: { t: { pre_tags: '', post_tags: [text] } } } }),
    ],
    [
      'a format of numbers',
      200,
      (text) => aggs({ histogram: { field: 'n', interval: 1, format: text.replaceAll('x', '0') } }),
    ],
    ['of a metric', 200, (text) => aggs({ max: { field: 'n', format: text.replaceAll('x', '#') } })],
    [
      'of dates',
      200,
      (text) => aggs({ date_histogram: { field: 'd', fixed_interval: '1d', format: `'${text.slice(2)}'` } }),
    ],
    [
      'of a source of dates',
      200,
      (text) =>
        aggs({
          composite: {
            sources: [
              { d: { date_histogram: { field: 'd', fixed_interval: '1d', format: `yyyy-MM-dd'${text.slice(12)}'` } } },
            ],
          },
        }),
    ],
    [
      'of what follows buckets',
      200,
      (text) => ({
        size: 0,
        aggs: {
          a: { terms, aggs: { m: { max: { field: 'n' } } } },
          b: { max_bucket: { buckets_path: 'a>m', format: text.replaceAll('x', '0') } },
        },
      }),
    ],
    ['of fields', 200, (text) => ({ fields: [{ field: 'd', format: `'${text.slice(2)}'` }] })],
    ['of columns', 200, (text) => ({ docvalue_fields: [{ field: 'd', format: `'${text.slice(2)}'` }] })],
    ['of a sort of dates', 200, (text) => ({ sort: [{ d: { format: `'${text.slice(2)}'` } }] })],
    ['notes of an aggregation', 10_000, (text) => aggs({ terms, meta: { a: text.slice('{"a":""}'.length) } })],
  ];

  beforeAll(async () => {
    const properties = {
      k: { type: 'keyword' },
      n: { type: 'integer' },
      d: { type: 'date' },
      t: { type: 'text' },
      o: { type: 'nested' },
    };
    await server.request('PUT', '/repeated', { mappings: { properties } });
    await server.request('PUT', '/repeated/_doc/1?refresh=true', { k: 'a', n: 1, d: '2026-01-01', t: 'words' });
  });
  afterAll(() => server.request('DELETE', '/repeated'));

  it.each(SEARCHES)('%s: at most %i characters', async (_, most, body) => {
    const fine = await server.request('POST', '/repeated/_search', body(long(most)));
    expect([fine.status, fine.status === 200 ? '' : fine.text]).toEqual([200, '']);
    for (const length of [most + 1, 100_000]) {
      const refused = await server.request('POST', '/repeated/_search', body(long(length)));
      expect(complaint(refused)).toBeUndefined();
      expect(refused.status).toBe(400);
      expect(refused.text).toMatch(new RegExp(`at most \\[${String(most)}\\] (characters )?are possible`, 'u'));
    }
  });

  // Each hit repeats it.
  it('of a field that a script makes', async () => {
    const body = { script_fields: { [long(1001)]: { script: '1' } } };
    expect((await server.request('POST', '/repeated/_search', body)).status).toBe(400);
  });

  it.each(['token_separator', 'filler_token'])('of _analyze: [%s]', async (name) => {
    const body = (length: number): object => ({
      text: 'a b',
      tokenizer: 'standard',
      filter: [{ type: 'shingle', [name]: long(length) }],
    });
    expect((await server.request('POST', '/_analyze', body(1000))).status).toBe(200);
    const refused = await server.request('POST', '/_analyze', body(1001));
    expect(complaint(refused)).toBeUndefined();
    expect(refused.text).toContain(`[${name}] of a [filter] is too long: at most [1000] characters`);
  });
});

/** Values of kinds that a value is not. Scalars are read from one another in many places, so those do not count. */
function othersThan(value: unknown): unknown[] {
  if (Array.isArray(value)) return [{ zzz_unknown: 1 }, 17];
  if (typeof value === 'object' && value !== null) return [['zzz'], 17];
  return [{ zzz_unknown: 1 }, [['zzz']]];
}

/** As the line of a document or a search, behind one with which nothing is wrong. */
function lined(operation: string, body: string | Buffer): Buffer {
  const head = operation === 'bulk' ? '{"index":{"_index":"books"}}' : '{"index":"books"}';
  return Buffer.concat([Buffer.from(`${head}\n`), Buffer.from(body), Buffer.from('\n')]);
}
