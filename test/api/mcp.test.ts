// The tools for agents, by the official client of the Model Context Protocol: over HTTP, and over standard input and output.
import { fileURLToPath } from 'node:url';

import { Client, type ClientOptions, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { fakeApp } from '../support/app.js';
import { type RunningServer, startServer } from '../support/server.js';

const CLI = fileURLToPath(new URL('../../packages/server/dist/cli.js', import.meta.url));

/** Revisions of the protocol: the newest one that has a handshake, and the one without. */
const WITH_HANDSHAKE = '2025-11-25';
const WITHOUT_HANDSHAKE = '2026-07-28';

const READING = ['list_indices', 'describe_index', 'search', 'get_document', 'similar', 'explain_hit'];
const WRITING = ['create_index', 'add_documents', 'delete_documents'];

const NOTES = [
  { id: 'cats', fields: { title: 'Cats', body: 'Cats sleep for most of the day.', tag: 'pets', year: 2019 } },
  { id: 'dogs', fields: { title: 'Dogs', body: 'A dog barks when the postman comes.', tag: 'pets', year: 2021 } },
  { id: 'bread', fields: { title: 'Bread', body: 'Dough rises because yeast makes gas.', tag: 'food', year: 2023 } },
];

let server: RunningServer;
/** A key that may only read `notes`, and one that may only write there. */
let readingKey: string;
let writingKey: string;
const opened: Client[] = [];

beforeAll(async () => {
  server = await startServer({ args: ['--mcp-write'] });
  const keyWith = async (name: string, privileges: readonly string[]): Promise<string> => {
    const role_descriptors = { one: { indices: [{ names: ['notes'], privileges }] } };
    const { body } = await server.request('POST', '/_security/api_key', { name, role_descriptors });
    return (body as { encoded: string }).encoded;
  };
  readingKey = await keyWith('reads', ['read']);
  writingKey = await keyWith('writes', ['create_doc']);
  await server.request('PUT', '/hidden');
  await server.request('PUT', '/numbers/_doc/1?refresh=true', { n: 1 });
  const agent = await overHttp();
  const fields = { title: 'text', body: 'semantic', tag: 'keyword', year: 'integer' };
  expect(await result(agent, 'create_index', { index: 'notes', fields })).toEqual({ index: 'notes', fields });
  expect(await result(agent, 'add_documents', { index: 'notes', documents: NOTES })).toEqual({
    created: 3,
    replaced: 0,
    ids: ['cats', 'dogs', 'bread'],
    failures: [],
  });
});

afterAll(async () => {
  for (const client of opened) await client.close();
  await server.stop();
});

async function connected(
  transport: StreamableHTTPClientTransport | StdioClientTransport,
  options?: ClientOptions,
): Promise<Client> {
  const client = new Client({ name: 'tests', version: '1' }, options);
  opened.push(client);
  await client.connect(transport);
  return client;
}

function overHttp(key = server.apiKey, options?: ClientOptions): Promise<Client> {
  const headers = { Authorization: `Bearer ${key}` };
  return connected(
    new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`), { requestInit: { headers } }),
    options,
  );
}

function overStdio(args: readonly string[] = [], options?: ClientOptions): Promise<Client> {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [CLI, 'mcp', '--url', server.url, ...args],
    env: { SPARROW_API_KEY: server.apiKey },
  });
  return connected(transport, options);
}

/** What a tool answers; its text has to say the same as its structure. */
async function result(client: Client, name: string, args: object): Promise<any> {
  const { content, structuredContent, isError } = await client.callTool({ name, arguments: { ...args } });
  const [text] = content as { text: string }[];
  expect([name, isError ?? false, text?.text]).toEqual([name, false, JSON.stringify(structuredContent)]);
  return structuredContent;
}

/** What a tool says that cannot do what it is asked. */
async function refusal(client: Client, name: string, args: object): Promise<string> {
  const { content, isError } = await client.callTool({ name, arguments: { ...args } });
  expect([name, isError]).toEqual([name, true]);
  return (content as { text: string }[])[0]?.text ?? '';
}

const idsOf = ({ hits }: { hits: readonly { id: string }[] }): string[] => hits.map(({ id }) => id);

const WAYS = [
  ['HTTP', () => overHttp(), WITH_HANDSHAKE],
  [
    'HTTP, without a handshake',
    () => overHttp(server.apiKey, { versionNegotiation: { mode: 'auto' } }),
    WITHOUT_HANDSHAKE,
  ],
  ['stdio', () => overStdio(), WITH_HANDSHAKE],
  ['stdio, without a handshake', () => overStdio([], { versionNegotiation: { mode: 'auto' } }), WITHOUT_HANDSHAKE],
] as const;

describe.each(WAYS)('over %s', (_name, connect, revision) => {
  let agent: Client;

  beforeAll(async () => {
    agent = await connect();
  });

  it('speaks the newest revision of the protocol that both know', () => {
    expect(agent.getNegotiatedProtocolVersion()).toBe(revision);
    expect(agent.getInstructions()).toContain('nothing_relevant');
  });

  it('shows what there is', async () => {
    expect(await result(agent, 'list_indices', {})).toEqual({
      indices: [
        { name: 'hidden', documents: 0, aliases: [] },
        { name: 'notes', documents: 3, aliases: [] },
        { name: 'numbers', documents: 1, aliases: [] },
      ],
    });
    const { documents, fields } = await result(agent, 'describe_index', { index: 'notes' });
    expect(documents).toBe(3);
    expect(fields).toEqual([
      { name: 'body', type: 'text', searched_by: 'words', filter: true },
      { name: 'body.semantic', type: 'semantic_text', searched_by: 'meaning', filter: false },
      {
        name: 'tag',
        type: 'keyword',
        filter: true,
        values: [
          { value: 'pets', documents: 2 },
          { value: 'food', documents: 1 },
        ],
      },
      { name: 'title', type: 'text', searched_by: 'words', filter: true },
      { name: 'year', type: 'long', filter: true, from: 2019, to: 2023 },
    ]);
  });

  it('finds by meaning, and says when nothing is relevant', async () => {
    const found = await result(agent, 'search', {
      index: 'notes',
      query: 'the mailman is greeted by a noisy animal',
      size: 1,
    });
    expect(found.hits).toEqual([
      {
        index: 'notes',
        id: 'dogs',
        relevance: expect.closeTo(0.26, 1),
        fields: { title: 'Dogs', tag: 'pets', year: 2021 },
        passages: [{ field: 'body.semantic', text: 'A dog barks when the postman comes.' }],
      },
    ]);
    expect(found).toMatchObject({ assessment: 'uncertain', next_page: 2 });
    const right = await result(agent, 'search', { index: 'notes', query: 'dough rises by the gas of yeast' });
    expect(right).toMatchObject({ assessment: 'relevant', hits: [{ id: 'bread' }, {}, {}] });
    expect(right).not.toHaveProperty('next_page');
    const low = await result(agent, 'search', { index: 'notes', query: 'how do I bake a fluffy loaf' });
    expect(low).toMatchObject({ assessment: 'uncertain', hits: [{ id: 'bread' }, {}, {}] });
    expect(low.hits[0].relevance).toBeLessThan(0.05);
    const wrong = await result(agent, 'search', { index: 'notes', query: 'quarterly revenue of software companies' });
    expect(wrong.assessment).toBe('nothing_relevant');
  });

  it('filters by values, lists, ranges and words, and reads pages', async () => {
    const search = (more: object): Promise<any> => result(agent, 'search', { index: 'notes', ...more });
    expect(idsOf(await search({ query: 'animals', filters: { tag: 'food' } }))).toEqual(['bread']);
    expect(idsOf(await search({ filters: { tag: ['food', 'pets'], year: { from: 2020, to: 2022 } } }))).toEqual([
      'dogs',
    ]);
    expect(idsOf(await search({ filters: { body: 'postman dog' } }))).toEqual(['dogs']);
    const pages = [1, 2, 3].map((page) => search({ query: 'animals that sleep', size: 1, page }));
    const found = await Promise.all(pages);
    expect(new Set(found.flatMap(idsOf)).size).toBe(3);
    expect(found.map((page) => page.next_page)).toEqual([2, 3, undefined]);
    expect(idsOf(await search({ query: 'dough rises by the gas of yeast', min_relevance: 0.3 }))).toEqual(['bread']);
  });

  it('reads a document, finds similar ones, and explains a hit', async () => {
    expect(await result(agent, 'get_document', { index: 'notes', id: 'cats' })).toEqual({
      index: 'notes',
      id: 'cats',
      fields: NOTES[0]?.fields,
    });
    const { hits } = await result(agent, 'similar', { index: 'notes', id: 'cats' });
    expect(idsOf({ hits })[0]).toBe('dogs');
    expect(idsOf({ hits })).not.toContain('cats');
    const asked = { index: 'notes', id: 'bread', query: 'dough rises by the gas of yeast' };
    const { lists, relevance } = await result(agent, 'explain_hit', asked);
    expect(lists.map((list: { searched_by: string }) => list.searched_by)).toEqual([
      'words',
      'meaning of words',
      'meaning of passages',
    ]);
    expect(lists[0].matches).toContainEqual({ field: 'body', term: 'yeast', strength: expect.any(Number) });
    expect(lists[1].matches[0]).toMatchObject({ field: 'body.semantic', text: expect.any(String) });
    const [first] = (await result(agent, 'search', { index: 'notes', query: asked.query })).hits;
    // Explained alone, a hit is as relevant as among others.
    expect([first.id, relevance]).toEqual(['bread', first.relevance]);
  });

  it.each([
    [
      'an index that is not there',
      'search',
      { index: 'note', query: 'x' },
      /^no such index \[note\]\. Did you mean \[notes\]\?$/,
    ],
    [
      'an index far from any other',
      'describe_index',
      { index: 'zzz' },
      /This key can search hidden, notes, numbers\.$/,
    ],
    [
      'a path as an index',
      'search',
      { index: '../_cluster/health', query: 'x' },
      /no such index|[Ii]nvalid index name/,
    ],
    ['no index', 'search', { query: 'x' }, /Invalid arguments for tool search: index/],
    ['no query', 'search', { index: 'notes' }, /^There is no query: say in words/],
    ['an empty query', 'search', { index: 'notes', query: ' \n' }, /^The query is empty/],
    ['a long query', 'search', { index: 'notes', query: 'x'.repeat(5000) }, /more than 4000/],
    ['a page too deep', 'search', { index: 'notes', query: 'x', page: 201 }, /^Page 201 is too deep/],
    ['a page too large', 'search', { index: 'notes', query: 'x', size: 1000 }, /size: .*<=20/],
    ['a misspelt argument', 'search', { index: 'notes', qeury: 'x' }, /Unrecognized key: "qeury"/],
    [
      'a misspelt field',
      'search',
      { index: 'notes', filters: { taag: 'x' } },
      /^There is no field \[taag\]\. Did you mean \[tag\]\?$/,
    ],
    [
      'a field that is searched by meaning',
      'search',
      { index: 'notes', filters: { 'body.semantic': 'x' } },
      /cannot be filtered by. Fields to filter by are body, tag, title, year\./,
    ],
    ['a value of another type', 'search', { index: 'notes', filters: { year: 'last' } }, /"last"/],
    [
      'a document that is not there',
      'get_document',
      { index: 'notes', id: 'a/b?' },
      /^There is no document with the id \[a\/b\?\] in \[notes\]/,
    ],
    [
      'fields that are not there',
      'get_document',
      { index: 'notes', id: 'cats', fields: ['texts'] },
      /It has title, body, tag, year\.$/,
    ],
    ['a document without texts', 'similar', { index: 'numbers', id: '1' }, /has no text to compare/],
    ['an explanation of nothing', 'explain_hit', { index: 'notes', id: 'gone', query: 'x' }, /^There is no document/],
  ])('tells what to do about %s', async (_what, name, args, expected) => {
    expect(await refusal(agent, name, args)).toMatch(expected);
  });
});

describe('tools', () => {
  it('say whether they only read, and have schemas of what they take and give', async () => {
    const { tools } = await (await overHttp()).listTools();
    expect(tools.map(({ name }) => name)).toEqual([...READING, ...WRITING]);
    for (const { name, annotations, inputSchema, outputSchema, description } of tools) {
      const hints = [annotations?.readOnlyHint, annotations?.destructiveHint, annotations?.openWorldHint];
      expect([name, ...hints]).toEqual([
        name,
        READING.includes(name),
        ['add_documents', 'delete_documents'].includes(name),
        false,
      ]);
      expect(inputSchema).toMatchObject({ type: 'object', additionalProperties: false });
      expect(outputSchema).toMatchObject({ type: 'object' });
      expect(description).toMatch(/^[A-Z].*\.$/);
    }
  });

  it('that write are there only where they were asked for', async () => {
    const names = async (agent: Client): Promise<string[]> => (await agent.listTools()).tools.map(({ name }) => name);
    const [reading, writing] = [await overStdio(), await overStdio(['--write'])];
    expect(await names(reading)).toEqual(READING);
    expect(await names(writing)).toEqual([...READING, ...WRITING]);
    // An agent that is asked to write can say how to let it.
    expect(reading.getInstructions()).toContain('`sparrow mcp --write`');
    expect(writing.getInstructions()).not.toContain('--write');
    for (const mcpWrite of [false, true]) {
      const { call } = await fakeApp({ mcpWrite });
      const listed = await call('POST', '/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/list' });
      const { result: list } = (await listed.json()) as { result: { tools: { name: string }[] } };
      expect(list.tools.map(({ name }) => name)).toEqual(mcpWrite ? [...READING, ...WRITING] : READING);
    }
  });

  it('write, replace and delete documents, and say which could not be', async () => {
    const agent = await overStdio(['--write']);
    await result(agent, 'create_index', { index: 'drafts', fields: { n: 'integer', at: 'date', ok: 'boolean' } });
    expect(await refusal(agent, 'create_index', { index: 'drafts', fields: {} })).toMatch(
      /^There is an index \[drafts\] already/,
    );
    expect(await refusal(agent, 'create_index', { index: 'Drafts', fields: {} })).toMatch(/must be lowercase/);
    const add = (...documents: object[]): Promise<any> =>
      result(agent, 'add_documents', { index: 'drafts', documents });
    expect(await add({ id: 'a', fields: { n: 1 } }, { id: 'b', fields: { n: 'many' } }, { fields: { n: 2 } })).toEqual({
      created: 2,
      replaced: 0,
      ids: ['a', expect.any(String)],
      failures: [{ position: 1, id: 'b', reason: expect.stringContaining('failed to parse field [n]') }],
    });
    expect(await add({ id: 'a', fields: { n: 3 } })).toMatchObject({ created: 0, replaced: 1 });
    const deleted = await result(agent, 'delete_documents', { index: 'drafts', ids: ['a', 'z'] });
    expect(deleted).toEqual({ deleted: 1, not_found: ['z'], failures: [] });
    // A misspelt name makes no index.
    const misspelt = { index: 'draft', documents: [{ fields: {} }] };
    expect(await refusal(agent, 'add_documents', misspelt)).toMatch(/Did you mean \[drafts\]\?/);
    await server.request('DELETE', '/drafts');
  });

  it('show long texts in parts, and cut what is long in hits', async () => {
    const agent = await overHttp();
    const text = `${'word '.repeat(3000)}end`;
    const fields = {
      body: text,
      title: 'long',
      many: Array.from({ length: 50 }, (_, n) => n),
      deep: { a: { b: { c: { d: 1 } } } },
    };
    await server.request('PUT', '/long/_doc/1?refresh=true', fields);
    const { hits } = await result(agent, 'search', { index: 'long', query: 'end' });
    expect(hits[0].cut).toEqual(['body', 'many', 'deep']);
    expect(hits[0].fields.body).toHaveLength(301);
    expect(hits[0].fields.many).toHaveLength(10);
    expect(hits[0].passages[0].text).toMatch(/end$/);
    const first = await result(agent, 'get_document', { index: 'long', id: '1' });
    expect(first.fields).toMatchObject({ title: 'long', many: fields.many, deep: fields.deep });
    const second = await result(agent, 'get_document', {
      index: 'long',
      id: '1',
      fields: ['body', 'title'],
      offset: first.next_offset,
    });
    expect(first.fields.body + second.fields.body).toBe(text);
    expect(Object.keys(second.fields)).toEqual(['body']);
    expect(second).not.toHaveProperty('next_offset');
    await server.request('DELETE', '/long');
  });
});

it('refuses to read a document of very many values, and shows the beginning of one of many', async () => {
  const agent = await overHttp(server.apiKey);
  await server.request('PUT', '/wide', { mappings: { properties: { a: { type: 'object', enabled: false } } } });
  const empty = (count: number): object => ({ a: Array.from({ length: count }, () => ({})), title: 'wide' });
  await server.request('PUT', '/wide/_doc/1', empty(200_000));
  await server.request('PUT', '/wide/_doc/2', empty(45_000));
  const refused = await agent.callTool({ name: 'get_document', arguments: { index: 'wide', id: '1' } });
  expect(refused.isError).toBe(true);
  expect(JSON.stringify(refused.content)).toContain('values, which is too much');
  const { fields, left_out: leftOut } = await result(agent, 'get_document', { index: 'wide', id: '2' });
  expect([Object.keys(fields), leftOut]).toEqual([['a'], ['title']]);
  expect(fields.a).toMatch(/^\[\{\},\{\}.*…$/);
  await server.request('DELETE', '/wide');
});

describe('a key', () => {
  it('that only reads one index sees nothing of others, and writes nothing', async () => {
    const agent = await overHttp(readingKey);
    expect(await result(agent, 'list_indices', {})).toEqual({
      indices: [{ name: 'notes', documents: 3, aliases: [] }],
    });
    const described = await result(agent, 'describe_index', { index: 'notes' });
    expect(described.note).toContain('view_index_metadata');
    const { hits } = await result(agent, 'search', { index: '*', query: 'dough rises by the gas of yeast', size: 1 });
    expect(hits).toMatchObject([
      { id: 'bread', fields: { tag: 'food', body: 'Dough rises because yeast makes gas.' } },
    ]);
    const refused = /^The API key may not do this: action \[.*\] is unauthorized.*This key can search notes\.$/;
    for (const [name, args] of [
      ['search', { index: 'hidden', query: 'x' }],
      ['search', { index: 'nowhere', query: 'x' }],
      ['get_document', { index: 'hidden', id: '1' }],
      ['add_documents', { index: 'notes', documents: [{ fields: {} }] }],
      ['delete_documents', { index: 'notes', ids: ['cats'] }],
      ['create_index', { index: 'mine', fields: {} }],
    ] as const) {
      expect(await refusal(agent, name, args)).toMatch(refused);
    }
    expect((await server.request('GET', '/notes/_count')).body).toMatchObject({ count: 3 });
  });

  it('that only writes is shown nothing', async () => {
    const agent = await overHttp(writingKey);
    expect(await result(agent, 'list_indices', {})).toEqual({ indices: [] });
    expect(await refusal(agent, 'search', { index: 'notes', query: 'x' })).toMatch(/This key can search no index\.$/);
  });

  it('that is none is refused', async () => {
    await expect(overHttp('bm9uZTpub25l')).rejects.toThrow();
    const agent = await overStdio(['--key', 'bm9uZTpub25l']);
    expect(await refusal(agent, 'list_indices', {})).toMatch(/^The server does not take the API key/);
    const lost = await overStdio(['--url', 'http://127.0.0.1:9']);
    expect(await refusal(lost, 'list_indices', {})).toMatch(/^The server could not be asked: /);
  });
});

describe('a message', () => {
  const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
  const post = (body: unknown, headers: Record<string, string> = {}, apiKey?: null) =>
    server.request('POST', '/mcp', body, { headers, ...(apiKey === undefined ? {} : { apiKey }) });

  it('from the page of another site is refused, whatever the key', async () => {
    const host = new URL(server.url).host;
    for (const origin of [
      'http://evil.example',
      'null',
      `http://${host}.evil.example`,
      'http://localhost.evil.example',
      'https://evil.example',
      'nonsense',
      'http://10.0.0.1',
    ]) {
      expect([origin, (await post(ping, { origin })).status]).toEqual([origin, 403]);
    }
    // Led here by its name, a page sends the same name twice.
    const rebound = { origin: 'http://evil.example:9200', host: 'evil.example:9200' };
    expect((await post(ping, rebound)).body).toMatchObject({ error: { type: 'security_exception' }, status: 403 });
    expect((await post(ping, rebound, null)).status).toBe(403);
    for (const origin of ['http://localhost:3000', 'http://127.0.0.1:1', 'http://[::1]:1', server.url]) {
      expect([origin, (await post(ping, { origin })).body]).toEqual([origin, { jsonrpc: '2.0', id: 1, result: {} }]);
    }
    const own = { origin: 'https://search.example', host: 'search.example' };
    expect((await post(ping, own)).status).toBe(200);
  });

  it('needs a key, and a method that takes it', async () => {
    expect((await post(ping, {}, null)).status).toBe(401);
    expect((await server.request('GET', '/mcp')).status).toBe(405);
    expect((await server.request('DELETE', '/mcp')).status).toBe(405);
    for (const [method, path, body] of [
      ['PUT', '/mcp', {}],
      ['PUT', '/mcp/_doc/1', { n: 1 }],
      ['PUT', '/other', { aliases: { mcp: {} } }],
    ] as const) {
      const { status, text } = await server.request(method, path, body);
      expect([status, text], path).toEqual([
        400,
        expect.stringContaining('must not be the path of the tools for agents'),
      ]);
    }
  });

  it('that makes no sense, or is too large, is refused', async () => {
    expect((await post(Buffer.from('{'), { 'content-type': 'application/json' })).body).toMatchObject({
      error: { code: -32700 },
    });
    expect((await post({ jsonrpc: '1.0' })).status).toBe(400);
    expect((await post(Array.from({ length: 21 }, (_, id) => ({ ...ping, id })))).status).toBe(400);
    const listen = { method: 'subscriptions/listen', params: { notifications: {} } };
    expect((await post({ jsonrpc: '2.0', id: 1, ...listen })).text).toContain('"error"');
    const call = (args: object): object => ({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'search', arguments: args },
    });
    expect((await post(call({ index: 'notes', query: 'x'.repeat(300_000) }))).status).toBe(413);
    const filters = Object.fromEntries(Array.from({ length: 5000 }, (_, n) => [`f${String(n)}`, n]));
    expect((await post(call({ index: 'notes', query: 'x', filters }))).text).toContain('more than 20 filters');
    const deep = `${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}`;
    const bytes = Buffer.from(
      JSON.stringify(call({ index: 'notes', query: 'x', filters: 'HERE' })).replace('"HERE"', deep),
    );
    const reasonOf = async (body: unknown): Promise<unknown> => (await post(body, json)).body.error?.reason;
    const json = { 'content-type': 'application/json' };
    expect(await reasonOf(bytes)).toBe('levels of lists and objects in one request are more than [150]; send fewer');
    const ones = (count: number): number[] => Array<number>(count).fill(1);
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    expect(await reasonOf(call({ vector: ones(20_000) }))).toMatch(
      /^\[200\d\d\] values in one request are more than \[20000\]/,
    );
    expect(await reasonOf(call({ vector: ones(19_900) }))).toBeUndefined();
    expect(await reasonOf({ ...list, params: { _meta: ones(1000) } })).toContain(
      'values that are no arguments of a tool in one request are more than [1000]',
    );
    // Commas and brackets in a text are no values.
    expect((await post(call({ index: 'notes', query: '[,"{\\'.repeat(20_000) }))).text).toContain('more than 4000');
    expect((await server.request('GET', '/_health')).body).toEqual({ status: 'ready' });
  });
});
